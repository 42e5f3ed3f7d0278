package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

var raceCases = []testCase{
	{"Race/OneKey", anything, testRaceOneKey},
	{"Race/CrossedBatches", anything, testRaceCrossedBatches},
	{"Race/OneRevision", anything, testRaceOneRevision},
	{"Race/Claim", anything, testRaceClaim},
	{"Race/ClaimAgainstAbandon", anything, testRaceClaimAgainstAbandon},
}

// together runs n functions at the same time, half of them on another handle.
func (w *world) together(n int, f func(i int, store semel.Store)) {
	stores := []semel.Store{w.store, w.node()}
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			f(i, stores[i%2])
		})
	}
	close(start)
	all.Wait()
}

// testRaceOneKey: 200 creators of one key: one wins, the others read its row.
func testRaceOneKey(w *world) {
	key := w.key()
	var mu sync.Mutex
	created, owners := 0, map[string]bool{}
	w.together(200, func(_ int, store semel.Store) {
		out, err := store.Insert(w.ctx, []semel.Insertion{in(key)})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			w.Errorf("insert: %v", err)
		case out[0].Err != nil:
			w.Errorf("insert: %v", out[0].Err)
		default:
			owners[out[0].Operation.Owner] = true
			if out[0].Verdict == semel.Created {
				created++
			}
		}
	})
	w.check(created == 1 && len(owners) == 1, "%d created, %d different rows seen", created, len(owners))
	w.check(w.pending("acme") == 1, "%d work rows", w.pending("acme"))
}

// testRaceCrossedBatches: batches that share keys in opposite orders neither
// deadlock nor surface a violation.
func testRaceCrossedBatches(w *world) {
	keys := make([]semel.Key, 60)
	for i := range keys {
		keys[i] = semel.Key{Account: string(rune('a' + i%7)), Kind: "note", ID: w.name()}
	}
	var mu sync.Mutex
	winners := map[semel.Key]int{}
	w.together(20, func(n int, store semel.Store) {
		batch := make([]semel.Insertion, len(keys))
		for i := range keys {
			at := (i + 3*n) % len(keys)
			if n%2 == 1 {
				at = len(keys) - 1 - at
			}
			batch[i] = in(keys[at])
		}
		out, err := store.Insert(w.ctx, batch)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			w.Errorf("insert: %v", err)
		}
		for i, o := range out {
			if o.Err != nil {
				w.Errorf("member: %v", o.Err)
			} else if o.Verdict == semel.Created {
				winners[batch[i].Key]++
			}
		}
	})
	for _, k := range keys {
		w.check(winners[k] == 1, "%s was created %d times", k, winners[k])
	}
}

// testRaceOneRevision: of many changes of one revision, one is applied.
func testRaceOneRevision(w *world) {
	for range 5 {
		op := w.createOne(in(w.key()))
		var mu sync.Mutex
		applied := 0
		w.together(50, func(i int, store semel.Store) {
			c := change(op, semel.Accepted)
			if i%5 == 0 {
				c = settle(op, semel.Abandoned, time.Hour)
			}
			out, err := store.Apply(w.ctx, []semel.Change{c})
			mu.Lock()
			defer mu.Unlock()
			if err != nil || out[0].Err != nil {
				w.Errorf("apply: %v", err)
			} else if out[0].Applied {
				applied++
				if out[0].Operation.Owner != c.Owner {
					w.Error("applied, with the row of another")
				}
			}
		})
		w.check(applied == 1, "%d changes of one revision were applied", applied)
		w.check(w.get(op.Key).Revision == 2, "revision %d, want 2", w.get(op.Key).Revision)
	}
}

// testRaceClaim: no operation is leased twice, and none is forgotten.
func testRaceClaim(w *world) {
	const n = 300
	var ins []semel.Insertion
	for i := range n {
		ins = append(ins, in(semel.Key{Account: string(rune('a' + i%9)), Kind: "note", ID: w.name()}))
	}
	w.create(ins...)
	var mu sync.Mutex
	got := map[semel.Key]int{}
	w.together(8, func(_ int, store semel.Store) {
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		for ctx.Err() == nil {
			out, err := store.Claim(ctx, notes(7))
			mu.Lock()
			if err != nil {
				w.Errorf("claim: %v", err)
			}
			for _, c := range out {
				got[c.Operation.Key]++
			}
			done := len(got) == n || err != nil
			mu.Unlock()
			if done {
				return
			}
		}
	})
	w.check(len(got) == n, "%d of %d were claimed", len(got), n)
	for k, times := range got {
		w.check(times == 1, "%s was leased %d times", k, times)
	}
}

// testRaceClaimAgainstAbandon: an operation is either claimed or abandoned.
func testRaceClaimAgainstAbandon(w *world) {
	var ins []semel.Insertion
	for range 40 {
		ins = append(ins, in(w.key()))
	}
	ops := w.create(ins...)
	var mu sync.Mutex
	claimed, abandoned := map[semel.Key]bool{}, map[semel.Key]bool{}
	w.together(8, func(i int, store semel.Store) {
		if i < 4 {
			for range 12 {
				out, err := store.Claim(w.ctx, notes(2))
				mu.Lock()
				if err != nil {
					w.Errorf("claim: %v", err)
				}
				for _, c := range out {
					claimed[c.Operation.Key] = true
				}
				mu.Unlock()
			}
			return
		}
		for n := i - 4; n < len(ops); n += 4 {
			c := settle(ops[n], semel.Abandoned, time.Hour)
			c.NextToken = 1
			out, err := store.Apply(w.ctx, []semel.Change{c})
			mu.Lock()
			if err != nil {
				w.Errorf("apply: %v", err)
			} else if out[0].Applied {
				abandoned[ops[n].Key] = true
			}
			mu.Unlock()
		}
	})
	for _, op := range ops {
		now := w.get(op.Key)
		w.check(!(claimed[op.Key] && abandoned[op.Key]), "%s was claimed and abandoned", op.Key)
		w.check(abandoned[op.Key] == (now.State == semel.Abandoned), "%s is %s; abandoned: %v", op.Key, now.State, abandoned[op.Key])
	}
}
