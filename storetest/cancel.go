package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semel-dev/semel"
)

var cancelCases = []testCase{
	{"Context/Cancelled", anything, testCancelled},
	{"Context/CancelledMidway", anything, testCancelledMidway},
	{"Closed", anything, testClosed},
}

// everyMethod calls each method once, for a key that is there.
func everyMethod(op semel.Operation, store semel.Store, ctx context.Context) map[string]error {
	errs := map[string]error{}
	other := op.Key
	other.ID += "-new"
	_, errs["Insert"] = store.Insert(ctx, []semel.Insertion{in(other)})
	_, errs["Get"] = store.Get(ctx, []semel.Key{op.Key})
	_, errs["Apply"] = store.Apply(ctx, []semel.Change{change(op, op.State)})
	_, errs["Claim"] = store.Claim(ctx, notes(1))
	_, errs["Renew"] = store.Renew(ctx, []semel.Renewal{{Key: op.Key, Token: op.Token, Lease: time.Minute}})
	errs["KeepLate"] = store.KeepLate(ctx, semel.Late{Key: op.Key, Token: 1, Outcome: semel.Unknown})
	errs["RecordAttempts"] = store.RecordAttempts(ctx, []semel.Attempt{{Key: op.Key, ID: "x"}})
	_, errs["List"] = store.List(ctx, semel.Query{Size: 10})
	_, errs["History"] = store.History(ctx, op.Key)
	_, errs["Pending"] = store.Pending(ctx, []string{"acme"}, 10)
	_, errs["Stats"] = store.Stats(ctx)
	_, errs["Purge"] = store.Purge(ctx, []semel.PurgeRequest{{Kind: "note", Retention: time.Hour, Max: 10}})
	errs["SaveDefinition"] = store.SaveDefinition(ctx, "note", "vx", []byte("x"))
	_, errs["Definition"] = store.Definition(ctx, "note", "vx")
	errs["Ping"] = store.Ping(ctx)
	return errs
}

// testCancelled: whoever has left already is told so, and nothing is half done.
func testCancelled(w *world) {
	op := w.createOne(in(w.key()))
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	for name, err := range everyMethod(op, w.store, ctx) {
		if err == nil {
			w.Errorf("%s does not look at a context that is over", name)
			continue
		}
		w.code(err, semel.CodeUnavailable)
	}
	if d := difference(w.get(op.Key), op); d != "" {
		w.Errorf("a call that was refused wrote: %s", d)
	}
	for name, err := range everyMethod(op, w.store, w.ctx) {
		w.check(err == nil, "%s after that: %v", name, err)
	}
}

// testCancelledMidway: a caller that leaves at any moment leaves a write done or
// not done, and Recorded "no" is never a lie. (The invariants do the rest.)
func testCancelledMidway(w *world) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		ctx, cancel := context.WithTimeout(w.ctx, time.Duration(random.IntN(1500))*time.Microsecond)
		var batch []semel.Insertion
		for i := range 1 + n%7 {
			batch = append(batch, in(semel.Key{Account: fmt.Sprintf("acc-%d", i), Kind: "note", ID: w.name()}))
		}
		out, err := w.store.Insert(ctx, batch)
		if err == nil {
			var changes []semel.Change
			for _, o := range out {
				changes = append(changes, settle(*o.Operation, semel.Failed, time.Hour))
			}
			w.store.Apply(ctx, changes[:len(changes)/2])
			claimed, _ := w.store.Claim(ctx, notes(3))
			for _, c := range claimed {
				w.store.Renew(ctx, []semel.Renewal{{Key: c.Operation.Key, Token: c.Operation.Token, Lease: time.Minute}})
				w.store.Apply(ctx, []semel.Change{settle(c.Operation, semel.Succeeded, time.Hour)})
			}
			w.store.List(ctx, semel.Query{Size: 100})
			w.store.Stats(ctx)
			w.store.History(ctx, batch[0].Key)
		} else {
			e := w.code(err, semel.CodeUnavailable)
			for _, b := range batch {
				if got := w.find(b.Key).Operation; got != nil && e.WasRecorded() == semel.RecordedNo {
					w.Errorf("%s is recorded, though the error said no: %v", b.Key, err)
				}
			}
		}
		cancel()
	}
}

// testClosed: a closed store says so.
func testClosed(w *world) {
	op := w.createOne(in(w.key()))
	second := w.node()
	w.ok(second.Close(), "close")
	for name, err := range everyMethod(op, second, w.ctx) {
		if err == nil {
			w.Errorf("%s works on a closed store", name)
			continue
		}
		w.code(err, semel.CodeUnavailable)
	}
	w.ok(second.Close(), "close again")
	w.get(op.Key)
}
