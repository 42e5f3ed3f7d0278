package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// The judge is judged: each history below breaks one invariant, and must be told
// by it.
func TestJudge(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	key := semel.Key{Account: "a", Kind: "k", ID: "1"}
	op := func(revision, token int64, state semel.State) semel.Operation {
		o := semel.Operation{Key: key, State: state, Revision: revision, Token: token, CreatedAt: at, UpdatedAt: at, Params: []byte("{}")}
		if state.Settled() {
			o.ExpiresAt = at.Add(time.Hour)
		}
		return o
	}
	inserted := written{how: "insert", op: op(1, 0, semel.Accepted)}
	claimed := func(revision, token int64, now time.Duration) written {
		return written{how: "claim", op: op(revision, token, semel.Processing), now: at.Add(now), lease: time.Minute}
	}
	applied := func(revision, token int64, state semel.State) written {
		return written{how: "apply", op: op(revision, token, state), change: semel.Change{Work: semel.WorkDone}}
	}
	with := func(w written, alter func(*semel.Operation)) written { alter(&w.op); return w }

	for name, c := range map[string]struct {
		writes []written
		want   string // "": nothing is wrong
	}{
		"a life":       {[]written{inserted, claimed(2, 1, 0), claimed(3, 2, time.Minute), applied(4, 2, semel.Succeeded)}, ""},
		"a gap":        {[]written{inserted, claimed(3, 1, 0)}, "made revision 3"},
		"one twice":    {[]written{inserted, claimed(2, 1, 0), claimed(2, 1, 0)}, "two writes made revision 2"},
		"two shapes":   {[]written{inserted, claimed(2, 1, 0), with(claimed(2, 1, 0), func(o *semel.Operation) { o.Owner = "x" })}, "two shapes"},
		"same token":   {[]written{inserted, claimed(2, 1, 0), claimed(3, 1, time.Hour)}, "token 1 after 1"},
		"token fell":   {[]written{inserted, claimed(2, 5, 0), applied(3, 4, semel.Failed)}, "fell between"},
		"two leases":   {[]written{inserted, claimed(2, 1, 0), claimed(3, 2, time.Second)}, "while a lease"},
		"created anew": {[]written{inserted, {how: "insert", op: op(2, 0, semel.Accepted)}}, "created twice"},
		"came back":    {[]written{inserted, applied(2, 0, semel.Failed), claimed(3, 1, 0)}, "settled as failed"},
		"result changed": {[]written{inserted, applied(2, 0, semel.Succeeded),
			with(applied(3, 0, semel.Succeeded), func(o *semel.Operation) { o.Result = []byte("2") })}, "settled as succeeded"},
		"succeeded twice": {[]written{inserted, applied(2, 0, semel.Succeeded), applied(3, 0, semel.Accepted), applied(4, 0, semel.Succeeded)}, "succeeded 2 times"},
		"flag lost": {[]written{with(inserted, func(o *semel.Operation) { o.Acknowledged = true }), applied(2, 0, semel.NeedsReconciliation)},
			"lost a flag"},
		"new meaning": {[]written{inserted, with(applied(2, 0, semel.Failed), func(o *semel.Operation) { o.Params = []byte("[]") })}, "changed its meaning"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWitness()
			for _, x := range c.writes {
				w.wrote(x)
			}
			w.judgeSeen(key)
			w.judgeWrites(key, w.writes[key])
			got := strings.Join(w.faults, "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("faults %q, want %q", got, c.want)
			}
		})
	}
}

func TestIDAt(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 7e6, time.UTC)
	got, ok := semel.IDTime(idAt(at))
	if !ok || !got.Equal(at) {
		t.Errorf("%v, %v", got, ok)
	}
}
