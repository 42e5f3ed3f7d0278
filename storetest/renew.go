package storetest

import (
	"time"

	"github.com/semel-dev/semel"
)

var renewCases = []testCase{
	{"Renew/Extends", clock, testRenewExtends},
	{"Renew/Refuses", clock, testRenewRefuses},
	{"Renew/Progress", anything, testRenewProgress},
	{"KeepLate", clock, testKeepLate},
}

func (w *world) renew(batch ...semel.Renewal) []bool {
	w.Helper()
	held, err := w.store.Renew(w.ctx, batch)
	w.ok(err, "renew")
	if len(held) != len(batch) {
		w.Fatalf("renew answered %d of %d", len(held), len(batch))
	}
	return held
}

func testRenewExtends(w *world) {
	w.createOne(in(w.key()))
	op := w.claimOne().Operation
	w.pass(50 * time.Second)
	w.check(w.renew(semel.Renewal{Key: op.Key, Token: op.Token, Lease: time.Minute})[0], "not renewed")
	h := w.history(op.Key)
	w.check(h.Executions[0].LeaseEndsAt.Equal(w.now().Add(time.Minute)), "the lease ends at %v", h.Executions[0].LeaseEndsAt)
	if d := difference(w.get(op.Key), op); d != "" {
		w.Errorf("a renewal is no change: %s", d)
	}
	w.pass(time.Minute - time.Millisecond)
	w.check(len(w.claim(notes(1))) == 0, "claimed while the renewed lease ran")
	w.pass(time.Second) // it has ended, but nobody came
	w.check(w.renew(semel.Renewal{Key: op.Key, Token: op.Token, Lease: time.Minute})[0], "nobody else has it, so it can be renewed")
	w.check(len(w.claim(notes(1))) == 0, "claimed while the lease ran again")
	w.check(w.renew(semel.Renewal{Key: op.Key, Token: op.Token, Lease: time.Second})[0], "not renewed")
	w.pass(time.Second)
	again := w.claimOne()
	w.check(again.Operation.Token == 2, "token %d", again.Operation.Token)
}

func testRenewRefuses(w *world) {
	w.createOne(in(w.key()))
	lost := w.claimOne().Operation
	w.pass(time.Minute)
	held := w.claimOne().Operation
	waiting := w.createOne(in(w.key()))
	settled := w.apply(settle(w.createOne(in(w.key())), semel.Failed, time.Hour))
	back := func(token int64, op semel.Operation) semel.Renewal {
		return semel.Renewal{Key: op.Key, Token: token, Lease: time.Hour, Progress: &semel.Progress{Fraction: 0.9}}
	}
	before := w.get(held.Key)
	got := w.renew(back(lost.Token, lost), back(held.Token+1, held), back(waiting.Token, waiting), back(settled.Token, settled),
		semel.Renewal{Key: w.key(), Token: 1, Lease: time.Hour})
	for i, ok := range got {
		w.check(!ok, "renewal %d was granted", i)
	}
	for _, op := range []semel.Operation{before, waiting, settled} {
		if d := difference(w.get(op.Key), op); d != "" {
			w.Errorf("a refused renewal changed the row: %s", d)
		}
	}
	mixed := w.renew(back(lost.Token, lost), semel.Renewal{Key: held.Key, Token: held.Token, Lease: time.Hour})
	w.check(!mixed[0] && mixed[1], "a batch of a lost and a held lease: %v", mixed)
	w.check(len(w.claim(notes(10))) == 1, "the operation that waited can be claimed, and no other")
}

func testRenewProgress(w *world) {
	w.createOne(in(w.key()))
	op := w.claimOne().Operation
	w.check(op.Progress == nil, "progress from the start: %+v", op.Progress)
	for _, p := range []*semel.Progress{{Fraction: 0.25, Note: "第 1 页"}, {Fraction: 1, Note: ""}, {Fraction: 0}} {
		w.renew(semel.Renewal{Key: op.Key, Token: op.Token, Lease: time.Minute, Progress: p})
		w.renew(semel.Renewal{Key: op.Key, Token: op.Token, Lease: time.Minute})
		got := w.get(op.Key)
		w.check(got.Progress != nil && *got.Progress == *p, "progress %+v, want %+v", got.Progress, p)
		w.check(got.Revision == op.Revision && got.UpdatedAt.Equal(op.UpdatedAt), "progress changed the revision or the time")
	}
}

// testKeepLate: a late result is kept beside its execution; the first one stays.
func testKeepLate(w *world) {
	w.createOne(in(w.key()))
	late := w.claimOne().Operation
	w.pass(time.Minute)
	op := w.claimOne().Operation
	keep := func(l semel.Late) {
		w.Helper()
		w.ok(w.store.KeepLate(w.ctx, l), "keep late")
	}
	want := w.history(op.Key)
	keep(semel.Late{Key: op.Key, Token: late.Token, Outcome: semel.Applied, Evidence: []byte(`{"n":1}`)})
	want.Executions[0].LateOutcome, want.Executions[0].LateEvidence, want.Executions[0].LateAt = semel.Applied, []byte(`{"n":1}`), w.now()
	w.pass(time.Second)
	keep(semel.Late{Key: op.Key, Token: late.Token, Outcome: semel.Refused, Evidence: []byte(`{"n":2}`)})
	keep(semel.Late{Key: op.Key, Token: 77, Outcome: semel.Applied})
	keep(semel.Late{Key: w.key(), Token: 1, Outcome: semel.Applied})
	got := w.history(op.Key)
	for i := range want.Executions {
		if d := difference(got.Executions[i], want.Executions[i]); d != "" {
			w.Errorf("execution %d: %s", i, d)
		}
	}
	w.check(len(got.Executions) == 2, "%d executions", len(got.Executions))
	if d := difference(w.get(op.Key), op); d != "" {
		w.Errorf("late evidence changed the row: %s", d)
	}
}
