package retryhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// attempt is one transmission. It is the context of its request: that of the caller,
// with a trace, an end of its own, and the mark of this layer. It holds by value
// what lives as long as itself, since each allocation is one of every request.
type attempt struct {
	context.Context
	call   *call
	watch  watch
	cancel context.CancelFunc
	timer  *time.Timer // nil where nothing limits the attempt
	limit  time.Duration
	id     [1]string // "" where the transmission has no name
	body   answerBody
	start  time.Time
	took   time.Duration
	span   trace.Span // nil where none is recorded

	resp *http.Response
	head []byte // what was read of its body
	cut  error  // why no more could be read; nil where it goes on, or ends
	full bool   // head is the whole body
	err  error
	wire contract.Wire

	proof contract.Proof
}

// Value marks what is sent below, so that other layers stand down.
func (a *attempt) Value(key any) any {
	if key == (layerKey{}) {
		return ownLayer
	}
	return a.Context.Value(key)
}

// ended reports whether the attempt's own timer ended it. Nothing else of ours does,
// before the attempt is over.
func (a *attempt) ended() bool {
	return a.Context.Err() != nil && a.call.ctx.Err() == nil
}

// timeoutError is what the caller sees of that. It is a timeout for everybody who asks.
type timeoutError struct{ limit time.Duration }

func (e timeoutError) Error() string {
	return fmt.Sprintf("no answer within %s", e.limit.Round(time.Millisecond))
}
func (e timeoutError) Timeout() bool        { return true }
func (e timeoutError) Temporary() bool      { return true }
func (e timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// transmit sends the request once, and classifies what came of it.
func (c *call) transmit(body io.ReadCloser) *attempt {
	a := c.newAttempt()
	out := a.request(body)
	a.resp, a.err = c.t.base.RoundTrip(out)
	if a.err == nil && a.resp != nil {
		a.look()
	}
	if a.timer != nil && !a.timer.Stop() && a.resp != nil && a.ended() && !a.full {
		a.drop() // the timer was faster: the body can't be read any more
	}
	a.took = time.Since(a.start)
	if a.resp == nil {
		a.err = a.explain(a.err)
		a.cancel()
	}
	a.classify()
	c.note(a)
	return a
}

func (c *call) newAttempt() *attempt {
	a := &c.first
	if c.report.Attempts > 0 {
		a = new(attempt)
	}
	a.call, a.start = c, time.Now()
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(c.ctx)
	ctx, a.span = c.startAttemptSpan(ctx)
	a.Context = httptrace.WithClientTrace(ctx, a.watch.hooks())
	if c.prepared {
		a.limit = c.t.opts.AttemptTimeout
		if budget := c.t.opts.Budget; budget > 0 {
			if left := max(budget-a.start.Sub(c.start), 1); a.limit <= 0 || left < a.limit {
				a.limit = left
			}
		}
		if a.limit > 0 {
			a.timer = time.AfterFunc(a.limit, a.cancel)
		}
	}
	c.report.Attempts++
	return a
}

// request makes the attempt's own request. The standard transport repeats what it
// can rewind, and takes a missing body for rewindable; so there always is a body,
// and never a GetBody.
func (a *attempt) request(body io.ReadCloser) *http.Request {
	c := a.call
	out := c.req.WithContext(a)
	out.Header = c.req.Header.Clone()
	out.GetBody = nil
	out.Body = body
	if body == nil || body == http.NoBody {
		bodiless(out)
	}
	c.key.apply(out)
	if c.key.keyed && c.contract.Carrier.FirstSent != "" && out.Header.Get(c.contract.Carrier.FirstSent) == "" {
		out.Header.Set(c.contract.Carrier.FirstSent, c.given.FirstSent.UTC().Format(http.TimeFormat))
	}
	named := c.prepared && c.t.opts.AttemptIDHeader != ""
	if named || c.t.opts.Logger != nil || a.span != nil {
		a.id[0] = semel.NewID()
	}
	if named {
		out.Header[c.t.opts.AttemptIDHeader] = a.id[:]
	}
	return out
}

// emptyBody is a body without bytes that is not [http.NoBody].
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error)         { return 0, io.EOF }
func (emptyBody) WriteTo(io.Writer) (int64, error) { return 0, nil } // without a buffer
func (emptyBody) Close() error                     { return nil }

var (
	identity = []string{"identity"}
	zero     = []string{"0"}
)

// bodiless gives a request without a body one that is empty. Over HTTP/1.1 it still
// looks as it would without: "identity" keeps net/http from chunking the nothing,
// and where the length is expected, it is said in a header which net/http would
// leave out if it had its canonical name. HTTP/2 leaves it out.
func bodiless(out *http.Request) {
	out.Body, out.ContentLength = emptyBody{}, 0
	if len(out.TransferEncoding) > 0 {
		return
	}
	out.TransferEncoding = identity
	switch out.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		out.Header["content-length"] = zero
	}
}

// explain gives a failed attempt's error the cause that the caller knows.
func (a *attempt) explain(err error) error {
	if err == nil {
		err = errors.New("the base transport returned neither an answer nor an error")
	}
	if callers := a.call.ctx.Err(); callers != nil {
		if !errors.Is(err, callers) {
			err = fmt.Errorf("%w: %w", callers, err)
		}
		return err
	}
	if a.ended() {
		return timeoutError{a.limit}
	}
	return err
}

// classify says what the transmission proves.
func (a *attempt) classify() {
	c := a.call
	err := a.err
	if a.resp != nil {
		err = a.cut
	}
	facts := a.watch.facts()
	a.wire = contract.WireFrom(err, facts)
	var answer *contract.Answer
	if a.resp != nil {
		a.wire.Arrival = a.arrival()
		answer = &contract.Answer{Status: a.resp.StatusCode, Header: a.resp.Header, Body: a.head}
	}
	sends := a.wire.Sends
	if sends == 0 && a.wire.Going != contract.NotBegun {
		sends = 1 // the base does not report
	}
	if readsOnly(c.req.Method) {
		a.wire.Sends = min(a.wire.Sends, 1) // an earlier send within the attempt has done nothing
	}
	a.proof = c.contract.Classify(c.about, a.wire, answer)
	a.proof.Sends = sends
	if answer != nil {
		a.proof.WaitAtLeast, _ = contract.RetryAfter(answer.Header, time.Now())
	}
	c.report.Evidence = c.report.Evidence.Add(a.proof)
	if sends > 0 && c.report.Sends == 0 {
		c.report.Since = a.start
	}
	c.report.Sends += sends
}
