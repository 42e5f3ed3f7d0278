package storetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// A world is what a test works with: a watched store, a clock and short names.
type world struct {
	*testing.T
	ctx     context.Context
	h       Harness
	witness *witness
	store   semel.Store // watched
	open    []semel.Store
	serial  atomic.Int64
}

func newWorld(t *testing.T, h Harness) *world {
	w := &world{T: t, ctx: context.Background(), h: h, witness: newWitness()}
	w.store = w.node()
	t.Cleanup(func() {
		w.judge()
		for _, s := range w.open {
			s.Close()
		}
	})
	return w
}

// node opens one more watched handle, as another process would.
func (w *world) node() semel.Store {
	w.Helper()
	s, err := w.h.Open()
	w.ok(err, "open")
	w.open = append(w.open, s)
	return &watched{Store: s, witness: w.witness}
}

// restart closes every handle and opens a new one.
func (w *world) restart() {
	w.Helper()
	for _, s := range w.open {
		w.ok(s.Close(), "close")
	}
	w.open = nil
	w.store = w.node()
}

func (w *world) now() time.Time { return w.h.Clock.Now() }

func (w *world) pass(d time.Duration) { w.h.Clock.Add(d) }

// begin begins a caller's transaction whose writes the witness notes once it is
// committed.
func (w *world) begin(store semel.Store) (semel.Tx, Transaction) {
	w.Helper()
	t, err := w.h.Begin(store.(*watched).Store)
	w.ok(err, "begin")
	tx, watching := watchTx(t, w.witness)
	return tx, watching
}

func (w *world) ok(err error, what string, args ...any) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

func (w *world) check(holds bool, what string, args ...any) {
	w.Helper()
	if !holds {
		w.Errorf(what, args...)
	}
}

// code checks that err is an *Error with one of the codes.
func (w *world) code(err error, codes ...semel.Code) *semel.Error {
	w.Helper()
	var e *semel.Error
	if !errors.As(err, &e) {
		w.Fatalf("got error %v (%T), want a *semel.Error with code %v", err, err, codes)
	}
	for _, c := range codes {
		if e.Code == c {
			return e
		}
	}
	w.Fatalf("got code %q (%v), want %v", e.Code, err, codes)
	return nil
}

// idAt makes a UUIDv7 with that date.
func idAt(t time.Time) string {
	var u [16]byte
	rand.Read(u[:])
	ms := t.UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6], u[8] = u[6]&0x0f|0x70, u[8]&0x3f|0x80
	s := hex.EncodeToString(u[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// name makes an ID that is no UUIDv7.
func (w *world) name() string { return fmt.Sprintf("id-%06d", w.serial.Add(1)) }

// key makes a new key of account acme and kind note.
func (w *world) key() semel.Key { return semel.Key{Account: "acme", Kind: "note", ID: w.name()} }

// in is a plain insertion of a key.
func in(key semel.Key) semel.Insertion {
	i := semel.Insertion{Key: key, State: semel.Accepted, AsSent: "v1:sha256:sent-" + key.ID, Fingerprint: "v1:sha256:norm-" + key.ID,
		SchemaVersion: "s1", Params: []byte(`{"text":"` + key.ID + `"}`), Owner: rand.Text()}
	i.IDTime, _ = semel.IDTime(key.ID)
	return i
}

// insertOne inserts one member and returns its answer, which must not be an error.
func (w *world) insertOne(i semel.Insertion) semel.Inserted {
	w.Helper()
	out, err := w.store.Insert(w.ctx, []semel.Insertion{i})
	w.ok(err, "insert %s", i.Key)
	if len(out) != 1 {
		w.Fatalf("insert answered %d of 1", len(out))
	}
	w.ok(out[0].Err, "insert %s", i.Key)
	return out[0]
}

// create inserts keys that must be free.
func (w *world) create(ins ...semel.Insertion) []semel.Operation {
	w.Helper()
	out, err := w.store.Insert(w.ctx, ins)
	w.ok(err, "insert")
	ops := make([]semel.Operation, len(ins))
	for i, o := range out {
		if o.Err != nil || o.Verdict != semel.Created {
			w.Fatalf("insert %s: verdict %d, %v; want it created", ins[i].Key, o.Verdict, o.Err)
		}
		ops[i] = *o.Operation
	}
	return ops
}

func (w *world) createOne(i semel.Insertion) semel.Operation { w.Helper(); return w.create(i)[0] }

func (w *world) find(key semel.Key) semel.Found {
	w.Helper()
	out, err := w.store.Get(w.ctx, []semel.Key{key})
	w.ok(err, "get %s", key)
	if len(out) != 1 {
		w.Fatalf("get answered %d of 1", len(out))
	}
	return out[0]
}

// get reads an operation that must be there.
func (w *world) get(key semel.Key) semel.Operation {
	w.Helper()
	f := w.find(key)
	if f.Operation == nil {
		w.Fatalf("%s is not there", key)
	}
	return *f.Operation
}

func (w *world) history(key semel.Key) semel.History {
	w.Helper()
	h, err := w.store.History(w.ctx, key)
	w.ok(err, "history %s", key)
	return h
}

func (w *world) tryApply(c semel.Change) semel.Applying {
	w.Helper()
	out, err := w.store.Apply(w.ctx, []semel.Change{c})
	w.ok(err, "apply %s", c.Key)
	if len(out) != 1 {
		w.Fatalf("apply answered %d of 1", len(out))
	}
	w.ok(out[0].Err, "apply %s", c.Key)
	return out[0]
}

// apply makes a change that must be applied.
func (w *world) apply(c semel.Change) semel.Operation {
	w.Helper()
	out := w.tryApply(c)
	if !out.Applied || out.Operation == nil {
		w.Fatalf("apply %s at revision %d, token %d: not applied", c.Key, c.Revision, c.Token)
	}
	return *out.Operation
}

// change is an empty change of an operation as it is, to another state.
func change(op semel.Operation, to semel.State) semel.Change {
	return semel.Change{Key: op.Key, Revision: op.Revision, Token: op.Token, Owner: rand.Text(), State: to}
}

// settle ends an operation that is accepted or processing.
func settle(op semel.Operation, to semel.State, retain time.Duration) semel.Change {
	c := change(op, to)
	c.Work, c.Retain = semel.WorkDone, retain
	if to == semel.Succeeded {
		c.Result = []byte(`{"of":"` + op.Key.ID + `"}`)
	}
	if op.Token > 0 {
		c.Execution = &semel.ExecutionChange{Token: op.Token, End: true, Outcome: semel.Applied, Evidence: []byte(`{"seen":"yes"}`)}
		if to != semel.Succeeded {
			c.Execution.Outcome = semel.Refused
		}
	}
	return c
}

// notes is a claim of the kind note: a lease of a minute, begun by the claim.
func notes(max int) semel.ClaimRequest { return claimOf(max, "note") }

func claimOf(max int, kinds ...string) semel.ClaimRequest {
	req := semel.ClaimRequest{Worker: "w1", Max: max}
	for _, k := range kinds {
		req.Kinds = append(req.Kinds, semel.ClaimKind{Kind: k, Lease: time.Minute, Contract: `{"kind":"` + k + `"}`, BeginNow: true})
	}
	return req
}

func (w *world) claim(req semel.ClaimRequest) []semel.Claimed {
	w.Helper()
	out, err := w.store.Claim(w.ctx, req)
	w.ok(err, "claim")
	return out
}

// claimOne claims exactly one operation.
func (w *world) claimOne() semel.Claimed {
	w.Helper()
	out := w.claim(notes(10))
	if len(out) != 1 {
		w.Fatalf("claimed %d operations, want 1", len(out))
	}
	return out[0]
}

func (w *world) pending(account string) int {
	w.Helper()
	n, err := w.store.Pending(w.ctx, []string{account}, 1<<20)
	w.ok(err, "pending")
	return n[0]
}

func (w *world) purge(kind string, retention time.Duration, max int) semel.Purged {
	w.Helper()
	p, err := w.store.Purge(w.ctx, []semel.PurgeRequest{{Kind: kind, Retention: retention, Max: max}})
	w.ok(err, "purge")
	return p
}
