package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

func TestNewSaysEverythingThatIsWrong(t *testing.T) {
	w := newWorld(t)
	idem, query := preset(t, contract.Idempotent), preset(t, contract.Queryable)
	effectOnly := effect.Func(func(context.Context, *effect.Call) effect.Result { return effect.Applied(nil) })
	posts, err := effect.NewHTTP(effect.HTTPSpec{URL: "http://127.0.0.1:1/"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	put := idem
	put.Use.Methods = []string{"PUT"}
	bad := idem
	bad.Retention.After = "nonsense"
	for _, c := range []struct {
		name    string
		kinds   []Kind
		problem string
	}{
		{"nothing", nil, "no kinds"},
		{"name", []Kind{{Name: "A B", Effect: effectOnly}}, "not a kind's name"},
		{"no effect", []Kind{{Name: "a"}}, "the effect is missing"},
		{"twice", []Kind{{Name: "a", Effect: effectOnly}, {Name: "a", Effect: effectOnly}}, "twice"},
		{"contract", []Kind{{Name: "a", Contract: bad, Effect: effectOnly}}, "retention"},
		{"check", []Kind{{Name: "a", Contract: put, Effect: posts}}, "on PUT, not on POST"},
		{"no look-up", []Kind{{Name: "a", Contract: query, Effect: effectOnly}}, "can't look up"},
		{"timeout", []Kind{{Name: "a", Contract: idem, Effect: effectOnly, Timeout: 55 * time.Second, Lease: time.Minute}}, "do not fit into a lease"},
		{"budget", []Kind{{Name: "a", Contract: idem, Effect: effectOnly, Retry: Retry{Budget: 25 * time.Hour}}}, "retry budget"},
		{"two problems", []Kind{{Name: "a"}, {Name: "A"}}, "not a kind's name"},
	} {
		if _, err := New(w.ledger, c.kinds, nil); err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v; want %q", c.name, err, c.problem)
		}
	}
	worker, err := New(w.ledger, []Kind{{Name: "a", Effect: posts}, {Name: "b", Effect: effectOnly}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := worker.kinds["a"], worker.kinds["b"]; a.Host != "127.0.0.1:1" || b.Host != "b" || a.Timeout != 20*time.Second || a.Lease != time.Minute || a.Retry.Budget != 12*time.Hour {
		t.Errorf("defaults: %+v %+v", a.Kind, b.Kind)
	}
}

func TestRunIsCalledOnce(t *testing.T) {
	w := newWorld(t)
	worker, err := New(w.ledger, []Kind{quick(contract.Contract{}, nothing)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := worker.Run(ctx); err != nil {
		t.Error(err)
	}
	if err := worker.Run(ctx); err == nil {
		t.Error("the second Run ran")
	}
}

// A panic is unknown, it does not end the worker, and its value goes nowhere.
func TestAPanicIsUnknown(t *testing.T) {
	w := newWorld(t)
	calls := 0
	w.start([]Kind{quick(preset(t, contract.Idempotent), effect.Func(func(_ context.Context, call *effect.Call) effect.Result {
		if calls++; calls == 1 {
			panic(errors.New("hunter2"))
		}
		if !call.Repeat {
			t.Error("the call after a panic is not known as a repeat")
		}
		return effect.Applied(1)
	}))}, nil)
	key := w.accept("acme", "order", "1")
	if op := w.settled(key); op.State != semel.Succeeded || calls != 2 {
		t.Errorf("%s after %d calls", op.State, calls)
	}
	x := w.history(key).Executions
	if x[0].Outcome != semel.Unknown || !reportOf(x[0]).Panicked || strings.Contains(string(x[0].Evidence)+w.logs.String(), "hunter2") {
		t.Errorf("%s %s", x[0].Outcome, x[0].Evidence)
	}
}

// Neither logs nor evidence hold parameters, results or failures' secrets.
func TestNothingConfidentialIsLogged(t *testing.T) {
	w := newWorld(t)
	n := 0
	stop := w.start([]Kind{quick(preset(t, contract.Idempotent), effect.Func(func(context.Context, *effect.Call) effect.Result {
		if n++; n == 1 {
			return effect.Unknown("lost", "secret-message")
		}
		return effect.Applied("secret-result")
	}))}, nil)
	key := w.accept("acme", "order", "secret-parameter")
	op := w.settled(key)
	stop()
	text := w.logs.String()
	for _, x := range w.history(key).Executions {
		text += string(x.Evidence)
	}
	text = strings.ReplaceAll(text, `"id":"secret-parameter"`, "") // the identity is logged
	if op.State != semel.Succeeded || strings.Contains(text, "secret-") {
		t.Errorf("%s: %s", op.State, text)
	}
	if !strings.Contains(text, `"outcome":"applied"`) || !strings.Contains(text, `"token":2`) {
		t.Errorf("the execution is not in the logs: %s", text)
	}
}

// The date of the first transmission is the same at every repeat, to the second
// and beyond, and is the begin mark's.
func TestTheFirstDateStays(t *testing.T) {
	for _, name := range []string{contract.Idempotent, contract.Opaque} {
		w := newWorld(t)
		var dates []time.Time
		k := quick(preset(t, name), effect.Func(func(_ context.Context, call *effect.Call) effect.Result {
			dates = append(dates, call.FirstSent)
			w.advance(3 * time.Second)
			if len(dates) < 3 && name == contract.Idempotent {
				return effect.Unknown("lost", "")
			}
			return effect.Applied(1)
		}))
		w.start([]Kind{k}, nil)
		key := w.accept("acme", "order", "1")
		w.settled(key)
		mark := w.history(key).Executions[0].BegunAt
		for i, d := range dates {
			if !d.Equal(mark) {
				t.Errorf("%s: date %d is %s, the begin mark %s", name, i, d, mark)
			}
		}
	}
}

// After a doubt, "refused" ends nothing: the credentials of the second call say
// nothing about the first.
func TestARefusalAfterADoubtIsNoVerdict(t *testing.T) {
	w := newWorld(t)
	answers := []effect.Result{effect.Unknown("lost", ""), effect.Refused("unauthenticated", ""), effect.NotApplied("busy", ""), effect.Applied(1)}
	var states []semel.State
	key := semel.Key{Account: "acme", Kind: "order", ID: "1"}
	n := 0
	w.start([]Kind{quick(preset(t, contract.Idempotent), effect.Func(func(context.Context, *effect.Call) effect.Result {
		states = append(states, w.get(key).State)
		n++
		return answers[n-1]
	}))}, nil)
	w.accept("acme", "order", "1")
	if op := w.settled(key); op.State != semel.Succeeded || n != 4 {
		t.Errorf("%s after %d calls (%v)", op.State, n, states)
	}
}

// The budget of attempts: provably nothing happened, so the operation fails.
func TestASpentBudgetFails(t *testing.T) {
	w := newWorld(t)
	n := 0
	k := quick(preset(t, contract.Opaque), effect.Func(func(context.Context, *effect.Call) effect.Result {
		n++
		return effect.NotApplied("closed", "We are closed.")
	}))
	k.Retry.MaxExecutions = 4
	w.start([]Kind{k}, nil)
	op := w.settled(w.accept("acme", "order", "1"))
	if op.State != semel.Failed || n != 4 || op.Failure.Code != "budget-spent" || !strings.Contains(op.Failure.Message, "We are closed.") {
		t.Errorf("%s after %d calls: %+v", op.State, n, op.Failure)
	}
}

// A store that comes and goes delays, and loses nothing.
func TestAnUnreachableStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		key := w.accept("acme", "order", "1")
		w.store.fail("before", "claim", down)
		stop := w.start([]Kind{long(preset(t, contract.Opaque), effect.Func(func(context.Context, *effect.Call) effect.Result { return effect.Applied(1) }))}, nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := w.store.count("claim"); n > 300 {
			t.Errorf("%d claims in ten minutes without a store", n)
		}
		w.store.heal()
		began := time.Now()
		if op := w.settled(key); op.State != semel.Succeeded || time.Since(began) > 6*time.Second {
			t.Errorf("%s, %s after the store was back", op.State, time.Since(began))
		}
		stop()
	})
}

func TestWhatIsObserved(t *testing.T) {
	w := newWorld(t)
	seen := make(chan semel.Observation, 100)
	n := 0
	stop := w.start([]Kind{quick(preset(t, contract.Idempotent), effect.Func(func(context.Context, *effect.Call) effect.Result {
		if n++; n == 1 {
			return effect.Result{Sends: 2}
		}
		return effect.Applied(1)
	}))}, &Options{Observe: func(o semel.Observation) { seen <- o }})
	w.settled(w.accept("acme", "order", "1"))
	stop()
	close(seen)
	var got []string
	for o := range seen {
		got = append(got, o.Name+" "+o.Kind+" "+o.Label)
	}
	if want := "call order unknown, hidden_sends order , retry order unknown, call order applied"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", strings.Join(got, ", "), want)
	}
}
