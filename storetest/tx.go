package storetest

import (
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

var txCases = []testCase{
	{"Tx/Commit", callerTx, testTxCommit},
	{"Tx/Rollback", callerTx, testTxRollback},
	{"Tx/Hidden", callerTx, testTxHidden},
	{"Tx/LostRaceLeavesItUsable", callerTx, testTxUsable},
	{"Tx/OneAfterAnother", callerTx, testTxOneAfterAnother},
	{"Tx/RivalCommits", callerTx, func(w *world) { testTxRival(w, true) }},
	{"Tx/RivalRollsBack", callerTx, func(w *world) { testTxRival(w, false) }},
	{"Tx/RivalStays", callerTx, testTxRivalStays},
	{"Tx/Ledger", callerTx, testTxLedger},
	{"Tx/Begun", callerTx | clock, testTxBegun},
	{"Tx/Deferred", callerTx | clock, testTxDeferred},
}

// testTxCommit: a transaction sees its own writes, and commits them together.
func testTxCommit(w *world) {
	first := w.createOne(in(w.key()))
	leased := w.claimOne().Operation
	tx, t := w.begin(w.store)
	fresh := in(w.key())
	fresh.AttemptID = "a"
	out, err := tx.Insert(w.ctx, []semel.Insertion{fresh, in(first.Key)})
	w.ok(err, "insert")
	w.check(out[0].Verdict == semel.Created && out[1].Verdict == semel.Exists, "verdicts %d and %d", out[0].Verdict, out[1].Verdict)
	done, err := tx.Apply(w.ctx, []semel.Change{settle(leased, semel.Succeeded, time.Hour)})
	w.ok(err, "apply")
	w.check(done[0].Applied, "not applied")
	found, err := tx.Get(w.ctx, []semel.Key{fresh.Key, leased.Key, w.key()})
	w.ok(err, "get")
	w.check(found[0].Operation != nil && found[1].Operation.State == semel.Succeeded && found[2].Operation == nil, "its own writes: %+v", found)
	w.ok(t.Commit(), "commit")
	w.check(w.get(fresh.Key).State == semel.Accepted && w.get(leased.Key).State == semel.Succeeded, "after the commit: %s, %s",
		w.get(fresh.Key).State, w.get(leased.Key).State)
	w.check(w.claimOne().Operation.Key == fresh.Key, "its work is not there")
}

// testTxRollback: nothing of it is left.
func testTxRollback(w *world) {
	w.createOne(in(w.key()))
	leased := w.claimOne().Operation
	history := w.history(leased.Key)
	tx, t := w.begin(w.store)
	fresh, tombstone, begun := in(w.key()), in(w.key()), in(w.key())
	tombstone.State, tombstone.Retain = semel.Abandoned, time.Hour
	begun.State, begun.Due, begun.Begun = semel.Processing, time.Minute, &semel.Begun{Worker: "w", Lease: time.Minute}
	fresh.AttemptID = "a"
	_, err := tx.Insert(w.ctx, []semel.Insertion{fresh, tombstone, begun})
	w.ok(err, "insert")
	c := settle(leased, semel.Succeeded, time.Hour)
	c.Verdict = &semel.Verdict{Verdict: "applied", Evidence: "e", By: "b", Token: 1}
	_, err = tx.Apply(w.ctx, []semel.Change{c})
	w.ok(err, "apply")
	w.ok(t.Rollback(), "rollback")
	for _, i := range []semel.Insertion{fresh, tombstone, begun} {
		w.check(w.find(i.Key).Operation == nil && len(w.history(i.Key).Attempts)+len(w.history(i.Key).Executions) == 0, "%s is left", i.State)
	}
	if d := difference(w.get(leased.Key), leased); d != "" {
		w.Errorf("the change is left: %s", d)
	}
	after := w.history(leased.Key)
	w.check(len(after.Verdicts) == 0 && difference(after.Executions[0], history.Executions[0]) == "", "history: %+v", after)
	w.check(w.pending("acme") == 1, "%d work rows, want 1", w.pending("acme"))
	w.createOne(in(fresh.Key)) // the key is as free as before
	w.apply(settle(leased, semel.Succeeded, time.Hour))
}

// testTxHidden: until the commit, nobody else sees anything of it.
func testTxHidden(w *world) {
	known := w.createOne(in(w.key()))
	tx, t := w.begin(w.store)
	fresh := in(w.key())
	_, err := tx.Insert(w.ctx, []semel.Insertion{fresh})
	w.ok(err, "insert")
	_, err = tx.Apply(w.ctx, []semel.Change{settle(known, semel.Abandoned, time.Hour)})
	w.ok(err, "apply")
	for _, store := range []semel.Store{w.store, w.node()} {
		found, err := store.Get(w.ctx, []semel.Key{fresh.Key, known.Key})
		w.ok(err, "get")
		w.check(found[0].Operation == nil && found[1].Operation.State == semel.Accepted, "seen before the commit: %+v", found)
		n, err := store.Pending(w.ctx, []string{"acme"}, 10)
		w.check(err == nil && n[0] == 1, "pending before the commit: %v, %v", n, err)
	}
	w.ok(t.Commit(), "commit")
	w.check(w.get(known.Key).State == semel.Abandoned && w.find(fresh.Key).Operation != nil, "not seen after the commit")
}

// testTxUsable: a taken key, a stale change and a bad member are answers, and the
// transaction goes on after them.
func testTxUsable(w *world) {
	known := w.createOne(in(w.key()))
	stale := settle(known, semel.Failed, time.Hour)
	stale.Revision = 9
	bad := in(w.key())
	bad.State = "nonsense"
	tx, t := w.begin(w.store)
	out, err := tx.Insert(w.ctx, []semel.Insertion{in(known.Key), bad, in(known.Key)})
	w.ok(err, "insert")
	w.check(out[0].Verdict == semel.Exists && out[2].Verdict == semel.Exists, "verdicts: %+v", out)
	w.code(out[1].Err, semel.CodeInvalid)
	done, err := tx.Apply(w.ctx, []semel.Change{stale})
	w.ok(err, "apply")
	w.check(!done[0].Applied, "a stale change was applied")
	fresh := in(w.key())
	_, err = tx.Insert(w.ctx, []semel.Insertion{fresh})
	w.ok(err, "insert")
	w.ok(t.Commit(), "commit")
	w.get(fresh.Key)
}

// testTxOneAfterAnother: many callers with transactions of one key: one operation.
func testTxOneAfterAnother(w *world) {
	key := w.key()
	created := 0
	for n := range 20 {
		tx, t := w.begin(w.store)
		out, err := tx.Insert(w.ctx, []semel.Insertion{in(key)})
		w.ok(err, "insert")
		if out[0].Verdict == semel.Created {
			created++
		}
		if n < 5 {
			w.ok(t.Rollback(), "rollback")
		} else {
			w.ok(t.Commit(), "commit")
		}
	}
	w.check(created == 6, "created %d times, of which 5 were rolled back", created)
}

// testTxRival: an insertion waits for an uncommitted rival and then tells what
// became of it.
func testTxRival(w *world, commit bool) {
	key := w.key()
	rival := in(key)
	tx, t := w.begin(w.store)
	_, err := tx.Insert(w.ctx, []semel.Insertion{rival})
	w.ok(err, "insert")
	other := w.node()
	mine, neighbour := in(key), in(w.key())
	var out []semel.Inserted
	var failed error
	var waiting sync.WaitGroup
	started := make(chan struct{})
	waiting.Go(func() {
		close(started)
		out, failed = other.Insert(w.ctx, []semel.Insertion{mine, neighbour})
	})
	<-started
	if commit {
		w.ok(t.Commit(), "commit")
	} else {
		w.ok(t.Rollback(), "rollback")
	}
	waiting.Wait()
	if failed == nil {
		failed = out[0].Err
	}
	if failed != nil { // the wait was too long for it
		w.code(failed, semel.CodeInProgress, semel.CodeUnavailable)
	} else {
		want := semel.Exists
		if !commit {
			want = semel.Created
		}
		w.check(out[0].Verdict == want, "verdict %d, want %d", out[0].Verdict, want)
		w.check(out[1].Err == nil && out[1].Verdict == semel.Created, "its neighbour: %+v", out[1])
	}
	after := w.insertOne(in(key))
	if commit {
		w.check(after.Verdict == semel.Exists && after.Operation.Owner == rival.Owner, "the row is not the rival's")
	}
}

// testTxRivalStays: the wait is bounded, and its end says that nothing of this
// request is recorded.
func testTxRivalStays(w *world) {
	key := w.key()
	tx, t := w.begin(w.store)
	_, err := tx.Insert(w.ctx, []semel.Insertion{in(key)})
	w.ok(err, "insert")
	other := w.node()
	begin := time.Now()
	mine, neighbour := in(key), in(w.key())
	out, err := other.Insert(w.ctx, []semel.Insertion{mine, neighbour})
	w.check(time.Since(begin) < time.Minute, "it waited %v", time.Since(begin))
	if err == nil {
		w.code(out[0].Err, semel.CodeInProgress)
		w.check(out[1].Err == nil && out[1].Verdict == semel.Created, "its neighbour: %+v", out[1])
	} else if e := w.code(err, semel.CodeUnavailable); e.WasRecorded() != semel.RecordedNo {
		w.Errorf("recorded %q, want no: %v", e.WasRecorded(), e)
	}
	w.ok(t.Rollback(), "rollback")
	w.check(w.insertOne(in(key)).Verdict == semel.Created, "something was left of it")
}

// testTxLedger: a ledger inside the transaction.
func testTxLedger(w *world) {
	ledger, err := semel.New(w.ctx, w.store, &semel.Options{Kinds: []semel.Kind{{Name: "note"}}})
	w.ok(err, "ledger")
	defer ledger.Close()
	req := semel.Request{Key: w.key(), Params: []byte(`{}`)}
	for _, commit := range []bool{false, true} {
		tx, t := w.begin(w.store)
		acc, err := ledger.In(tx).Accept(w.ctx, req)
		w.ok(err, "accept")
		w.check(!acc.Replayed, "replayed")
		if !commit {
			w.ok(t.Rollback(), "rollback")
			continue
		}
		w.ok(t.Commit(), "commit")
	}
	leases, err := ledger.Claim(w.ctx, notes(10))
	w.ok(err, "claim")
	if len(leases) != 1 {
		w.Fatalf("%d leases, want 1", len(leases))
	}
	for _, commit := range []bool{false, true} {
		tx, t := w.begin(w.store)
		op, err := ledger.In(tx).Finish(w.ctx, leases[0], semel.Ending{Outcome: semel.Applied, Result: []byte(`{"ok":true}`)})
		w.ok(err, "finish")
		w.check(op.State == semel.Succeeded, "finished as %s", op.State)
		if !commit {
			w.ok(t.Rollback(), "rollback")
			w.check(w.get(req.Key).State == semel.Processing, "after the rollback it is %s", w.get(req.Key).State)
			continue
		}
		w.ok(t.Commit(), "commit")
	}
	w.check(w.get(req.Key).State == semel.Succeeded, "after the commit it is %s", w.get(req.Key).State)

	abandoned := w.key()
	tx, t := w.begin(w.store)
	_, err = ledger.In(tx).Abandon(w.ctx, abandoned)
	w.ok(err, "abandon")
	w.ok(t.Commit(), "commit")
	_, err = ledger.Accept(w.ctx, semel.Request{Key: abandoned, Params: []byte(`{}`)})
	w.code(err, semel.CodeAbandoned)
}

// begun is an insertion of an operation that begins at once.
func begun(w *world) semel.Insertion {
	i := in(w.key())
	i.State, i.Due, i.Begun = semel.Processing, time.Minute, &semel.Begun{Worker: "w", Contract: `{"x":1}`, Lease: time.Minute}
	i.AttemptID = "a"
	return i
}

// testTxBegun: an operation that begins in a transaction and does not end there is
// one that has begun: others find it once its lease has ended.
func testTxBegun(w *world) {
	left, changed := begun(w), begun(w)
	tx, t := w.begin(w.store)
	for _, i := range []semel.Insertion{left, changed} {
		out, err := tx.Insert(w.ctx, []semel.Insertion{i})
		w.ok(err, "insert")
		w.check(out[0].Verdict == semel.Created && out[0].Operation.Token == 1, "inserted: %+v", out[0])
		again, err := tx.Insert(w.ctx, []semel.Insertion{begunLike(i)})
		w.ok(err, "insert again")
		w.check(again[0].Verdict == semel.Exists && difference(*again[0].Operation, *out[0].Operation) == "", "inserted again: %+v", again[0])
	}
	found, err := tx.Get(w.ctx, []semel.Key{changed.Key})
	w.ok(err, "get")
	c := change(*found[0].Operation, semel.Accepted) // it did not happen, and may be tried in an hour
	c.Work, c.Due = semel.WorkDue, time.Hour
	c.Execution = &semel.ExecutionChange{Token: 1, End: true, Outcome: semel.NotApplied}
	done, err := tx.Apply(w.ctx, []semel.Change{c})
	w.ok(err, "apply")
	w.check(done[0].Applied, "not applied")
	w.ok(t.Commit(), "commit")

	w.check(w.pending("acme") == 2, "%d work rows, want 2", w.pending("acme"))
	w.check(len(w.claim(notes(10))) == 0, "claimed while the lease lasts")
	w.pass(61 * time.Second)
	claimed := w.claimOne()
	w.check(claimed.Operation.Key == left.Key && len(claimed.Prior) == 1, "claimed %s after %d executions", claimed.Operation.Key, len(claimed.Prior))
	prior := claimed.Prior[0]
	w.check(!prior.BegunAt.IsZero() && prior.EndedAt.IsZero() && prior.Worker == "w" && prior.Contract == `{"x":1}`, "the execution: %+v", prior)
	w.check(len(w.history(left.Key).Attempts) == 1, "its attempt is not there")
}

// begunLike asks for the same operation again.
func begunLike(i semel.Insertion) semel.Insertion {
	i.Owner += "-again"
	return i
}

// testTxDeferred: what is kept back until the commit is there after it, as if it had
// been applied, and not at all after a rollback.
func testTxDeferred(w *world) {
	for _, how := range []string{"commit", "read and commit", "rollback"} {
		i := begun(w)
		tx, t := w.begin(w.store)
		out, err := tx.Insert(w.ctx, []semel.Insertion{i})
		w.ok(err, "insert")
		d, ok := tx.(semel.Deferrer)
		w.check(ok, "a watched transaction passes it on")
		c := settle(*out[0].Operation, semel.Succeeded, time.Hour)
		answer, ok := d.Defer(c)
		if !ok {
			w.ok(t.Rollback(), "rollback")
			w.Skip("this store keeps nothing back")
		}
		if _, twice := d.Defer(c); twice {
			w.Error("one change was kept back twice")
		}
		if how == "read and commit" {
			found, err := tx.Get(w.ctx, []semel.Key{i.Key})
			w.ok(err, "get")
			w.check(found[0].Operation.State == semel.Succeeded, "it reads %s", found[0].Operation.State)
		}
		if how == "rollback" {
			w.ok(t.Rollback(), "rollback")
			w.check(w.find(i.Key).Operation == nil && len(w.history(i.Key).Executions) == 0, "something is left")
			w.insertOne(begunLike(i))
			continue
		}
		w.ok(t.Commit(), "commit")
		op := w.get(i.Key)
		if diff := difference(op, answer()); diff != "" {
			w.Errorf("%s: the answer and the row: %s", how, diff)
		}
		w.check(op.State == semel.Succeeded && op.ExpiresAt.Equal(op.UpdatedAt.Add(time.Hour)) && op.Revision == 2, "the row: %+v", op)
		x := w.history(i.Key).Executions
		w.check(len(x) == 1 && x[0].Outcome == semel.Applied && !x[0].EndedAt.IsZero() && string(x[0].Evidence) == `{"seen":"yes"}`, "the execution: %+v", x)
	}
	w.check(w.pending("acme") == 1, "%d work rows, want that of the last one", w.pending("acme"))
	w.pass(2 * time.Hour)
	purged, err := w.store.Purge(w.ctx, []semel.PurgeRequest{{Kind: "note", Retention: 24 * time.Hour, Max: 10}})
	w.ok(err, "purge")
	w.check(purged.Stripped == 2, "%d were forgotten, want 2", purged.Stripped)
}
