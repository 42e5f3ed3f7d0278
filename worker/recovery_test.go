package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

type ghostLease = semel.Lease

// A worker dies at each point of an execution; another one takes over. Effects
// outside: idempotent 1, queryable 1, opaque at most 1, and a person is asked
// where and only where it may have happened.
func TestAWorkerDiesAtEachPoint(t *testing.T) {
	points := []string{"claimed", "begun", "sent, effect to come", "effect done"}
	for shape, c := range shapes(t) {
		for _, point := range points {
			t.Run(shape+"/"+point, func(t *testing.T) {
				t.Parallel()
				b, w := newBureau(t), newWorld(t, shape)
				k := b.kind(t, shape, c)
				key := w.accept("acme", shape, "1")
				lease := w.ghost(k)
				var err error
				if point != "claimed" {
					if lease, err = w.ledger.Begin(context.Background(), lease); err != nil {
						t.Fatal(err)
					}
				}
				if point == "sent, effect to come" {
					b.wrong = func(_, _ string, nth int) string { return map[int]string{1: "late"}[nth] }
				}
				if strings.HasPrefix(point, "sent") || strings.HasPrefix(point, "effect") {
					callOnce(k, Step(Facts{Kind: &k, Lease: lease}), lease)
				}
				w.advance(k.Lease)
				w.start([]Kind{k}, nil)
				op := w.settled(key)
				if point == "sent, effect to come" {
					b.await("1")
				}
				want, effects := semel.Succeeded, 1
				switch {
				case shape == "opaque" && point == "begun":
					want, effects = semel.NeedsReconciliation, 0
				case shape == "opaque" && point != "claimed":
					want = semel.NeedsReconciliation
				}
				if op.State != want || b.count("1") != effects {
					t.Errorf("%s with %d effects, want %s with %d", op.State, b.count("1"), want, effects)
				}
				if op.State == semel.Succeeded && string(op.Result) != `{"id":"1","state":"done"}` {
					t.Errorf("result %s", op.Result)
				}
			})
		}
	}
}

// A downstream that keeps keys for a minute: recovery after that does not call again,
// even where today's contract says that keys are kept for longer.
func TestNoReCallOutsideRetention(t *testing.T) {
	for _, c := range []struct {
		name    string
		wait    time.Duration
		today   time.Duration // what today's contract says
		want    semel.State
		arrived int
	}{
		{"in time", 5 * time.Second, time.Minute, semel.Succeeded, 2},
		{"too late", 61 * time.Second, time.Minute, semel.NeedsReconciliation, 1},
		{"too late, and today's contract is another one", 61 * time.Second, 24 * time.Hour, semel.NeedsReconciliation, 1},
	} {
		b, w := newBureau(t), newWorld(t, "idempotent")
		promise := shapes(t)["idempotent"]
		promise.Retention.Minimum = contract.Duration(time.Minute)
		then := b.kind(t, "idempotent", contract.Contract{})
		then.Contract, then.Retry.Budget = promise, time.Minute
		key := w.accept("acme", "idempotent", "1")
		lease := w.ghost(then)
		callOnce(then, Step(Facts{Kind: &then, Lease: lease}), lease)
		w.advance(c.wait)
		now := then
		now.Contract.Retention.Minimum, now.Retry.Budget = contract.Duration(c.today), c.today
		stop := w.start([]Kind{now}, nil)
		op := w.settled(key)
		stop()
		if op.State != c.want || b.arrived("1") != c.arrived || b.count("1") != 1 {
			t.Errorf("%s: %s, %d arrived, %d effects; want %s, %d, 1", c.name, op.State, b.arrived("1"), b.count("1"), c.want, c.arrived)
		}
	}
}

// A stored server error comes back for ever: two calls tell, and a person is asked.
func TestAReplayedServerErrorDoesNotLoop(t *testing.T) {
	b, w := newBureau(t), newWorld(t, "stored")
	b.wrong = func(_, _ string, nth int) string { return map[int]string{1: "500-stored"}[nth] }
	w.start([]Kind{b.kind(t, "stored", shapes(t)["stored"])}, nil)
	key := w.accept("acme", "stored", "1")
	if op := w.settled(key); op.State != semel.NeedsReconciliation || b.arrived("1") != 2 || b.count("1") != 1 {
		t.Errorf("%s, %d arrived, %d effects", op.State, b.arrived("1"), b.count("1"))
	}
}

// After a doubt, a look-up that finds nothing is no proof before its time; the
// request that was on its way is found, and runs no second time.
func TestNotFoundIsNotTrusted(t *testing.T) {
	b, w := newBureau(t), newWorld(t, "queryable")
	b.wrong = func(_, _ string, nth int) string { return map[int]string{1: "late"}[nth] }
	w.start([]Kind{b.kind(t, "queryable", shapes(t)["queryable"])}, nil)
	key := w.accept("acme", "queryable", "1")
	if op := w.settled(key); op.State != semel.Succeeded || b.count("1") != 1 || b.arrived("1") != 1 {
		t.Errorf("%s, %d effects, %d arrived", op.State, b.count("1"), b.arrived("1"))
	}
	h := w.history(key)
	var early bool
	for _, x := range h.Executions {
		r := reportOf(x)
		early = early || r.Proof != nil && r.Proof.Cause == contract.CauseAbsentSoFar
	}
	if !early {
		t.Log("the effect was faster than the first look-up") // then the test has shown less
	}
	if op := w.get(key); op.Executions != 1 {
		t.Errorf("look-ups were counted as executions: %d", op.Executions)
	}
}

// Operations through a service that fails 30 % of the calls in every way, while
// workers die at every point: what is recorded is what happened.
func TestTheRecordTellsTheTruth(t *testing.T) {
	const perShape = 250
	all := shapes(t)
	names := []string{"idempotent", "queryable", "opaque", "stored"}
	b, w := newBureau(t), newWorld(t, names...)
	b.wrong = chance(7, "reset-before", "reset-after", "cut-answer", "503-before", "maintenance", "429", "400", "mismatch",
		"timeout-before", "timeout-after", "late", "500-after", "500-stored", "502-after", "slow")
	var kinds []Kind
	for _, name := range names {
		k := b.kind(t, name, all[name])
		k.Timeout, k.Lease = 200*time.Millisecond, time.Second // many calls are given up, and many leases lost
		kinds = append(kinds, k)
	}
	var keys []semel.Key
	for i := range perShape {
		for _, name := range names {
			keys = append(keys, w.accept(fmt.Sprint("account-", i%5), name, fmt.Sprintf("%s-%d", name, i)))
		}
	}
	ghosts := haunt(w, kinds)
	w.start(kinds, nil)
	w.start(kinds, nil) // a second worker on the same store
	tally := map[string]map[semel.State]int{}
	for _, key := range keys {
		op := w.settled(key)
		if tally[key.Kind] == nil {
			tally[key.Kind] = map[semel.State]int{}
		}
		tally[key.Kind][op.State]++
		switch n := b.count(key.ID); {
		case op.State == semel.Succeeded && n != 1, op.State == semel.Failed && n != 0, n > 1:
			text, _ := json.MarshalIndent(w.history(key).Executions, "", " ")
			t.Errorf("%s: %s with %d effects\n%s", key, op.State, n, text)
		}
	}
	ghosts()
	t.Logf("%v", tally)
	for _, name := range names {
		if tally[name][semel.Succeeded] < perShape/2 {
			t.Errorf("%s: only %d of %d succeeded", name, tally[name][semel.Succeeded], perShape)
		}
	}
	if n := tally["queryable"][semel.NeedsReconciliation]; n != 0 {
		t.Errorf("queryable: %d need reconciliation, although each can be looked up", n)
	}
	for _, secret := range []string{`{"id":`, `"state":"done"`} {
		if strings.Contains(w.logs.String(), strings.ReplaceAll(secret, `"`, `\"`)) {
			t.Errorf("%s is in the logs", secret)
		}
	}
}

// haunt claims now and then, and dies at a random point.
func haunt(w *world, kinds []Kind) (stop func()) {
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
			k := kinds[i%len(kinds)]
			leases, err := w.ledger.Claim(context.Background(), semel.ClaimRequest{Worker: "ghost", Max: 1, Kinds: []semel.ClaimKind{{
				Kind: k.Name, Lease: k.Lease, Contract: stored(k.Contract), BeginNow: !k.Contract.Shape().Opaque()}}})
			if err != nil || len(leases) == 0 {
				continue
			}
			lease := leases[0]
			a := Step(Facts{Kind: &k, Lease: lease, CanLookUp: true})
			if i%3 > 0 && a.Act == ActBegin {
				if lease, err = w.ledger.Begin(context.Background(), lease); err != nil {
					continue
				}
				a = Step(Facts{Kind: &k, Lease: lease, CanLookUp: true})
			}
			if i%3 == 2 && a.Act == ActCall {
				callOnce(k, a, lease)
			}
		}
	})
	return func() {
		close(quit)
		done.Wait()
	}
}
