package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

var purgeCases = []testCase{
	{"Purge/Strips", clock, testPurgeStrips},
	{"Purge/Deletes", clock, testPurgeDeletes},
	{"Purge/Unsettled", clock, testPurgeUnsettled},
	{"Purge/Tombstone", clock, testPurgeTombstone},
	{"Purge/Bounded", clock, testPurgeBounded},
	{"Purge/Kinds", clock, testPurgeKinds},
	{"Purge/HorizonNeverFalls", clock, testPurgeHorizonNeverFalls},
	{"Purge/DeviceClocks", clock, testPurgeDeviceClocks},
	{"Purge/Late", clock, testPurgeLate},
	{"Purge/Traffic", clock, testPurgeTraffic},
}

// settled makes an operation with that ID and settles it.
func (w *world) settled(id string, to semel.State, retain time.Duration) semel.Operation {
	w.Helper()
	i := in(semel.Key{Account: "acme", Kind: "note", ID: id})
	i.Request, i.AttemptID = []byte("request"), "a1"
	op := w.createOne(i)
	return w.apply(settle(op, to, retain))
}

// testPurgeStrips: past its expiry, everything but the identity goes; the row of
// an undated ID stays for ever.
func testPurgeStrips(w *world) {
	w.createOne(func() semel.Insertion { i := in(w.key()); i.AttemptID = "a"; return i }())
	claimed := w.claimOne().Operation
	c := settle(claimed, semel.Succeeded, time.Hour)
	c.Verdict = &semel.Verdict{Verdict: "applied", Evidence: "e", By: "b", Token: 1}
	op := w.apply(c)
	w.pass(time.Hour - time.Millisecond)
	p := w.purge("note", time.Hour, 10)
	w.check(p == (semel.Purged{}), "purged before its time: %+v", p)
	if d := difference(w.get(op.Key), op); d != "" {
		w.Error(d)
	}
	w.pass(2 * time.Millisecond)
	p = w.purge("note", time.Hour, 10)
	w.check(p == (semel.Purged{Stripped: 1}), "purged: %+v", p)
	got := w.get(op.Key)
	w.check(got.Expired && got.State == semel.Succeeded && got.Params == nil && got.Request == nil && got.Result == nil, "stripped: %+v", got)
	w.check(got.AsSent == "" && got.Fingerprint == "", "it kept its digests: %+v", got)
	w.check(got.CreatedAt.Equal(op.CreatedAt) && got.Token == op.Token && got.ExpiresAt.Equal(op.ExpiresAt), "it lost its identity: %+v", got)
	h := w.history(op.Key)
	w.check(len(h.Attempts)+len(h.Executions)+len(h.Verdicts) == 0, "it kept its history: %+v", h)
	for range 3 {
		w.pass(24 * time.Hour)
		p = w.purge("note", time.Hour, 10)
		w.check(p == (semel.Purged{}), "purged again: %+v", p)
	}
	again := w.insertOne(in(op.Key))
	w.check(again.Verdict == semel.Exists && again.Operation.Expired, "a late request met %d", again.Verdict)
	w.check(len(w.list(semel.Query{Size: 10})) == 0, "a stripped row is listed")
}

// testPurgeDeletes: the row of a UUIDv7 goes when the horizon has passed it, and
// then the horizon answers for it.
func testPurgeDeletes(w *world) {
	op := w.settled(idAt(w.now()), semel.Succeeded, time.Hour)
	w.pass(time.Hour + time.Millisecond)
	p := w.purge("note", 2*time.Hour, 10)
	w.check(p == (semel.Purged{Stripped: 1}), "before the horizon passed it: %+v", p)
	w.check(w.insertOne(in(op.Key)).Verdict == semel.Exists, "it is gone before the horizon passed it")
	w.pass(time.Hour)
	p = w.purge("note", 2*time.Hour, 10)
	w.check(p == (semel.Purged{Deleted: 1}), "after the horizon passed it: %+v", p)
	f := w.find(op.Key)
	w.check(f.Operation == nil && f.PastHorizon, "a look-up: %+v", f)
	for range 2 {
		w.check(w.insertOne(in(op.Key)).Verdict == semel.PastHorizon, "a late request ran again")
		w.pass(1000 * time.Hour)
	}
}

// testPurgeUnsettled: what is not settled stays as it is, however old.
func testPurgeUnsettled(w *world) {
	id := func() semel.Key { return semel.Key{Account: "acme", Kind: "note", ID: idAt(w.now())} }
	var before []semel.Operation
	for range 2 {
		w.createOne(in(id()))
	}
	for _, c := range w.claim(notes(10)) {
		before = append(before, c.Operation)
	}
	before = append(before, w.createOne(in(id())), w.createOne(in(w.key())))
	for range 2 {
		c := change(w.createOne(in(id())), semel.NeedsReconciliation)
		c.Work, c.Retain, c.Acknowledged = semel.WorkDone, time.Millisecond, true
		before = append(before, w.apply(c))
	}
	w.pass(5 * 365 * 24 * time.Hour)
	for range 3 {
		p := w.purge("note", time.Millisecond, 100)
		w.check(p == (semel.Purged{}), "purged: %+v", p)
	}
	for _, op := range before {
		if d := difference(w.get(op.Key), op); d != "" {
			w.Errorf("%s: %s", op.State, d)
		}
		w.check(w.insertOne(in(op.Key)).Verdict == semel.Exists, "%s is not found by a repeat", op.State)
	}
	w.check(w.pending("acme") == 4 && len(w.claim(notes(100))) == 4, "their work is gone")
}

func testPurgeTombstone(w *world) {
	undated, dated := w.key(), semel.Key{Account: "acme", Kind: "note", ID: idAt(w.now())}
	for _, key := range []semel.Key{undated, dated} {
		i := in(key)
		i.State, i.Retain = semel.Abandoned, time.Hour
		w.createOne(i)
	}
	w.pass(time.Hour + time.Millisecond)
	p := w.purge("note", 2*time.Hour, 10)
	w.check(p.Stripped == 2 && p.Deleted == 0, "purged: %+v", p)
	w.pass(24 * time.Hour)
	w.purge("note", 2*time.Hour, 10)
	out := w.insertOne(in(undated))
	w.check(out.Verdict == semel.Exists && out.Operation.State == semel.Abandoned && out.Operation.Expired, "a tombstone became %+v", out)
	w.check(w.insertOne(in(dated)).Verdict == semel.PastHorizon, "a tombstone that the horizon answers for was not deleted, or is forgotten")
}

// testPurgeBounded: one step takes Max of each, and the next one goes on.
func testPurgeBounded(w *world) {
	var ops []semel.Insertion
	for n := range 50 {
		ops = append(ops, in(semel.Key{Account: fmt.Sprintf("acc-%d", n%20), Kind: "note", ID: idAt(w.now())}))
	}
	var changes []semel.Change
	for _, op := range w.create(ops...) {
		changes = append(changes, settle(op, semel.Failed, time.Hour))
	}
	_, err := w.store.Apply(w.ctx, changes)
	w.ok(err, "apply")
	w.pass(2 * time.Hour)
	stripped, deleted := 0, 0
	for range 100 {
		p := w.purge("note", time.Hour, 8)
		w.check(p.Stripped <= 8 && p.Deleted <= 8, "a step of 8 did %+v", p)
		stripped, deleted = stripped+p.Stripped, deleted+p.Deleted
		if p == (semel.Purged{}) {
			break
		}
	}
	w.check(stripped == 50 && deleted == 50, "stripped %d and deleted %d of 50", stripped, deleted)
}

func testPurgeKinds(w *world) {
	op := w.settled(w.name(), semel.Failed, time.Hour)
	w.pass(2 * time.Hour)
	w.check(w.purge("other", time.Millisecond, 10) == semel.Purged{}, "a purge of another kind did something")
	w.check(!w.get(op.Key).Expired, "it was stripped")
	p, err := w.store.Purge(w.ctx, []semel.PurgeRequest{{Kind: "other", Retention: time.Hour, Max: 10}, {Kind: "note", Retention: time.Hour, Max: 10}})
	w.check(err == nil && p.Stripped == 1, "a purge of two kinds: %+v, %v", p, err)
	p, err = w.store.Purge(w.ctx, nil)
	w.check(err == nil && p == semel.Purged{}, "a purge of nothing: %+v, %v", p, err)
}

// testPurgeHorizonNeverFalls: not when the retention is raised, and not when the
// clock is set back.
func testPurgeHorizonNeverFalls(w *world) {
	gone := w.settled(idAt(w.now()), semel.Succeeded, time.Hour)
	w.pass(3 * time.Hour)
	w.purge("note", time.Hour, 10)
	w.check(w.find(gone.Key).Operation == nil, "it is not gone")
	for _, retention := range []time.Duration{1000 * time.Hour, 2 * time.Hour, 100000 * time.Hour} {
		w.purge("note", retention, 10)
		w.check(w.insertOne(in(gone.Key)).Verdict == semel.PastHorizon, "with retention %v the identity ran again", retention)
	}
	w.pass(-2 * time.Hour)
	w.purge("note", time.Hour, 10)
	w.check(w.insertOne(in(gone.Key)).Verdict == semel.PastHorizon, "with the clock set back the identity ran again")
	w.pass(2 * time.Hour)
}

// testPurgeDeviceClocks: an ID from a device whose clock is a year off never runs
// twice. Dated ahead, the horizon would be too late to answer for it, so its row
// stays; dated behind, it is refused from the start or lives like any other.
func testPurgeDeviceClocks(w *world) {
	const year = 365 * 24 * time.Hour
	ahead := w.settled(idAt(w.now().Add(year)), semel.Succeeded, time.Hour)
	slightly := w.settled(idAt(w.now().Add(time.Millisecond)), semel.Succeeded, time.Hour)
	behind := w.settled(idAt(w.now().Add(-year)), semel.Succeeded, time.Hour) // no horizon yet: accepted
	for n := range 30 {
		w.pass(24 * time.Hour * time.Duration(n))
		w.purge("note", time.Hour, 10)
		for _, op := range []semel.Operation{ahead, slightly, behind} {
			out := w.insertOne(in(op.Key))
			w.check(out.Verdict == semel.PastHorizon || out.Verdict == semel.Exists && (out.Operation.Expired || n == 0),
				"round %d, %s: verdict %d", n, op.Key, out.Verdict)
		}
	}
	for _, op := range []semel.Operation{ahead, slightly} {
		got := w.find(op.Key).Operation
		w.check(got != nil && got.Expired, "the row of an ID dated after its acceptance went")
	}
	w.check(w.find(behind.Key).Operation == nil, "the row of an ID dated a year back never went")
	w.check(w.insertOne(in(semel.Key{Account: "acme", Kind: "note", ID: idAt(w.now().Add(-year))})).Verdict == semel.PastHorizon,
		"a new ID dated a year back is not refused")
}

// testPurgeLate: nothing comes back to a stripped row.
func testPurgeLate(w *world) {
	w.createOne(in(w.key()))
	op := w.claimOne().Operation
	done := w.apply(settle(op, semel.Failed, time.Hour))
	w.pass(2 * time.Hour)
	w.purge("note", time.Hour, 10)
	w.ok(w.store.KeepLate(w.ctx, semel.Late{Key: op.Key, Token: op.Token, Outcome: semel.Applied}), "keep late")
	w.ok(w.store.RecordAttempts(w.ctx, []semel.Attempt{{Key: op.Key, ID: "late"}}), "attempts")
	held := w.renew(semel.Renewal{Key: op.Key, Token: op.Token, Lease: time.Minute})
	w.check(!held[0], "a lease on a stripped row was renewed")
	c := change(done, semel.Failed)
	c.Contradicted = true
	flagged := w.tryApply(c)
	w.check(!flagged.Applied || flagged.Operation.Contradicted && flagged.Operation.Expired, "a flag on a stripped row: %+v", flagged)
}

// testPurgeTraffic: while others create, claim and finish, a purge that is always
// at their heels removes nothing that lives, and no identity runs twice.
func testPurgeTraffic(w *world) {
	rounds := 250 // of 10 keys, in each of 4 workers: 10,000 lives
	if testing.Short() || raceDetector {
		rounds = 25
	}
	const retain = 2 * time.Millisecond
	stop := make(chan struct{})
	var purger, workers sync.WaitGroup
	other := w.node()
	purger.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			w.pass(time.Millisecond)
			if _, err := other.Purge(w.ctx, []semel.PurgeRequest{{Kind: "note", Retention: retain, Max: 20 + n%50}}); err != nil {
				w.Errorf("purge: %v", err)
				return
			}
		}
	})
	var mu sync.Mutex
	made := map[semel.Key]bool{} // whether it was settled
	for n := range 4 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for range rounds {
				for key, settled := range w.lives(n, random, retain) {
					mu.Lock()
					made[key] = made[key] || settled
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	purger.Wait()
	again, live := 0, 0
	for key, settled := range made {
		if !settled {
			live++
			w.check(w.find(key).Operation != nil, "%s lived, and is gone", key)
		}
		if out := w.insertOne(in(key)); out.Verdict == semel.Created {
			again++
		}
	}
	w.check(again == 0, "%d of %d identities were accepted twice", again, len(made))
	w.check(live > 0 && live < len(made), "%d of %d live: the test tests nothing", live, len(made))
}

// lives makes ten operations and leads some of them to their end.
func (w *world) lives(n int, random *rand.Rand, retain time.Duration) map[semel.Key]bool {
	var batch []semel.Insertion
	for i := range 10 {
		key := semel.Key{Account: fmt.Sprintf("acc-%d", n), Kind: "note", ID: idAt(w.now())}
		if i%5 == 0 {
			key.ID = w.name()
		}
		batch = append(batch, in(key))
	}
	made := map[semel.Key]bool{}
	out, err := w.store.Insert(w.ctx, batch)
	if err != nil {
		w.Errorf("insert: %v", err)
		return nil
	}
	var ends []semel.Change
	for _, o := range out {
		if o.Verdict != semel.Created {
			continue // the purge was faster than the insertion
		}
		made[o.Operation.Key] = false
		if random.IntN(2) == 0 {
			ends = append(ends, settle(*o.Operation, semel.Abandoned, retain))
		}
	}
	claimed, err := w.store.Claim(w.ctx, notes(4))
	if err != nil {
		w.Errorf("claim: %v", err)
	}
	for _, c := range claimed {
		if random.IntN(3) > 0 {
			ends = append(ends, settle(c.Operation, semel.Succeeded, retain))
		}
	}
	seen := map[semel.Key]bool{}
	var distinct []semel.Change
	for _, c := range ends {
		if !seen[c.Key] {
			seen[c.Key] = true
			distinct = append(distinct, c)
		}
	}
	done, err := w.store.Apply(w.ctx, distinct)
	if err != nil {
		w.Errorf("apply: %v", err)
	}
	for _, d := range done {
		if d.Applied {
			made[d.Operation.Key] = true
		}
	}
	return made
}
