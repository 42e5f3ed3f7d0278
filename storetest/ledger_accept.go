package storetest

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

var acceptLedgerCases = []ledgerCase{
	{"Ledger/Accept", ledgerAccept},
	{"Ledger/Race", ledgerRace},
	{"Ledger/Mismatch", ledgerMismatch},
	{"Ledger/Invalid", ledgerInvalid},
	{"Ledger/Deadline", ledgerDeadline},
	{"Ledger/Accounts", ledgerAccounts},
	{"Ledger/NotFound", ledgerNotFound},
	{"Ledger/List", ledgerList},
}

func ledgerAccept(d *desk) {
	key := semel.Key{Account: "acme", Kind: "note", ID: idAt(d.now())}
	r := request(key)
	r.AttemptID = "attempt-1"
	first := d.accept(r)
	op := first.Operation
	d.check(!first.Replayed && op.Key == key && op.State == semel.Accepted && op.Revision == 1 && op.Attempts == 1, "accepted: %+v", first)
	d.check(bytes.Equal(op.Params, r.Params) && op.Fingerprint != "", "it has params %s and fingerprint %q", op.Params, op.Fingerprint)
	d.check(op.CreatedAt.Equal(d.now()) && op.UpdatedAt.Equal(d.now()) && op.ExpiresAt.IsZero(), "its times: %v, %v, %v", op.CreatedAt, op.UpdatedAt, op.ExpiresAt)
	d.pass(time.Second)
	for range 3 {
		again := d.accept(r)
		d.check(again.Replayed && again.Operation.Revision == 1 && again.Operation.CreatedAt.Equal(op.CreatedAt), "a repeat: %+v", again)
	}
	got := d.state(key, semel.Accepted)
	d.check(got.Fingerprint == op.Fingerprint && bytes.Equal(got.Params, op.Params) && got.Revision == 1, "a look-up: %+v", got)
	d.lease() // one only
}

func ledgerRace(d *desk) {
	key := semel.Key{Account: "acme", Kind: "note", ID: idAt(d.now())}
	var mu sync.Mutex
	var all sync.WaitGroup
	fresh, replayed := 0, 0
	for range 50 {
		all.Go(func() {
			acc, err := d.api.Accept(d.ctx, request(key))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				d.Errorf("accept: %v", err)
			case acc.Replayed:
				replayed++
			default:
				fresh++
			}
		})
	}
	all.Wait()
	d.check(fresh == 1 && replayed == 49, "%d new and %d replayed of 50", fresh, replayed)
	d.lease()
}

// ledgerMismatch: an identity never changes its meaning, in whatever state it is.
func ledgerMismatch(d *desk) {
	key := d.accepted()
	other := request(key)
	other.Params = []byte(`{"text":"米饭","n":1}`)
	refused := func(when string) {
		d.Helper()
		before := d.read(key)
		_, err := d.api.Accept(d.ctx, other)
		e := d.code(err, semel.CodeMismatch)
		d.check(len(e.Fields) > 0, "%s: no differing fields", when)
		for _, f := range e.Fields {
			d.check(f == "" || strings.HasPrefix(f, "/"), "%s: %q is no JSON Pointer", when, f)
		}
		after := d.read(key)
		d.check(after.Revision == before.Revision && bytes.Equal(after.Params, before.Params) && after.State == before.State, "%s: the stored operation was touched", when)
	}
	refused("accepted")
	lease := d.lease()
	refused("processing")
	d.finish(lease, applied)
	refused("succeeded")
	d.check(d.accept(request(key)).Replayed, "the right request is no longer replayed")

	gone := d.accepted()
	_, err := d.api.Abandon(d.ctx, gone)
	d.ok(err, "abandon")
	other.Key = gone
	_, err = d.api.Accept(d.ctx, other)
	d.code(err, semel.CodeMismatch)
	_, err = d.api.Accept(d.ctx, request(gone))
	d.code(err, semel.CodeAbandoned)
}

func ledgerInvalid(d *desk) {
	long := request(semel.Key{Account: "acme", Kind: "note", ID: strings.Repeat("x", semel.MaxIDLength+1)})
	_, err := d.api.Accept(d.ctx, long)
	d.code(err, semel.CodeInvalid)
	unknown := request(semel.Key{Account: "acme", Kind: "nothing", ID: "1"})
	_, err = d.api.Accept(d.ctx, unknown)
	d.code(err, semel.CodeUnknownKind)
	large := request(semel.Key{Account: "acme", Kind: "note", ID: "large"})
	large.Params = []byte(`"` + strings.Repeat("x", 2<<20) + `"`)
	_, err = d.api.Accept(d.ctx, large)
	d.code(err, semel.CodeTooLarge)
	_, err = d.api.Get(d.ctx, large.Key)
	d.code(err, semel.CodeNotFound)
}

func ledgerDeadline(d *desk) {
	key := semel.Key{Account: "acme", Kind: "note", ID: idAt(d.now())}
	r := request(key)
	r.AcceptUntil = d.now().Add(-time.Second)
	_, err := d.api.Accept(d.ctx, r)
	d.code(err, semel.CodeDeadlinePassed)
	_, err = d.api.Get(d.ctx, key)
	d.code(err, semel.CodeNotFound)
	r.AcceptUntil = d.now().Add(time.Second)
	d.accept(r)
	d.pass(time.Minute)
	d.check(d.accept(r).Replayed, "a known operation was refused after the deadline")
}

// ledgerAccounts: the same ID of two accounts is two operations.
func ledgerAccounts(d *desk) {
	id := idAt(d.now())
	acme, bolt := semel.Key{Account: "acme", Kind: "note", ID: id}, semel.Key{Account: "bolt", Kind: "note", ID: id}
	d.accept(request(acme))
	_, err := d.api.Get(d.ctx, bolt)
	d.code(err, semel.CodeNotFound)
	_, err = d.api.History(d.ctx, bolt)
	d.code(err, semel.CodeNotFound)
	other := request(bolt)
	other.Params = []byte(`{"text":"another one"}`)
	d.check(!d.accept(other).Replayed, "an operation of another account was replayed")
	_, err = d.api.Abandon(d.ctx, bolt)
	d.ok(err, "abandon")
	d.state(acme, semel.Accepted)
	d.state(bolt, semel.Abandoned)
}

func ledgerNotFound(d *desk) {
	key := semel.Key{Account: "acme", Kind: "note", ID: "never"}
	_, err := d.api.Get(d.ctx, key)
	d.code(err, semel.CodeNotFound)
	_, err = d.api.History(d.ctx, key)
	d.code(err, semel.CodeNotFound)
	_, err = d.api.Wait(d.ctx, key)
	d.code(err, semel.CodeNotFound)
	_, err = d.api.Resolve(d.ctx, key, semel.Resolution{Verdict: "applied", Evidence: "e", By: "mei", Revision: 1})
	d.code(err, semel.CodeNotFound)
}

func ledgerList(d *desk) {
	var want []string
	for n := range 9 {
		key := semel.Key{Account: "acme", Kind: []string{"note", "other"}[n%2], ID: d.name()}
		d.accept(request(key))
		want = append([]string{key.ID}, want...)
		d.pass(time.Millisecond)
	}
	d.accept(request(semel.Key{Account: "bolt", Kind: "note", ID: "not-yours"}))
	_, err := d.api.Abandon(d.ctx, semel.Key{Account: "acme", Kind: "note", ID: want[0]})
	d.ok(err, "abandon")
	list := func(q semel.Query) (ids []string) {
		d.Helper()
		q.Accounts = []string{"acme"}
		for range 100 {
			page, err := d.api.List(d.ctx, q)
			d.ok(err, "list")
			for _, op := range page.Operations {
				d.check(op.Params == nil && op.Result == nil, "%s is listed with its content", op.Key)
				ids = append(ids, op.Key.ID)
			}
			if q.After = page.Next; q.After == "" {
				return ids
			}
		}
		d.Fatal("the list never ends")
		return nil
	}
	same := func(got, want []string, what string) {
		d.Helper()
		d.check(strings.Join(got, " ") == strings.Join(want, " "), "%s: %v, want %v", what, got, want)
	}
	same(list(semel.Query{Size: 100}), want, "in one page")
	same(list(semel.Query{Size: 2}), want, "in pages of 2")
	same(list(semel.Query{Size: 2, Kind: "other"}), []string{want[1], want[3], want[5], want[7]}, "of one kind")
	same(list(semel.Query{Size: 2, State: semel.Abandoned}), want[:1], "of one state")
	same(list(semel.Query{Size: 2, State: semel.Accepted, Kind: "note"}), []string{want[2], want[4], want[6], want[8]}, "of one kind and state")
	_, err = d.api.List(d.ctx, semel.Query{Accounts: []string{"acme"}, Size: 2, After: "garbage"})
	d.code(err, semel.CodeInvalid)
}
