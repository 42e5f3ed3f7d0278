package mistake_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/mistake"
	"github.com/semel-dev/semel/internal/pgtest"
)

var update = flag.Bool("update", false, "write docs/laws.md")

// A law is one of the fourteen, with mistakes that break it.
type law struct {
	number int
	text   string
	broken []breach
}

// A breach is a mistake and the test that must go red.
type breach struct {
	mistake.Mistake
	pkg, test string
}

var laws = []law{
	{1, "One identity, one operation: a unique constraint decides the winner", []breach{
		{mistake.Mistake{Name: "an insertion replaces what is there", File: "sqlite/insert.go", Edits: []string{
			"ON CONFLICT (shard, account, kind, operation_id) DO NOTHING",
			"ON CONFLICT (shard, account, kind, operation_id) DO UPDATE SET owner = excluded.owner, due_at = excluded.due_at"}},
			"./sqlite", "TestStore/.*/Race/OneKey"},
		{mistake.Mistake{Name: "an insertion replaces what is there", File: "postgres/insertsql.go", Edits: []string{
			"DO NOTHING\nRETURNING owner, created_at, expires_at",
			"DO UPDATE SET owner = excluded.owner\nRETURNING owner, created_at, expires_at"}},
			"./postgres", "TestStore/by_account/Race/OneKey"}}},
	{2, "An identity never changes its meaning", []breach{
		{mistake.Mistake{Name: "a changed request is answered as a repeat", File: "accept.go", Edits: []string{
			"if op.AsSent != in.AsSent {", "if false {"}},
			"./sqlite", "TestLedger/Ledger/Mismatch"}}},
	{3, "The operation and its pending work are one commit", []breach{
		{mistake.Mistake{Name: "the operation is written without its work", File: "sqlite/insert.go", Edits: []string{
			"return op, moveWork(ctx, r, in.Key, 0, due, up)", "return op, nil"}},
			"./sqlite", "TestStore/.*/Race/OneKey"},
		{mistake.Mistake{Name: "the operation is written without its work", File: "postgres/insert.go", Edits: []string{
			"if c.someWork {", "if false {"}},
			"./postgres", "TestStore/by_account/Race/OneKey"}}},
	{4, "No effect before its intent is durable", []breach{
		{mistake.Mistake{Name: "no begin mark before an opaque call", File: "worker/step.go", Edits: []string{
			"a.Act = ActBegin", "a.Act = ActCall"}},
			"./worker", "TestEveryStepKeepsTheLaws|TestAWorkerDiesAtEachPoint"}}},
	{5, "Unknown is never reported as failure and never re-run blindly", []breach{
		{mistake.Mistake{Name: "unknown is reported as failed", File: "execute.go", Edits: []string{
			"event = EventUnresolvable", "event = EventSpent"}},
			"./sqlite", "TestLedger/Ledger/DoubtStays"},
		{mistake.Mistake{Name: "unknown is tried again as if nothing had happened", File: "worker/step.go", Edits: []string{
			"if len(s.doubt) == 0 {\n\t\treturn s.call()", "if len(s.doubt) >= 0 {\n\t\treturn s.call()"}},
			"./worker", "TestEveryStepKeepsTheLaws|TestAWorkerDiesAtEachPoint"}}},
	{6, "A proof covers one transmission", []breach{
		{mistake.Mistake{Name: "a later refusal closes what is open", File: "contract/evidence.go", Edits: []string{
			"if p.Reach == ReachEarlier || p.Reach == ReachKey {", "if true {"}},
			"./contract", "TestUnknownStaysUnknown|TestEverySequenceOfProofs"},
		{mistake.Mistake{Name: "a refusal after a doubt is a verdict", File: "execute.go", Edits: []string{
			"if narrow && len(lease.Doubt()) > 0 {", "if narrow && len(lease.Doubt()) < 0 {"}},
			"./worker", "TestARefusalAfterADoubtIsNoVerdict"}}},
	{7, "\"Not found\" is no proof of absence", []breach{
		{mistake.Mistake{Name: "not found is trusted at once", File: "contract/classify.go", Edits: []string{
			"if after := c.LookUp.AbsentAfter; after > 0 && sinceDoubt >= after {", "if after := c.LookUp.AbsentAfter; after > 0 {"}},
			"./contract", "TestLookUpProves"},
		{mistake.Mistake{Name: "abandoning an unknown key leaves no tombstone", File: "accept.go", Edits: []string{
			"if op == nil {\n\t\t\tout, err := l.insert(",
			"if op == nil {\n\t\t\tif true {\n\t\t\t\treturn Operation{Key: key, State: Abandoned, Revision: 1}, nil\n\t\t\t}\n\t\t\tout, err := l.insert("}},
			"./sqlite", "TestLedger/Ledger/Abandon"}}},
	{8, "An expired identity is refused, never run again", []breach{
		{mistake.Mistake{Name: "the horizon is not looked at", File: "sqlite/insert.go", Edits: []string{
			"if in.IDTime.UnixMilli() <= horizon {", "if in.IDTime.UnixMilli() < 0 && horizon > 0 {"}},
			"./sqlite", "TestStore/.*/Purge/Deletes"},
		{mistake.Mistake{Name: "a purge strips what it has read, whatever became of it", File: "postgres/purge.go", Edits: []string{
			"WHERE ` + onKey + ` AND o.state IN ` + settledStates + ` AND o.expired IS NOT TRUE AND o.expires_at > 0 AND o.expires_at <= ` + nowMS",
			"WHERE ` + onKey + ` AND ` + nowMS + ` IS NOT NULL`"}},
			"./postgres", "TestStore/by_account/Purge/Revived"},
		{mistake.Mistake{Name: "a purge deletes what it has read, whatever became of it", File: "postgres/purge.go", Edits: []string{
			"WHERE ` + onKey + ` AND o.state IN ` + settledStates + ` AND o.expired AND o.id_time IS NOT NULL AND o.id_time <= o.created_at\n" +
				"\tAND o.id_time <= (SELECT h.horizon_at FROM semel_horizon h WHERE h.shard = u.shard AND h.kind = u.kind)`\n)",
			"WHERE ` + onKey\n)"}},
			"./postgres", "TestStore/by_account/Purge/Revived"}}},
	{9, "Only the current token writes the outcome", []breach{
		{mistake.Mistake{Name: "token and revision are not checked on write-back", File: "sqlite/apply.go", Edits: []string{
			"|| op.Revision != c.Revision || op.Token != c.Token {", "{",
			"AND revision = ?19 AND token = ?20", "AND ?19 = ?19 AND ?20 = ?20"}},
			"./sqlite", "TestLedger/Ledger/LeaseLost"},
		{mistake.Mistake{Name: "token and revision are not checked on write-back", File: "postgres/apply.go", Edits: []string{
			"begin, ended, outcome, evidence)\nWHERE ` + onKey + ` AND o.revision = u.revision AND o.token = u.token",
			"begin, ended, outcome, evidence)\nWHERE ` + onKey + `",
			"owner, result, evidence, n)\nWHERE ` + onKey + ` AND o.revision = u.revision AND o.token = u.token",
			"owner, result, evidence, n)\nWHERE ` + onKey + `"}},
			"./postgres", "TestLedger/Ledger/LeaseLost"}}},
	{10, "Every read and every replay re-checks the account", []breach{
		{mistake.Mistake{Name: "an operator sees every account", File: "httpapi/operator.go", Edits: []string{
			"if c.who.Sees(key.Account) {", "if c.who.Operator {"}},
			"./httpapi", "TestOperatorSeesItsAccounts"},
		{mistake.Mistake{Name: "a list is not limited to the caller's account", File: "httpapi/operations.go", Edits: []string{
			"q.Accounts = []string{c.who.Account}", "q.Accounts = nil"}},
			"./httpapi", "TestOtherAccountsDoNotExist|TestList"}}},
	{11, "Time is the store's clock", []breach{
		{mistake.Mistake{Name: "the node's clock decides what is due", File: "sqlite/session.go", Edits: []string{
			"return moment{s.clock()}", "return moment{time.Now()}"}},
			"./sqlite", "TestStore/.*/Purge/Strips"},
		{mistake.Mistake{Name: "every node goes by its own clock", File: "postgres/open.go", Edits: []string{
			"if s.opts.Clock == nil {\n\t\treturn nil\n\t}", "if s.opts.Clock == nil {\n\t\tms := time.Now().UnixMilli()\n\t\treturn &ms\n\t}"}},
			"./postgres", "TestNodeClocks"}}},
	{12, "That an execution ended is recorded whatever its answer looked like", []breach{
		{mistake.Mistake{Name: "a panic means that nothing has happened", File: "idempotency/guard.go", Edits: []string{
			"return semel.Ending{Outcome: semel.Unknown, Failure: &semel.Failure{Code: code, Message: why}}",
			"return semel.Ending{Outcome: semel.NotApplied, Again: true, Failure: &semel.Failure{Code: code, Message: why}}"}},
			"./idempotency", "TestOneEffectWhateverHappens/sqlite/a_panic_after_it"}}},
	{13, "Retry only what is proven replayable, in one layer only", []breach{
		{mistake.Mistake{Name: "a request without a key is repeated like one with a key", File: "retryhttp/roundtrip.go", Edits: []string{
			"Keyed: c.key.keyed,", "Keyed: true,"}},
			"./retryhttp", "TestOnce"},
		{mistake.Mistake{Name: "a nested layer does not stand down", File: "retryhttp/call.go", Edits: []string{
			"ctx.Value(layerKey{}).(layer)", "ctx.Value(struct{}{}).(layer)"}},
			"./retryhttp", "TestNestedLayersDoNotMultiply"}}},
	{14, "Logs carry identity, attempt, times, state and error category; never parameters, results or secrets", []breach{
		{mistake.Mistake{Name: "the query is logged", File: "httpapi/call.go", Edits: []string{
			`append(c.identity(), "status", c.w.status,`, `append(c.identity(), "query", c.r.URL.RawQuery, "status", c.w.status,`}},
			"./httpapi", "TestLogs"}}},
}

// Each law is broken on purpose, and its test goes red.
func TestBrokenLawsAreFound(t *testing.T) {
	for _, l := range laws {
		for _, b := range l.broken {
			t.Run(fmt.Sprintf("%d/%s/%s", l.number, path.Base(b.pkg), b.Name), func(t *testing.T) {
				if _, err := pgtest.Program("postgres"); err != nil && b.pkg == "./postgres" {
					pgtest.Missing(t, err)
				}
				t.Parallel() // mostly, one thread links
				program := b.Compile(t, b.pkg)
				run := exec.Command(program, "-test.run", b.test, "-test.short", "-test.failfast")
				run.Dir = filepath.Join(mistake.Root(t), b.pkg)
				out, err := run.CombinedOutput()
				if err == nil {
					t.Fatalf("%s of %s does not mind", b.test, b.pkg)
				}
				if !bytes.Contains(out, []byte("--- FAIL")) {
					t.Fatalf("it did not fail, it broke: %v\n%s", err, out)
				}
			})
		}
	}
}

// docs/laws.md says the same.
func TestLawsDocIsCurrent(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The laws, and how they are broken\n\n" +
		"Each law has tests that fail when it is broken. To be sure, `go test ./internal/mistake` breaks each of them on purpose, in a copy of the source, and sees its test go red. This table is made from that test. `lab/explore` does the same with whole runs.\n\n" +
		"| | law | a mistake | the test that goes red |\n|--:|---|---|---|\n")
	for _, l := range laws {
		for i, br := range l.broken {
			number, text := fmt.Sprint(l.number), l.text
			if i > 0 {
				number, text = "", ""
			}
			fmt.Fprintf(&b, "| %s | %s | %s (`%s`) | `go test %s -run '%s'` |\n", number, text, br.Name, br.File, br.pkg, strings.ReplaceAll(br.test, "|", `\|`))
		}
	}
	file := filepath.Join(mistake.Root(t), "docs", "laws.md")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil || string(have) != b.String() {
		t.Errorf("docs/laws.md is stale (%v): go test ./internal/mistake -run Doc -update", err)
	}
}
