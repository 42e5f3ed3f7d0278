package retryhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/semel-dev/semel/contract"
)

// call is one call under way.
type call struct {
	t          *Transport
	ctx        context.Context // the caller's, with the call's span
	req        *http.Request
	given      Call
	contract   *contract.Contract
	reads      bodyNeeds
	key        placedKey
	about      contract.Request
	replays    bool  // it may be sent again
	byKey      bool  // … only because of its key
	prepared   bool  // it has a timer, and an Attempt-Id
	whole      bool  // the answer's body is part of the transmission …
	wholeLimit int64 // … up to this
	start      time.Time
	spanned    bool // the call's span is recorded
	report     Report
	first      attempt // all there is, where nothing goes wrong
}

// RoundTrip sends the request, and repeats it where the package comment says so.
// It returns an answer, or an [*Error]. The request is not changed. CONNECT, and
// requests that upgrade their connection, go straight to the base.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if layerAbove(req.Context()) == ownLayer || req.Method == http.MethodConnect || len(req.Header["Upgrade"]) > 0 {
		return t.base.RoundTrip(req)
	}
	c, err := t.newCall(req)
	if err != nil {
		closeBody(req.Body)
		return nil, c.end(nil, c.fail(nil, StopRequest, err))
	}
	span := c.startSpan()
	resp, failure := c.run()
	err = c.end(span, failure)
	return resp, err
}

// newCall reads what is to be known before the first transmission.
func (t *Transport) newCall(req *http.Request) (*call, error) {
	c := &call{t: t, ctx: req.Context(), req: req, given: callOf(req.Context()), start: time.Now(),
		contract: t.contract, reads: t.reads}
	if c.given.Contract != nil {
		c.contract, c.reads = c.given.Contract, needsOf(c.given.Contract)
	}
	if req.URL == nil || req.Header == nil {
		return c, errors.New("the request has no URL, or no header")
	}
	var err error
	if c.key, err = findKey(c.contract, req, &c.given); err != nil {
		return c, fmt.Errorf("the key can't be used: %w", err)
	}
	if req.Response != nil {
		c.key.dropped = redirectedKey(c.contract, req)
	}
	c.about = contract.Request{Method: req.Method, Keyed: c.key.keyed,
		Replayable: req.Body == nil || req.Body == http.NoBody || req.GetBody != nil}
	c.prepared, _ = c.contract.MaySendAgain(c.about)
	c.replays = c.prepared && layerAbove(c.ctx) == noLayer
	if c.key.keyed {
		byMethod, _ := c.contract.MaySendAgain(contract.Request{Method: req.Method, Replayable: true})
		c.byKey = !byMethod
	}
	if c.given.FirstSent.IsZero() {
		c.given.FirstSent = c.start
	} else if c.byKey && !c.inRetention(0) {
		return c, errors.New("it was first sent too long ago: the API may have forgotten the key")
	}
	return c, nil
}

// run transmits until there is nothing more to do.
func (c *call) run() (*http.Response, *Error) {
	body := c.req.Body
	for {
		if err := c.ctx.Err(); err != nil {
			closeBody(body)
			return nil, c.fail(nil, stopOf(err), err)
		}
		a := c.transmit(body)
		next, wait, stop := c.next(a)
		if stop != "" {
			return c.finish(a, stop)
		}
		until := time.Now().Add(wait)
		a.discard(c.t.opts.DrainLimit)
		body = next
		sleep(c.ctx, time.Until(until))
		if c.t.opts.Budget > 0 && time.Since(c.start) >= c.t.opts.Budget { // this machine was asleep, say
			closeBody(body)
			return nil, c.fail(nil, StopBudget, a.err)
		}
	}
}

// sleep waits, or until the context is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// next decides what follows a transmission: another one, with this body, after this
// wait, or the reason to stop.
func (c *call) next(a *attempt) (body io.ReadCloser, wait time.Duration, stop Stop) {
	callers := c.ctx.Err()
	if callers != nil && (a.resp == nil || a.cut != nil) {
		return nil, 0, stopOf(callers)
	}
	if !c.replays {
		return nil, 0, StopOnce
	}
	if again, _ := c.contract.Again(c.about, c.report.Evidence); !again || !worthAsking(a.proof) {
		return nil, 0, StopSettled
	}
	if callers != nil {
		return nil, 0, stopOf(callers)
	}
	if c.report.Attempts >= c.t.opts.MaxAttempts {
		return nil, 0, StopAttempts
	}
	atLeast := a.proof.WaitAtLeast
	if a.proof.Proves == contract.InProgressNow {
		atLeast = max(atLeast, askAgainAfter(c.contract))
	}
	wait = c.t.opts.Backoff.Wait(c.report.Attempts, atLeast)
	if stop := c.fits(atLeast, wait); stop != "" {
		return nil, 0, stop
	}
	if a.proof.Proves != contract.InProgressNow && !c.t.opts.Quota.Take(c.req.URL.Host) {
		return nil, 0, StopQuota
	}
	if c.req.GetBody != nil && c.req.Body != nil && c.req.Body != http.NoBody {
		var err error
		if body, err = c.req.GetBody(); err != nil {
			a.err = errors.Join(a.err, fmt.Errorf("the body can't be had again: %w", err))
			return nil, 0, StopRequest
		}
	}
	return body, wait, ""
}

// fits says why a wait is too long, or "".
func (c *call) fits(atLeast, wait time.Duration) Stop {
	now := time.Now()
	if atLeast > c.t.opts.MaxWait {
		return StopWait
	}
	if c.t.opts.Budget > 0 && now.Sub(c.start) >= c.t.opts.Budget-min(wait, c.t.opts.Budget) {
		return StopBudget
	}
	if end, ok := c.ctx.Deadline(); ok && !now.Add(wait).Before(end) {
		return StopDeadline
	}
	if c.byKey && !c.inRetention(wait) {
		return StopRetention
	}
	return ""
}

// inRetention reports whether the API still keeps the key when an attempt that
// begins after the wait has come to its end.
func (c *call) inRetention(wait time.Duration) bool {
	age := time.Since(c.given.FirstSent) + wait + max(c.t.opts.AttemptTimeout, 0)
	return c.contract.CheckBudget(age) == nil
}

// askAgainAfter is how long the contract wants one to wait while the first request
// is in progress.
func askAgainAfter(c *contract.Contract) time.Duration {
	if d := c.InProgress.AskAgainAfter.D(); d > 0 {
		return d
	}
	return time.Second
}

func stopOf(err error) Stop {
	if errors.Is(err, context.DeadlineExceeded) {
		return StopDeadline
	}
	return StopCancelled
}

// worthAsking reports whether it is of use to send a request again which the contract
// allows to be sent again. It only ever forbids: what an answer proves is the
// contract's matter, and a status allows nothing.
func worthAsking(p contract.Proof) bool {
	switch {
	case p.Again == contract.AgainNo, p.Status >= 300 && p.Status < 400: // redirects are the caller's
		return false
	case p.Proves == contract.Refused, p.Proves == contract.Applied:
		return false
	case p.Proves == contract.NotSent, p.Proves == contract.NotApplied, p.Proves == contract.InProgressNow:
		return true
	case p.Status == 0 || p.Again == contract.AgainYes || p.Cause == contract.CauseCutAnswer:
		return true
	}
	switch p.Cause {
	case contract.CauseTransient, contract.CauseIntermediary:
		return true
	case contract.CauseServerError:
		return p.Status != http.StatusNotImplemented && p.Status != http.StatusHTTPVersionNotSupported
	case contract.CauseUnlisted: // speaks of time, not of the request
		return p.Status == http.StatusRequestTimeout || p.Status == http.StatusTooEarly || p.Status == http.StatusTooManyRequests
	}
	return false
}

// finish makes the result of the last transmission.
func (c *call) finish(a *attempt, stop Stop) (*http.Response, *Error) {
	if a.resp != nil && a.cut != nil && (stop == StopCancelled || stop == StopDeadline) {
		a.discard(0)
		return nil, c.fail(nil, stop, a.cut)
	}
	if a.resp == nil {
		return nil, c.fail(nil, stop, a.err)
	}
	if a.proof.Proves == contract.InProgressNow || !worthAsking(a.proof) {
		c.t.opts.Quota.Answered(c.req.URL.Host)
	}
	if c.misleads(a.proof) {
		answer := a.keep()
		return nil, c.fail(answer, stop, a.err)
	}
	c.report.Stopped = stop
	a.resp.Request = c.req
	a.deliver()
	return a.resp, nil
}

// misleads reports whether the last answer would be read as "nothing happened",
// while an earlier transmission may have done it.
func (c *call) misleads(last contract.Proof) bool {
	if readsOnly(c.req.Method) || c.report.Evidence.Outcome() != contract.OutcomeUnknown {
		return false
	}
	switch {
	case last.Proves == contract.Refused, last.Proves == contract.NotApplied, last.Cause == contract.CauseHiddenSends:
		return true // an earlier attempt, or an earlier send within this one, left it open
	}
	return c.report.Attempts > 1 && last.Cause == contract.CauseUnlisted && last.Status >= 400
}

func closeBody(body io.Closer) {
	if body != nil {
		body.Close()
	}
}
