package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi/problem"
)

// encode writes v as one line of JSON. It escapes no "<": this is not HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, &semel.Error{Op: "answer", Code: semel.CodeInternal, Msg: "the answer can't be written as JSON", Err: err}
	}
	return b.Bytes(), nil
}

// encodeOperation is encode for an operation. One whose bytes are not JSON, because
// it came from a program and not from here, is told without them.
func encodeOperation(op semel.Operation) ([]byte, error) {
	text, err := encode(op)
	if err != nil {
		op.Params, op.Result = nil, nil
		text, err = encode(op)
	}
	return text, err
}

// json answers with v.
func (c *call) json(status int, v any) error {
	text, err := encode(v)
	if err == nil {
		c.text(status, text)
	}
	return err
}

// text answers with a JSON text.
func (c *call) text(status int, text []byte) {
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	c.w.WriteHeader(status)
	c.w.Write(text)
}

// operation answers with an operation.
func (c *call) operation(status int, op semel.Operation) error {
	c.state = op.State
	text, err := encodeOperation(op)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("ETag", etag(op))
	if wait := comeBack(op.State); wait > 0 {
		h.Set("Retry-After", problem.RetryAfter(wait))
	}
	c.text(status, text)
	return nil
}

// comeBack is when to look again at an operation in that state.
func comeBack(s semel.State) time.Duration {
	switch {
	case s.Settled():
		return 0
	case s == semel.NeedsReconciliation: // a person has to act
		return 30 * time.Second
	}
	return time.Second
}

// location names the one URL of an operation.
func (c *call) location(key semel.Key) {
	c.w.Header().Set("Location", c.s.opts.BasePath+"/v1/operations/"+url.PathEscape(key.Kind)+"/"+url.PathEscape(key.ID))
}

// waiting does what Prefer: wait asks for: it returns the operation when it is
// settled or needs a person, or as it is when the time is over, the client is
// gone or the server drains.
func (c *call) waiting(op semel.Operation) semel.Operation {
	wait, asked := preferredWait(c.r.Header.Values("Prefer"))
	if !asked {
		return op
	}
	c.w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
	if wait == 0 || op.State.Settled() || op.State == semel.NeedsReconciliation {
		return op
	}
	// The server's WriteTimeout counts from the request; it must not cut the answer.
	http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(wait + writeTime))
	ctx, stop := c.s.until(c.r.Context())
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	// If the store can't be read now, what was read before is still true.
	if later, err := c.s.ledger.Wait(ctx, op.Key); err == nil && later.Revision >= op.Revision {
		return later
	}
	return op
}

// writeTime is how long one write to a client may take.
const writeTime = 30 * time.Second
