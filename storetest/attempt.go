package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

var attemptCases = []testCase{
	{"Attempts/Count", clock, testAttemptsCount},
	{"Attempts/Cap", anything, testAttemptsCap},
	{"Attempts/Race", anything, testAttemptsRace},
}

func testAttemptsCount(w *world) {
	i := in(w.key())
	i.AttemptID = "first"
	op := w.createOne(i)
	other := w.createOne(in(w.key()))
	w.pass(time.Second)
	w.ok(w.store.RecordAttempts(w.ctx, []semel.Attempt{
		{Key: op.Key, ID: "second"}, {Key: other.Key, ID: "o1"}, {Key: w.key(), ID: "nobody"}, {Key: op.Key, ID: "second"},
	}), "attempts")
	got := w.get(op.Key)
	w.check(got.Attempts == 3 && w.get(other.Key).Attempts == 1, "counted %d and %d", got.Attempts, w.get(other.Key).Attempts)
	got.Attempts = op.Attempts
	if d := difference(got, op); d != "" {
		w.Errorf("an attempt is no change: %s", d)
	}
	h := w.history(op.Key).Attempts
	w.check(len(h) == 3 && h[0].ID == "first" && h[1].ID == "second" && h[2].ID == "second", "attempts: %+v", h)
	w.check(h[1].At.Equal(w.now()) && h[0].At.Equal(op.CreatedAt), "times: %+v", h)
}

// testAttemptsCap: all are counted, and the newest are kept.
func testAttemptsCap(w *world) {
	op := w.createOne(in(w.key()))
	const n = 3 * semel.MaxAttempts
	var batch []semel.Attempt
	for i := range n {
		batch = append(batch, semel.Attempt{Key: op.Key, ID: fmt.Sprint(i)})
		if len(batch) == 7 || i == n-1 {
			w.ok(w.store.RecordAttempts(w.ctx, batch), "attempts")
			batch = nil
		}
	}
	w.check(w.get(op.Key).Attempts == n, "counted %d of %d", w.get(op.Key).Attempts, n)
	h := w.history(op.Key).Attempts
	w.check(len(h) >= semel.MaxAttempts, "%d are kept", len(h))
	for i, a := range h {
		w.check(a.ID == fmt.Sprint(n-len(h)+i), "row %d of the newest %d is attempt %s", i, len(h), a.ID)
	}
}

func testAttemptsRace(w *world) {
	op := w.createOne(in(w.key()))
	var mu sync.Mutex
	w.together(20, func(i int, store semel.Store) {
		for range 5 {
			err := store.RecordAttempts(w.ctx, []semel.Attempt{{Key: op.Key, ID: fmt.Sprint(i)}, {Key: op.Key, ID: fmt.Sprint(-i)}})
			if err != nil {
				mu.Lock()
				w.Errorf("attempts: %v", err)
				mu.Unlock()
			}
		}
	})
	w.check(w.get(op.Key).Attempts == 200, "counted %d of 200", w.get(op.Key).Attempts)
}
