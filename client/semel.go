package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/httpapi/problem"
	"github.com/semel-dev/semel/retryhttp"
)

// SemelOptions configure [Semel].
type SemelOptions struct {
	// Authorize sets credentials on each request; see [Bearer]. An error means that
	// nothing was sent; it is tried again. Defaults to nothing.
	Authorize func(ctx context.Context, req *http.Request) error
	// Account is the account that the credentials belong to. It is written down with
	// each intent, and intents of another account are not touched. Defaults to what
	// the first answer says.
	Account string
	// Transport and MaxAnswer are as in [HTTPOptions]; MaxAnswer defaults to 16 MiB.
	Transport http.RoundTripper
	MaxAnswer int64
	// Contract is the server's. Defaults to the preset [contract.Semel].
	Contract *contract.Contract
}

// Semel is the API of a Semel server, whose operations are below
// baseURL + "/v1/operations". Errors are [semel.CodeInvalid].
func Semel(baseURL string, options *SemelOptions) (*API, error) {
	var o SemelOptions
	if options != nil {
		o = *options
	}
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, invalid("the base URL must be a whole one, without credentials, query and fragment")
	}
	if o.Account != "" && !semel.ValidName(o.Account) {
		return nil, invalid("the account is not an account's name")
	}
	a := &API{}
	if o.Contract != nil {
		a.Contract = *o.Contract
	} else if a.Contract, err = contract.Preset(contract.Semel); err != nil {
		return nil, err
	}
	s := &semelAPI{base: strings.TrimSuffix(baseURL, "/") + "/v1/operations/", account: o.Account}
	s.sender = newSender(&a.Contract, &HTTPOptions{Authorize: o.Authorize, Transport: o.Transport, MaxAnswer: o.MaxAnswer}, 16<<20)
	a.semel, a.Submit, a.prepare = s, s.put, s.prepare
	a.LookUp = func(ctx context.Context, in Intent) Seen { return s.get(ctx, in, "") }
	return a, nil
}

// semelAPI speaks Semel's own interface.
type semelAPI struct {
	*sender
	base    string
	account string
}

func (s *semelAPI) prepare(in *Intent) error {
	at := s.base + url.PathEscape(in.Kind) + "/" + url.PathEscape(in.ID)
	if in.Method != "" && in.Method != http.MethodPut || in.URL != "" && in.URL != at || in.Key != "" && in.Key != in.ID {
		return invalid("method, URL and key of an intent for a Semel server follow from its kind and ID")
	}
	in.Method, in.URL, in.Key = http.MethodPut, at, in.ID
	if in.ContentType == "" {
		in.ContentType = "application/json"
	}
	return nil
}

// mine reports why an intent of the journal must not be sent by this API, or nil.
func (s *semelAPI) mine(r *record) error {
	var e *semel.Error
	switch {
	case !strings.HasPrefix(r.URL, s.base):
		e = invalid("this intent was begun for another server")
		e.Hint = "a client for that server's URL can go on with it"
	case s.account != "" && r.Account != "" && r.Account != s.account:
		e = invalid("this intent was begun for another account")
		e.Hint = "a client with that account's credentials can go on with it"
	default:
		return nil
	}
	e.Key = r.key()
	return e
}

// put sends the intent once.
func (s *semelAPI) put(ctx context.Context, in Intent) Sent {
	header := http.Header{}
	if !in.AcceptUntil.IsZero() {
		header.Set("Accept-Until", in.AcceptUntil.Format(time.RFC3339Nano))
	}
	t, failed := s.transmit(ctx, in, http.MethodPut, header)
	if failed != nil {
		return *failed
	}
	return judge(in, t.Proof, t.Answer, t.AttemptID)
}

// abandon asks the server to make sure that it never happens.
func (s *semelAPI) abandon(ctx context.Context, in Intent) Sent {
	t, failed := s.transmit(ctx, in, http.MethodDelete, nil)
	if failed != nil {
		return *failed
	}
	return judge(in, t.Proof, t.Answer, t.AttemptID)
}

// judge takes from a server's answer what is about this operation, and believes
// nothing else. A success without the operation, or a refusal that does not say that
// nothing was recorded, may come from anybody on the way.
func judge(in Intent, proof contract.Proof, answer *contract.Answer, attempt string) Sent {
	sent := Sent{Proof: proof, Answer: answer, AttemptID: attempt}
	if answer == nil || proof.Cause == contract.CauseCutAnswer {
		return sent
	}
	if op := operationIn(in, answer.Body); op != nil && answer.Status/100 == 2 {
		sent.operation, sent.etag = op, answer.Header.Get("ETag")
		return sent.found(proof)
	}
	p, ok := problem.Decode(answer.Status, answer.Header, answer.Body)
	if !ok {
		return sent.doubt(contract.CauseIntermediary, "the answer does not come from a Semel server")
	}
	sent.problem = &p
	switch {
	case p.Code == semel.CodeMismatch && proof.Cause == contract.CauseMismatch:
		// The key belongs to another request. Ours has always been the same, so none
		// of its transmissions was recorded, or will be.
		sent.Proof.Reach = contract.ReachKey
	case p.Code == semel.CodeMismatch:
	case ours(in, p.Operation):
		op := *p.Operation
		op.Params = nil
		sent.operation = &op
		return sent.found(proof)
	case p.Code == semel.CodeExpired, p.Recorded == semel.RecordedNo:
	case proof.Proves == contract.Refused, proof.Proves == contract.NotApplied, proof.Proves == contract.Applied:
		return sent.doubt(contract.CauseUnlisted, "the answer does not say that nothing was recorded")
	}
	return sent
}

// found makes the proof that of an answer with the operation itself.
func (s Sent) found(proof contract.Proof) Sent {
	s.Proof = contract.Proof{Proves: contract.Applied, Reach: contract.ReachKey, Cause: contract.CauseSuccess, Status: proof.Status,
		Sends: proof.Sends, Replayed: proof.Replayed, WaitAtLeast: proof.WaitAtLeast, Reason: "the server has recorded it"}
	return s
}

// doubt makes the proof one that proves nothing.
func (s Sent) doubt(cause contract.Cause, why string) Sent {
	s.Proof.Proves, s.Proof.Reach, s.Proof.Cause, s.Proof.Final = contract.Unknown, contract.ReachThis, cause, false
	s.Proof.Reason = why + ", so nobody knows what became of the request"
	return s
}

// ours reports whether an operation is the one of this intent.
func ours(in Intent, op *semel.Operation) bool {
	return op != nil && op.Key.Kind == in.Kind && op.Key.ID == in.ID && op.Key.Account != "" && op.State != "" && op.Revision > 0
}

// operationIn reads the operation of this intent from an answer; nil where there is
// none. Parameters are left out: the journal has no use for them.
func operationIn(in Intent, body []byte) *semel.Operation {
	var op semel.Operation
	if json.Unmarshal(body, &op) != nil || !ours(in, &op) {
		return nil
	}
	op.Params = nil
	return &op
}

// get looks an operation up.
func (s *semelAPI) get(ctx context.Context, in Intent, etag string) Seen {
	req, err := s.read(ctx, in.URL)
	if err != nil {
		return Seen{}
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := s.reads.RoundTrip(req)
	if err != nil {
		return Seen{}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, s.limit+1))
	if err != nil || int64(len(body)) > s.limit {
		return Seen{}
	}
	return read(in, resp.StatusCode, resp.Header, body)
}

// read is a request that only reads.
func (s *semelAPI) read(ctx context.Context, at string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(retryhttp.StandDown(ctx), http.MethodGet, at, nil)
	if err == nil && s.authorize != nil {
		err = s.authorize(ctx, req)
	}
	return req, err
}

// read says what the answer to a look-up means.
func read(in Intent, status int, header http.Header, body []byte) Seen {
	seen := Seen{Found: contract.FoundNoAnswer}
	seen.WaitAtLeast, _ = contract.RetryAfter(header, time.Now())
	switch status {
	case http.StatusOK:
		if seen.operation = operationIn(in, body); seen.operation != nil {
			seen.Found, seen.etag = contract.FoundSucceeded, header.Get("ETag")
		}
		return seen
	case http.StatusNotModified:
		seen.unchanged = true
		return seen
	}
	p, ok := problem.Decode(status, header, bytes.TrimSpace(body))
	if !ok {
		return seen
	}
	seen.problem = &p
	if p.Code == semel.CodeNotFound && status == http.StatusNotFound {
		seen.Found = contract.FoundNothing
	}
	return seen
}
