package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

// work does what [Step] says, until the lease is finished.
func (w *Worker) work(h *held) {
	var saw *Observation
	for {
		over := saw == nil && !w.fits(h)
		lease, _ := h.current()
		now := time.Now()
		a := Step(Facts{
			Kind: &h.kind.Kind, Lease: lease, Asked: now.Sub(h.asked), Held: now.Sub(h.got),
			CanLookUp: h.kind.finder != nil, Stopping: w.stopping.Load() || over,
			Saw: saw, Random: w.opts.Random(),
		})
		switch a.Act {
		case ActBegin:
			if !w.begin(h) {
				return
			}
		case ActCall:
			saw = w.call(h, a)
		case ActLookUp:
			saw = w.lookUp(h, a)
		default:
			w.leaveSlot(h)
			w.finish(h, a, saw)
			return
		}
	}
}

// fits reports whether a call with its whole timeout fits into what is left of the
// lease, less the margin; where it does not, it renews the lease first. So no call
// that keeps to its timeout outlives its lease, however long the claim or the
// begin mark took, and even if no renewal ever succeeds after its start.
func (w *Worker) fits(h *held) bool {
	need := h.kind.Timeout + h.kind.margin()
	if _, ends := h.current(); time.Until(ends) < need && h.ctx.Err() == nil && !w.stopping.Load() {
		w.keeper.renew(context.Background(), []*held{h})
	}
	_, ends := h.current()
	return time.Until(ends) >= need && h.ctx.Err() == nil
}

// begin writes the begin mark. It reports false where nothing may be begun: the
// lease is lost, or nobody knows whether the mark was written.
func (w *Worker) begin(h *held) bool {
	lease, ends := h.current()
	ctx, cancel := context.WithDeadline(context.Background(), ends)
	defer cancel()
	begun, err := w.ledger.Begin(ctx, lease)
	if err == nil {
		h.set(begun)
		return true
	}
	e := semel.AsError("begin", err)
	w.log(h, slog.LevelWarn, "not begun", "code", e.Code)
	if e.Code == semel.CodeUnavailable {
		w.takeBack(h)
	}
	return false
}

// takeBack hands back an operation whose begin mark may or may not be written.
// Nothing was sent, and only this process knows it: without its word the next
// worker would find a doubt. It tries while the lease lasts.
func (w *Worker) takeBack(h *held) {
	for n := 0; ; n++ {
		lease, ends := h.current()
		if !w.pause(n, ends) {
			return
		}
		ctx, cancel := context.WithDeadline(context.Background(), ends)
		op, err := w.ledger.Get(ctx, lease.Operation.Key)
		cancel()
		switch {
		case err != nil && semel.AsError("get", err).Code == semel.CodeUnavailable:
			continue
		case err != nil || op.Token != lease.Token:
			return
		}
		lease.Operation = op
		h.set(lease)
		w.finish(h, Step(Facts{Kind: &h.kind.Kind, Lease: lease, Stopping: true}), nil)
		return
	}
}

// pause waits before a repeat of a write, longer each time. It reports false
// where the end would be passed.
func (w *Worker) pause(n int, end time.Time) bool {
	d := w.jitter(min(50*time.Millisecond<<min(n, 10), 2*time.Second))
	if time.Until(end) <= d {
		return false
	}
	time.Sleep(d)
	return true
}

// newCall makes what the effect gets to know.
func (w *Worker) newCall(h *held, a Action) *effect.Call {
	lease, _ := h.current()
	return &effect.Call{
		Key: lease.Operation.Key, Token: lease.Token, Params: lease.Operation.Params, Request: lease.Request(),
		Contract: *a.Contract, FirstSent: a.FirstSent, Repeat: a.Repeat,
		Report: func(p semel.Progress) { w.keeper.report(h, p) },
	}
}

func (w *Worker) call(h *held, a Action) *Observation {
	ctx, cancel := context.WithTimeout(h.ctx, h.kind.Timeout)
	defer cancel()
	lease, _ := h.current()
	if reason := retryReason(lease); reason != "" {
		w.observe("retry", h.kind, reason)
	}
	began := time.Now()
	result := effect.Do(ctx, h.kind.Effect, w.newCall(h, a))
	took := time.Since(began)
	w.judge(h, began, healthOf(result.Proof), result.Proof.WaitAtLeast)
	w.observe("call", h.kind, string(result.Proof.Proves))
	if result.Sends > 1 {
		w.observe("hidden_sends", h.kind, "")
	}
	w.afterEffect(h, result.Panicked)
	return &Observation{Call: &result, Took: took}
}

func (w *Worker) lookUp(h *held, a Action) *Observation {
	ctx, cancel := context.WithTimeout(h.ctx, h.kind.Timeout)
	defer cancel()
	began := time.Now()
	result := effect.LookUp(ctx, h.kind.finder, w.newCall(h, a))
	took := time.Since(began)
	w.judge(h, began, healthOfLookUp(result), result.WaitAtLeast)
	w.observe("look_up", h.kind, string(result.Found))
	w.afterEffect(h, result.Panicked)
	return &Observation{LookUp: &result, Sent: began.Sub(h.got), Took: took}
}

// judge lets the host know how it went.
func (w *Worker) judge(h *held, began time.Time, sign health, wait time.Duration) {
	now := time.Now()
	w.mu.Lock()
	before := h.kind.host.closed
	h.kind.host.ended(began, now, sign, wait, w.opts.Random())
	closed := h.kind.host.closed.After(before)
	w.mu.Unlock()
	if closed {
		w.observe("host_closed", h.kind, "")
	}
}

func (w *Worker) afterEffect(h *held, panicked bool) {
	if panicked {
		w.observe("panic", h.kind, "")
		w.log(h, slog.LevelError, "the effect panicked")
	}
	if cause := context.Cause(h.ctx); cause != nil && !errors.Is(cause, errStopping) {
		w.observe("lease_ending", h.kind, "")
		w.log(h, slog.LevelWarn, "the effect was cancelled", "cause", cause.Error())
	}
}

// finish writes the end of the execution. It repeats the write while the store
// can't be reached: as long as the lease lasts, and as long again, since the
// result may be the only witness of what happened. One that comes too late is
// kept as evidence.
func (w *Worker) finish(h *held, a Action, saw *Observation) {
	if saw == nil && errors.Is(context.Cause(h.ctx), errLeaseLost) {
		return // nothing was done, and there is nothing to tell
	}
	if saw != nil {
		a.Report.TookMS = saw.Took.Milliseconds()
	}
	a.Report.Key = downstreamKey(h, a.Contract)
	a.Ending.Evidence = a.Report.json()
	unsure, begun := false, time.Now()
	for n := 0; ; n++ {
		lease, ends := h.current()
		giveUp := later(ends, begun).Add(lease.Length) // a process that slept past its lease has a result too
		ctx, cancel := context.WithDeadline(context.Background(), giveUp)
		op, err := w.ledger.Finish(ctx, lease, a.Ending)
		cancel()
		if err == nil {
			w.finished(h, a, op)
			return
		}
		e := semel.AsError("finish", err)
		switch {
		case e.Code == semel.CodeLeaseLost && unsure && e.Operation != nil && e.Operation.Token == lease.Token:
			w.finished(h, a, *e.Operation) // the write whose answer was lost was ours
			return
		case e.Code == semel.CodeLeaseLost:
			w.log(h, slog.LevelWarn, "the result came too late; it is kept as evidence", "outcome", a.Ending.Outcome)
			return
		case e.Code != semel.CodeUnavailable || !w.pause(n, giveUp):
			w.log(h, slog.LevelError, "the result is not recorded", "outcome", a.Ending.Outcome, "code", e.Code)
			return
		}
		unsure = true
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (w *Worker) finished(h *held, a Action, op semel.Operation) {
	if a.Report.Did == DidHandBack {
		w.observe("handed_back", h.kind, "")
	}
	if a.Ending.Again && !w.stopping.Load() {
		w.dueIn(a.Ending.In)
	}
	level := slog.LevelDebug
	if op.State == semel.NeedsReconciliation {
		level = slog.LevelWarn
	}
	w.log(h, level, "execution ended", "did", a.Report.Did, "outcome", a.Ending.Outcome, "state", op.State,
		"took", time.Duration(a.Report.TookMS)*time.Millisecond)
}

// downstreamKey is the key for whoever looks at the external service.
func downstreamKey(h *held, c *contract.Contract) string {
	if c == nil || c.Carrier.In == "" {
		return ""
	}
	lease, _ := h.current()
	key, _ := (&effect.Call{Key: lease.Operation.Key, Contract: *c}).DownstreamKey()
	return key
}

// log writes a line about an execution: identity, token and what is given; never
// parameters, results or secrets.
func (w *Worker) log(h *held, level slog.Level, msg string, more ...any) {
	lease, _ := h.current()
	key := lease.Operation.Key
	w.opts.Logger.Log(context.Background(), level, msg,
		append([]any{"account", key.Account, "kind", key.Kind, "id", key.ID, "token", lease.Token}, more...)...)
}
