package explore_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/semel-dev/semel/internal/mistake"
)

// A mutation is a mistake that somebody could make, as a change of the source.
type mutation struct {
	name, file string
	edits      []string // what is there, and what is put in its place, in turns
	also       *mutation
	// in are the scripts that are looked at; empty for all.
	in string
	// only is the one rule that finds it; empty for any.
	only string
}

// Every one of them must make some schedule break a promise.
var mutations = []mutation{
	{name: "the token and revision are not checked on write-back", file: "sqlite/apply.go", edits: []string{
		"|| op.Revision != c.Revision || op.Token != c.Token {", "{",
		"AND revision = ?19 AND token = ?20", "AND ?19 = ?19 AND ?20 = ?20"}},
	{name: "a claim does not raise the token", file: "sqlite/claim.go", edits: []string{
		"op.Token++", "op.Token = max(op.Token, 1)", "AND token = ?8 - 1", "AND token <= ?8"}},
	{name: "nothing is in doubt after a lost lease: it runs again", file: "execute.go", edits: []string{
		"if x.Token > l.Operation.ClearedToken && x.InDoubt() {", "if x.Token < l.Operation.ClearedToken && x.InDoubt() {"}},
	{name: "an execution that never ended is not in doubt", file: "operation.go", edits: []string{
		`(x.Outcome == "" || x.Outcome == Unknown)`, `x.Outcome == Unknown`}},
	{name: "no begin mark before an opaque call", file: "worker/step.go", edits: []string{"a.Act = ActBegin", "a.Act = ActCall"}},
	{name: "unknown is reported as failed", file: "execute.go", edits: []string{"event = EventUnresolvable", "event = EventSpent"}},
	{name: "unknown is tried again as if nothing had happened", file: "worker/step.go", edits: []string{"if len(s.doubt) == 0 {\n\t\treturn s.call()", "if len(s.doubt) >= 0 {\n\t\treturn s.call()"}},
	{name: "a new key downstream for each execution", file: "effect/effect.go", edits: []string{
		"downstreamKey(c.Contract, c.Key)",
		`downstreamKey(c.Contract, semel.Key{Account: c.Key.Account, Kind: c.Key.Kind, ID: c.Key.ID + "." + string(rune('a'+c.Token))})`}},
	{name: "an insert replaces what is there", file: "sqlite/insert.go", edits: []string{
		"ON CONFLICT (shard, account, kind, operation_id) DO NOTHING",
		"ON CONFLICT (shard, account, kind, operation_id) DO UPDATE SET state = excluded.state, revision = 1, token = 0, due_at = excluded.due_at"}},
	{name: "a changed request is answered as a repeat", file: "accept.go", edits: []string{"if op.AsSent != in.AsSent {", "if false {"}},
	{name: "abandoning an unknown key leaves no tombstone", file: "accept.go", edits: []string{
		"if op == nil {\n\t\t\tout, err := l.insert(",
		"if op == nil {\n\t\t\tif true {\n\t\t\t\treturn Operation{Key: key, State: Abandoned, Revision: 1}, nil\n\t\t\t}\n\t\t\tout, err := l.insert("}},
	{name: "an abandoned operation keeps its work", file: "accept.go", edits: []string{"Owner: newOwner(), Work: WorkDone,", "Owner: newOwner(), Work: WorkKeep,"}},
	{name: "the horizon is not looked at", file: "sqlite/insert.go", edits: []string{
		"if in.IDTime.UnixMilli() <= horizon {", "if in.IDTime.UnixMilli() < 0 && horizon > 0 {"}},
	{name: "not found is trusted at once", file: "contract/classify.go", edits: []string{
		"if after := c.LookUp.AbsentAfter; after > 0 && sinceDoubt >= after {", "if after := c.LookUp.AbsentAfter; after > 0 {"}},
	{name: "absence is counted from the wrong end", file: "worker/history.go", edits: []string{
		"return x.LeaseEndsAt.Add(timeout)", "return x.ClaimedAt.Add(-time.Hour)", "return x.EndedAt.Add(timeout)", "return x.EndedAt.Add(-time.Hour)"}},
	{name: "the operation is written without its work", file: "sqlite/insert.go", edits: []string{
		"return op, moveWork(ctx, r, in.Key, 0, due, up)", "return op, nil", "now.ms(), now.ms(), msOf(op.ExpiresAt), due, blob", "now.ms(), now.ms(), msOf(op.ExpiresAt), 0*due, blob"}},
	{name: "a late result overwrites the record", file: "execute.go", edits: []string{
		"\treturn l.tooLate(ctx, lease, end)\n",
		`	found, err := l.find(ctx, c.Key)
	if err != nil || found.Operation == nil {
		return Operation{}, err
	}
	c.Revision, c.Token = found.Operation.Revision, found.Operation.Token
	if done, err = l.apply(ctx, c); done.Operation == nil {
		return Operation{}, err
	}
	return *done.Operation, err
`}},
	{name: "read, then insert", file: "accept.go", edits: []string{"if known || invalid != nil || limited != nil {", "if true {"},
		also: &mutation{file: "sqlite/insert.go", edits: []string{
			"ON CONFLICT (shard, account, kind, operation_id) DO NOTHING",
			"ON CONFLICT (shard, account, kind, operation_id) DO UPDATE SET state = excluded.state, revision = 1, token = 0, due_at = excluded.due_at"}}},
	{name: "a purge without its predicate", file: "sqlite/purge.go", in: "expire,outlive", edits: []string{
		"AND expired = 0 AND expires_at > 0 AND expires_at <= ? ORDER BY", "AND expired = 0 AND ? > 0 ORDER BY",
		"AND state IN ('succeeded', 'failed', 'abandoned') AND expired = 0 AND expires_at > 0 AND expires_at <= ?\n", "AND expired = 0 AND ? > 0\n"}},
	{name: "a look-up is answered from a cache", file: "read.go", in: "do", only: "linearizable", edits: []string{
		`import (
	"context"
`, `import (
	"context"
	"sync"
`,
		"// Get looks an operation up.\n", "var cache sync.Map\n\n// Get looks an operation up.\n",
		`	if err := l.limiter.look(key.Account); err != nil {
		return Operation{}, err.at("get", key)
	}
	found, err := l.find(ctx, key)
`, `	if old, ok := cache.LoadAndDelete(key); ok {
		return old.(Operation), nil
	}
	found, err := l.find(ctx, key)
	if err == nil && found.Operation != nil && !found.Operation.Expired {
		cache.Store(key, *found.Operation)
	}
`}},

	// Mistakes of the client.
	{name: "a new key for each attempt", file: "client/semel.go", in: "journal", edits: []string{
		"t, failed := s.transmit(ctx, in, http.MethodPut, header)",
		`in.ID = semel.NewID()
	in.URL = s.base + in.Kind + "/" + in.ID
	t, failed := s.transmit(ctx, in, http.MethodPut, header)`}},
	{name: "what is unconfirmed is reported as rejected", file: "client/work.go", in: "give-up", edits: []string{
		`why != "" && d.what != doGiveUp {
			return w.finish(stop(w.r.next(), why))`,
		`why != "" && d.what != doGiveUp {
			return w.finish(decision{what: doEnd, ended: endedRejected})`}},
	{name: "the journal is written after the first send", file: "client/work.go", in: "give-up", edits: []string{
		`		if err := w.save(); err != nil {
			w.r.unmark()
			return err
		}
`, ""}},
	{name: "not found is taken as never happened: it is asked for anew", file: "client/work.go", in: "do,journal", edits: []string{
		"in := w.r.Intent\n", `in := w.r.Intent
	if w.view.found == contract.FoundNothing {
		in.URL = in.URL[:len(in.URL)-len(in.ID)]
		in.ID = semel.NewID()
		in.URL += in.ID
	}
`}},
	{name: "a repeat has other bytes", file: "client/work.go", in: "journal", edits: []string{
		"in.Body = w.body\n", `in.Body = w.body
	if w.r.Attempts > 1 {
		in.Body = append([]byte(" "), w.body...)
	}
`}},
	{name: "a crash leaves no doubt", file: "client/intent.go", in: "give-up", edits: []string{
		"	return &r, nil\n", "	if r.Open {\n		r.unmark()\n	}\n	return &r, nil\n"}},
	{name: "what was turned away is given up at home", file: "client/decide.go", in: "give-up", edits: []string{
		"(r.Evidence.TurnedAway == 0 || !v.canAbandon)", "true"}},
	{name: "a key is never too old to be sent again", file: "client/decide.go", in: "direct", edits: []string{
		"Age: v.now.Sub(r.FirstSent)", "Age: 0"}},
	{name: "a look-up that finds nothing is a proof at once", file: "client/absorb.go", in: "direct", edits: []string{
		"contract.Duration(sent.Sub(r.DoubtUntil))", "contract.Duration(time.Hour)"}},
}

// sighting is a failure in a report: the schedule, and the rule that it breaks.
var sighting = regexp.MustCompile(`(?m)^ *([a-z]+/[a-z-]+:\S*)\n *([a-z ]+): (?:.*\n)+? *again: semel lab explore --replay '`)

// The exploration, once for each mistake, with the mistake laid over the source.
func TestEveryMistakeIsFound(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "explore.test")
			build := exec.Command("go", "test", "-c", "-ldflags=-s -w", "-overlay", m.overlay(t), "-o", program, ".")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("the mistake does not compile: %v\n%s", err, out)
			}
			run := exec.Command(program, "-test.run", "^TestNoFaultBreaksAPromise$", "-test.v")
			run.Env = append(os.Environ(), "SEMEL_EXPLORE=first", "SEMEL_EXPLORE_IN="+m.in)
			out, err := run.CombinedOutput()
			if err == nil {
				t.Fatalf("no schedule found it:\n%s", out)
			}
			found := sighting.FindStringSubmatch(string(out))
			if found == nil {
				t.Fatalf("it failed without a schedule to replay:\n%s", out)
			}
			schedule, rule := found[1], found[2]
			if t.Logf("%s breaks %q", schedule, rule); m.only != "" && rule != m.only {
				t.Errorf("another rule than %q found it:\n%s", m.only, out)
			}
		})
	}
}

// overlay makes the mistake beside the source, and returns the file that says so.
func (m *mutation) overlay(t *testing.T) string {
	root := mistake.Root(t)
	dir, replace := t.TempDir(), map[string]string{}
	for ; m != nil; m = m.also {
		file, changed := filepath.Join(root, m.file), filepath.Join(dir, filepath.Base(m.file))
		wrong := mistake.Mistake{Name: m.name, File: m.file, Edits: m.edits}.Source(t)
		if err := os.WriteFile(changed, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[file] = changed
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}
