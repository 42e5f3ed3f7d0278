package storetest

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

var lifeLedgerCases = []ledgerCase{
	{"Ledger/Succeeds", ledgerSucceeds},
	{"Ledger/Fails", ledgerFails},
	{"Ledger/TriedAgain", ledgerTriedAgain},
	{"Ledger/DoubtStays", ledgerDoubtStays},
	{"Ledger/LeaseLost", ledgerLeaseLost},
	{"Ledger/Abandon", ledgerAbandon},
	{"Ledger/Wait", ledgerWait},
	{"Ledger/Expires", ledgerExpires},
}

func ledgerSucceeds(d *desk) {
	key := d.accepted()
	d.pass(time.Second)
	lease := d.lease()
	op := d.state(key, semel.Processing)
	d.check(op.Executions == 1 && op.Revision == 2, "processing: %+v", op)
	d.check(d.accept(request(key)).Operation.State == semel.Processing, "a repeat does not say that it is processing")
	d.pass(time.Second)
	d.finish(lease, applied)
	op = d.state(key, semel.Succeeded)
	d.check(bytes.Equal(op.Result, applied.Result) && op.Failure == nil && op.Revision == 3, "succeeded: %+v", op)
	d.check(op.ExpiresAt.Equal(d.now().Add(time.Hour)), "it expires at %v", op.ExpiresAt)
	again := d.accept(request(key))
	d.check(again.Replayed && bytes.Equal(again.Operation.Result, applied.Result), "a repeat: %+v", again)
	h, err := d.api.History(d.ctx, key)
	d.ok(err, "history")
	d.check(len(h.Executions) == 1 && h.Executions[0].Outcome == semel.Applied && !h.Executions[0].EndedAt.IsZero(), "history: %+v", h)
}

func ledgerFails(d *desk) {
	key := d.accepted()
	d.finish(d.lease(), semel.Ending{Outcome: semel.Refused, Result: []byte(`{"as":"it was said"}`), Failure: &semel.Failure{Code: "no-such-theme", Message: "没有这个主题"}})
	op := d.state(key, semel.Failed)
	d.check(op.Failure != nil && op.Failure.Code == "no-such-theme" && op.Failure.Message == "没有这个主题", "its reason: %+v", op.Failure)
	d.check(string(op.Result) == `{"as":"it was said"}`, "the refusal as it was: %s", op.Result)
	d.check(d.accept(request(key)).Operation.State == semel.Failed, "a repeat ran it again")
}

// ledgerTriedAgain: what provably did not happen is tried again, and the reason
// of the last try goes when it succeeds.
func ledgerTriedAgain(d *desk) {
	key := d.accepted()
	d.finish(d.lease(), semel.Ending{Outcome: semel.NotApplied, Again: true, In: time.Minute, Failure: &semel.Failure{Code: "busy"}})
	op := d.state(key, semel.Accepted)
	d.check(op.Failure != nil && op.Failure.Code == "busy", "the reason of the last try: %+v", op.Failure)
	d.pass(time.Minute)
	lease := d.lease()
	d.check(len(lease.Doubt()) == 0, "in doubt: %+v", lease.Doubt())
	d.finish(lease, applied)
	op = d.state(key, semel.Succeeded)
	d.check(op.Executions == 2 && op.Failure == nil, "%d executions, failure %+v", op.Executions, op.Failure)

	key = d.accepted()
	d.finish(d.lease(), semel.Ending{Outcome: semel.NotApplied, Failure: &semel.Failure{Code: "budget-spent"}})
	d.state(key, semel.Failed)
}

// ledgerDoubtStays: once a transmission is unknown, a later refusal proves
// nothing, unless it covers all.
func ledgerDoubtStays(d *desk) {
	for _, c := range []struct {
		end  semel.Ending
		want semel.State
	}{
		{semel.Ending{Outcome: semel.Refused}, semel.NeedsReconciliation},
		{semel.Ending{Outcome: semel.Refused, Again: true, In: time.Hour}, semel.Processing},
		{semel.Ending{Outcome: semel.NotApplied}, semel.NeedsReconciliation},
		{semel.Ending{Outcome: semel.NotApplied, Again: true, In: time.Hour}, semel.Processing},
		{semel.Ending{Outcome: semel.Refused, CoversAll: true}, semel.Failed},
		{semel.Ending{Outcome: semel.NotApplied, CoversAll: true}, semel.Failed},
		{semel.Ending{Outcome: semel.NotApplied, CoversAll: true, Again: true, In: time.Hour}, semel.Accepted},
		{applied, semel.Succeeded},
	} {
		key := d.accepted()
		d.lease() // its worker dies
		d.pass(time.Minute)
		lease := d.lease()
		d.check(len(lease.Doubt()) == 1, "%d executions in doubt, want 1", len(lease.Doubt()))
		d.finish(lease, c.end)
		d.state(key, c.want)
		if !c.want.Settled() && c.want != semel.NeedsReconciliation { // out of the way of the next ones
			d.pass(time.Hour)
			d.finish(d.lease(), applied)
		}
	}
}

// ledgerLeaseLost: only the current token writes; what comes late is kept.
func ledgerLeaseLost(d *desk) {
	key := d.accepted()
	late := d.lease()
	d.pass(time.Minute)
	lease := d.lease()
	_, err := d.ledger.Finish(d.ctx, late, semel.Ending{Outcome: semel.Refused})
	d.code(err, semel.CodeLeaseLost)
	d.state(key, semel.Processing)
	held, err := d.ledger.Renew(d.ctx, []semel.Lease{late, lease}, []*semel.Progress{nil, {Fraction: 0.5, Note: "page 1"}})
	d.check(err == nil && !held[0] && held[1], "renewed: %v, %v", held, err)
	op := d.read(key)
	d.check(op.Progress != nil && op.Progress.Fraction == 0.5 && op.Progress.Note == "page 1" && op.Revision == lease.Operation.Revision, "progress: %+v", op)
	d.finish(lease, applied)
	d.check(!d.read(key).Contradicted, "an earlier refusal does not contradict a later success")
	h, err := d.api.History(d.ctx, key)
	d.ok(err, "history")
	d.check(len(h.Executions) == 2 && h.Executions[0].LateOutcome == semel.Refused && h.Executions[1].LateOutcome == "", "history: %+v", h.Executions)
}

func ledgerAbandon(d *desk) {
	unknown := semel.Key{Account: "acme", Kind: "note", ID: idAt(d.now())}
	waiting := d.accepted()
	for range 2 {
		for _, key := range []semel.Key{unknown, waiting} {
			op, err := d.api.Abandon(d.ctx, key)
			d.ok(err, "abandon")
			d.check(op.State == semel.Abandoned, "abandoned: %+v", op)
		}
	}
	for _, key := range []semel.Key{unknown, waiting} {
		d.state(key, semel.Abandoned)
		_, err := d.api.Accept(d.ctx, request(key))
		d.code(err, semel.CodeAbandoned)
	}
	leases, err := d.ledger.Claim(d.ctx, notes(10))
	d.check(err == nil && len(leases) == 0, "%d abandoned operations were claimed, %v", len(leases), err)

	started := func(key semel.Key, state semel.State) {
		d.Helper()
		_, err := d.api.Abandon(d.ctx, key)
		e := d.code(err, semel.CodeAlreadyStarted)
		d.check(e.Operation != nil && e.Operation.State == state, "the operation in the error: %+v", e.Operation)
		d.state(key, state)
	}
	key := d.accepted()
	lease := d.lease()
	started(key, semel.Processing)
	d.finish(lease, applied)
	started(key, semel.Succeeded)
	op, _ := d.unresolved()
	started(op.Key, semel.NeedsReconciliation)
}

func ledgerWait(d *desk) {
	key := d.accepted()
	ctx, cancel := context.WithTimeout(d.ctx, 500*time.Millisecond) // the first look must fit in
	defer cancel()
	op, err := d.api.Wait(ctx, key)
	d.ok(err, "wait")
	d.check(op.State == semel.Accepted, "after a wait in vain it is %s", op.State)

	var waiting sync.WaitGroup
	waiting.Go(func() {
		ctx, cancel := context.WithTimeout(d.ctx, 30*time.Second)
		defer cancel()
		op, err := d.api.Wait(ctx, key)
		if err != nil || op.State != semel.Succeeded || !bytes.Equal(op.Result, applied.Result) {
			d.Errorf("waited for %s, %v", op.State, err)
		}
	})
	d.finish(d.lease(), applied)
	waiting.Wait()
	op, err = d.api.Wait(d.ctx, key)
	d.check(err == nil && op.State == semel.Succeeded, "a wait for what is settled: %s, %v", op.State, err)
}

// ledgerExpires: an identity whose time is over is refused, never run again.
func ledgerExpires(d *desk) {
	done := d.accepted()
	d.finish(d.lease(), applied)
	named := semel.Key{Account: "acme", Kind: "note", ID: "named-by-the-caller"}
	d.accept(request(named))
	d.finish(d.lease(), applied)
	abandoned := semel.Key{Account: "acme", Kind: "note", ID: "given-up"}
	_, err := d.api.Abandon(d.ctx, abandoned)
	d.ok(err, "abandon")
	never := semel.Key{Account: "acme", Kind: "note", ID: idAt(d.now())}
	waiting := d.accepted()

	for range 3 {
		d.pass(2 * time.Hour)
		for range 2 {
			_, err := d.ledger.Purge(d.ctx)
			d.ok(err, "purge")
		}
		for _, key := range []semel.Key{done, named, never} {
			_, err := d.api.Get(d.ctx, key)
			e := d.code(err, semel.CodeExpired)
			d.check(e.Retention == time.Hour, "%s: the error says %v", key, e.Retention)
			_, err = d.api.Accept(d.ctx, request(key))
			d.code(err, semel.CodeExpired)
			_, err = d.api.Abandon(d.ctx, key)
			d.code(err, semel.CodeExpired)
			_, err = d.api.History(d.ctx, key)
			d.code(err, semel.CodeExpired)
		}
		_, err := d.api.Accept(d.ctx, request(abandoned))
		d.code(err, semel.CodeAbandoned)
		d.check(d.accept(request(waiting)).Replayed, "an operation that waits is gone")
	}
	page, err := d.api.List(d.ctx, semel.Query{Accounts: []string{"acme"}, Size: 100})
	d.ok(err, "list")
	d.check(len(page.Operations) == 1 && page.Operations[0].Key == waiting, "%d are listed, want the one that waits", len(page.Operations))
	d.check(d.lease().Operation.Key == waiting, "something expired was claimed")
}
