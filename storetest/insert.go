package storetest

import (
	"bytes"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

var insertCases = []testCase{
	{"Insert/Created", clock, testCreated},
	{"Insert/Exists", clock, testExists},
	{"Insert/Horizon", clock, testHorizon},
	{"Insert/Deadline", clock, testDeadline},
	{"Insert/StoredRowBeatsAll", clock, testStoredRowBeatsAll},
	{"Insert/Twins", anything, testTwins},
	{"Insert/Tombstone", clock, testTombstone},
	{"Insert/Begun", clock, testBegun},
	{"Insert/Due", clock, testInsertDue},
	{"Insert/BadMember", anything, testBadMember},
	{"Insert/Empty", anything, testInsertEmpty},
	{"Insert/LargeBatch", anything, testLargeBatch},
	{"Insert/Values", anything, testValues},
	{"Insert/LongestKey", anything, testLongestKey},
	{"Insert/KeysAreExact", anything, testKeysAreExact},
	{"Insert/Restart", clock, testRestart},
}

// testCreated: the row is stored as asked for, at revision 1, with its work.
func testCreated(w *world) {
	i := in(semel.Key{Account: "acme", Kind: "note", ID: idAt(w.now())})
	i.AttemptID, i.Request = "attempt-1", []byte("to send")
	out := w.insertOne(i)
	w.check(out.Verdict == semel.Created, "verdict %d, want created", out.Verdict)
	want := semel.Operation{Key: i.Key, State: semel.Accepted, AsSent: i.AsSent, Fingerprint: i.Fingerprint, SchemaVersion: i.SchemaVersion,
		Params: i.Params, Request: i.Request, Attempts: 1, Revision: 1, CreatedAt: w.now(), UpdatedAt: w.now(), Owner: i.Owner}
	if d := difference(*out.Operation, want); d != "" {
		w.Errorf("the answer: %s", d)
	}
	if d := difference(w.get(i.Key), want); d != "" {
		w.Errorf("the row: %s", d)
	}
	w.check(w.pending("acme") == 1, "there are %d work rows, want 1", w.pending("acme"))
	h := w.history(i.Key)
	w.check(len(h.Attempts) == 1 && h.Attempts[0].ID == "attempt-1" && h.Attempts[0].At.Equal(w.now()), "attempts: %+v", h.Attempts)
	w.check(len(h.Executions) == 0 && len(h.Verdicts) == 0, "history: %+v", h)

	plain := w.createOne(in(w.key()))
	w.check(plain.Attempts == 0 && plain.Request == nil && len(w.history(plain.Key).Attempts) == 0, "without an attempt ID: %+v", plain)
}

// testExists: a taken key answers with its row, and nothing is written.
func testExists(w *world) {
	first := w.createOne(in(w.key()))
	w.pass(time.Second)
	for _, state := range []semel.State{semel.Accepted, semel.Abandoned, semel.Processing} {
		i := in(first.Key)
		i.State, i.Params, i.AsSent, i.Fingerprint, i.AttemptID, i.Retain = state, []byte(`{"other":1}`), "x", "y", "late-attempt", time.Hour
		if state == semel.Processing {
			i.Begun = &semel.Begun{Worker: "w2", Contract: "{}", Lease: time.Minute}
		}
		out := w.insertOne(i)
		w.check(out.Verdict == semel.Exists, "verdict %d for a taken key, want exists", out.Verdict)
		if d := difference(*out.Operation, first); d != "" {
			w.Errorf("the answer is not the stored row: %s", d)
		}
	}
	if d := difference(w.get(first.Key), first); d != "" {
		w.Errorf("the stored row was changed: %s", d)
	}
	h := w.history(first.Key)
	w.check(len(h.Attempts)+len(h.Executions) == 0 && w.pending("acme") == 1, "something was written beside it: %+v, %d pending", h, w.pending("acme"))
}

// testHorizon: without a row, an ID dated at or below the horizon is refused; a
// horizon belongs to a kind.
func testHorizon(w *world) {
	w.purge("note", time.Hour, 10)
	at := w.now().Add(-time.Hour)
	for _, c := range []struct {
		date time.Time
		kind string
		want semel.InsertVerdict
	}{
		{at, "note", semel.PastHorizon},
		{at.Add(-time.Millisecond), "note", semel.PastHorizon},
		{at.Add(-365 * 24 * time.Hour), "note", semel.PastHorizon},
		{at.Add(time.Millisecond), "note", semel.Created},
		{at.Add(365 * 24 * time.Hour), "note", semel.Created},
		{at, "other", semel.Created},
	} {
		for _, account := range []string{"acme", "b", "c", "d", "e", "f", "g", "h"} {
			key := semel.Key{Account: account, Kind: c.kind, ID: idAt(c.date)}
			out := w.insertOne(in(key))
			w.check(out.Verdict == c.want, "%s, dated %v from the horizon: verdict %d, want %d", key, c.date.Sub(at), out.Verdict, c.want)
			found := w.find(key)
			w.check((found.Operation == nil) == (c.want == semel.PastHorizon), "%s was recorded: %v", key, found.Operation != nil)
			w.check(found.PastHorizon == (c.want == semel.PastHorizon), "%s: a look-up says past horizon: %v", key, found.PastHorizon)
		}
	}
	undated := w.createOne(in(w.key()))
	w.check(undated.Revision == 1, "an ID without a date is no matter of the horizon")
	tombstone := in(semel.Key{Account: "acme", Kind: "note", ID: idAt(at)})
	tombstone.State, tombstone.Retain = semel.Abandoned, time.Hour
	w.check(w.insertOne(tombstone).Verdict == semel.PastHorizon, "a tombstone was made behind the horizon")
}

// testDeadline: a free key is refused once the store's now is after AcceptUntil.
func testDeadline(w *world) {
	for _, c := range []struct {
		until time.Duration
		want  semel.InsertVerdict
	}{{0, semel.Created}, {time.Millisecond, semel.Created}, {-time.Millisecond, semel.PastDeadline}, {-time.Hour, semel.PastDeadline}} {
		i := in(w.key())
		i.AcceptUntil = w.now().Add(c.until)
		out := w.insertOne(i)
		w.check(out.Verdict == c.want, "deadline %v from now: verdict %d, want %d", c.until, out.Verdict, c.want)
		w.check((w.find(i.Key).Operation != nil) == (c.want == semel.Created), "deadline %v from now: recorded wrongly", c.until)
	}
	w.check(w.pending("acme") == 2, "%d work rows, want 2", w.pending("acme"))
	w.purge("note", time.Hour, 10)
	both := in(semel.Key{Account: "acme", Kind: "note", ID: idAt(w.now().Add(-2 * time.Hour))})
	both.AcceptUntil = w.now().Add(-time.Hour)
	w.check(w.insertOne(both).Verdict == semel.PastHorizon, "the horizon comes before the deadline")
}

// testStoredRowBeatsAll: neither horizon nor deadline hides a stored row.
func testStoredRowBeatsAll(w *world) {
	op := w.createOne(in(semel.Key{Account: "acme", Kind: "note", ID: idAt(w.now())}))
	w.pass(48 * time.Hour)
	w.purge("note", time.Hour, 10)
	again := in(op.Key)
	again.AcceptUntil = w.now().Add(-time.Hour)
	out := w.insertOne(again)
	w.check(out.Verdict == semel.Exists, "verdict %d, want exists", out.Verdict)
	if d := difference(*out.Operation, op); d != "" {
		w.Error(d)
	}
	f := w.find(op.Key)
	w.check(f.Operation != nil && !f.PastHorizon, "a look-up: %+v", f)
}

// testTwins: members of one batch may share a key; one is created, the others see it.
func testTwins(w *world) {
	shared, alone := w.key(), w.key()
	batch := []semel.Insertion{in(shared), in(shared), in(alone), in(shared)}
	for i := range batch {
		batch[i].Params = []byte(strings.Repeat("x", i+1))
	}
	out, err := w.store.Insert(w.ctx, batch)
	w.ok(err, "insert")
	created := 0
	var winner semel.Operation
	for _, o := range out {
		w.ok(o.Err, "member")
		if o.Verdict == semel.Created {
			created++
			if o.Operation.Key == shared {
				winner = *o.Operation
			}
		}
	}
	w.check(created == 2 && out[2].Verdict == semel.Created, "%d created, want 2", created)
	for _, i := range []int{0, 1, 3} {
		if d := difference(*out[i].Operation, winner); d != "" {
			w.Errorf("member %d does not see the winner: %s", i, d)
		}
	}
	w.check(w.pending("acme") == 2, "%d work rows, want 2", w.pending("acme"))
}

func testTombstone(w *world) {
	i := in(w.key())
	i.State, i.Retain, i.Params, i.AsSent, i.Fingerprint, i.SchemaVersion = semel.Abandoned, time.Hour, nil, "", "", ""
	out := w.insertOne(i)
	op := *out.Operation
	w.check(out.Verdict == semel.Created && op.State == semel.Abandoned && op.Revision == 1 && op.Params == nil, "tombstone: %+v", op)
	w.check(op.ExpiresAt.Equal(w.now().Add(time.Hour)), "it expires at %v, want %v", op.ExpiresAt, w.now().Add(time.Hour))
	w.check(w.pending("acme") == 0 && len(w.claim(notes(10))) == 0, "a tombstone has work")
	late := w.insertOne(in(i.Key))
	w.check(late.Verdict == semel.Exists && late.Operation.State == semel.Abandoned, "a late request met %d", late.Verdict)
}

// testBegun: the first execution can be created together with the operation.
func testBegun(w *world) {
	i := in(w.key())
	i.State, i.Due, i.Begun = semel.Processing, time.Minute, &semel.Begun{Worker: "web-1", Contract: `{"c":1}`, Lease: time.Minute}
	op := w.createOne(i)
	w.check(op.State == semel.Processing && op.Token == 1 && op.Executions == 1 && op.Revision == 1, "begun: %+v", op)
	h := w.history(i.Key)
	if len(h.Executions) != 1 {
		w.Fatalf("%d executions, want 1", len(h.Executions))
	}
	want := semel.Execution{Token: 1, Worker: "web-1", Contract: `{"c":1}`, ClaimedAt: w.now(), LeaseEndsAt: w.now().Add(time.Minute), BegunAt: w.now()}
	if d := difference(h.Executions[0], want); d != "" {
		w.Errorf("the execution: %s", d)
	}
	w.check(len(w.claim(notes(10))) == 0, "it was claimed while its first lease ran")
	w.pass(time.Minute)
	c := w.claimOne()
	w.check(c.Operation.Token == 2 && c.Operation.Revision == 2 && !c.Begun && c.Operation.Executions == 1, "the second claim: %+v", c.Operation)
	w.check(len(c.Prior) == 1 && c.Prior[0].Token == 1, "its earlier executions: %+v", c.Prior)
}

func testInsertDue(w *world) {
	i := in(w.key())
	i.Due = 10 * time.Second
	w.createOne(i)
	w.check(len(w.claim(notes(1))) == 0, "claimed before it was due")
	w.pass(10*time.Second - time.Millisecond)
	w.check(len(w.claim(notes(1))) == 0, "claimed a millisecond before it was due")
	w.pass(time.Millisecond)
	w.claimOne()
}

// testBadMember: a member that can't be does not harm its neighbours.
func testBadMember(w *world) {
	good := []semel.Insertion{in(w.key()), in(w.key())}
	bad := []semel.Insertion{in(w.key()), in(w.key()), in(w.key()), in(w.key()), in(w.key())}
	bad[0].Key.ID = strings.Repeat("x", 5000)
	bad[1].Key.Account = "Übel"
	bad[2].State = "nonsense"
	bad[3].State = semel.Succeeded
	bad[4].Key.ID = ""
	out, err := w.store.Insert(w.ctx, append(append([]semel.Insertion{good[0]}, bad...), good[1]))
	w.ok(err, "insert")
	for i := range bad {
		w.code(out[1+i].Err, semel.CodeInvalid)
	}
	for _, i := range []int{0, len(bad) + 1} {
		w.check(out[i].Err == nil && out[i].Verdict == semel.Created, "member %d: %d, %v", i, out[i].Verdict, out[i].Err)
	}
	w.check(w.pending("acme") == 2, "%d work rows, want 2", w.pending("acme"))
}

func testInsertEmpty(w *world) {
	ins, err := w.store.Insert(w.ctx, nil)
	w.check(len(ins) == 0 && err == nil, "insert of nothing: %v, %v", ins, err)
	changes, err := w.store.Apply(w.ctx, nil)
	w.check(len(changes) == 0 && err == nil, "apply of nothing: %v, %v", changes, err)
	found, err := w.store.Get(w.ctx, nil)
	w.check(len(found) == 0 && err == nil, "get of nothing: %v, %v", found, err)
	held, err := w.store.Renew(w.ctx, nil)
	w.check(len(held) == 0 && err == nil, "renew of nothing: %v, %v", held, err)
	w.ok(w.store.RecordAttempts(w.ctx, nil), "attempts of nothing")
	counts, err := w.store.Pending(w.ctx, nil, 10)
	w.check(len(counts) == 0 && err == nil, "pending of nothing: %v, %v", counts, err)
}

// testLargeBatch: every answer stands at the index of its request.
func testLargeBatch(w *world) {
	var known []semel.Insertion
	for range 100 {
		known = append(known, in(w.key()))
	}
	w.create(known...)
	var batch []semel.Insertion
	for i := range 1000 {
		if i%10 == 0 {
			batch = append(batch, in(known[i/10].Key))
		} else {
			batch = append(batch, in(semel.Key{Account: string(rune('a' + i%26)), Kind: "note", ID: w.name()}))
		}
	}
	out, err := w.store.Insert(w.ctx, batch)
	w.ok(err, "insert")
	for i, o := range out {
		want := semel.Created
		if i%10 == 0 {
			want = semel.Exists
		}
		if o.Err != nil || o.Verdict != want || o.Operation.Key != batch[i].Key {
			w.Fatalf("member %d: verdict %d, want %d (%v)", i, o.Verdict, want, o.Err)
		}
		if (o.Operation.Owner == batch[i].Owner) != (want == semel.Created) {
			w.Fatalf("member %d has the row of another", i)
		}
	}
}

// testValues: bytes come back as they went in.
func testValues(w *world) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for name, value := range map[string][]byte{
		"nil": nil, "empty": {}, "every byte": all,
		"json with escapes": []byte(`{"a":"\u0000\u2028\"\\","b":[1e400,null,{}]}`),
		"chinese":           []byte(`{"title":"本周菜单","dish":"番茄炒蛋 🍅"}`),
		"one MiB":           bytes.Repeat([]byte(`0123456789abcdef`), 1<<16),
	} {
		i := in(w.key())
		i.Params, i.Request = value, value
		w.createOne(i)
		op := w.get(i.Key)
		w.check(bytes.Equal(op.Params, value) && (value == nil) == (op.Params == nil), "%s as params: got %s", name, show([]byte(op.Params)))
		w.check(bytes.Equal(op.Request, value) && (value == nil) == (op.Request == nil), "%s as request: got %s", name, show(op.Request))

		c := settle(op, semel.Succeeded, time.Hour)
		c.Result = value
		done := w.apply(c)
		w.check(bytes.Equal(done.Result, value), "%s as result: got %s", name, show([]byte(done.Result)))
		w.check(bytes.Equal(w.get(i.Key).Result, value), "%s as stored result: got %s", name, show([]byte(w.get(i.Key).Result)))
	}
	i := in(w.key())
	i.AsSent, i.Fingerprint, i.SchemaVersion, i.Owner, i.AttemptID = "指紋 '\"%_\\", "ü", "版本 1", "o' OR 1=1; --", "versuch-ß"
	op := w.createOne(i)
	got := w.get(i.Key)
	w.check(got.AsSent == i.AsSent && got.Fingerprint == i.Fingerprint && got.SchemaVersion == i.SchemaVersion && got.Owner == i.Owner, "texts: %+v", got)
	w.check(w.history(i.Key).Attempts[0].ID == i.AttemptID, "attempt ID: %+v", w.history(i.Key).Attempts)
	f := change(op, semel.NeedsReconciliation)
	f.Work, f.Failure = semel.WorkDone, &semel.Failure{Code: "no-answer", Message: "没有回答"}
	f.Verdict = &semel.Verdict{Verdict: "acknowledged", Evidence: "看了 '日志'", By: "张三", Token: 0}
	w.apply(f)
	w.check(*w.get(i.Key).Failure == *f.Failure, "failure: %+v", w.get(i.Key).Failure)
	w.check(w.history(i.Key).Verdicts[0].Evidence == "看了 '日志'", "evidence: %+v", w.history(i.Key).Verdicts)

	mine := in(w.key())
	mine.Params = []byte("before")
	answer := w.createOne(mine)
	copy(mine.Params, "after!")
	w.check(string(answer.Params) == "before" && string(w.get(mine.Key).Params) == "before", "the answer shares memory with the question")
}

func testLongestKey(w *world) {
	name := "z" + strings.Repeat("-", semel.MaxNameLength-1)
	key := semel.Key{Account: name, Kind: name, ID: strings.Repeat("~", semel.MaxIDLength)}
	i := in(key)
	i.AttemptID = "a"
	w.createOne(i)
	req := claimOf(1, name)
	got := w.claim(req)
	w.check(len(got) == 1 && got[0].Operation.Key == key, "claimed %d", len(got))
	c := settle(got[0].Operation, semel.Succeeded, time.Hour)
	c.Verdict = &semel.Verdict{Verdict: "applied", Evidence: "e", By: "b", Token: 1}
	w.apply(c)
	w.ok(w.store.RecordAttempts(w.ctx, []semel.Attempt{{Key: key, ID: "b"}}), "attempt")
	h := w.history(key)
	w.check(len(h.Attempts) == 2 && len(h.Executions) == 1 && len(h.Verdicts) == 1, "history: %+v", h)
}

// testKeysAreExact: no two different keys meet, whatever they look like.
func testKeysAreExact(w *world) {
	var ins []semel.Insertion
	for _, k := range []semel.Key{
		{Account: "a", Kind: "b", ID: "c"}, {Account: "a", Kind: "b", ID: "C"}, {Account: "b", Kind: "a", ID: "c"}, {Account: "a", Kind: "b.c", ID: "c"},
		{Account: "a.b", Kind: "c", ID: "c"}, {Account: "a", Kind: "b", ID: "0"}, {Account: "a", Kind: "b", ID: "00"}, {Account: "a", Kind: "b", ID: "1"},
		{Account: "a", Kind: "b", ID: "01"}, {Account: "a", Kind: "b", ID: "1.0"}, {Account: "a", Kind: "b", ID: "1e0"}, {Account: "1", Kind: "1", ID: "1"},
		{Account: "01", Kind: "1", ID: "1"}, {Account: "a", Kind: "b", ID: "c~"}, {Account: "a", Kind: "b", ID: "c_"}, {Account: "a", Kind: "b", ID: "c."},
		{Account: "a", Kind: "b", ID: "null"}, {Account: "a", Kind: "b", ID: "NULL"},
	} {
		ins = append(ins, in(k))
	}
	w.create(ins...)
	for _, i := range ins {
		w.check(w.get(i.Key).Owner == i.Owner, "%s has the row of another key", i.Key)
	}
}

// testRestart: everything is there after the store is opened again.
func testRestart(w *world) {
	a, b, c := in(w.key()), in(w.key()), in(w.key())
	w.create(a, b, c)
	leased := w.claim(notes(2))
	done := w.apply(settle(leased[0].Operation, semel.Succeeded, time.Hour))
	w.ok(w.store.SaveDefinition(w.ctx, "note", "v1", []byte("def")), "definition")
	w.purge("note", time.Hour, 10)
	before := map[semel.Key]semel.Operation{}
	for _, i := range []semel.Insertion{a, b, c} {
		before[i.Key] = w.get(i.Key)
	}
	history := w.history(done.Key)
	w.restart()
	for key, op := range before {
		if d := difference(w.get(key), op); d != "" {
			w.Errorf("%s after a restart: %s", key, d)
		}
	}
	after := w.history(done.Key)
	w.check(len(after.Executions) == 1 && difference(after.Executions[0], history.Executions[0]) == "", "history after a restart: %+v", after)
	def, err := w.store.Definition(w.ctx, "note", "v1")
	w.check(err == nil && string(def) == "def", "definition after a restart: %q, %v", def, err)
	old := in(semel.Key{Account: "acme", Kind: "note", ID: idAt(w.now().Add(-time.Hour))})
	w.check(w.insertOne(old).Verdict == semel.PastHorizon, "the horizon is gone after a restart")
	w.check(len(w.claim(notes(10))) == 1, "the work that was not leased is gone")
	w.pass(time.Minute)
	again := w.claim(notes(10))
	w.check(len(again) == 2, "after the leases ended, %d were claimed, want 2", len(again))
}
