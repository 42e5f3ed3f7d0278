package labtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/idempotency"
	"github.com/semel-dev/semel/lab/history"
	"github.com/semel-dev/semel/lab/internal/child"
	"github.com/semel-dev/semel/lab/internal/expect"
)

// A Handler is a handler of yours that says of itself that a request with a key may
// be repeated, and how its effects can be counted.
type Handler struct {
	// New builds the handler with all that it needs, in each server process anew. What
	// it has to remember must be in Place.Database or in Place.Dir.
	New func(context.Context, Place) (http.Handler, error)
	// Contract is what the handler promises about repeats; its key must travel in a
	// header. Defaults to what package idempotency offers.
	Contract *contract.Contract
	// Service is the external service that the handler calls, a fake of yours. It runs
	// in the test's own process and outlives all servers. Defaults to none, for a
	// handler whose effect is in its database.
	Service http.Handler
	// Request makes a request for an effect of that id, with everything but the key:
	// credentials, body, and a URL without a host. It is called for every send.
	Request func(id string) *http.Request
	// Changed makes another request for the same id. Defaults to that of Request with
	// one more member in its JSON object.
	Changed func(id string) *http.Request
	// Count is how often the effect of that id happened.
	Count func(place Place, id string) (int, error)

	// Kills is how often the server is killed at moments spread over one request.
	// Defaults to 10.
	Kills int
	// Store is "sqlite", or the postgres:// URL of a database for tests. Defaults to
	// the environment's SEMEL_LAB_STORE, or else to sqlite.
	Store string
}

func (h *Handler) check() error {
	var errs []error
	for _, field := range []struct {
		name    string
		missing bool
	}{{"New", h.New == nil}, {"Request", h.Request == nil}, {"Count", h.Count == nil}} {
		if field.missing {
			errs = append(errs, fmt.Errorf("labtest: Handler.%s is missing", field.name))
		}
	}
	if h.Contract == nil {
		c := idempotency.DefaultContract()
		h.Contract = &c
	}
	if h.Contract.Carrier.In != contract.InHeader {
		errs = append(errs, errors.New("labtest: the contract's key does not travel in a header"))
	}
	if h.Kills <= 0 {
		h.Kills = 10
	}
	return errors.Join(append(errs, h.Contract.Validate())...)
}

// patience is how long a row may take: after each kill, a lease of the handler's may
// have to end.
func (h *Handler) patience() time.Duration { return time.Duration(2+h.Kills) * time.Minute }

// TestHandler plays every interruption with a handler of yours: what the network can
// do to a request, and what becomes of it when its server is killed. Each is a
// subtest below "handler". The package comment says which there are.
func TestHandler(t *testing.T, h Handler) {
	t.Helper()
	if err := h.check(); err != nil {
		t.Fatal(err)
	}
	inChild(t, h.serve)
	enter(t)
	test := t.Name()
	t.Run("handler", func(t *testing.T) { // ends when all rows have
		for _, row := range handlerRows {
			if row.outside && h.Service == nil || row.sleeps && !child.CanStop {
				continue
			}
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				r := newHandlerRun(t, test, h)
				rules(t, r.front, row.rules)
				if r.net != nil {
					rules(t, r.net, row.service)
				}
				r.want = row.want
				row.play(r)
				r.conclude()
				r.finish(row.what)
			})
		}
	})
}

// serve is a server process.
func (h *Handler) serve(ctx context.Context, s setup) error {
	handler, err := h.New(ctx, s.Place)
	if err != nil {
		return err
	}
	ctx, stop := child.UntilOrphaned(ctx, os.Stdin)
	defer stop()
	return child.Serve(ctx, handler)
}

// A handlerRun is one row with its server.
type handlerRun struct {
	*row
	h      Handler
	want   expect.Want
	door   *child.Door
	server *child.Process
	front  *fault.Proxy // before the server
	base   string       // where clients go
	client *http.Client

	key     semel.Key
	told    account
	counted int
}

func newHandlerRun(t *testing.T, test string, h Handler) *handlerRun {
	r := &handlerRun{row: newRow(t, test, h.Store, h.Service, h.patience()), h: h}
	var err error
	r.door, err = child.NewDoor()
	r.must(err)
	t.Cleanup(func() { r.door.Close() })
	r.front, r.base = r.proxy(r.door.URL)
	r.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r.restart()
	r.next(r.id)
	return r
}

// restart kills the server, if there is one, and starts another one.
func (r *handlerRun) restart() {
	r.t.Helper()
	if r.server != nil {
		r.server.Kill()
	}
	r.server = r.start(setup{}, r.door.File)
}

// next turns to another intent.
func (r *handlerRun) next(id string) {
	r.id = id
	r.key = semel.Key{Account: "labtest", Kind: "handler", ID: id}
}

// A reply is one answer, and what it proves.
type reply struct {
	status int
	body   string
	proof  contract.Proof
	wait   time.Duration
}

// state is what the caller knows now, in the words of an operation.
func (a reply) state() semel.State {
	switch a.proof.Proves {
	case contract.Applied:
		return semel.Succeeded
	case contract.Refused:
		return semel.Failed
	}
	return semel.NeedsReconciliation
}

// final: asking again would change nothing.
func (a reply) final() bool {
	switch a.proof.Proves {
	case contract.Applied, contract.Refused:
		return true
	}
	return a.proof.Cause == contract.CauseInDoubt || a.proof.Cause == contract.CauseUnlisted || a.proof.Final
}

// send sends the request once, and takes down what came of it.
func (r *handlerRun) send(ctx context.Context, build func(string) *http.Request) (reply, error) {
	req := build(r.id).WithContext(ctx)
	base, err := url.Parse(r.base)
	if err != nil {
		return reply{}, err
	}
	wire, err := r.h.Contract.FormatKey(r.id)
	if err != nil {
		return reply{}, err
	}
	req.URL.Scheme, req.URL.Host, req.Host, req.GetBody = base.Scheme, base.Host, "", nil
	req.Header.Set(r.h.Contract.Carrier.Name, wire)
	content, err := content(req)
	if err != nil {
		return reply{}, err
	}
	e := history.Event{What: history.Sent, At: time.Now(), Verb: "PUT", Key: r.key, Content: content, Attempt: strconv.Itoa(int(r.sent.Add(1)))}
	r.rec.Add(e)
	got, err := r.exchange(req)
	e.At, e.What = time.Now(), history.Silent
	if err == nil {
		e.What = history.Answered
		if got.proof.Proves == contract.Applied {
			e.Operation = r.operation(got)
		} else {
			e.Code = semel.Code(fmt.Sprint(got.status, " ", got.proof.Code))
		}
	}
	r.rec.Add(e)
	return got, err
}

// content reads a request's body, and puts it back.
func content(req *http.Request) (string, error) {
	if req.Body == nil {
		return "", nil
	}
	text, err := io.ReadAll(req.Body)
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return string(text), err
}

func (r *handlerRun) exchange(req *http.Request) (reply, error) {
	resp, err := r.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err
	}
	proof := r.h.Contract.Classify(contract.Request{Method: req.Method, Keyed: true, Replayable: true}, contract.Wire{Arrival: contract.ArrivedComplete},
		&contract.Answer{Status: resp.StatusCode, Header: resp.Header, Body: body})
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return reply{resp.StatusCode, string(body), proof, time.Duration(seconds) * time.Second}, nil
}

// operation is what an answer tells, as the record of an operation would: two
// answers that tell different things can't both be true.
func (r *handlerRun) operation(a reply) *semel.Operation {
	op := &semel.Operation{Key: r.key, State: a.state(), Revision: 1}
	if r.h.Contract.Replay.Form == contract.ReplayBytes {
		op.Result = fmt.Appendf(nil, "%d %s", a.status, a.body)
	}
	return op
}

// ask sends the same request until an answer says how it ended.
func (r *handlerRun) ask() reply {
	r.t.Helper()
	a, err := r.answered(r.ctx)
	if err != nil {
		r.must(fmt.Errorf("no answer says how it ended; the last one: %d %s, %s, %w", a.status, a.body, a.proof.Reason, err))
	}
	return a
}

// answered does so until ctx ends, as a careful client does: it waits as long as it
// is asked to.
func (r *handlerRun) answered(ctx context.Context) (reply, error) {
	for {
		a, err := r.send(ctx, r.h.Request)
		if err == nil && a.final() {
			return a, nil
		}
		if stopped := pause(ctx, max(a.wait, 20*time.Millisecond)); stopped != nil {
			return a, errors.Join(err, stopped)
		}
	}
}

// conclude asks once more, counts, and compares with what is wanted of this intent.
func (r *handlerRun) conclude() {
	r.t.Helper()
	last := r.ask()
	r.quiet(r.front, r.net)
	n, err := r.h.Count(r.place, r.id)
	r.must(err)
	for range n {
		r.rec.Add(history.Event{What: history.Effect, Key: r.key})
	}
	final := history.Event{What: history.Final, Key: r.key, Operation: r.operation(last)}
	r.rec.Add(final)
	if wrong := r.want.Wrong(n, last.state()); wrong != nil {
		r.told.wrong = append(r.told.wrong, append(wrong, "the last answer: "+last.proof.Reason)...)
	}
	r.counted++
	r.told.effects += n
	if r.told.visible == "" || last.state() != semel.Succeeded {
		r.told.visible = string(last.state())
	}
}

func (r *handlerRun) finish(what string) {
	r.t.Helper()
	r.told.want, r.told.operations, r.told.history = r.want, r.counted, r.rec.History(map[string]history.Promise{"handler": {Unknown: slices.Contains(r.want.States, semel.NeedsReconciliation)}})
	r.judge(what, r.told, r.front, r.net)
}
