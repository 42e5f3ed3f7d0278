package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/postgres"
)

// behind opens a store whose connections go through a proxy with that hook, and
// another one that goes straight to the same database.
func behind(t *testing.T, hook func(fault.Direction, []byte) fault.Action, options *postgres.Options) (cut, straight *postgres.Store, database string) {
	t.Helper()
	ctx, database := context.Background(), pgtest.Database(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := fault.NewTCPProxy(u.Host, &fault.TCPOptions{Hook: hook})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	if straight, err = postgres.Open(ctx, database, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { straight.Close() })
	u.Host = proxy.Addr()
	if cut, err = postgres.Open(ctx, u.String(), options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cut.Close() })
	return cut, straight, database
}

// trap breaks the connection on which a statement with the text goes out, once.
type trap struct {
	mu      sync.Mutex
	text    []byte
	to      fault.Action // for the statement
	back    fault.Action // for the first answer after it; other connections rest
	waiting bool
	sprung  atomic.Int64
}

func (tr *trap) set(text string, to, back fault.Action) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.text, tr.to, tr.back, tr.waiting = []byte(text), to, back, false
}

func (tr *trap) hook(dir fault.Direction, chunk []byte) fault.Action {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	switch {
	case tr.waiting && dir == fault.ServerToClient:
		tr.waiting = false
		tr.sprung.Add(1)
		return tr.back
	case tr.text != nil && dir == fault.ClientToServer && bytes.Contains(chunk, tr.text):
		tr.text = nil
		if tr.back != fault.Pass {
			tr.waiting = true
			return fault.Pass
		}
		tr.sprung.Add(1)
		return tr.to
	}
	return fault.Pass
}

// cuts are the moments: before the transaction arrived, when half of it had, when
// all of it had, when it was committed, and in the middle of its answer.
var cuts = []struct {
	name     string
	to, back fault.Action
}{
	{"before", fault.Cut, fault.Pass},
	{"half", fault.CutMiddle, fault.Pass},
	{"arrived", fault.PassThenCut, fault.Pass},
	{"committed", fault.PassLoseAnswer, fault.Pass},
	{"answer", fault.Pass, fault.Cut},
	{"half an answer", fault.Pass, fault.CutMiddle},
}

func insertion(id string) semel.Insertion {
	return semel.Insertion{Key: semel.Key{Account: "acme", Kind: "note", ID: id}, State: semel.Accepted, AsSent: "a", Fingerprint: "f",
		Params: []byte(`{}`), Owner: "owner-of-" + id, AttemptID: "try"}
}

// Whenever the connection breaks, an insertion is made once, and its caller knows.
func TestCutInsert(t *testing.T) {
	tr := &trap{}
	cut, straight, database := behind(t, tr.hook, nil)
	ctx := context.Background()
	for n, c := range cuts {
		for _, size := range []int{1, 20} {
			name := fmt.Sprintf("op-%d-%d", n, size)
			var batch []semel.Insertion
			for i := range size {
				batch = append(batch, insertion(fmt.Sprintf("%s-%d", name, i)))
			}
			before := tr.sprung.Load()
			tr.set(batch[size-1].Owner, c.to, c.back)
			out, err := cut.Insert(ctx, batch)
			if err != nil {
				t.Fatalf("%s, %d members: %v", c.name, size, err)
			}
			if tr.sprung.Load() != before+1 {
				t.Fatalf("%s, %d members: the connection was not cut", c.name, size)
			}
			for i, o := range out {
				if o.Err != nil || o.Verdict != semel.Created {
					t.Errorf("%s, member %d of %d: verdict %d, %v", c.name, i, size, o.Verdict, o.Err)
				}
				found, err := straight.Get(ctx, []semel.Key{batch[i].Key})
				if err != nil || found[0].Operation == nil || found[0].Operation.Attempts != 1 {
					t.Errorf("%s, member %d of %d: found %+v, %v", c.name, i, size, found, err)
				}
			}
		}
	}
	rows := counts(t, database)
	if want := len(cuts) * 21; rows["semel_operation"] != want || rows["semel_work"] != want || rows["semel_attempt"] != want {
		t.Errorf("rows %v, want %d of each", rows, want)
	}
}

// counts are the rows of every table of ours.
func counts(t *testing.T, database string) map[string]int {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows := map[string]int{}
	for _, table := range []string{"semel_operation", "semel_work", "semel_execution", "semel_attempt", "semel_verdict", "semel_expiry"} {
		var n int
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		rows[table] = n
	}
	return rows
}

// Whenever the connection breaks, a claim leases once what it answers, a change is
// applied once, and its caller knows.
func TestCutClaimAndApply(t *testing.T) {
	tr := &trap{}
	cut, straight, database := behind(t, tr.hook, nil)
	ctx := context.Background()
	req := semel.ClaimRequest{Worker: "the-worker", Max: 10, Kinds: []semel.ClaimKind{{Kind: "note", Lease: time.Hour, Contract: "the-contract", BeginNow: true}}}
	lives := 0
	for n, c := range cuts {
		var batch []semel.Insertion
		for i := range 10 {
			batch = append(batch, insertion(fmt.Sprintf("op-%d-%d", n, i)))
		}
		if _, err := straight.Insert(ctx, batch); err != nil {
			t.Fatal(err)
		}
		tr.set("the-contract", c.to, c.back)
		claimed, err := cut.Claim(ctx, req)
		if err != nil { // nothing is known to be leased: whatever is, comes back by itself
			if len(claimed) > 0 {
				t.Fatalf("%s: leases with an error", c.name)
			}
			if claimed, err = straight.Claim(ctx, req); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		if len(claimed) != 10 && c.name != "arrived" {
			t.Errorf("%s: %d leases", c.name, len(claimed))
		}
		var changes []semel.Change
		for _, l := range claimed {
			if l.Operation.Token != 1 || !l.Begun || l.Operation.Executions != 1 {
				t.Errorf("%s: leased as %+v", c.name, l.Operation)
			}
			changes = append(changes, semel.Change{Key: l.Operation.Key, Revision: 2, Token: 1, State: semel.Succeeded,
				Owner: "change-of-" + l.Operation.Key.ID, Result: []byte(`{}`), Retain: time.Hour, Work: semel.WorkDone,
				Execution: &semel.ExecutionChange{Token: 1, End: true, Outcome: semel.Applied},
				Verdict:   &semel.Verdict{Verdict: "applied", Evidence: "e", By: "b", Token: 1}})
		}
		lives += len(changes)
		if len(changes) == 0 {
			continue
		}
		tr.set(changes[0].Owner, c.to, c.back)
		done, err := cut.Apply(ctx, changes)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for i, d := range done {
			if !d.Applied || d.Operation.Revision != 3 || d.Operation.State != semel.Succeeded {
				t.Errorf("%s, member %d: %+v", c.name, i, d)
			}
		}
		// The same again, cut again: it was applied already, and nothing changes.
		tr.set(changes[0].Owner, c.to, c.back)
		if done, err = cut.Apply(ctx, changes); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for i, d := range done {
			found, _ := straight.Get(ctx, []semel.Key{changes[i].Key})
			if op := found[0].Operation; op.Revision != 3 {
				t.Errorf("%s, member %d: applied twice: %+v", c.name, i, op)
			}
			if d.Err != nil {
				t.Errorf("%s, member %d: %v", c.name, i, d.Err)
			}
		}
	}
	rows := counts(t, database)
	if rows["semel_verdict"] != lives || rows["semel_expiry"] != lives || rows["semel_work"] != rows["semel_operation"]-lives {
		t.Errorf("%d lives left these rows: %v", lives, rows)
	}
}

// While connections break at random, everybody goes on asking. In the end each
// identity has happened once, and what was said to be recorded, or not, is so.
func TestCutAtRandom(t *testing.T) {
	var on atomic.Bool
	var cutting atomic.Int64
	actions := []fault.Action{fault.Cut, fault.CutMiddle, fault.PassThenCut, fault.PassLoseAnswer}
	hook := func(fault.Direction, []byte) fault.Action {
		if !on.Load() || rand.IntN(8) > 0 {
			return fault.Pass
		}
		cutting.Add(1)
		return actions[rand.IntN(len(actions))]
	}
	cut, straight, database := behind(t, hook, nil)
	ctx := context.Background()
	ledger, err := semel.New(ctx, cut, &semel.Options{Kinds: []semel.Kind{{Name: "note"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	on.Store(true)

	const askers, each = 16, 60
	var effects sync.Map // by key: how often the effect happened
	var all sync.WaitGroup
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() { workThrough(ctx, ledger, &effects, stop) })
	}
	for a := range askers {
		all.Go(func() {
			for i := range each {
				req := semel.Request{Key: semel.Key{Account: fmt.Sprintf("acc-%d", a), Kind: "note", ID: fmt.Sprintf("op-%d", i)}, Params: []byte(`{}`)}
				for {
					_, err := ledger.Accept(ctx, req)
					if err == nil {
						break
					}
					e := semel.AsError("", err)
					if e.Code != semel.CodeUnavailable && e.Code != semel.CodeInProgress {
						t.Errorf("accept: %v", err)
						return
					}
					if e.WasRecorded() == semel.RecordedNo {
						if found, err := straight.Get(ctx, []semel.Key{req.Key}); err == nil && found[0].Operation != nil {
							t.Errorf("%s is recorded, though the error said no: %v", req.Key, e)
						}
					}
				}
			}
		})
	}
	all.Wait()
	deadline := time.After(5 * time.Minute)
	for rows := counts(t, database); rows["semel_work"] > 0; rows = counts(t, database) {
		select {
		case <-deadline:
			t.Fatalf("after five minutes there is work left: %v", rows)
		case <-time.After(50 * time.Millisecond):
		}
	}
	on.Store(false)
	close(stop)
	workers.Wait()
	rows := counts(t, database)
	if rows["semel_operation"] != askers*each || rows["semel_expiry"] != askers*each {
		t.Errorf("%d identities left these rows: %v", askers*each, rows)
	}
	total := 0
	effects.Range(func(key, n any) bool {
		total++
		return true
	})
	if total != askers*each {
		t.Errorf("%d of %d had an effect", total, askers*each)
	}
	t.Logf("%d cuts", cutting.Load())
}

// workThrough claims and finishes until stop. Its effect is idempotent, like one
// behind a key: a lease that was lost is done again.
func workThrough(ctx context.Context, ledger *semel.Ledger, effects *sync.Map, stop chan struct{}) {
	req := semel.ClaimRequest{Worker: "w", Max: 20, Kinds: []semel.ClaimKind{{Kind: "note", Lease: 300 * time.Millisecond, BeginNow: true}}}
	for {
		select {
		case <-stop:
			return
		default:
		}
		leases, err := ledger.Claim(ctx, req)
		if err != nil || len(leases) == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		var ends sync.WaitGroup
		for _, l := range leases {
			ends.Go(func() {
				effects.Store(l.Operation.Key, true)
				ledger.Finish(ctx, l, semel.Ending{Outcome: semel.Applied, Result: []byte(`{}`)})
			})
		}
		ends.Wait()
	}
}
