package storetest

import (
	"bytes"
	"time"

	"github.com/semel-dev/semel"
)

var resolveLedgerCases = []ledgerCase{
	{"Ledger/ResolveApplied", ledgerResolveApplied},
	{"Ledger/ResolveNotApplied", ledgerResolveNotApplied},
	{"Ledger/ResolveAcknowledged", ledgerResolveAcknowledged},
	{"Ledger/ResolveRefused", ledgerResolveRefused},
	{"Ledger/Contradicted", ledgerContradicted},
}

func (d *desk) resolve(op semel.Operation, r semel.Resolution) (semel.Operation, error) {
	d.Helper()
	r.Revision, r.By = op.Revision, "mei"
	if r.Evidence == "" {
		r.Evidence = "asked the printer 打印机"
	}
	return d.api.Resolve(d.ctx, op.Key, r)
}

func ledgerResolveApplied(d *desk) {
	op, _ := d.unresolved()
	d.check(op.Failure != nil && op.Failure.Code == "timeout", "its reason: %+v", op.Failure)
	r := semel.Resolution{Verdict: "applied", Result: []byte(`{"url":"/found.png"}`)}
	got, err := d.resolve(op, r)
	d.ok(err, "resolve")
	d.check(got.State == semel.Succeeded && bytes.Equal(got.Result, r.Result) && got.Revision == op.Revision+1, "resolved: %+v", got)
	for range 2 { // an identical repeat
		again, err := d.resolve(op, r)
		d.ok(err, "repeat")
		d.check(again.Revision == got.Revision, "a repeat changed it: %+v", again)
	}
	_, err = d.resolve(op, semel.Resolution{Verdict: "not_applied", Then: "fail"})
	d.code(err, semel.CodeStaleRevision)
	_, err = d.resolve(got, semel.Resolution{Verdict: "not_applied", Then: "fail"})
	d.code(err, semel.CodeNotReconcilable)
	final := d.state(op.Key, semel.Succeeded)
	d.check(final.Failure == nil && final.Revision == got.Revision, "after all: %+v", final)
	h, err := d.api.History(d.ctx, op.Key)
	d.ok(err, "history")
	d.check(len(h.Verdicts) == 1 && h.Verdicts[0].By == "mei" && h.Verdicts[0].Verdict == "applied" && h.Verdicts[0].Evidence == "asked the printer 打印机",
		"verdicts: %+v", h.Verdicts)
	d.check(d.accept(request(op.Key)).Replayed, "it is not replayed")
}

func ledgerResolveNotApplied(d *desk) {
	op, old := d.unresolved()
	got, err := d.resolve(op, semel.Resolution{Verdict: "not_applied", Then: "retry"})
	d.ok(err, "resolve")
	d.check(got.State == semel.Accepted, "resolved: %+v", got)
	d.pass(time.Hour)
	lease := d.lease()
	d.check(lease.Token > old.Token+1 && len(lease.Doubt()) == 0, "token %d after %d, %d in doubt", lease.Token, old.Token, len(lease.Doubt()))
	d.finish(lease, applied)
	d.state(op.Key, semel.Succeeded)

	op, _ = d.unresolved()
	got, err = d.resolve(op, semel.Resolution{Verdict: "not_applied", Then: "fail"})
	d.ok(err, "resolve")
	d.check(got.State == semel.Failed && got.Failure != nil, "resolved: %+v", got)
	d.state(op.Key, semel.Failed)
}

func ledgerResolveAcknowledged(d *desk) {
	op, _ := d.unresolved()
	got, err := d.resolve(op, semel.Resolution{Verdict: "acknowledged"})
	d.ok(err, "resolve")
	d.check(got.State == semel.NeedsReconciliation && got.Acknowledged, "resolved: %+v", got)
	later, err := d.resolve(got, semel.Resolution{Verdict: "applied"})
	d.ok(err, "resolve, after all")
	d.check(later.State == semel.Succeeded, "resolved: %+v", later)
	h, err := d.api.History(d.ctx, op.Key)
	d.check(err == nil && len(h.Verdicts) == 2, "verdicts: %+v, %v", h.Verdicts, err)
}

func ledgerResolveRefused(d *desk) {
	op, _ := d.unresolved()
	for _, r := range []semel.Resolution{
		{Verdict: "maybe"}, {Verdict: "not_applied"}, {Verdict: "not_applied", Then: "wait"}, {Verdict: "applied", Then: "retry"},
		{Verdict: "acknowledged", Result: []byte(`{}`)},
	} {
		_, err := d.resolve(op, r)
		d.code(err, semel.CodeInvalid)
	}
	older := op
	older.Revision--
	_, err := d.resolve(older, semel.Resolution{Verdict: "applied"})
	e := d.code(err, semel.CodeStaleRevision)
	d.check(e.Operation != nil && e.Operation.Revision == op.Revision, "the operation in the error: %+v", e.Operation)
	now := d.state(op.Key, semel.NeedsReconciliation)
	d.check(now.Revision == op.Revision, "a refused resolution changed it")

	key := d.accepted()
	_, err = d.resolve(d.read(key), semel.Resolution{Verdict: "applied"})
	d.code(err, semel.CodeNotReconcilable)
}

// ledgerContradicted: a result that comes after a verdict and says otherwise is
// kept, and the operation is flagged; its state stays.
func ledgerContradicted(d *desk) {
	op, lease := d.unresolved()
	_, err := d.resolve(op, semel.Resolution{Verdict: "not_applied", Then: "fail"})
	d.ok(err, "resolve")
	_, err = d.ledger.Finish(d.ctx, lease, applied)
	d.code(err, semel.CodeLeaseLost)
	got := d.state(op.Key, semel.Failed)
	d.check(got.Contradicted, "not flagged: %+v", got)
	h, err := d.api.History(d.ctx, op.Key)
	d.check(err == nil && h.Executions[0].LateOutcome == semel.Applied, "history: %+v, %v", h.Executions, err)

	op, lease = d.unresolved()
	_, err = d.resolve(op, semel.Resolution{Verdict: "applied"})
	d.ok(err, "resolve")
	_, err = d.ledger.Finish(d.ctx, lease, applied)
	d.code(err, semel.CodeLeaseLost)
	d.check(!d.state(op.Key, semel.Succeeded).Contradicted, "flagged, though it says the same")
}
