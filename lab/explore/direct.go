package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/client"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/lab/history"
)

const serviceURL = "http://service.example/charges/"

// direct is a program with a durable client that calls the external service by
// itself, under the service's contract.
func (w *world) direct(ctx context.Context) {
	u := w.newUser("one", "one")
	key := w.newKey()
	u.api = func(http.RoundTripper) (*client.API, error) {
		api := client.HTTP(w.contract, &client.HTTPOptions{Transport: serviceWire{u}})
		if w.contract.LookUp.By != "" {
			api.LookUp = u.lookUp
		}
		return api, nil
	}
	u.url = serviceURL + key.ID
	begun := w.base.time()
	u.insist(ctx, func(ctx context.Context, c *client.Client) error {
		e, err := c.Begin(ctx, u.intent(key.ID))
		if err != nil {
			return err
		}
		return u.submit(ctx, c, e)
	})
	for len(w.delayed) > 0 {
		w.advance(5 * time.Second)
	}
	for _, arrive := range w.strays {
		arrive()
	}
	// Where the service can tell, and had no time to forget, the client has found out.
	if n := w.service.total(); n > 0 && !w.contract.Shape().Opaque() && w.base.time().Sub(begun) < w.forgets() {
		w.add(history.Event{What: history.Final, Key: key, Operation: &semel.Operation{Key: key, State: semel.Succeeded, Result: json.RawMessage(done)}})
	}
}

// done is what the service answers.
const done = `{"done":true}`

// forgets is after how long the service may not know a key any more.
func (w *world) forgets() time.Duration {
	if kept := w.contract.Retention.Minimum.D(); kept > 0 {
		return kept
	}
	return 1 << 62
}

// serviceWire is the network between a user and the service.
type serviceWire struct{ u *user }

func (t serviceWire) RoundTrip(req *http.Request) (*http.Response, error) {
	w := t.u.w
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	key := semel.Key{Account: account, Kind: kindName, ID: strings.TrimPrefix(req.URL.String(), serviceURL)}
	m := &letter{method: req.Method, path: req.URL.Path, header: req.Header.Clone(), body: body, where: toServer, die: t.u.crash,
		event: history.Event{What: history.Sent, By: t.u.name, Verb: "PUT", Key: key, Content: string(body)}}
	if t.u.dead {
		m.die()
	}
	answer, err := w.exchange(req.Context(), m, w.service.take)
	if err == nil {
		answer.Request = req
	}
	return answer, err
}

// take is the service's end of the wire. What it can't tell apart is not sent twice
// by this network, which is not the client's doing.
func (s *service) take(m *letter) *http.Response {
	knows := m.header.Get("Idempotency-Key")
	if knows == "" {
		knows = m.event.Key.ID
	}
	idempotent := s.w.contract.Shape().Idempotent
	if !m.copied || idempotent && s.w.base.time().Sub(s.since[knows]) < s.w.forgets() {
		s.arrive(m.event.Key, knows)
	}
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(bytes.NewReader([]byte(done)))}
}

// lookUp asks the service.
func (u *user) lookUp(_ context.Context, in client.Intent) client.Seen {
	switch u.meet(toRead) {
	case ErrorAfter:
		return client.Seen{}
	case CrashAfter:
		u.crash()
	}
	if u.w.service.effects[in.ID] > 0 {
		return client.Seen{Found: contract.FoundSucceeded, Result: json.RawMessage(done)}
	}
	return client.Seen{Found: contract.FoundNothing}
}
