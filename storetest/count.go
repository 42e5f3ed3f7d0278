package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

var countCases = []testCase{
	{"History/Empty", anything, testHistoryEmpty},
	{"Pending", anything, testPending},
	{"Stats", clock, testStats},
	{"Definition", anything, testDefinition},
	{"Ping", anything, func(w *world) { w.ok(w.store.Ping(w.ctx), "ping") }},
}

func testHistoryEmpty(w *world) {
	h := w.history(w.key())
	w.check(len(h.Attempts)+len(h.Executions)+len(h.Verdicts) == 0, "the history of an unknown key: %+v", h)
	op := w.createOne(in(w.key()))
	h = w.history(op.Key)
	w.check(len(h.Attempts)+len(h.Executions)+len(h.Verdicts) == 0, "the history of a new operation: %+v", h)
}

func testPending(w *world) {
	for n := range 30 {
		w.createOne(in(semel.Key{Account: []string{"a", "b", "b"}[n%3], Kind: []string{"note", "other"}[n%2], ID: w.name()}))
	}
	expect := func(limit int, want ...int) {
		w.Helper()
		got, err := w.store.Pending(w.ctx, []string{"b", "nobody", "a", "b"}, limit)
		w.ok(err, "pending")
		w.check(fmt.Sprint(got) == fmt.Sprint(want), "with limit %d: %v, want %v", limit, got, want)
	}
	expect(100, 20, 0, 10, 20)
	expect(10, 10, 0, 10, 10)
	expect(3, 3, 0, 3, 3)
	for _, c := range w.claim(notes(5)) { // a lease does not end the waiting
		if c.Operation.Key.Account == "a" {
			w.apply(settle(c.Operation, semel.Succeeded, time.Hour))
		}
	}
	left := 10 - len(w.list(semel.Query{Accounts: []string{"a"}, State: semel.Succeeded, Size: 100}))
	expect(100, 20, 0, left, 20)
}

func testStats(w *world) {
	s, err := w.store.Stats(w.ctx)
	w.ok(err, "stats")
	w.check(len(s.Kinds) == 0 && s.At.Equal(w.now()), "stats of nothing: %+v", s)
	kinds := func() map[string]semel.KindStats {
		w.Helper()
		s, err := w.store.Stats(w.ctx)
		w.ok(err, "stats")
		all := map[string]semel.KindStats{}
		for _, k := range s.Kinds {
			all[k.Kind] = k
		}
		return all
	}
	old := w.createOne(in(w.key()))
	later := in(w.key())
	later.Due = time.Hour
	w.createOne(later)
	w.pass(10 * time.Second)
	for n := range 4 { // in reconciliation: two, one of them acknowledged; two done, one contradicted
		op := w.createOne(in(semel.Key{Account: fmt.Sprintf("acc-%d", n), Kind: "other", ID: w.name()}))
		c := change(op, semel.NeedsReconciliation)
		c.Work, c.Acknowledged = semel.WorkDone, n == 0
		if n >= 2 {
			c = settle(op, semel.Succeeded, time.Hour)
			c.Contradicted = n == 3
		}
		w.apply(c)
		w.pass(time.Second)
	}
	k := kinds()
	w.check(len(k) == 2, "%d kinds", len(k))
	w.check(k["note"].States[semel.Accepted] == 2 && k["note"].OldestDue == 14*time.Second, "note: %+v", k["note"])
	w.check(k["note"].Unreconciled == 0 && k["note"].OldestUnreconciled == 0 && k["note"].Contradicted == 0, "note: %+v", k["note"])
	o := k["other"]
	w.check(o.States[semel.NeedsReconciliation] == 2 && o.States[semel.Succeeded] == 2 && o.OldestDue == 0, "other: %+v", o)
	w.check(o.Unreconciled == 1 && o.OldestUnreconciled == 3*time.Second && o.Contradicted == 1, "other: %+v", o)
	got := w.claimOne()
	w.check(got.Operation.Key == old.Key, "claimed %s", got.Operation.Key)
	w.check(kinds()["note"].OldestDue == 0, "nothing waits, and the oldest has waited %v", kinds()["note"].OldestDue)
	w.pass(time.Minute + 5*time.Second)
	w.check(kinds()["note"].OldestDue == 5*time.Second, "a lease ended 5 s ago, and the oldest has waited %v", kinds()["note"].OldestDue)
}

// testDefinition: the first definition of a version stays.
func testDefinition(w *world) {
	get := func(kind, version string) []byte {
		w.Helper()
		d, err := w.store.Definition(w.ctx, kind, version)
		w.ok(err, "definition")
		return d
	}
	w.check(get("note", "v1") == nil, "a definition that nobody saved")
	w.ok(w.store.SaveDefinition(w.ctx, "note", "v1", []byte(`{"a":"本"}`)), "save")
	w.ok(w.store.SaveDefinition(w.ctx, "note", "v1", []byte(`{"b":1}`)), "save again")
	w.ok(w.store.SaveDefinition(w.ctx, "note", "v2", []byte(`{"c":1}`)), "save another version")
	w.ok(w.store.SaveDefinition(w.ctx, "other", "v1", []byte(`{"d":1}`)), "save another kind")
	w.check(string(get("note", "v1")) == `{"a":"本"}`, "v1 is %q", get("note", "v1"))
	w.check(string(get("note", "v2")) == `{"c":1}` && string(get("other", "v1")) == `{"d":1}`, "definitions are mixed up")
	var mu sync.Mutex
	seen := map[string]bool{}
	w.together(20, func(i int, store semel.Store) {
		err := store.SaveDefinition(w.ctx, "note", "v3", []byte(fmt.Sprint(i)))
		d, err2 := store.Definition(w.ctx, "note", "v3")
		mu.Lock()
		defer mu.Unlock()
		if err != nil || err2 != nil {
			w.Errorf("definition: %v, %v", err, err2)
		}
		seen[string(d)] = true
	})
	w.check(len(seen) == 1, "a definition was seen in %d forms", len(seen))
}
