package storetest

import (
	"time"

	"github.com/semel-dev/semel"
)

var applyCases = []testCase{
	{"Apply/Condition", clock, testApplyCondition},
	{"Apply/Fields", clock, testApplyFields},
	{"Apply/Failure", anything, testApplyFailure},
	{"Apply/Flags", anything, testApplyFlags},
	{"Apply/Expiry", clock, testApplyExpiry},
	{"Apply/Work", clock, testApplyWork},
	{"Apply/Execution", clock, testApplyExecution},
	{"Apply/Verdict", clock, testApplyVerdict},
	{"Apply/Batch", anything, testApplyBatch},
}

// testApplyCondition: revision and token must both be the current ones, or
// nothing at all is written.
func testApplyCondition(w *world) {
	w.createOne(in(w.key()))
	req := notes(1)
	req.Kinds[0].BeginNow = false
	op := w.claim(req)[0].Operation
	h := w.history(op.Key)
	w.pass(time.Second)
	full := settle(op, semel.Succeeded, time.Hour)
	full.NextToken, full.ClearedToken, full.Begun, full.Acknowledged, full.Contradicted = 9, 8, true, true, true
	full.Execution.Begin = true
	full.Verdict = &semel.Verdict{Verdict: "applied", Evidence: "e", By: "b", Token: 9}
	for name, spoil := range map[string]func(*semel.Change){
		"an older revision":  func(c *semel.Change) { c.Revision-- },
		"a later revision":   func(c *semel.Change) { c.Revision++ },
		"an older token":     func(c *semel.Change) { c.Token-- },
		"a later token":      func(c *semel.Change) { c.Token++ },
		"another ID":         func(c *semel.Change) { c.Key.ID += "x" },
		"another account":    func(c *semel.Change) { c.Key.Account = "b" },
		"another kind":       func(c *semel.Change) { c.Key.Kind = "other" },
		"revision and token": func(c *semel.Change) { c.Revision, c.Token = 0, 0 },
	} {
		c := full
		spoil(&c)
		out := w.tryApply(c)
		w.check(!out.Applied && out.Operation == nil, "applied with %s", name)
	}
	if d := difference(w.get(op.Key), op); d != "" {
		w.Errorf("a change that was not applied changed the row: %s", d)
	}
	after := w.history(op.Key)
	w.check(len(after.Verdicts) == 0 && difference(after.Executions[0], h.Executions[0]) == "", "it changed the history: %+v", after)
	w.check(w.pending("acme") == 1, "it changed the work")
	w.apply(full)
	w.check(!w.tryApply(full).Applied, "a change was applied twice")
}

// testApplyFields: a change sets what it names and leaves the rest.
func testApplyFields(w *world) {
	i := in(w.key())
	i.Request, i.AttemptID = []byte("request"), "a1"
	w.createOne(i)
	req := notes(1)
	req.Kinds[0].BeginNow = false
	op := w.claim(req)[0].Operation
	want := op
	w.pass(time.Second)

	c := change(op, semel.Processing) // as little as possible
	got := w.apply(c)
	want.Revision, want.UpdatedAt, want.Owner = 3, w.now(), c.Owner
	if d := difference(got, want); d != "" {
		w.Errorf("an empty change: %s", d)
	}
	w.pass(time.Second)
	c = change(got, semel.Succeeded) // as much as possible
	c.NextToken, c.ClearedToken, c.Result, c.Begun, c.Retain = 7, 5, []byte(`{"r":1}`), true, 2*time.Hour
	c.Acknowledged, c.Contradicted, c.Work = true, true, semel.WorkDone
	c.Execution = &semel.ExecutionChange{Token: op.Token, Begin: true}
	got = w.apply(c)
	want.State, want.Token, want.ClearedToken, want.Result = semel.Succeeded, 7, 5, c.Result
	want.Executions++
	want.Acknowledged, want.Contradicted, want.ExpiresAt = true, true, w.now().Add(2*time.Hour)
	want.Revision, want.UpdatedAt, want.Owner = 4, w.now(), c.Owner
	if d := difference(got, want); d != "" {
		w.Errorf("a full change: %s", d)
	}
	if d := difference(w.get(op.Key), want); d != "" {
		w.Errorf("the row after it: %s", d)
	}
}

// testApplyFailure: the failure is the reason of the last try, and goes when
// there is nothing to give a reason for.
func testApplyFailure(w *world) {
	for _, end := range []semel.State{semel.Succeeded, semel.Failed, semel.Abandoned} {
		op := w.createOne(in(w.key()))
		c := change(op, semel.Accepted)
		c.Failure = &semel.Failure{Code: "busy", Message: "try later"}
		op = w.apply(c)
		w.check(op.Failure != nil && *op.Failure == *c.Failure, "failure: %+v", op.Failure)
		op = w.apply(change(op, semel.Accepted))
		w.check(op.Failure != nil && op.Failure.Code == "busy", "a change without a failure took it away: %+v", op.Failure)
		op = w.apply(settle(op, end, time.Hour))
		w.check((op.Failure != nil) == (end == semel.Failed), "%s with failure %+v", end, op.Failure)
		stored := w.get(op.Key)
		w.check((stored.Failure != nil) == (end == semel.Failed), "stored as %s with failure %+v", end, stored.Failure)
	}
}

// testApplyFlags: flags are set and never cleared.
func testApplyFlags(w *world) {
	op := w.createOne(in(w.key()))
	c := change(op, semel.NeedsReconciliation)
	c.Work, c.Acknowledged = semel.WorkDone, true
	op = w.apply(c)
	w.check(op.Acknowledged && !op.Contradicted, "flags: %+v", op)
	op = w.apply(change(op, semel.NeedsReconciliation))
	w.check(op.Acknowledged, "the flag was cleared")
	c = change(op, semel.Failed)
	c.Contradicted, c.Retain = true, time.Hour
	op = w.apply(c)
	op = w.apply(change(op, semel.Failed))
	w.check(op.Acknowledged && op.Contradicted, "flags: %+v", op)
}

// testApplyExpiry: ExpiresAt is set once, when the operation becomes settled.
func testApplyExpiry(w *world) {
	op := w.createOne(in(w.key()))
	c := change(op, semel.Accepted)
	c.Retain = time.Hour
	op = w.apply(c)
	w.check(op.ExpiresAt.IsZero(), "an unsettled operation expires at %v", op.ExpiresAt)
	op = w.apply(settle(op, semel.Failed, time.Hour))
	until := w.now().Add(time.Hour)
	w.check(op.ExpiresAt.Equal(until), "it expires at %v, want %v", op.ExpiresAt, until)
	w.pass(time.Minute)
	for _, retain := range []time.Duration{0, 5 * time.Hour} {
		c := change(op, semel.Failed)
		c.Contradicted, c.Retain = true, retain
		op = w.apply(c)
		w.check(op.ExpiresAt.Equal(until), "a flag moved its expiry to %v", op.ExpiresAt)
	}
}

func testApplyWork(w *world) {
	w.createOne(in(w.key()))
	op := w.claimOne().Operation
	w.pass(time.Second)

	c := change(op, semel.Accepted) // to be tried again
	c.Work, c.Due = semel.WorkDue, 10*time.Second
	op = w.apply(c)
	w.check(w.pending("acme") == 1 && len(w.claim(notes(1))) == 0, "due at once, or gone")
	w.pass(10*time.Second - time.Millisecond)
	w.check(len(w.claim(notes(1))) == 0, "due a millisecond early")
	w.apply(change(op, semel.Accepted)) // keeps the work as it is
	w.pass(time.Millisecond)
	op = w.claimOne().Operation
	w.check(op.Token == 2 && op.State == semel.Processing, "claimed again: %+v", op)

	c = change(op, semel.NeedsReconciliation)
	c.Work = semel.WorkDone
	op = w.apply(c)
	w.pass(time.Hour)
	w.check(w.pending("acme") == 0 && len(w.claim(notes(1))) == 0, "work that is done is still there")
	c = change(op, semel.Accepted) // back again, with a new record
	c.NextToken, c.ClearedToken, c.Work, c.Due = op.Token+1, op.Token, semel.WorkDue, 0
	op = w.apply(c)
	again := w.claimOne()
	w.check(again.Operation.Token == op.Token+1 && len(again.Prior) == 2, "claimed after a verdict: %+v", again)
	w.apply(settle(again.Operation, semel.Succeeded, time.Hour))
	w.check(w.pending("acme") == 0, "a settled operation has work")
}

func testApplyExecution(w *world) {
	w.createOne(in(w.key()))
	req := notes(1)
	req.Kinds[0].BeginNow = false
	op := w.claim(req)[0].Operation
	w.check(w.history(op.Key).Executions[0].BegunAt.IsZero(), "begun by a claim that is no begin mark")
	w.pass(time.Second)

	c := change(op, semel.Processing)
	c.Begun, c.Execution = true, &semel.ExecutionChange{Token: op.Token, Begin: true}
	op = w.apply(c)
	begun := w.now()
	x := w.history(op.Key).Executions[0]
	w.check(x.BegunAt.Equal(begun) && x.EndedAt.IsZero() && op.Executions == 1, "begun: %+v", x)
	w.pass(time.Second)

	c = change(op, semel.Processing)
	c.Execution = &semel.ExecutionChange{Token: op.Token, Begin: true, End: true, Outcome: semel.Unknown, Evidence: []byte(`{"seen":"timeout"}`)}
	op = w.apply(c)
	x = w.history(op.Key).Executions[0]
	w.check(x.BegunAt.Equal(begun), "a second begin mark moved the first to %v", x.BegunAt)
	w.check(x.EndedAt.Equal(w.now()) && x.Outcome == semel.Unknown && string(x.Evidence) == `{"seen":"timeout"}`, "ended: %+v", x)

	c = change(op, semel.Processing)
	c.Execution = &semel.ExecutionChange{Token: 99, Begin: true, End: true, Outcome: semel.Applied}
	w.apply(c)
	w.check(len(w.history(op.Key).Executions) == 1, "a change of an execution that is not there made one")
}

func testApplyVerdict(w *world) {
	op := w.createOne(in(w.key()))
	c := change(op, semel.NeedsReconciliation)
	c.Work = semel.WorkDone
	op = w.apply(c)
	first := semel.Verdict{Verdict: "acknowledged", Evidence: "their logs are gone", By: "mei", Token: 1, At: w.now().Add(-time.Hour)}
	c = change(op, semel.NeedsReconciliation)
	c.NextToken, c.Acknowledged, c.Verdict = 1, true, &first
	op = w.apply(c)
	firstAt := w.now()
	w.pass(time.Minute)
	second := semel.Verdict{Verdict: "applied", Then: "", Evidence: "found it", By: "jo", Token: 2, Result: []byte(`{"n":1}`)}
	c = change(op, semel.Succeeded)
	c.NextToken, c.Verdict, c.Result, c.Retain = 2, &second, second.Result, time.Hour
	w.apply(c)
	vs := w.history(op.Key).Verdicts
	if len(vs) != 2 {
		w.Fatalf("%d verdicts, want 2", len(vs))
	}
	first.At, second.At = firstAt, w.now() // the store's now, whatever was given
	for i, want := range []semel.Verdict{first, second} {
		if d := difference(vs[i], want); d != "" {
			w.Errorf("verdict %d: %s", i, d)
		}
	}
}

// testApplyBatch: members are applied or not, each by itself.
func testApplyBatch(w *world) {
	var ins []semel.Insertion
	for range 100 {
		ins = append(ins, in(w.key()))
	}
	ops := w.create(ins...)
	batch := make([]semel.Change, len(ops))
	for i, op := range ops {
		batch[len(ops)-1-i] = settle(op, semel.Abandoned, time.Hour)
		if i%3 == 0 {
			batch[len(ops)-1-i].Revision = 7
		}
		if i%10 == 1 {
			batch[len(ops)-1-i].State = "nonsense"
		}
	}
	out, err := w.store.Apply(w.ctx, batch)
	w.ok(err, "apply")
	for i := range ops {
		o := out[len(ops)-1-i]
		bad := i%10 == 1
		w.check(bad == (o.Err != nil), "member %d: error %v", i, o.Err)
		w.check(o.Applied == (i%3 != 0 && !bad), "member %d applied: %v", i, o.Applied)
		w.check((w.get(ops[i].Key).State == semel.Abandoned) == o.Applied, "member %d is %s", i, w.get(ops[i].Key).State)
	}
}
