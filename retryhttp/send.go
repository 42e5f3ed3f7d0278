package retryhttp

import (
	"net/http"
	"time"

	"github.com/semel-dev/semel/contract"
)

// A Transmission is what came of sending a request once.
type Transmission struct {
	// Proof is what it proves under the contract. Its WaitAtLeast is from Retry-After.
	Proof contract.Proof
	// Wire is what was seen of it on the wire.
	Wire contract.Wire
	// AttemptID is its Attempt-Id, "" where none was sent.
	AttemptID string
	// Start is when it began, Duration how long it took, the answer's body included.
	Start    time.Time
	Duration time.Duration
	// Answer is the answer, with as much of its body as was asked for; nil where there
	// was none.
	Answer *contract.Answer
	// Err is why there is no answer, or why its body broke off.
	Err error
}

// Send transmits the request once, reads up to limit bytes of the answer's body, and
// says what that proves. It is for callers with a loop of their own: fold the
// proofs into [contract.Evidence], ask [contract.Contract.Recover] for the next
// step, and wait with [Backoff]. Contract, key and FirstSent come from [With], as for
// RoundTrip. [Options.AttemptTimeout] covers the body, too; the other budgets and the
// quota are the caller's matter. Transports below stand down.
//
// An error is an [*Error] in state [NotSent]: the request can't be sent as it is, or
// its context is done.
func (t *Transport) Send(req *http.Request, limit int64) (*Transmission, error) {
	c, err := t.newCall(req)
	stop := StopRequest
	if cause := req.Context().Err(); err == nil && cause != nil {
		err, stop = cause, stopOf(cause)
	}
	if err != nil {
		closeBody(req.Body)
		return nil, c.end(nil, c.fail(nil, stop, err))
	}
	c.prepared, c.whole, c.wholeLimit = true, true, max(limit, 0)
	span := c.startSpan()
	a := c.transmit(req.Body)
	c.report.Stopped = StopOnce
	c.end(span, nil)
	sent := &Transmission{Proof: a.proof, Wire: a.wire, AttemptID: a.id[0], Start: a.start, Duration: a.took, Err: a.err}
	if a.resp != nil {
		sent.Err = a.cut
		sent.Answer = &contract.Answer{Status: a.resp.StatusCode, Header: a.resp.Header, Body: a.head[:min(int64(len(a.head)), c.wholeLimit)]}
	}
	a.discard(t.opts.DrainLimit)
	return sent, nil
}
