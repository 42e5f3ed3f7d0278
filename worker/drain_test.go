package worker

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

func TestDrainLetsCallsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		keys := []semel.Key{w.accept("a", "order", "1"), w.accept("a", "order", "2")}
		stop := w.start([]Kind{long(preset(t, contract.Opaque), effect.Func(func(ctx context.Context, _ *effect.Call) effect.Result {
			select {
			case <-ctx.Done():
				return effect.Unknown("cancelled", "")
			case <-time.After(10 * time.Second):
				return effect.Applied(1)
			}
		}))}, nil)
		time.Sleep(time.Second)
		w.accept("a", "order", "late") // due while the worker stops: not taken
		began := time.Now()
		stop()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("drained in %s", took)
		}
		for _, key := range keys {
			if op := w.get(key); op.State != semel.Succeeded {
				t.Errorf("%s: %s", key, op.State)
			}
		}
		if op := w.get(semel.Key{Account: "a", Kind: "order", ID: "late"}); op.State != semel.Accepted && op.State != semel.Succeeded {
			t.Errorf("late: %s", op.State)
		}
	})
}

// A call that takes longer than the drain is cancelled, and its doubt is recorded
// at once, for the next worker.
func TestDrainCancelsWhatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		key := w.accept("a", "order", "1")
		calls := 0
		k := long(preset(t, contract.Idempotent), effect.Func(func(ctx context.Context, call *effect.Call) effect.Result {
			if calls++; call.Repeat {
				return effect.Applied(1)
			}
			<-ctx.Done()
			return effect.Unknown("cancelled", "")
		}))
		stop := w.start([]Kind{k}, &Options{DrainTimeout: 3 * time.Second})
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("drained in %s", took)
		}
		if x := w.history(key).Executions; len(x) != 1 || x[0].Outcome != semel.Unknown {
			t.Fatalf("%+v", x)
		}
		stop = w.start([]Kind{k}, nil)
		if op := w.settled(key); op.State != semel.Succeeded || calls != 2 {
			t.Errorf("%s after %d calls", op.State, calls)
		}
		stop()
	})
}

// What was claimed at the very moment of stopping is handed back, at once.
func TestDrainHandsBackWhatHasNotBegun(t *testing.T) {
	for _, name := range []string{contract.Idempotent, contract.Opaque} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			key := w.accept("a", "order", "1")
			claiming := make(chan struct{})
			w.store.fail("before", "claim", times(1, func() error {
				close(claiming)
				time.Sleep(time.Second) // the worker is told to stop meanwhile
				return nil
			}))
			k := long(preset(t, name), effect.Func(func(context.Context, *effect.Call) effect.Result {
				t.Error("called")
				return effect.Applied(1)
			}))
			stop := w.start([]Kind{k}, nil)
			<-claiming
			stop()
			op, x := w.get(key), w.history(key).Executions
			if op.State != semel.Accepted || len(x) != 1 || x[0].Outcome != semel.NotApplied {
				t.Errorf("%s: %s %+v", name, op.State, x)
			}
			if l := w.ghost(k); len(l.Doubt()) != 0 {
				t.Errorf("%s: in doubt after a hand-back", name)
			}
		})
	}
}

// An effect that does not listen can't hold Run for ever.
func TestDrainLeavesADeafEffectBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.accept("a", "order", "1")
		release := make(chan struct{})
		stop := w.start([]Kind{long(preset(t, contract.Opaque), effect.Func(func(context.Context, *effect.Call) effect.Result {
			<-release
			return effect.Applied(1)
		}))}, &Options{DrainTimeout: time.Second})
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > time.Second+lastWords {
			t.Errorf("drained in %s", took)
		}
		close(release)
		synctest.Wait()
	})
}

func TestIdlePollingBacksOffAndAHintWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		wake := make(chan struct{}, 1)
		done := make(chan time.Time, 1)
		stop := w.start([]Kind{long(preset(t, contract.Idempotent), effect.Func(func(context.Context, *effect.Call) effect.Result {
			done <- time.Now()
			return effect.Applied(1)
		}))}, &Options{PollInterval: 100 * time.Millisecond, IdleInterval: 10 * time.Second, Wake: wake, Random: func() float64 { return 0.5 }})
		time.Sleep(100 * time.Second)
		synctest.Wait()
		before := w.store.count("claim")
		// 0.1 s doubled to 10 s takes 8 polls; then one every 7.5 s.
		if before < 15 || before > 25 {
			t.Errorf("%d claims in 100 idle seconds", before)
		}
		began := time.Now()
		w.accept("a", "order", "1")
		wake <- struct{}{}
		if took := (<-done).Sub(began); took > 0 {
			t.Errorf("a hint took %s", took)
		}
		synctest.Wait()
		w.accept("a", "order", "2") // no hint: the next poll finds it
		began = time.Now()
		if took := (<-done).Sub(began); took > time.Second {
			t.Errorf("after work, polling took %s", took)
		}
		stop()
	})
}

// Polls of several workers drift apart: the wait is random within its bounds.
func TestPollsAreJittered(t *testing.T) {
	w := &Worker{opts: Options{Random: func() float64 { return 0 }}}
	if d := w.jitter(time.Second); d != 500*time.Millisecond {
		t.Errorf("least: %s", d)
	}
	w.opts.Random = func() float64 { return 0.999999 }
	if d := w.jitter(time.Second); d > time.Second || d < 999*time.Millisecond {
		t.Errorf("most: %s", d)
	}
}

func TestConcurrencyLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		type counts struct{ now, most int }
		perKind := map[string]*counts{"a": {}, "b": {}, "c": {}}
		host := &counts{}
		lock := make(chan struct{}, 1)
		enter := func(d int, all ...*counts) {
			lock <- struct{}{}
			for _, c := range all {
				c.now += d
				c.most = max(c.most, c.now)
			}
			<-lock
		}
		kind := func(name, at string, limit int) Kind {
			return Kind{Name: name, Contract: preset(t, contract.Idempotent), Host: at, Concurrency: limit, Effect: effect.Func(
				func(context.Context, *effect.Call) effect.Result {
					all := []*counts{perKind[name]}
					if at == "shared" {
						all = append(all, host)
					}
					enter(1, all...)
					time.Sleep(time.Second)
					enter(-1, all...)
					return effect.Applied(1)
				})}
		}
		var keys []semel.Key
		for i := range 20 {
			for name := range perKind {
				keys = append(keys, w.accept("acme", name, fmt.Sprint(i)))
			}
		}
		stop := w.start([]Kind{kind("a", "shared", 4), kind("b", "shared", 3), kind("c", "own", 2)}, &Options{Hosts: map[string]int{"shared": 5}})
		for _, key := range keys {
			w.settled(key)
		}
		stop()
		if perKind["a"].most > 4 || perKind["b"].most > 3 || perKind["c"].most != 2 || host.most != 5 {
			t.Errorf("at most a %d, b %d, c %d, host %d; want up to 4, up to 3, 2, 5", perKind["a"].most, perKind["b"].most, perKind["c"].most, host.most)
		}
	})
}

// One account's many operations do not starve another's one.
func TestOneAccountDoesNotStarveAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range 400 {
			w.accept("many", "order", fmt.Sprint(i))
		}
		order := make(chan string, 1000)
		k := long(preset(t, contract.Idempotent), effect.Func(func(_ context.Context, call *effect.Call) effect.Result {
			order <- call.Key.Account
			time.Sleep(time.Second)
			return effect.Applied(1)
		}))
		stop := w.start([]Kind{k}, nil)
		time.Sleep(5500 * time.Millisecond)
		key := w.accept("few", "order", "1")
		began := time.Now()
		w.settled(key)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("the only operation of an account took %s behind 400 others", took)
		}
		stop()
	})
}
