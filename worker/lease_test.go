package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

// A long kind has a lease of a minute and calls of up to 50 s, in the time of a
// synctest bubble.
func long(c contract.Contract, e effect.Effect) Kind {
	k, err := NewKind(Kind{Name: "order", Contract: c, Effect: e, Lease: time.Minute, Timeout: 50 * time.Second})
	if err != nil {
		panic(err)
	}
	return k
}

func TestRenewalsKeepALeaseAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		key := w.accept("acme", "order", "1")
		k := long(preset(t, contract.Idempotent), effect.Func(func(ctx context.Context, _ *effect.Call) effect.Result {
			select {
			case <-ctx.Done():
				return effect.Unknown("cancelled", "")
			case <-time.After(49 * time.Second):
				return effect.Applied(1)
			}
		}))
		stop := w.start([]Kind{k}, nil)
		op := w.settled(key)
		if op.State != semel.Succeeded || op.Executions != 1 {
			t.Errorf("%+v", op)
		}
		if n := w.store.count("renew"); n != 2 {
			t.Errorf("%d renewals in 49 s of a lease of 60 s, want 2: at 20 s and at 40 s", n)
		}
		x := w.history(key).Executions[0]
		if got := x.LeaseEndsAt.Sub(x.ClaimedAt); got < 99*time.Second || got > 102*time.Second {
			t.Errorf("the lease was moved to %s after the claim", got)
		}
		stop()
	})
}

// The end of a lease is counted from before the claim was asked for, and the
// effect's context ends a tenth of the lease earlier.
func TestAContextEndsBeforeItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &runningKind{Kind: long(preset(t, contract.Opaque), nothing)}
		asked := time.Now()
		time.Sleep(10 * time.Second) // a slow claim
		h := newHeld(k, semel.Lease{Length: k.Lease}, asked, time.Now())
		<-h.ctx.Done()
		if took := time.Since(asked); took != 54*time.Second || !errors.Is(context.Cause(h.ctx), errLeaseEnding) {
			t.Errorf("it ended after %s: %v; want 54 s", took, context.Cause(h.ctx))
		}
		h = newHeld(k, semel.Lease{Length: k.Lease}, time.Now(), time.Now())
		time.Sleep(20 * time.Second)
		renewal := time.Now()
		time.Sleep(10 * time.Second) // a slow renewal
		h.renewed(renewal, time.Second)
		<-h.ctx.Done()
		if took := time.Since(renewal); took != 54*time.Second {
			t.Errorf("after a renewal it ended after %s; want 54 s from when it was asked for", took)
		}
	})
}

// Where renewals fail, a call ends in time by its own timeout; and where what is
// left of the lease is too short for it, it is not begun.
func TestACallThatDoesNotFitIsNotBegun(t *testing.T) {
	for _, c := range []struct {
		name   string
		slow   string // the write that takes 10 s
		renews bool
		calls  int
	}{
		{"in time", "", false, 1},
		{"slow claim, no renewal", "claim", false, 0},
		{"slow mark, no renewal", "begin", false, 0},
		{"slow claim, renewed", "claim", true, 1},
		{"slow mark, renewed", "begin", true, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			key := w.accept("acme", "order", "1")
			if !c.renews {
				w.store.fail("before", "renew", down)
			}
			if c.slow != "" {
				w.store.fail("before", c.slow, times(1, func() error { time.Sleep(10 * time.Second); return nil }))
			}
			began, calls := time.Now(), 0
			k := long(preset(t, contract.Opaque), effect.Func(func(ctx context.Context, _ *effect.Call) effect.Result {
				calls++
				if !c.renews && time.Since(began) > time.Second {
					return effect.Applied("after it was handed back")
				}
				<-ctx.Done()
				return effect.Unknown("cancelled", "")
			}))
			stop := w.start([]Kind{k}, nil)
			time.Sleep(10500 * time.Millisecond)
			synctest.Wait()
			x := w.history(key).Executions[0]
			if handed := x.Outcome == semel.NotApplied && reportOf(x).Did == DidHandBack; handed != (c.calls == 0) {
				t.Errorf("%s: %+v", c.name, x)
			}
			w.settled(key)
			if x = w.history(key).Executions[0]; c.calls == 1 && x.EndedAt.After(x.LeaseEndsAt) {
				t.Errorf("%s: it ended after its lease: %+v", c.name, x)
			}
			if calls != 1 {
				t.Errorf("%s: %d calls", c.name, calls)
			}
			stop()
		})
	}
}

func TestALostLeaseStopsTheEffectAndItsResultIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		key := w.accept("acme", "order", "1")
		k := long(preset(t, contract.Opaque), effect.Func(func(ctx context.Context, _ *effect.Call) effect.Result {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), errLeaseLost) {
				t.Errorf("cause: %v", context.Cause(ctx))
			}
			return effect.Applied("it happened after all")
		}))
		stop := w.start([]Kind{k}, nil)
		time.Sleep(10 * time.Second)
		// Somebody else takes over: the store's clock is moved, as if this process had
		// been stopped.
		w.advance(2 * time.Minute)
		other := w.ghost(k)
		if len(other.Doubt()) != 1 {
			t.Fatalf("doubt: %+v", other.Doubt())
		}
		time.Sleep(15 * time.Second) // the next renewal finds out
		synctest.Wait()
		if _, err := w.ledger.Finish(context.Background(), other, Step(Facts{Kind: &k, Lease: other}).Ending); err != nil {
			t.Fatal(err)
		}
		op := w.get(key)
		x := w.history(key).Executions
		if op.State != semel.NeedsReconciliation || len(x) != 2 || x[0].LateOutcome != semel.Applied || x[0].Outcome != "" {
			t.Fatalf("%s %+v", op.State, x)
		}
		// The late result contradicts a person who says that it did not happen.
		op, err := w.ledger.Resolve(context.Background(), key, semel.Resolution{Verdict: "not_applied", Then: "fail", Evidence: "asked", By: "me", Revision: op.Revision})
		if err != nil || op.State != semel.Failed {
			t.Errorf("%+v, %v", op, err)
		}
		stop()
	})
}

func TestALateResultThatContradictsAVerdictIsFlagged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		key := w.accept("acme", "order", "1")
		release := make(chan struct{})
		k := long(preset(t, contract.Opaque), effect.Func(func(context.Context, *effect.Call) effect.Result {
			<-release // an effect that does not listen
			return effect.Applied(1)
		}))
		stop := w.start([]Kind{k}, nil)
		time.Sleep(time.Second)
		w.advance(10 * time.Minute)
		other := w.ghost(k)
		if _, err := w.ledger.Finish(context.Background(), other, semel.Ending{Outcome: semel.Unknown}); err != nil {
			t.Fatal(err)
		}
		op := w.get(key)
		if _, err := w.ledger.Resolve(context.Background(), key, semel.Resolution{Verdict: "not_applied", Then: "fail", Evidence: "asked", By: "me", Revision: op.Revision}); err != nil {
			t.Fatal(err)
		}
		close(release)
		synctest.Wait()
		if op = w.get(key); op.State != semel.Failed || !op.Contradicted {
			t.Errorf("%s, contradicted %v", op.State, op.Contradicted)
		}
		stop()
	})
}

func TestProgressRidesOnRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		key := w.accept("acme", "order", "1")
		k := long(preset(t, contract.Idempotent), effect.Func(func(_ context.Context, call *effect.Call) effect.Result {
			for i := range 100 {
				call.Progress(float64(i)/100, "drawing")
				time.Sleep(100 * time.Millisecond)
			}
			return effect.Applied(1)
		}))
		stop := w.start([]Kind{k}, nil)
		time.Sleep(5 * time.Second)
		op := w.get(key)
		if op.Progress == nil || op.Progress.Note != "drawing" || op.Progress.Fraction < 0.3 || op.Progress.Fraction > 0.5 {
			t.Errorf("after 5 s: %+v", op.Progress)
		}
		if op.Revision != 2 {
			t.Errorf("progress is no change: revision %d", op.Revision)
		}
		w.settled(key)
		if n := w.store.count("renew"); n < 9 || n > 12 {
			t.Errorf("%d renewals for 100 reports in 10 s; want about one a second", n)
		}
		stop()
	})
}

// The write of a result is repeated while the store can't be reached.
func TestFinishIsRepeated(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			key := w.accept("acme", "order", "1")
			w.store.fail(when, "finish", times(5, down))
			calls := 0
			stop := w.start([]Kind{long(preset(t, contract.Opaque), effect.Func(func(context.Context, *effect.Call) effect.Result {
				calls++
				return effect.Applied(1)
			}))}, nil)
			op := w.settled(key)
			stop()
			if op.State != semel.Succeeded || calls != 1 {
				t.Errorf("%s: %s after %d calls", when, op.State, calls)
			}
			if x := w.history(key).Executions; len(x) != 1 || x[0].Outcome != semel.Applied {
				t.Errorf("%s: %+v", when, x)
			}
		})
	}
}

// Nobody knows whether the begin mark was written: nothing is sent, and the
// operation is taken back, so that nothing needs reconciliation.
func TestAnUncertainBeginMarkSendsNothing(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			key := w.accept("acme", "order", "1")
			w.store.fail(when, "begin", times(1, down))
			calls := 0
			stop := w.start([]Kind{long(preset(t, contract.Opaque), effect.Func(func(context.Context, *effect.Call) effect.Result {
				calls++
				return effect.Applied(1)
			}))}, nil)
			op := w.settled(key)
			stop()
			x := w.history(key).Executions
			if op.State != semel.Succeeded || calls != 1 || len(x) != 2 || x[0].Outcome != semel.NotApplied {
				t.Errorf("%s: %s after %d calls, %+v", when, op.State, calls, x)
			}
		})
	}
}
