package storetest

import (
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

var claimCases = []testCase{
	{"Claim/Row", clock, testClaimRow},
	{"Claim/BeginNow", clock, testClaimBeginNow},
	{"Claim/LeaseEnds", clock, testClaimLeaseEnds},
	{"Claim/States", clock, testClaimStates},
	{"Claim/KindsAndMax", anything, testClaimKindsAndMax},
	{"Claim/OldestFirst", clock, testClaimOldestFirst},
	{"Claim/Fair", clock, testClaimFair},
	{"Claim/FairToManyAccounts", clock, testClaimFairToMany},
	{"Claim/FutureInTheWay", clock, testClaimFutureInTheWay},
	{"Claim/Drains", anything, testClaimDrains},
}

// testClaimRow: what a claim writes and what it answers.
func testClaimRow(w *world) {
	i := in(w.key())
	i.Request, i.AttemptID = []byte("request"), "a1"
	want := w.createOne(i)
	w.pass(time.Second)
	req := semel.ClaimRequest{Worker: "worker-7", Max: 5, Kinds: []semel.ClaimKind{{Kind: "note", Lease: 90 * time.Second, Contract: `{"x":1}`, BeginNow: true}}}
	got := w.claim(req)
	if len(got) != 1 {
		w.Fatalf("claimed %d, want 1", len(got))
	}
	c := got[0]
	want.State, want.Token, want.Revision, want.Executions, want.UpdatedAt = semel.Processing, 1, 2, 1, w.now()
	w.check(c.Operation.Owner != want.Owner, "a claim is a write, and has an owner mark of its own")
	want.Owner = c.Operation.Owner
	if d := difference(c.Operation, want); d != "" {
		w.Errorf("the answer: %s", d)
	}
	if d := difference(w.get(i.Key), want); d != "" {
		w.Errorf("the row: %s", d)
	}
	w.check(c.Begun && len(c.Prior) == 0 && c.Now.Equal(w.now()), "begun %v, %d earlier, now %v", c.Begun, len(c.Prior), c.Now)
	x := semel.Execution{Token: 1, Worker: "worker-7", Contract: `{"x":1}`, ClaimedAt: w.now(), LeaseEndsAt: w.now().Add(90 * time.Second), BegunAt: w.now()}
	if d := difference(w.history(i.Key).Executions[0], x); d != "" {
		w.Errorf("the execution: %s", d)
	}
	w.check(w.pending("acme") == 1, "a leased operation keeps its work row")
}

// testClaimBeginNow: only the claim of an accepted operation begins, and only if
// its kind says so.
func testClaimBeginNow(w *world) {
	claim := func(beginNow bool) semel.Claimed {
		w.Helper()
		req := notes(1)
		req.Kinds[0].BeginNow = beginNow
		out := w.claim(req)
		if len(out) != 1 {
			w.Fatalf("claimed %d, want 1", len(out))
		}
		return out[0]
	}
	expect := func(c semel.Claimed, begun bool, executions int) {
		w.Helper()
		h := w.history(c.Operation.Key)
		x := h.Executions[len(h.Executions)-1]
		w.check(c.Begun == begun && x.BegunAt.IsZero() == !begun && c.Operation.Executions == executions,
			"begun %v, at %v, executions %d; want %v, %d", c.Begun, x.BegunAt, c.Operation.Executions, begun, executions)
	}
	w.createOne(in(w.key()))
	expect(claim(false), false, 0)
	w.pass(time.Minute)
	c := claim(true) // processing, though it certainly did not begin
	expect(c, false, 0)
	back := change(c.Operation, semel.Accepted)
	back.Work = semel.WorkDue
	w.apply(back)
	expect(claim(true), true, 1)
	w.pass(time.Minute)
	expect(claim(true), false, 1)
}

// testClaimLeaseEnds: the end of a lease makes the work due again, with a new
// token and the story so far.
func testClaimLeaseEnds(w *world) {
	op := w.createOne(in(w.key()))
	for n := range 4 {
		if n > 0 {
			w.pass(time.Minute - time.Millisecond)
			w.check(len(w.claim(notes(1))) == 0, "leased twice at a time")
			w.pass(time.Millisecond)
		}
		c := w.claimOne()
		w.check(c.Operation.Token == int64(n+1) && c.Operation.Revision == int64(n+2), "claim %d: token %d, revision %d", n, c.Operation.Token, c.Operation.Revision)
		w.check(len(c.Prior) == n, "claim %d has %d earlier executions", n, len(c.Prior))
		for i, x := range c.Prior {
			w.check(x.Token == int64(i+1), "earlier executions are not the oldest first: %+v", c.Prior)
		}
		if n > 0 {
			w.check(c.Prior[0].InDoubt() && c.Prior[0].Contract == `{"kind":"note"}`, "the first execution: %+v", c.Prior[0])
		}
	}
	w.check(len(w.history(op.Key).Executions) == 4, "%d executions", len(w.history(op.Key).Executions))
}

// testClaimStates: only what is accepted or processing is ever claimed.
func testClaimStates(w *world) {
	for _, state := range []semel.State{semel.Succeeded, semel.Failed, semel.Abandoned, semel.NeedsReconciliation} {
		op := w.createOne(in(w.key()))
		w.apply(settle(op, state, time.Hour))
	}
	tombstone := in(w.key())
	tombstone.State, tombstone.Retain = semel.Abandoned, time.Hour
	w.createOne(tombstone)
	w.pass(30 * time.Minute)
	w.check(len(w.claim(notes(10))) == 0, "something settled was claimed")
}

func testClaimKindsAndMax(w *world) {
	for _, kind := range []string{"a", "b", "c"} {
		var ins []semel.Insertion
		for i := range 20 {
			ins = append(ins, in(semel.Key{Account: fmt.Sprintf("acc-%d", i%3), Kind: kind, ID: w.name()}))
		}
		w.create(ins...)
	}
	count := func(req semel.ClaimRequest) map[string]int {
		w.Helper()
		n := map[string]int{}
		for _, c := range w.claim(req) {
			n[c.Operation.Key.Kind]++
		}
		return n
	}
	w.check(len(count(claimOf(10))) == 0, "a claim of no kind got something")
	w.check(len(count(claimOf(0, "a", "b"))) == 0, "a claim of none at all got something")
	w.check(len(count(claimOf(5, "unknown"))) == 0, "a claim of an unknown kind got something")
	got := count(claimOf(4, "a"))
	w.check(got["a"] == 4 && len(got) == 1, "4 of kind a: %v", got)
	req := claimOf(100, "a", "b")
	req.Kinds[0].Max = 3
	got = count(req)
	w.check(got["a"] == 3 && got["b"] == 20 && len(got) == 2, "3 of a and all of b: %v", got)
	req = claimOf(10, "a", "c")
	req.Kinds[0].Max, req.Kinds[1].Max = 50, 2
	got = count(req)
	w.check(got["a"]+got["c"] == 10 && got["c"] <= 2 && len(got) <= 2, "10 of a and c, at most 2 of c: %v", got)
	rest := count(claimOf(1000, "a", "b", "c"))
	w.check(rest["a"] == 13-got["a"] && rest["b"] == 0 && rest["c"] == 20-got["c"], "the rest after %v: %v", got, rest)
}

func testClaimOldestFirst(w *world) {
	delays := []time.Duration{50, 10, 40, 20, 30, 0, 60}
	for _, d := range delays {
		i := in(w.key())
		i.Key.ID = fmt.Sprintf("due-%02d", d)
		i.Due = d * time.Second
		w.createOne(i)
	}
	w.pass(time.Minute)
	var order []string
	for range len(delays) {
		got := w.claim(notes(1))
		if len(got) != 1 {
			w.Fatalf("claimed %d, want 1", len(got))
		}
		order = append(order, got[0].Operation.Key.ID)
	}
	w.check(fmt.Sprint(order) == "[due-00 due-10 due-20 due-30 due-40 due-50 due-60]", "claimed in the order %v", order)
}

// testClaimFair: a backlog of one account does not starve another one's only
// operation, though everything of the backlog is older.
func testClaimFair(w *world) {
	for range 4 {
		var ins []semel.Insertion
		for range 500 {
			ins = append(ins, in(semel.Key{Account: "heavy", Kind: "note", ID: w.name()}))
		}
		w.create(ins...)
	}
	for _, small := range []string{"small", "tiny", "x1", "x2", "x3", "zz"} {
		w.pass(time.Minute)
		w.createOne(in(semel.Key{Account: small, Kind: "note", ID: w.name()}))
		w.within(10, small, notes(10))
	}
}

// within claims until an operation of the account is leased, and complains if it
// takes more claims than that.
func (w *world) within(claims int, account string, req semel.ClaimRequest) {
	w.Helper()
	for range claims {
		for _, c := range w.claim(req) {
			if c.Operation.Key.Account == account {
				return
			}
		}
	}
	w.Fatalf("account %s got nothing in %d claims of %d", account, claims, req.Max)
}

// testClaimFairToMany: neither do many accounts together.
func testClaimFairToMany(w *world) {
	const accounts, each, max = 40, 50, 10
	for a := range accounts {
		var ins []semel.Insertion
		for range each {
			ins = append(ins, in(semel.Key{Account: fmt.Sprintf("heavy-%d", a), Kind: "note", ID: w.name()}))
		}
		w.create(ins...)
	}
	w.claim(notes(max))
	for i := range 3 {
		w.pass(time.Second)
		small := fmt.Sprintf("small-%d", i)
		w.createOne(in(semel.Key{Account: small, Kind: "note", ID: w.name()}))
		w.within(3*accounts/max+5, small, notes(max))
	}
}

// testClaimFutureInTheWay: work that is not due hides none that is.
func testClaimFutureInTheWay(w *world) {
	var ins []semel.Insertion
	for n := range 2000 {
		i := in(semel.Key{Account: fmt.Sprintf("acc-%d", n%1000), Kind: "note", ID: w.name()})
		i.Due = time.Hour
		ins = append(ins, i)
	}
	w.create(ins...)
	w.check(len(w.claim(notes(10))) == 0, "claimed what is not due")
	for _, account := range []string{"a", "acc-500", "zz"} {
		w.createOne(in(semel.Key{Account: account, Kind: "note", ID: w.name()}))
		w.within(3, account, notes(10))
	}
}

// testClaimDrains: claiming on ends with everything leased once.
func testClaimDrains(w *world) {
	const n = 400
	var ins []semel.Insertion
	for i := range n {
		account := "big"
		if i%4 == 0 {
			account = fmt.Sprintf("acc-%d", i)
		}
		ins = append(ins, in(semel.Key{Account: account, Kind: []string{"note", "other"}[i%2], ID: w.name()}))
	}
	w.create(ins...)
	got := map[semel.Key]bool{}
	for range n {
		out := w.claim(claimOf(17, "note", "other"))
		if len(out) == 0 {
			break
		}
		for _, c := range out {
			got[c.Operation.Key] = true
		}
	}
	w.check(len(got) == n, "%d of %d were claimed", len(got), n)
}
