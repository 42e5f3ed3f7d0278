package storetest

import (
	"time"

	"github.com/semel-dev/semel"
)

var getCases = []testCase{
	{"Get/Unknown", clock, testGetUnknown},
	{"Get/Many", anything, testGetMany},
	{"Get/OtherNode", anything, testGetOtherNode},
	{"Get/WritesNothing", clock, testGetWritesNothing},
}

func testGetUnknown(w *world) {
	f := w.find(w.key())
	w.check(f.Operation == nil && !f.PastHorizon, "an unknown key: %+v", f)
	dated := semel.Key{Account: "acme", Kind: "note", ID: idAt(w.now().Add(-2 * time.Hour))}
	w.check(!w.find(dated).PastHorizon, "past a horizon that was never set")
	w.purge("note", time.Hour, 10)
	w.check(w.find(dated).PastHorizon, "an unknown ID behind the horizon is not told apart")
	w.check(!w.find(w.key()).PastHorizon, "an ID without a date is past the horizon")
	dated.Kind = "other"
	w.check(!w.find(dated).PastHorizon, "the horizon of another kind counts")
}

// testGetMany: answers stand at the index of their keys, whatever else is asked.
func testGetMany(w *world) {
	var ins []semel.Insertion
	for i := range 300 {
		ins = append(ins, in(semel.Key{Account: string(rune('a' + i%11)), Kind: "note", ID: w.name()}))
	}
	w.create(ins...)
	var keys []semel.Key
	for i := range ins {
		keys = append(keys, ins[(i*7)%len(ins)].Key)
		if i%3 == 0 {
			keys = append(keys, w.key())
		}
		if i%50 == 0 {
			keys = append(keys, ins[0].Key)
		}
	}
	found, err := w.store.Get(w.ctx, keys)
	w.ok(err, "get")
	owners := map[semel.Key]string{}
	for _, i := range ins {
		owners[i.Key] = i.Owner
	}
	for i, f := range found {
		owner, known := owners[keys[i]]
		w.check(known == (f.Operation != nil), "%s is known: %v, found: %v", keys[i], known, f.Operation != nil)
		if f.Operation != nil {
			w.check(f.Operation.Key == keys[i] && f.Operation.Owner == owner, "%s got the row of %s", keys[i], f.Operation.Key)
		}
	}
}

// testGetOtherNode: what was answered is seen through every other handle.
func testGetOtherNode(w *world) {
	other := w.node()
	for range 20 {
		op := w.createOne(in(w.key()))
		found, err := other.Get(w.ctx, []semel.Key{op.Key})
		w.ok(err, "get")
		w.check(found[0].Operation != nil, "created here, not found there")
		done, err := other.Apply(w.ctx, []semel.Change{settle(op, semel.Abandoned, time.Hour)})
		w.ok(err, "apply")
		w.check(done[0].Applied && w.get(op.Key).State == semel.Abandoned, "changed there, not seen here")
	}
}

func testGetWritesNothing(w *world) {
	op := w.createOne(in(w.key()))
	w.pass(time.Hour)
	for range 3 {
		w.find(op.Key)
		w.history(op.Key)
	}
	if d := difference(w.get(op.Key), op); d != "" {
		w.Errorf("a look-up changed the row: %s", d)
	}
	w.check(w.find(semel.Key{Account: "acme", Kind: "note", ID: "x"}).Operation == nil, "a look-up made a row")
}
