package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

var listCases = []testCase{
	{"List/Order", clock, testListOrder},
	{"List/Filters", clock, testListFilters},
	{"List/StableUnderInserts", clock, testListStable},
	{"List/SameInstant", clock, testListSameInstant},
	{"List/ManyAccounts", clock, testListManyAccounts},
	{"List/Garbage", anything, testListGarbage},
}

// list reads all pages and returns the IDs.
func (w *world) list(q semel.Query) []string {
	w.Helper()
	ids := []string{}
	for range 10000 {
		page, err := w.store.List(w.ctx, q)
		w.ok(err, "list")
		w.check(len(page.Operations) <= q.Size, "a page of %d has %d", q.Size, len(page.Operations))
		w.check(page.Next == "" || len(page.Operations) > 0, "an empty page that is not the last one")
		for _, op := range page.Operations {
			ids = append(ids, op.Key.ID)
		}
		if q.After = page.Next; q.After == "" {
			return ids
		}
	}
	w.Fatal("the list never ends")
	return nil
}

func testListOrder(w *world) {
	w.check(len(w.list(semel.Query{Size: 10})) == 0, "an empty list is not empty")
	var want []string
	for n := range 24 {
		i := in(semel.Key{Account: fmt.Sprintf("acc-%d", n%5), Kind: []string{"note", "other"}[n%2], ID: w.name()})
		i.Request = []byte("r")
		w.createOne(i)
		want = append([]string{i.Key.ID}, want...)
		w.pass(time.Millisecond)
	}
	for _, size := range []int{1, 2, 5, 8, 23, 24, 25, 1000} {
		got := w.list(semel.Query{Size: size})
		w.check(slices.Equal(got, want), "pages of %d: %v, want %v", size, got, want)
	}
	page, err := w.store.List(w.ctx, semel.Query{Size: 24})
	w.ok(err, "list")
	w.check(page.Next == "", "there is a next page after the last operation")
	for _, op := range page.Operations {
		full := w.get(op.Key)
		w.check(op.Params == nil && op.Request == nil && op.Result == nil, "%s is listed with its content", op.Key)
		full.Params, full.Request = nil, nil
		if d := difference(op, full); d != "" {
			w.Errorf("%s in the list: %s", op.Key, d)
		}
	}
}

func testListFilters(w *world) {
	type row struct {
		account, kind string
		state         semel.State
		acknowledged  bool
	}
	rows := map[string]row{}
	states := []semel.State{semel.Accepted, semel.Processing, semel.Succeeded, semel.Failed, semel.NeedsReconciliation, semel.Abandoned}
	var order []string
	for n := range 60 {
		r := row{account: fmt.Sprintf("acc-%d", n%3), kind: []string{"note", "other"}[n/3%2], state: states[n%len(states)], acknowledged: n%12 == 4}
		op := w.createOne(in(semel.Key{Account: r.account, Kind: r.kind, ID: w.name()}))
		if r.state != semel.Accepted {
			c := change(op, r.state)
			c.Acknowledged, c.Retain = r.acknowledged, time.Hour
			if r.state != semel.Processing {
				c.Work = semel.WorkDone
			}
			w.apply(c)
		}
		rows[op.Key.ID] = r
		order = append([]string{op.Key.ID}, order...)
		w.pass(time.Millisecond)
	}
	for _, accounts := range [][]string{nil, {}, {"acc-1"}, {"acc-0", "acc-2"}, {"acc-2", "acc-2", "nobody"}, {"nobody"}} {
		for _, kind := range []string{"", "note", "other", "unknown"} {
			for _, state := range append([]semel.State{""}, states...) {
				for _, unacknowledged := range []bool{false, true} {
					q := semel.Query{Accounts: accounts, Kind: kind, State: state, Unacknowledged: unacknowledged, Size: 4}
					want := []string{}
					for _, id := range order {
						r := rows[id]
						if (accounts == nil || slices.Contains(accounts, r.account)) && (kind == "" || kind == r.kind) &&
							(state == "" || state == r.state) && !(unacknowledged && r.acknowledged) {
							want = append(want, id)
						}
					}
					if got := w.list(q); !slices.Equal(got, want) {
						w.Errorf("accounts %v kind %q state %q unacknowledged %v: %v, want %v", accounts, kind, state, unacknowledged, got, want)
					}
				}
			}
		}
	}
}

// testListStable: what is new appears on no later page, and takes nothing away.
func testListStable(w *world) {
	var want []string
	for range 20 {
		op := w.createOne(in(w.key()))
		want = append([]string{op.Key.ID}, want...)
		w.pass(time.Millisecond)
	}
	var got []string
	for q := (semel.Query{Size: 3, Accounts: []string{"acme"}}); ; {
		page, err := w.store.List(w.ctx, q)
		w.ok(err, "list")
		for _, op := range page.Operations {
			got = append(got, op.Key.ID)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
		w.create(in(w.key()), in(w.key()))
		w.pass(time.Millisecond)
		w.claim(notes(1))
	}
	w.check(slices.Equal(got, want), "pages while others insert: %v, want %v", got, want)
}

// testListSameInstant: operations of one millisecond are neither lost nor doubled.
func testListSameInstant(w *world) {
	var ins []semel.Insertion
	for n := range 200 {
		ins = append(ins, in(semel.Key{Account: fmt.Sprintf("acc-%d", n%4), Kind: []string{"note", "other"}[n%2], ID: w.name()}))
	}
	w.create(ins...)
	for _, accounts := range [][]string{nil, {"acc-0", "acc-1", "acc-2", "acc-3"}} {
		got := w.list(semel.Query{Size: 7, Accounts: accounts})
		slices.Sort(got)
		w.check(len(got) == 200 && len(slices.Compact(got)) == 200, "%d of 200 listed, %d different", len(got), len(slices.Compact(got)))
	}
}

func testListManyAccounts(w *world) {
	var want, half, accounts []string
	for n := range 150 {
		i := in(semel.Key{Account: fmt.Sprintf("account-%d", n), Kind: "note", ID: w.name()})
		w.createOne(i)
		want = append([]string{i.Key.ID}, want...)
		if n%2 == 0 {
			half, accounts = append([]string{i.Key.ID}, half...), append(accounts, i.Key.Account)
		}
		w.pass(time.Millisecond)
	}
	got := w.list(semel.Query{Size: 40})
	w.check(slices.Equal(got, want), "all accounts: %d in some order, want %d", len(got), len(want))
	got = w.list(semel.Query{Size: 40, Accounts: accounts})
	w.check(slices.Equal(got, half), "half the accounts: %d in some order, want %d", len(got), len(half))
}

// testListGarbage: a page token that is not one of ours is invalid, and nothing else.
func testListGarbage(w *world) {
	for range 5 {
		w.createOne(in(w.key()))
	}
	page, err := w.store.List(w.ctx, semel.Query{Size: 2})
	w.ok(err, "list")
	garbage := []string{"x", "!!!", "null", "0", "AAAA", "eyJhIjoxfQ", "W10", "WzFd", strings.Repeat("A", 5000), "本周", "' OR 1=1", "\x00",
		page.Next + "x", page.Next[1:], page.Next[:len(page.Next)-2]}
	for _, token := range garbage {
		_, err := w.store.List(w.ctx, semel.Query{Size: 2, After: token})
		if e := w.code(err, semel.CodeInvalid); e.WasRecorded() != semel.RecordedNo {
			w.Errorf("token %q: %v", token, e)
		}
	}
}
