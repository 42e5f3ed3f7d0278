package httpapi_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
)

// "What must be shown" 5 of the interface: what belongs to somebody else is
// answered, to the byte, as what never existed.
func TestOtherAccountsDoNotExist(t *testing.T) {
	w := newWorld(t, nil)
	settled, _ := w.create()
	w.finish(w.claim(time.Minute), semel.Ending{Outcome: semel.Applied, Result: []byte(`"x"`)})
	path, op := w.create()
	never := note(semel.NewID())
	for _, existing := range []string{path, settled} {
		for _, tail := range []string{"", "/events", "/history"} {
			for _, o := range [][]with{{}, {header("If-None-Match", `"1"`)}, {header("Prefer", "wait=1")}, {header("Last-Event-ID", "1")}} {
				o = append(o, as(globex))
				same(t, w.do("GET", existing+tail, o...), w.do("GET", never+tail, o...))
				same(t, w.do("HEAD", existing+tail, o...), w.do("HEAD", never+tail, o...))
			}
		}
	}
	// The same ID is another operation there.
	theirs := w.do("PUT", path, body(`{"their":"own"}`), as(globex)).is(201).op()
	if theirs.Key == op.Key {
		t.Error("one operation for two accounts")
	}
	w.do("DELETE", settled, as(globex)).is(200)
	if got := w.do("GET", settled).op(); got.State != semel.Succeeded {
		t.Errorf("%+v", got)
	}
}

// same compares everything but the date.
func same(t *testing.T, a, b reply) {
	t.Helper()
	a.Header.Del("Date")
	b.Header.Del("Date")
	if a.status != b.status || !bytes.Equal(a.body, b.body) || fmt.Sprint(a.Header) != fmt.Sprint(b.Header) {
		t.Errorf("%d %v %s\n%d %v %s", a.status, a.Header, a.body, b.status, b.Header, b.body)
	}
}

func TestOperatorSeesItsAccounts(t *testing.T) {
	w := newWorld(t, nil)
	_, mine := w.create()
	_, theirs := w.create(as(globex))
	never := semel.Operation{Key: semel.Key{Account: "nobody", Kind: "note", ID: semel.NewID()}}
	neverOfMine := semel.Operation{Key: semel.Key{Account: "acme", Kind: "note", ID: semel.NewID()}}

	a := w.do("GET", operatorPath(mine), as(auditor)).is(200).has("ETag", `"1"`)
	if string(a.op().Params) != menu {
		t.Errorf("%s", a.body)
	}
	w.do("GET", operatorPath(mine), as(auditor), header("If-None-Match", `"1"`)).is(304)
	w.do("GET", operatorPath(mine)+"/history", as(auditor)).is(200)
	w.do("GET", operatorPath(theirs), as(root)).is(200)

	// What it may not see, and what is not there, are the same.
	verdict := body(`{"verdict":"applied","evidence":"e"}`)
	for _, tail := range []string{"", "/history"} {
		want := w.do("GET", operatorPath(neverOfMine)+tail, as(auditor))
		want.problem(404, semel.CodeNotFound)
		for _, hidden := range []semel.Operation{theirs, never} {
			same(t, w.do("GET", operatorPath(hidden)+tail, as(auditor)), want)
		}
	}
	want := w.do("PUT", operatorPath(neverOfMine)+"/resolution", as(auditor), header("If-Match", `"1"`), verdict)
	want.problem(404, semel.CodeNotFound)
	same(t, w.do("PUT", operatorPath(theirs)+"/resolution", as(auditor), header("If-Match", `"1"`), verdict), want)

	for query, n := range map[string]int{"": 1, "?account=acme": 1, "?account=globex": 0, "?account=*": 0, "?account=nobody": 0, "?account=../acme": 0,
		"?kind=note&state=accepted": 1, "?kind=export": 0, "?unacknowledged=true": 1, "?unacknowledged=false": 1} {
		a := w.do("GET", "/v1/operator/operations"+query, as(auditor)).is(200)
		if got := strings.Count(string(a.body), `"key"`); got != n || bytes.Contains(a.body, []byte("SECRET")) || bytes.Contains(a.body, []byte("globex")) {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	if a := w.do("GET", "/v1/operator/operations", as(root)).is(200); strings.Count(string(a.body), `"key"`) != 2 {
		t.Errorf("%s", a.body)
	}
	if a := w.do("GET", "/v1/operator/operations?account=globex", as(root)).is(200); strings.Count(string(a.body), `"key"`) != 1 {
		t.Errorf("%s", a.body)
	}
	for _, bad := range []string{"?unacknowledged=1", "?acount=acme", "?account=a&account=b"} {
		w.do("GET", "/v1/operator/operations"+bad, as(auditor)).problem(400, semel.CodeInvalid)
	}
	w.do("GET", "/v1/operator/operations/acme/note/a%2Fb", as(auditor)).problem(400, semel.CodeInvalid)
	w.do("GET", "/v1/operator/operations/acme/note/a%2Fb/history", as(auditor)).problem(400, semel.CodeInvalid)
}

// An operator whose list of accounts is empty sees nothing, and not everything.
func TestOperatorOfNothing(t *testing.T) {
	w := newWorld(t, func(s *setup) {
		s.server.Authenticate = func(r *http.Request) (httpapi.Identity, error) {
			if r.Header.Get("Authorization") == "Bearer "+acme {
				return httpapi.Identity{Account: "acme"}, nil
			}
			return httpapi.Identity{Operator: true}, nil
		}
	})
	_, op := w.create()
	if a := w.do("GET", "/v1/operator/operations", as("x")).is(200); strings.Contains(string(a.body), "acme") {
		t.Errorf("%s", a.body)
	}
	w.do("GET", operatorPath(op), as("x")).problem(404, semel.CodeNotFound)
	w.do("GET", "/v1/operator/stats", as("x")).problem(403, semel.CodeForbidden)
}

func TestOperatorsAndMembers(t *testing.T) {
	w := newWorld(t, nil)
	_, op := w.create()
	for _, path := range []string{operatorPath(op), "/v1/operator/operations", "/v1/operator/stats"} {
		w.do("GET", path).problem(403, semel.CodeForbidden)
	}
	w.do("PUT", operatorPath(op)+"/resolution", header("If-Match", `"1"`), body("{}")).problem(403, semel.CodeForbidden)
	// An operator without an account has no operations of its own.
	w.do("PUT", note("n1"), body(menu), as(root)).problem(403, semel.CodeForbidden)
	w.do("GET", "/v1/operations", as(root)).problem(403, semel.CodeForbidden)
	// One with an account has them, apart from what it sees as operator.
	w.do("PUT", note("n1"), body(menu), as(auditor)).is(201)
	w.do("GET", operatorPath(semel.Operation{Key: semel.Key{Account: "initech", Kind: "note", ID: "n1"}}), as(auditor)).problem(404, semel.CodeNotFound)
}

func TestStats(t *testing.T) {
	w := newWorld(t, nil)
	w.doubtful()
	a := w.do("GET", "/v1/operator/stats", as(root)).is(200)
	stats := decoded[semel.Stats](a)
	if len(stats.Kinds) != 1 || stats.Kinds[0].Unreconciled != 1 || stats.Kinds[0].States[semel.NeedsReconciliation] != 1 {
		t.Errorf("%s", a.body)
	}
	w.do("GET", "/v1/operator/stats", as(auditor)).problem(403, semel.CodeForbidden)
}

func TestResolve(t *testing.T) {
	w := newWorld(t, nil)
	path, op := w.doubtful()
	at := operatorPath(op) + "/resolution"
	applied := body(`{"verdict":"applied","result":{"id": 7},"evidence":"seen in the books"}`)

	w.do("PUT", at, as(auditor), applied).problem(428, semel.CodeRevisionRequired)
	w.do("PUT", at, as(auditor), header("If-Match", "*"), applied).problem(428, semel.CodeRevisionRequired)
	w.do("PUT", at, as(auditor), header("If-Match", `"2", "3"`), applied).problem(400, semel.CodeInvalid)
	w.do("PUT", at, as(auditor), header("If-Match", `"3"`), header("If-Match", `"3"`), applied).problem(400, semel.CodeInvalid)
	p := w.do("PUT", at, as(auditor), header("If-Match", `"2"`), applied).problem(412, semel.CodeStaleRevision)
	if p.Operation == nil || p.Operation.Revision != 3 {
		t.Errorf("%+v", p)
	}
	for _, bad := range []string{`{}`, `[]`, `"applied"`, `{"verdict":"applied"}`, `{"verdict":"perhaps","evidence":"e"}`, `{"verdict":"not_applied","evidence":"e"}`,
		`{"verdict":"applied","evidence":"e","by":"somebody else"}`, `{"verdict":"applied","evidence":"e","verdict":"acknowledged"}`,
		`{"verdict":"acknowledged","evidence":"e","result":1}`} {
		w.do("PUT", at, as(auditor), header("If-Match", `"3"`), body(bad)).problem(400, semel.CodeInvalid)
	}
	w.do("PUT", at, as(auditor), header("If-Match", `"3"`), body("x"), header("Content-Type", "text/plain")).problem(415, semel.CodeInvalid)
	w.do("PUT", at, as(auditor), header("If-Match", `"3"`), body(strings.Repeat(" ", 1<<20)+"{}")).problem(413, semel.CodeTooLarge)

	got := w.do("PUT", at, as(auditor), header("If-Match", `W/"3"`), applied).is(200).has("ETag", `"4"`).has("Retry-After", "").op()
	if got.State != semel.Succeeded || string(got.Result) != `{"id":7}` {
		t.Errorf("%+v", got)
	}
	w.do("PUT", at, as(auditor), header("If-Match", `"3"`), applied).is(200).has("ETag", `"4"`) // an identical repeat
	w.do("PUT", at, as(root), header("If-Match", `"3"`), applied).problem(412, semel.CodeStaleRevision)
	w.do("PUT", at, as(auditor), header("If-Match", `"4"`), applied).problem(409, semel.CodeNotReconcilable)

	h := decoded[semel.History](w.do("GET", path+"/history").is(200))
	if len(h.Verdicts) != 1 || h.Verdicts[0].By != "alice" || h.Verdicts[0].Evidence != "seen in the books" {
		t.Errorf("%+v", h.Verdicts)
	}
	if state := w.do("GET", path).op().State; state != semel.Succeeded {
		t.Error(state) // what its owner sees
	}
}

// "Not applied, retry" waits as long as the contract says that the first request
// may still be on its way.
func TestResolveRetryWaits(t *testing.T) {
	w := newWorld(t, nil)
	_, op := w.doubtful()
	w.do("PUT", operatorPath(op)+"/resolution", as(auditor), header("If-Match", `"3"`), body(`{"verdict":"not_applied","then":"retry","evidence":"not in the books","result":null}`)).is(200)
	claim := semel.ClaimRequest{Worker: "w2", Max: 1, Kinds: []semel.ClaimKind{{Kind: "note", Lease: time.Minute, Contract: "{}", BeginNow: true}}}
	for _, c := range []struct {
		later time.Duration
		n     int
	}{{80 * time.Second, 0}, {11 * time.Second, 1}} {
		w.clock.advance(c.later)
		if leases, err := w.ledger.Claim(t.Context(), claim); err != nil || len(leases) != c.n {
			t.Errorf("after another %v: %d leases, %v", c.later, len(leases), err)
		}
	}
}

func TestAcknowledgedLeavesTheQueue(t *testing.T) {
	w := newWorld(t, nil)
	path, op := w.doubtful()
	queue := func() int {
		a := w.do("GET", "/v1/operator/operations?state=needs_reconciliation&unacknowledged=true", as(root)).is(200)
		return strings.Count(string(a.body), `"key"`)
	}
	if queue() != 1 {
		t.Error("it is not in the queue")
	}
	w.do("PUT", operatorPath(op)+"/resolution", as(auditor), header("If-Match", `"3"`), body(`{"verdict":"acknowledged","evidence":"the books burnt"}`)).is(200)
	if queue() != 0 {
		t.Error("it is in the queue still")
	}
	if got := w.do("GET", path).op(); !got.Acknowledged || got.State != semel.NeedsReconciliation {
		t.Errorf("%+v", got)
	}
}
