package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/httpapi/problem"
	"github.com/semel-dev/semel/retryhttp"
)

// HTTPOptions configure [HTTP].
type HTTPOptions struct {
	// Authorize sets credentials, and whatever else must be fresh, on each request.
	// An error means that nothing was sent; it is tried again. Defaults to nothing.
	Authorize func(ctx context.Context, req *http.Request) error
	// Transport sends. Defaults to [http.DefaultTransport]. What it repeats by itself
	// is switched off where it is net/http's, and counted anyway.
	Transport http.RoundTripper
	// MaxAnswer is how many bytes of an answer are kept. A longer one counts all the
	// same, without a result. Defaults to 1 MiB.
	MaxAnswer int64
}

// HTTP makes an API of a contract. Its Submit sends the intent's request as the
// journal has it, with the key where the contract wants it. Where the contract has a
// look-up, set [API.LookUp].
func HTTP(c contract.Contract, options *HTTPOptions) *API {
	a := &API{Contract: c}
	s := newSender(&a.Contract, options, 1<<20)
	a.Submit = s.submit
	a.prepare = func(in *Intent) error { return prepareHTTP(&a.Contract, in) }
	return a
}

// Bearer attaches a bearer token.
func Bearer(token string) func(context.Context, *http.Request) error {
	return func(_ context.Context, req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
}

// sender sends requests of the journal over HTTP.
type sender struct {
	contract  *contract.Contract
	transport *retryhttp.Transport // for what changes something: sends once, and counts
	reads     http.RoundTripper
	authorize func(context.Context, *http.Request) error
	limit     int64
}

func newSender(c *contract.Contract, options *HTTPOptions, limit int64) *sender {
	s := &sender{contract: c, reads: http.DefaultTransport, limit: limit}
	if options != nil {
		if options.Transport != nil {
			s.reads = options.Transport
		}
		if options.MaxAnswer > 0 {
			s.limit = options.MaxAnswer
		}
		s.authorize = options.Authorize
	}
	s.transport = retryhttp.New(s.reads, &retryhttp.Options{AttemptTimeout: -1, Budget: -1}) // the client's context ends it
	return s
}

// submit sends the intent's request once.
func (s *sender) submit(ctx context.Context, in Intent) Sent {
	t, failed := s.transmit(ctx, in, in.Method, nil)
	if failed != nil {
		return *failed
	}
	sent := Sent{Proof: t.Proof, Answer: t.Answer, AttemptID: t.AttemptID}
	if t.Answer == nil {
		return sent
	}
	if p, ok := problem.Decode(t.Answer.Status, t.Answer.Header, t.Answer.Body); ok {
		sent.problem = &p
	}
	if t.Proof.Proves == contract.Applied && json.Valid(t.Answer.Body) {
		sent.Result = bytes.Clone(t.Answer.Body)
	}
	return sent
}

// transmit sends a request under the intent's key. A failure is one that nothing
// was sent of.
func (s *sender) transmit(ctx context.Context, in Intent, method string, header http.Header) (*retryhttp.Transmission, *Sent) {
	call := retryhttp.Call{Key: in.Key, Contract: s.contract}
	if s.contract.Carrier.FirstSent != "" {
		call.FirstSent = in.FirstSent
	}
	var body []byte
	if method == in.Method {
		body = in.Body
	}
	req, err := http.NewRequestWithContext(retryhttp.With(ctx, call), method, in.URL, bytes.NewReader(body))
	if err != nil {
		return nil, notSent("not_built", "no request can be made of this intent")
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", in.ContentType)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if s.authorize != nil {
		if err := s.authorize(ctx, req); err != nil {
			return nil, notSent("no_credentials", "no credentials could be had") // the error may hold a secret
		}
	}
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		return nil, notSent("too_late", "the time for this transmission had passed before it began")
	}
	t, err := s.transport.Send(req, s.limit)
	if err != nil {
		var known *retryhttp.Error
		if errors.As(err, &known) && known.Sends > 0 {
			return nil, &Sent{Proof: known.Evidence.Last}
		}
		return nil, notSent("not_built", "the request can't be sent as it is, or the caller gave up before")
	}
	return t, nil
}

// notSent is what came of a transmission that was not begun.
func notSent(cause contract.Cause, why string) *Sent {
	return &Sent{Proof: contract.Proof{Proves: contract.NotSent, Reach: contract.ReachThis, Cause: cause, Reason: "nothing was sent: " + why}}
}

// prepareHTTP completes an intent for an HTTP API, and refuses one that can't be
// sent, or sent again.
func prepareHTTP(c *contract.Contract, in *Intent) error {
	if in.Method == "" {
		in.Method = http.MethodPost
	}
	if in.ContentType == "" && len(in.Body) > 0 {
		in.ContentType = "application/json"
	}
	switch in.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return invalid("a %s changes nothing: there is nothing to be done once", in.Method)
	}
	u, err := url.Parse(in.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return invalid("the URL must be a whole one, with http or https")
	}
	if u.User != nil || u.Fragment != "" {
		return invalid("the URL must hold no credentials and no fragment")
	}
	if _, err := http.NewRequest(in.Method, in.URL, nil); err != nil {
		return invalid("no request can be made of method and URL")
	}
	if !in.AcceptUntil.IsZero() {
		return invalid("AcceptUntil is for Semel servers")
	}
	return prepareKey(c, in)
}

// prepareKey makes the key where none is given, and checks that it can travel.
func prepareKey(c *contract.Contract, in *Intent) error {
	g := c.Key
	g.Quoting = contract.Bare
	if in.Key == "" {
		in.Key = in.ID
		if g.CheckKey(in.Key) != nil {
			var err error
			if in.Key, err = g.FormatKey(semel.Key{Kind: in.Kind, ID: in.ID}.String()); err != nil {
				return invalid("no key can be made under contract %q: %v", c.Name, err)
			}
		}
	}
	if err := g.CheckKey(in.Key); err != nil {
		return invalid("the key can't be used under contract %q: %v", c.Name, err)
	}
	for _, place := range append([]contract.Place{c.Carrier.Place}, c.Carrier.Or...) {
		switch place.In {
		case contract.InHeader, contract.InQuery, "":
			return nil // put there with each transmission
		case contract.InPath:
			if strings.Contains(in.URL, url.PathEscape(in.Key)) {
				return nil
			}
		case contract.InBody, contract.InDirective:
			if text, err := json.Marshal(in.Key); err == nil && bytes.Contains(in.Body, text) {
				return nil
			}
		}
	}
	return invalid("contract %q has the key in the %s, and it does not stand there: give the intent an ID, and build the request with it", c.Name, c.Carrier.In)
}
