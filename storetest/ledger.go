package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// LedgerAPI is what callers and operators may ask of a ledger. *[semel.Ledger]
// has these methods; a client of the HTTP interface gets them by an adapter,
// which
//
//   - uses, for a key or a list of one account, a credential of that account;
//   - returns errors as *[semel.Error] with at least Code, and Operation, Fields
//     and Retention where the answer has them;
//   - may leave empty what the interface does not carry: the fields of an
//     operation that have no place in its JSON, and Acceptance.Lease.
type LedgerAPI interface {
	Accept(context.Context, semel.Request) (semel.Acceptance, error)
	Get(context.Context, semel.Key) (semel.Operation, error)
	Wait(context.Context, semel.Key) (semel.Operation, error)
	Abandon(context.Context, semel.Key) (semel.Operation, error)
	List(context.Context, semel.Query) (semel.Page, error)
	History(context.Context, semel.Key) (semel.History, error)
	Resolve(context.Context, semel.Key, semel.Resolution) (semel.Operation, error)
}

var _ LedgerAPI = (*semel.Ledger)(nil)

// A LedgerHarness is one ledger on an empty store.
type LedgerHarness struct {
	// API is what is tested.
	API LedgerAPI
	// Ledger is the ledger behind it: the tests work on it as a worker does. It has
	// the kinds of [LedgerKinds]. Accounts "acme" and "bolt" may use API, and an
	// operator "mei" may resolve for both.
	Ledger *semel.Ledger
	// Clock is the clock of its store.
	Clock *Clock
}

// LedgerKinds returns the kinds that the ledger of a [LedgerHarness] needs.
func LedgerKinds() []semel.Kind {
	return []semel.Kind{{Name: "note", Retention: time.Hour}, {Name: "other", Retention: time.Hour}}
}

type ledgerCase struct {
	name string
	run  func(*desk)
}

// RunLedger tests the rules of a ledger. The function makes a harness for each
// test, and cleans it up with t.Cleanup.
func RunLedger(t *testing.T, harness func(t *testing.T) LedgerHarness) {
	t.Helper()
	for _, cases := range [][]ledgerCase{acceptLedgerCases, lifeLedgerCases, resolveLedgerCases} {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				h := harness(t)
				c.run(&desk{world: &world{T: t, ctx: context.Background(), h: Harness{Clock: h.Clock}}, api: h.API, ledger: h.Ledger})
			})
		}
	}
}

// A desk is what a ledger test works at.
type desk struct {
	*world
	api    LedgerAPI
	ledger *semel.Ledger
}

func request(key semel.Key) semel.Request {
	return semel.Request{Key: key, Params: []byte(`{"text":"番茄炒蛋","n":1}`)}
}

func (d *desk) accept(r semel.Request) semel.Acceptance {
	d.Helper()
	acc, err := d.api.Accept(d.ctx, r)
	d.ok(err, "accept %s", r.Key)
	return acc
}

// accepted makes a new operation.
func (d *desk) accepted() semel.Key {
	d.Helper()
	key := semel.Key{Account: "acme", Kind: "note", ID: idAt(d.now())}
	acc := d.accept(request(key))
	d.check(!acc.Replayed && acc.Operation.State == semel.Accepted, "accepted: %+v", acc)
	return key
}

func (d *desk) read(key semel.Key) semel.Operation {
	d.Helper()
	op, err := d.api.Get(d.ctx, key)
	d.ok(err, "get %s", key)
	return op
}

func (d *desk) state(key semel.Key, want semel.State) semel.Operation {
	d.Helper()
	op := d.read(key)
	d.check(op.State == want, "%s is %s, want %s", key, op.State, want)
	d.check(op.ExpiresAt.IsZero() != want.Settled(), "%s is %s and expires at %v", key, want, op.ExpiresAt)
	return op
}

// lease claims as a worker does, and expects exactly one operation.
func (d *desk) lease() semel.Lease {
	d.Helper()
	leases, err := d.ledger.Claim(d.ctx, notes(10))
	d.ok(err, "claim")
	if len(leases) != 1 {
		d.Fatalf("claimed %d, want 1", len(leases))
	}
	return leases[0]
}

func (d *desk) finish(lease semel.Lease, end semel.Ending) semel.Operation {
	d.Helper()
	op, err := d.ledger.Finish(d.ctx, lease, end)
	d.ok(err, "finish %s", lease.Operation.Key)
	return op
}

var applied = semel.Ending{Outcome: semel.Applied, Result: []byte(`{"url":"/1.png"}`), Evidence: []byte(`{"status":200}`)}

// unresolved makes an operation that needs reconciliation.
func (d *desk) unresolved() (semel.Operation, semel.Lease) {
	d.Helper()
	key := d.accepted()
	lease := d.lease()
	d.finish(lease, semel.Ending{Outcome: semel.Unknown, Failure: &semel.Failure{Code: "timeout"}, Evidence: []byte(`{"error":"timeout"}`)})
	return d.state(key, semel.NeedsReconciliation), lease
}
