package client

import (
	"context"
	"net/url"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// work is one client's work on one intent, which nobody else has meanwhile.
type work struct {
	c      *Client
	f      *flight
	r      *record
	body   []byte
	mode   mode
	answer *contract.Answer // that decided it
	view   view
	host   string

	marked  bool // the mark of the next transmission is written already
	sent    int  // transmissions in this call
	misses  int  // requests without an answer of use, in this call
	busy    int  // answers that it is in progress
	futile  bool // a repeat was refused: another one in this call would be, too
	quiet   int  // look-ups in a row without news
	dumb    int  // event streams in a row that told nothing
	past    bool // a look-up is due, since an event stream has ended early
	heardAt time.Time
}

// maxDumb is how many event streams may tell nothing in a row; then look-ups take
// over.
const maxDumb = 3

// The paces of look-ups: while the other side is at work, and after event streams.
var pollPace = retryhttp.Backoff{Base: time.Second, Max: 15 * time.Second}

func (c *Client) newWork(f *flight, r *record, body []byte, m mode) *work {
	w := &work{c: c, f: f, r: r, body: body, mode: m, heardAt: c.opts.Clock.Now()}
	w.view = view{request: c.api.request(&r.Intent), margin: 2 * c.opts.AttemptTimeout, silent: m == waiting,
		canLookUp: c.api.LookUp != nil, canAbandon: c.api.semel != nil, canFollow: c.api.semel != nil, lastAt: r.Seen}
	if u, err := url.Parse(r.URL); err == nil {
		w.host = u.Host
	}
	return w
}

// run goes on until there is an outcome, the budget is used up, or ctx ends. An
// error is one of the journal; the outcome beside it is true all the same.
func (w *work) run(ctx context.Context) (Outcome, error) {
	for {
		if w.f.wished() {
			w.r.Abandon = true
		}
		w.view.now = w.r.now()
		w.view.spent = w.futile || w.c.opts.MaxAttempts > 0 && w.sent >= w.c.opts.MaxAttempts
		w.view.deaf = w.past || w.dumb >= maxDumb
		d := decide(w.r, &w.c.api.Contract, &w.view)
		if d.what == doEnd || d.what == doStop {
			return w.finish(d)
		}
		if w.mode == abandoning && w.f.refused() != nil {
			return w.finish(stop(w.r.next(), "it has begun, and can't be abandoned any more"))
		}
		if why := w.over(ctx, d.wait); why != "" && d.what != doGiveUp {
			return w.finish(stop(w.r.next(), why))
		}
		if err := w.carryOut(ctx, d); err != nil {
			return w.r.outcome(w.answer), err
		}
	}
}

// over says why there is no time for what would take so long; "" if there is.
func (w *work) over(ctx context.Context, wait time.Duration) string {
	if err := ctx.Err(); err != nil {
		return "the caller gave up"
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
		return "what comes next does not fit before the caller's deadline"
	}
	if budget := w.c.opts.Budget; budget > 0 && w.c.since(w.heardAt)+wait >= budget {
		return "the budget is used up"
	}
	return ""
}

func (w *work) carryOut(ctx context.Context, d decision) error {
	switch d.what {
	case doWait:
		w.f.wait(ctx, w.c.opts.Clock, d.wait)
		return nil
	case doGiveUp:
		w.r.neverHappens(w.r.now())
		return nil // what follows is the end, which is saved
	case doFollow:
		return w.follow(ctx)
	}
	if !w.marked && w.misses > 0 && !w.c.mayRepeat(w.host) {
		w.view.notBefore = w.r.now().Add(w.c.opts.Backoff.Wait(w.misses, 0))
		return nil
	}
	switch d.what {
	case doLookUp:
		return w.lookUp(ctx)
	case doAbandon:
		return w.abandon(ctx)
	}
	return w.send(ctx)
}

// probePace is how often a host is asked where its quota is used up: by all intents
// of a client together, to see whether it is back.
const probePace = 5 * time.Second

// mayRepeat reports whether a host may be asked once more by somebody whom it has not
// answered.
func (c *Client) mayRepeat(host string) bool {
	if host == "" || c.opts.Quota.Take(host) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since(c.probed[host]) < probePace {
		return false
	}
	c.probed[host] = c.opts.Clock.Now()
	return true
}

// send transmits the request once: mark, send, fold.
func (w *work) send(ctx context.Context) error {
	if !w.marked {
		w.r.mark(w.r.now(), w.c.opts.AttemptTimeout)
		if err := w.save(); err != nil {
			w.r.unmark()
			return err
		}
	}
	w.marked = false
	w.sent++
	in := w.r.Intent
	in.Body = w.body
	step("send")
	start := w.c.opts.Clock.Now()
	var s Sent
	w.ask(ctx, func(ctx context.Context) { s = w.c.api.Submit(ctx, in) })
	step("sent")
	now := w.r.now()
	w.r.takeSent(&s, now)
	if w.answer = s.Answer; w.r.Operation == nil && w.r.Evidence.Outcome() != contract.OutcomeRefused {
		w.answer = nil
	}
	w.view.found, w.view.lookUps = "", 0
	w.futile = s.Proof.Proves == contract.Refused
	w.heard(s.Proof, now)
	w.view.signIn = credentialsRefused(&s) || w.r.foreign
	w.view.news = w.view.news || s.operation != nil
	w.c.log(w.r, "sent", s.AttemptID, start, string(s.Proof.Proves), string(s.Proof.Cause))
	if w.view.now = now; decide(w.r, &w.c.api.Contract, &w.view).what == doEnd {
		return nil // the end is saved at once
	}
	return w.save()
}

// ask makes one request. Other layers that repeat stand down.
func (w *work) ask(ctx context.Context, request func(context.Context)) {
	w.f.ask(retryhttp.StandDown(ctx), w.c.opts.AttemptTimeout, request)
}

// heard sets the pace by what came of a request.
func (w *work) heard(p contract.Proof, now time.Time) {
	w.view.lastAt = now
	w.view.notBefore = time.Time{}
	if p.Status != 0 && w.host != "" {
		w.c.opts.Quota.Answered(w.host)
	}
	switch p.Proves {
	case contract.Applied:
		w.misses, w.heardAt = 0, w.c.opts.Clock.Now()
		return
	case contract.InProgressNow:
		w.busy++ // this does not prolong the budget: it may be said for ever, after a crash over there
		w.view.notBefore = now.Add(pollPace.Wait(w.busy, p.WaitAtLeast))
		return
	}
	w.misses++
	w.view.notBefore = now.Add(w.c.opts.Backoff.Wait(w.misses, p.WaitAtLeast))
}

// lookUp asks once.
func (w *work) lookUp(ctx context.Context) error {
	start, sent := w.c.opts.Clock.Now(), w.r.now()
	var s Seen
	w.ask(ctx, func(ctx context.Context) {
		if w.c.api.semel != nil {
			s = w.c.api.semel.get(ctx, w.r.Intent, w.r.ETag)
		} else {
			s = w.c.api.LookUp(ctx, w.r.Intent)
		}
	})
	step("looked up")
	now := w.r.now()
	before, evidence := w.r.revision(), w.r.Evidence
	w.r.takeSeen(&w.c.api.Contract, &s, sent, now)
	switch {
	case s.unchanged:
		s.Found = contract.FoundPending
	case s.Found == "":
		s.Found = contract.FoundNoAnswer
	}
	w.view.found, w.view.lookedAt, w.view.lastAt = s.Found, sent, now
	w.view.lookUps++
	w.view.signIn = s.problem != nil && s.problem.Code == semel.CodeUnauthenticated || w.r.foreign
	w.view.notBefore = time.Time{}
	w.c.log(w.r, "looked up", "", start, string(s.Found), string(w.r.Evidence.Last.Cause))
	switch s.Found {
	case contract.FoundNoAnswer:
		w.misses++
		w.view.notBefore = now.Add(w.c.opts.Backoff.Wait(w.misses, s.WaitAtLeast))
		return nil
	case contract.FoundNothing:
		w.answered()
		w.view.notBefore = now.Add(s.WaitAtLeast)
		return nil
	}
	w.answered()
	if w.misses > 0 {
		w.dumb = 0 // the other side was away and is back, and so may be its events
	}
	w.heardAt, w.view.news, w.misses = w.c.opts.Clock.Now(), true, 0
	if w.quiet++; w.r.revision() != before {
		w.quiet = 0
	}
	w.view.notBefore = now.Add(pollPace.Wait(w.quiet, s.WaitAtLeast))
	if w.past = false; w.dumb < maxDumb && w.view.canFollow {
		w.view.notBefore = time.Time{} // back to events
	}
	if w.r.Operation != nil && w.r.Operation.State.Settled() || evidence == w.r.Evidence && w.r.revision() == before {
		return nil // the end is saved at once; what is as it was is not saved
	}
	return w.save()
}

func (w *work) answered() {
	if w.host != "" {
		w.c.opts.Quota.Answered(w.host)
	}
}

// abandon asks the server to make sure that it never happens.
func (w *work) abandon(ctx context.Context) error {
	step("abandon")
	start := w.c.opts.Clock.Now()
	var s Sent
	w.ask(ctx, func(ctx context.Context) { s = w.c.api.semel.abandon(ctx, w.r.Intent) })
	step("abandoned")
	late := w.r.takeAbandoned(&s)
	w.heard(s.Proof, w.r.now())
	w.view.signIn = credentialsRefused(&s) || w.r.foreign
	w.view.news = w.view.news || s.operation != nil
	w.view.turnedDown = s.operation == nil && s.Proof.Proves == contract.Refused
	w.c.log(w.r, "abandoned", s.AttemptID, start, string(s.Proof.Proves), string(s.Proof.Cause))
	if late != nil {
		w.f.refuse(w.r.outcome(nil), late)
	}
	if w.r.Operation != nil && w.r.Operation.State.Settled() {
		return nil // the end is saved at once
	}
	return w.save()
}

// follow listens to one event stream. After it comes a look-up, and then the next
// stream, unless streams tell nothing.
func (w *work) follow(ctx context.Context) error {
	start := w.c.opts.Clock.Now()
	step("follow")
	told, heard := false, false
	w.f.ask(ctx, 0, func(ctx context.Context) {
		heard = w.c.api.semel.stream(ctx, w.r.Intent, w.r.revision(), func(op *semel.Operation) bool {
			step("event")
			told, w.view.news, w.quiet = true, true, 0
			return w.r.see(op, "") && !w.r.Operation.State.Settled() && w.r.Operation.State != semel.NeedsReconciliation
		})
	})
	now := w.r.now()
	w.view.lastAt = now
	if heard {
		w.heardAt = w.c.opts.Clock.Now()
	}
	w.c.log(w.r, "followed", "", start, string(w.r.Operation.State), "events")
	if w.r.Operation.State.Settled() || w.r.Operation.State == semel.NeedsReconciliation {
		return nil
	}
	// It ended early. A look-up tells what is going on; if it answers, there is
	// another stream.
	if w.dumb++; told || heard && w.c.since(start) > silence/2 {
		w.dumb = 0
	}
	w.past = true
	w.view.notBefore = now.Add(w.c.opts.Backoff.Wait(w.dumb+1, 0))
	return nil
}

func (r *record) revision() int64 {
	if r.Operation == nil {
		return 0
	}
	return r.Operation.Revision
}

// finish closes the record, or leaves it for the next call, and lets go of it.
func (w *work) finish(d decision) (Outcome, error) {
	if w.marked { // it was not sent after all
		w.r.unmark()
	}
	if d.what == doEnd {
		w.r.end(d.ended)
	}
	if d.what != doEnd || w.mode != resuming {
		w.r.Owner = ""
	}
	err := w.save()
	out := w.r.outcome(w.answer)
	if u, ok := out.(Unconfirmed); ok {
		u.Next, u.Reason = d.next, d.reason
		out = u
		if d.next == NextSignIn && w.r.Operation == nil && !w.r.mayHaveHappened() && w.r.Problem != nil {
			out = Rejected{Problem: *w.r.Problem, Answer: w.answer}
		}
	}
	return out, err
}

// save writes the record.
func (w *work) save() error {
	step("save")
	w.r.Seen = w.r.now().UTC()
	err := w.c.write(w.r, w.body)
	step("saved")
	return err
}
