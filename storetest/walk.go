package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

var walkCases = []testCase{
	{"Walk/1", clock, func(w *world) { newWalker(w, 1).walk(250) }},
	{"Walk/2", clock, func(w *world) { newWalker(w, 2).walk(250) }},
	{"Walk/3", clock, func(w *world) { newWalker(w, 3).walk(250) }},
	{"Walk/4", clock, func(w *world) { newWalker(w, 4).walk(250) }},
}

// A walker does anything at all, and holds the store against the model after
// every step. The steps of a seed are always the same.
type walker struct {
	*world
	random *rand.Rand
	model  *model
	keys   []semel.Key
	steps  []string // for the message when it goes wrong
}

var walkKinds = []string{"note", "other"}

func newWalker(w *world, seed uint64) *walker {
	k := &walker{world: w, random: rand.New(rand.NewPCG(seed, 7)), model: newModel(w.now())}
	for n := range 12 {
		k.keys = append(k.keys, k.newKey(n))
	}
	return k
}

func (k *walker) newKey(n int) semel.Key {
	key := semel.Key{Account: []string{"a", "b", "c"}[n%3], Kind: walkKinds[n%2], ID: fmt.Sprintf("id-%d", k.serial.Add(1))}
	if n%4 != 0 { // dated anywhere from a day ago to a little ahead
		key.ID = idAt(k.now().Add(time.Duration(k.random.IntN(30)-24) * time.Hour))
	}
	return key
}

func (k *walker) key() semel.Key { return k.keys[k.random.IntN(len(k.keys))] }

func (k *walker) maybe(percent int) bool { return k.random.IntN(100) < percent }

func (k *walker) span() time.Duration {
	return []time.Duration{0, time.Millisecond, time.Second, time.Minute, time.Hour, 3 * time.Hour}[k.random.IntN(6)]
}

func (k *walker) note(format string, args ...any) {
	k.steps = append(k.steps, fmt.Sprintf(format, args...))
}

func (k *walker) walk(steps int) {
	moves := []func(){k.insert, k.insert, k.insert, k.change, k.change, k.change, k.change, k.claim, k.claim, k.renew,
		k.late, k.attempt, k.wait, k.wait, k.forget, k.reopen, k.replaceKey}
	for range steps {
		moves[k.random.IntN(len(moves))]()
		k.compare()
		if k.Failed() {
			k.Fatalf("after these steps:\n%v", k.steps[max(0, len(k.steps)-12):])
		}
	}
}

// replaceKey takes a new key into the game; the old one stays where it is.
func (k *walker) replaceKey() {
	n := k.random.IntN(len(k.keys))
	k.keys[n] = k.newKey(n)
}

func (k *walker) wait() {
	d := k.span()
	k.note("wait %v", d)
	k.pass(d)
	k.model.now = k.now()
}

func (k *walker) reopen() {
	if k.maybe(30) {
		k.note("restart")
		k.restart()
	}
}

func (k *walker) insert() {
	var batch []semel.Insertion
	for range 1 + k.random.IntN(4) {
		i := in(k.key())
		switch k.random.IntN(5) {
		case 0:
			i.State, i.Retain = semel.Abandoned, k.span()
		case 1:
			i.State, i.Due = semel.Processing, time.Minute
			i.Begun = &semel.Begun{Worker: "web", Contract: "{}", Lease: time.Minute}
		default:
			i.Due = k.span()
		}
		if k.maybe(30) {
			i.AcceptUntil = k.now().Add(time.Duration(k.random.IntN(3)-1) * time.Millisecond)
		}
		if k.maybe(50) {
			i.AttemptID = fmt.Sprintf("try-%d", k.serial.Add(1))
		}
		if k.maybe(50) {
			i.Request = []byte("request of " + i.Key.ID)
		}
		k.note("insert %s %s due %v retain %v", i.Key, i.State, i.Due, i.Retain)
		batch = append(batch, i)
	}
	out, err := k.store.Insert(k.ctx, batch)
	k.ok(err, "insert")
	// Which of two members with one key wins is left open: play the winners first.
	order := make([]int, len(batch))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(out[a].Verdict) - int(out[b].Verdict) })
	for _, n := range order {
		want := k.model.insert(batch[n])
		k.check(out[n].Verdict == want, "insert %s: verdict %d, want %d", batch[n].Key, out[n].Verdict, want)
		if out[n].Operation != nil {
			d := sameRow(*out[n].Operation, k.model.rows[batch[n].Key].op)
			k.check(d == "", "insert %s answers: %s", batch[n].Key, d)
		}
	}
}

// states that the walk goes through, whether the ledger would or not.
var walkStates = map[semel.State][]semel.State{
	semel.Accepted:            {semel.Accepted, semel.Abandoned, semel.Failed, semel.NeedsReconciliation},
	semel.Processing:          {semel.Processing, semel.Accepted, semel.Succeeded, semel.Failed, semel.NeedsReconciliation},
	semel.NeedsReconciliation: {semel.NeedsReconciliation, semel.Accepted, semel.Succeeded, semel.Failed},
	semel.Succeeded:           {semel.Succeeded},
	semel.Failed:              {semel.Failed},
	semel.Abandoned:           {semel.Abandoned},
}

func (k *walker) change() {
	var batch []semel.Change
	for _, n := range k.random.Perm(len(k.keys))[:1+k.random.IntN(4)] {
		c := semel.Change{Key: k.keys[n], Revision: 1, State: semel.Failed, Owner: fmt.Sprintf("owner-%d", k.serial.Add(1))}
		if r := k.model.rows[c.Key]; r != nil {
			c = k.changeOf(r.op)
		}
		if k.maybe(10) {
			c.Revision++
		}
		if k.maybe(10) {
			c.Token--
		}
		k.note("change %s to %s work %d due %v retain %v", c.Key, c.State, c.Work, c.Due, c.Retain)
		batch = append(batch, c)
	}
	out, err := k.store.Apply(k.ctx, batch)
	k.ok(err, "apply")
	for n, c := range batch {
		want := k.model.apply(c)
		k.check(out[n].Err == nil && out[n].Applied == want, "change %s: applied %v, want %v, %v", c.Key, out[n].Applied, want, out[n].Err)
		if want && out[n].Operation != nil {
			d := sameRow(*out[n].Operation, k.model.rows[c.Key].op)
			k.check(d == "", "change %s answers: %s", c.Key, d)
		}
	}
}

func (k *walker) changeOf(op semel.Operation) semel.Change {
	to := walkStates[op.State]
	c := change(op, to[k.random.IntN(len(to))])
	c.Retain, c.Due = k.span(), k.span()
	switch {
	case c.State.Settled() || c.State == semel.NeedsReconciliation:
		c.Work = semel.WorkDone
	case op.State == semel.NeedsReconciliation || k.maybe(50):
		c.Work = semel.WorkDue
	}
	if k.maybe(30) {
		c.NextToken = op.Token + 1 + int64(k.random.IntN(3))
	}
	if k.maybe(30) && op.Token > op.ClearedToken {
		c.ClearedToken = op.Token
	}
	if k.maybe(30) && !op.State.Settled() {
		c.Result = []byte(fmt.Sprintf(`{"n":%d}`, k.random.Int()))
	}
	if k.maybe(30) && !op.State.Settled() {
		c.Failure = &semel.Failure{Code: "code", Message: fmt.Sprint(k.random.Int())}
	}
	c.Acknowledged, c.Contradicted = k.maybe(10), k.maybe(10)
	if token := op.Token; token > 0 && k.maybe(60) && !op.Expired {
		x := &semel.ExecutionChange{Token: token, End: k.maybe(50), Outcome: semel.Unknown, Evidence: []byte(`{"e":1}`)}
		for _, old := range k.model.rows[op.Key].executions {
			if old.Token == token && old.BegunAt.IsZero() && k.maybe(70) {
				x.Begin, c.Begun = true, true
			}
		}
		c.Execution = x
	}
	if k.maybe(15) && !op.Expired {
		c.Verdict = &semel.Verdict{Verdict: "acknowledged", Evidence: "e", By: "b", Token: max(op.Token, c.NextToken)}
	}
	return c
}

// claim claims until nothing is due, in steps of any size; together that must be
// exactly what the model calls due.
func (k *walker) claim() {
	kind := semel.ClaimKind{Kind: walkKinds[k.random.IntN(2)], Lease: time.Second + k.span(), Contract: `{"c":2}`, BeginNow: k.maybe(50)}
	k.note("claim %s for %v, begin now: %v", kind.Kind, kind.Lease, kind.BeginNow)
	due := k.model.due(kind.Kind)
	for {
		out, err := k.store.Claim(k.ctx, semel.ClaimRequest{Worker: "w", Max: 1 + k.random.IntN(5), Kinds: []semel.ClaimKind{kind}})
		k.ok(err, "claim")
		if len(out) == 0 {
			break
		}
		for _, c := range out {
			if !due[c.Operation.Key] {
				k.Fatalf("%s was claimed and is not due", c.Operation.Key)
			}
			delete(due, c.Operation.Key)
			op, begun, prior := k.model.claim(c.Operation.Key, kind, "w", c.Operation.Owner)
			d := sameRow(c.Operation, op)
			k.check(d == "" && c.Begun == begun && c.Now.Equal(k.now()), "claim of %s: %s, begun %v, now %v", op.Key, d, c.Begun, c.Now)
			d = sameExecutions(c.Prior, prior)
			k.check(d == "", "claim of %s, earlier executions: %s", op.Key, d)
		}
	}
	k.check(len(due) == 0, "due and not claimed: %v", sortedKeys(due))
}

func (k *walker) renew() {
	var batch []semel.Renewal
	for range 1 + k.random.IntN(4) {
		b := semel.Renewal{Key: k.key(), Token: 1, Lease: k.span()}
		if r := k.model.rows[b.Key]; r != nil && k.maybe(85) {
			b.Token = r.op.Token
		}
		if k.maybe(50) {
			b.Progress = &semel.Progress{Fraction: float64(k.random.IntN(5)) / 4, Note: "page"}
		}
		k.note("renew %s token %d for %v", b.Key, b.Token, b.Lease)
		batch = append(batch, b)
	}
	held := k.world.renew(batch...)
	for n, b := range batch {
		want := k.model.renew(b)
		k.check(held[n] == want, "renew %s at token %d: %v, want %v", b.Key, b.Token, held[n], want)
	}
}

func (k *walker) late() {
	l := semel.Late{Key: k.key(), Token: 1 + int64(k.random.IntN(4)), Outcome: semel.Refused, Evidence: []byte(fmt.Sprint(k.random.Int()))}
	k.note("late %s token %d", l.Key, l.Token)
	k.ok(k.store.KeepLate(k.ctx, l), "keep late")
	k.model.keepLate(l)
}

func (k *walker) attempt() {
	var batch []semel.Attempt
	for range 1 + k.random.IntN(10) {
		batch = append(batch, semel.Attempt{Key: k.key(), ID: fmt.Sprint(k.random.Int())})
		k.note("attempt %s", batch[len(batch)-1].Key)
	}
	k.ok(k.store.RecordAttempts(k.ctx, batch), "attempts")
	for _, a := range batch {
		k.model.record(a)
	}
}

// forget purges until nothing is left to do.
func (k *walker) forget() {
	kind, retention := walkKinds[k.random.IntN(2)], []time.Duration{time.Minute, 2 * time.Hour, 12 * time.Hour, 48 * time.Hour}[k.random.IntN(4)]
	k.note("purge %s, retention %v", kind, retention)
	var sum semel.Purged
	for {
		p := k.purge(kind, retention, 1+k.random.IntN(5))
		if p == (semel.Purged{}) {
			break
		}
		sum.Stripped, sum.Deleted = sum.Stripped+p.Stripped, sum.Deleted+p.Deleted
	}
	want := k.model.purge(kind, retention)
	k.check(sum == want, "purge of %s: %+v, want %+v", kind, sum, want)
}

// compare holds everything against the model.
func (k *walker) compare() {
	k.Helper()
	keys := k.keys
	for key := range k.model.rows {
		if !slices.Contains(keys, key) {
			keys = append(slices.Clip(keys), key)
		}
	}
	found, err := k.store.Get(k.ctx, keys)
	k.ok(err, "get")
	for n, key := range keys {
		r := k.model.rows[key]
		if f := found[n]; r == nil {
			at, _ := semel.IDTime(key.ID)
			k.check(f.Operation == nil && f.PastHorizon == k.model.past(key.Kind, at), "%s: found %v, past horizon %v", key, f.Operation != nil, f.PastHorizon)
			continue
		} else if f.Operation == nil {
			k.Errorf("%s is gone", key)
			continue
		} else if d := sameRow(*f.Operation, r.op); d != "" {
			k.Errorf("%s: %s", key, d)
		}
		if d := r.sameHistory(k.history(key)); d != "" {
			k.Errorf("history of %s: %s", key, d)
		}
	}
	for _, account := range []string{"a", "b", "c"} {
		k.check(k.pending(account) == k.model.pending(account), "account %s: %d pending, want %d", account, k.pending(account), k.model.pending(account))
	}
	k.compareLists()
	stats, err := k.store.Stats(k.ctx)
	k.ok(err, "stats")
	got := map[string]semel.KindStats{}
	for _, s := range stats.Kinds {
		got[s.Kind] = s
	}
	for _, kind := range walkKinds {
		want := k.model.stats(kind)
		if want == nil {
			want = &semel.KindStats{Kind: kind, States: map[semel.State]int64{}}
		}
		g := got[kind]
		same := maps.Equal(g.States, want.States) && g.OldestDue == want.OldestDue && g.Unreconciled == want.Unreconciled &&
			g.OldestUnreconciled == want.OldestUnreconciled && g.Contradicted == want.Contradicted
		k.check(same, "stats of %s: %+v, want %+v", kind, g, *want)
	}
}

func (k *walker) compareLists() {
	k.Helper()
	q := semel.Query{Size: 1 + k.random.IntN(9), Unacknowledged: k.maybe(30)}
	if k.maybe(50) {
		q.Accounts = [][]string{{"a"}, {"b", "c"}, {"a", "b", "c"}}[k.random.IntN(3)]
	}
	if k.maybe(40) {
		q.Kind = walkKinds[k.random.IntN(2)]
	}
	if k.maybe(40) {
		q.State = []semel.State{semel.Accepted, semel.Processing, semel.Failed, semel.NeedsReconciliation}[k.random.IntN(4)]
	}
	got := map[semel.Key]bool{}
	page := q
	for {
		p, err := k.store.List(k.ctx, page)
		k.ok(err, "list")
		for _, op := range p.Operations {
			k.check(!got[op.Key], "%s is in the list twice", op.Key)
			got[op.Key] = true
		}
		if page.After = p.Next; page.After == "" {
			break
		}
	}
	want := k.model.list(q)
	k.check(maps.Equal(got, want), "list %+v: %v, want %v", q, sortedKeys(got), sortedKeys(want))
}
