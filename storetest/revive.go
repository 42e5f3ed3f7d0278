package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

var reviveCases = []testCase{
	{"Purge/Revived", clock, testPurgeRevived},
}

// testPurgeRevived: exactly the rows that purges have chosen come back to life, and
// are claimed again, while the purges run; nothing that lives is touched. No ledger
// revives what is settled. A store owns no rule and does it when told to, and a
// purge that writes without looking again would be as wrong about a row that
// somebody else has purged, or whose time has not come yet by a clock set back.
func testPurgeRevived(w *world) {
	rounds := 10_000 // rows, each of them once a candidate and revived
	if testing.Short() || raceDetector {
		rounds = 1000
	}
	// The witness would object to a life after the end, so it does not see it.
	r := &revival{world: w, stores: [2]semel.Store{w.node().(*watched).Store, w.node().(*watched).Store}}
	var gone []semel.Key
	whole, stripped := 0, 0
	for len(gone) < rounds && !w.Failed() {
		ops := r.expire()
		r.race(ops)
		a, b := r.outcome(ops)
		whole, stripped = whole+a, stripped+b
		r.end()
		for _, op := range ops {
			gone = append(gone, op.Key)
		}
	}
	w.Logf("of %d rows %d were revived before they were stripped, and %d after", len(gone), whole, stripped)
	w.pass(2 * revivedRetain)
	for w.purge("note", revivedRetain, 1000) != (semel.Purged{}) {
	}
	for some := range slices.Chunk(gone, 500) {
		var again []semel.Insertion
		for _, key := range some {
			again = append(again, in(key))
		}
		out, err := w.store.Insert(w.ctx, again)
		w.ok(err, "insert")
		for i, o := range out {
			w.check(o.Verdict == semel.PastHorizon, "%s is settled, and its time is over: verdict %d, %v", some[i], o.Verdict, o.Err)
		}
	}
}

const revivedRetain = time.Millisecond

// A revival is one round of it after the other.
type revival struct {
	*world
	stores [2]semel.Store

	mu      sync.Mutex
	revived map[semel.Key]semel.Operation // as it was then
	claimed map[semel.Key]semel.Operation
}

// expire makes tombstones, in many shards, whose time is over: a purge may strip
// them, and delete them then.
func (r *revival) expire() []semel.Operation {
	r.Helper()
	r.revived, r.claimed = map[semel.Key]semel.Operation{}, map[semel.Key]semel.Operation{}
	var batch []semel.Insertion
	for n := range 64 {
		i := in(semel.Key{Account: fmt.Sprintf("acc-%d", n%semel.Shards), Kind: "note", ID: idAt(r.now())})
		i.State, i.Retain = semel.Abandoned, revivedRetain
		batch = append(batch, i)
	}
	out, err := r.stores[0].Insert(r.ctx, batch)
	r.ok(err, "insert")
	var ops []semel.Operation
	for i, o := range out {
		if o.Verdict != semel.Created {
			r.Fatalf("insert %s: verdict %d, %v", batch[i].Key, o.Verdict, o.Err)
		}
		ops = append(ops, *o.Operation)
	}
	r.pass(2 * revivedRetain)
	return ops
}

// race revives them in no order while purges run; the last purge begins when all
// of them have had their turn.
func (r *revival) race(ops []semel.Operation) {
	ops = slices.Clone(ops)
	rand.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	var purger, revivers sync.WaitGroup
	start, revived := make(chan struct{}), make(chan struct{})
	purger.Go(func() {
		<-start
		for last := false; !last; {
			select {
			case <-revived:
				last = true
			default:
			}
			if _, err := r.store.Purge(r.ctx, []semel.PurgeRequest{{Kind: "note", Retention: revivedRetain, Max: 1000}}); err != nil {
				r.Errorf("purge: %v", err)
				return
			}
		}
	})
	for i, store := range r.stores {
		revivers.Go(func() {
			<-start
			for some := range slices.Chunk(ops[i*len(ops)/2:(i+1)*len(ops)/2], 4) {
				r.revive(store, some)
			}
		})
	}
	close(start)
	revivers.Wait()
	close(revived)
	purger.Wait()
}

// revive makes rows live that are still there; those with their content become due
// and may be claimed.
func (r *revival) revive(store semel.Store, ops []semel.Operation) {
	var changes, due []semel.Change
	for _, op := range ops {
		c := change(op, semel.Accepted)
		c.Work, c.Due = semel.WorkDue, time.Hour
		changes = append(changes, c)
	}
	for _, op := range r.applied(store, changes) {
		r.mu.Lock()
		r.revived[op.Key] = op
		r.mu.Unlock()
		if !op.Expired {
			c := change(op, semel.Accepted)
			c.Work = semel.WorkDue
			due = append(due, c)
		}
	}
	if n := len(r.applied(store, due)); n != len(due) {
		r.Errorf("of %d rows that live, %d could be changed", len(due), n)
	}
	r.claimSome(store)
}

// applied makes changes and returns the rows of those that were made.
func (r *revival) applied(store semel.Store, changes []semel.Change) []semel.Operation {
	if len(changes) == 0 {
		return nil
	}
	out, err := store.Apply(r.ctx, changes)
	if err != nil {
		r.Errorf("apply: %v", err)
		return nil
	}
	var ops []semel.Operation
	for i, o := range out {
		if o.Err != nil {
			r.Errorf("apply %s: %v", changes[i].Key, o.Err)
		} else if o.Applied {
			ops = append(ops, *o.Operation)
		}
	}
	return ops
}

func (r *revival) claimSome(store semel.Store) int {
	out, err := store.Claim(r.ctx, notes(4))
	if err != nil {
		r.Errorf("claim: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range out {
		if _, before := r.claimed[c.Operation.Key]; before {
			r.Errorf("%s was claimed twice", c.Operation.Key)
		}
		r.claimed[c.Operation.Key] = c.Operation
	}
	return len(out)
}

// outcome holds what is there against what was revived, and counts what was revived
// before and after it was stripped.
func (r *revival) outcome(ops []semel.Operation) (whole, stripped int) {
	r.Helper()
	for r.claimSome(r.stores[0]) > 0 {
	}
	var keys []semel.Key
	for _, op := range ops {
		keys = append(keys, op.Key)
	}
	found, err := r.stores[1].Get(r.ctx, keys)
	r.ok(err, "get")
	for i, f := range found {
		lives, revived := r.revived[keys[i]]
		_, claimed := r.claimed[keys[i]]
		switch now := f.Operation; {
		case !revived:
			r.check(now == nil && f.PastHorizon || now != nil && now.Expired, "%s could not be revived, and is there: %+v", keys[i], now)
		case now == nil:
			r.Errorf("%s lives, and is gone", keys[i])
		case lives.Expired:
			stripped++
			r.check(now.Expired && now.State == semel.Accepted && !claimed, "%s was revived after it was stripped, and is %+v", keys[i], now)
		default:
			whole++
			r.check(!now.Expired && bytes.Equal(now.Params, ops[i].Params) && now.AsSent == ops[i].AsSent, "%s lives, and was stripped: %+v", keys[i], now)
			r.check(claimed && now.State == semel.Processing && now.Token == 1, "%s lives, and was claimed: %v; it is %+v", keys[i], claimed, now)
		}
	}
	return whole, stripped
}

// end settles again what lives, so that the purges of the next round take it.
func (r *revival) end() {
	r.Helper()
	var ends []semel.Change
	for key, op := range r.revived {
		if now, claimed := r.claimed[key]; claimed {
			ends = append(ends, settle(now, semel.Failed, revivedRetain))
		} else {
			ends = append(ends, settle(op, semel.Abandoned, revivedRetain))
		}
	}
	if n := len(r.applied(r.stores[0], ends)); n != len(ends) {
		r.Errorf("of %d rows that live, %d could be settled", len(ends), n)
	}
}
