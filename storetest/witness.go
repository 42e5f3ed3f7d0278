package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// A witness notes what the stores of one test answered.
type witness struct {
	mu     sync.Mutex
	seen   map[semel.Key]map[int64]semel.Operation // as each revision was first seen
	writes map[semel.Key][]written
	// unsure are keys with a write of which nobody knows whether it was made.
	unsure    map[semel.Key]bool
	allUnsure bool // a claim that failed may have touched any key
	faults    []string
}

// written is one write that a store said it made.
type written struct {
	how       string // "insert", "apply" or "claim"
	op        semel.Operation
	now       time.Time     // of a claim
	lease     time.Duration // of a claim
	renewed   bool          // this lease was prolonged
	change    semel.Change
	insertion semel.Insertion
}

func newWitness() *witness {
	return &witness{seen: map[semel.Key]map[int64]semel.Operation{}, writes: map[semel.Key][]written{}, unsure: map[semel.Key]bool{}}
}

func (w *witness) fault(format string, args ...any) {
	if len(w.faults) < 20 {
		w.faults = append(w.faults, fmt.Sprintf(format, args...))
	}
}

// saw notes a row that somebody read or wrote. Called with mu held.
func (w *witness) saw(op semel.Operation, light bool) {
	revisions := w.seen[op.Key]
	if revisions == nil {
		revisions = map[int64]semel.Operation{}
		w.seen[op.Key] = revisions
	}
	before, known := revisions[op.Revision]
	if !known {
		if !light {
			revisions[op.Revision] = op
		}
		return
	}
	if what := unlike(before, op, light); what != "" {
		w.fault("%s revision %d was seen in two shapes: %s", op.Key, op.Revision, what)
	}
}

func (w *witness) wrote(x written) {
	w.saw(x.op, false)
	w.writes[x.op.Key] = append(w.writes[x.op.Key], x)
}

func (w *witness) doubt(err error, keys ...semel.Key) {
	if err == nil || semel.AsError("", err).WasRecorded() == semel.RecordedNo {
		return
	}
	for _, k := range keys {
		w.unsure[k] = true
	}
}

// watched is a store with a witness.
type watched struct {
	semel.Store
	witness *witness
}

func (s *watched) Insert(ctx context.Context, batch []semel.Insertion) ([]semel.Inserted, error) {
	out, err := s.Store.Insert(ctx, batch)
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	s.witness.inserted(batch, out, err)
	return out, err
}

func (w *witness) inserted(batch []semel.Insertion, out []semel.Inserted, err error) {
	if err == nil && len(out) != len(batch) {
		w.fault("Insert answered %d of %d members", len(out), len(batch))
		return
	}
	for i, b := range batch {
		if err != nil {
			w.doubt(err, b.Key)
			continue
		}
		o := out[i]
		w.doubt(o.Err, b.Key)
		switch has := o.Operation != nil; {
		case o.Err != nil && (o.Verdict != 0 || has):
			w.fault("%s: an answer to an insertion has an error and a verdict", b.Key)
		case o.Err == nil && has != (o.Verdict == semel.Created || o.Verdict == semel.Exists):
			w.fault("%s: verdict %d, operation %v", b.Key, o.Verdict, has)
		case has && o.Operation.Key != b.Key:
			w.fault("%s: the answer is about %s", b.Key, o.Operation.Key)
		case has && o.Verdict == semel.Created:
			w.wrote(written{how: "insert", op: *o.Operation, insertion: b})
		case has:
			w.saw(*o.Operation, false)
		}
	}
}

func (s *watched) Get(ctx context.Context, keys []semel.Key) ([]semel.Found, error) {
	out, err := s.Store.Get(ctx, keys)
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	s.witness.found(keys, out, err)
	return out, err
}

func (w *witness) found(keys []semel.Key, out []semel.Found, err error) {
	if err != nil {
		return
	}
	if len(out) != len(keys) {
		w.fault("Get answered %d of %d keys", len(out), len(keys))
		return
	}
	for i, f := range out {
		if f.Operation == nil {
			continue
		}
		if f.Operation.Key != keys[i] || f.PastHorizon {
			w.fault("%s: found %s, past horizon %v", keys[i], f.Operation.Key, f.PastHorizon)
		}
		w.saw(*f.Operation, false)
	}
}

func (s *watched) Apply(ctx context.Context, batch []semel.Change) ([]semel.Applying, error) {
	out, err := s.Store.Apply(ctx, batch)
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	s.witness.applied(batch, out, err)
	return out, err
}

func (w *witness) applied(batch []semel.Change, out []semel.Applying, err error) {
	if err == nil && len(out) != len(batch) {
		w.fault("Apply answered %d of %d members", len(out), len(batch))
		return
	}
	for i, c := range batch {
		if err != nil {
			w.doubt(err, c.Key)
			continue
		}
		a := out[i]
		w.doubt(a.Err, c.Key)
		if a.Applied != (a.Operation != nil) || (a.Applied && a.Err != nil) {
			w.fault("%s: applied %v, operation %v, error %v", c.Key, a.Applied, a.Operation != nil, a.Err)
			continue
		}
		if a.Applied {
			if a.Operation.Key != c.Key || a.Operation.Revision != c.Revision+1 {
				w.fault("%s: a change at revision %d made %s at %d", c.Key, c.Revision, a.Operation.Key, a.Operation.Revision)
			}
			w.wrote(written{how: "apply", op: *a.Operation, change: c})
		}
	}
}

func (s *watched) Claim(ctx context.Context, req semel.ClaimRequest) ([]semel.Claimed, error) {
	out, err := s.Store.Claim(ctx, req)
	w := s.witness
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && semel.AsError("", err).WasRecorded() != semel.RecordedNo {
		w.allUnsure = true
	}
	if len(out) > req.Max {
		w.fault("a claim of at most %d got %d", req.Max, len(out))
	}
	kinds := map[string]semel.ClaimKind{}
	for _, k := range req.Kinds {
		kinds[k.Kind] = k
	}
	for _, c := range out {
		k, wanted := kinds[c.Operation.Key.Kind]
		if !wanted {
			w.fault("%s was claimed by somebody who did not want its kind", c.Operation.Key)
		}
		w.wrote(written{how: "claim", op: c.Operation, now: c.Now, lease: k.Lease})
	}
	return out, err
}

func (s *watched) Renew(ctx context.Context, batch []semel.Renewal) ([]bool, error) {
	out, err := s.Store.Renew(ctx, batch)
	w := s.witness
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && len(out) != len(batch) {
		w.fault("Renew answered %d of %d members", len(out), len(batch))
	}
	for i, b := range batch {
		for j, x := range w.writes[b.Key] {
			if x.how == "claim" && x.op.Token == b.Token && (err != nil || out[i]) {
				w.writes[b.Key][j].renewed = true
			}
		}
	}
	return out, err
}

func (s *watched) List(ctx context.Context, q semel.Query) (semel.Page, error) {
	page, err := s.Store.List(ctx, q)
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	for _, op := range page.Operations {
		s.witness.saw(op, true)
	}
	return page, err
}

// watchTx watches a transaction; what it did is noted when it is committed.
func watchTx(t Transaction, w *witness) (semel.Tx, Transaction) {
	tx := &watchedTx{Tx: t.Tx, witness: w}
	return tx, Transaction{Tx: tx,
		Commit: func() error {
			err := t.Commit()
			w.mu.Lock()
			defer w.mu.Unlock()
			if err != nil {
				w.doubt(err, tx.keys...)
				return err
			}
			for _, note := range tx.notes {
				note()
			}
			return nil
		},
		Rollback: t.Rollback,
	}
}

type watchedTx struct {
	semel.Tx
	witness *witness
	keys    []semel.Key
	notes   []func()
}

func (t *watchedTx) Insert(ctx context.Context, batch []semel.Insertion) ([]semel.Inserted, error) {
	out, err := t.Tx.Insert(ctx, batch)
	for _, b := range batch {
		t.keys = append(t.keys, b.Key)
	}
	if err == nil {
		t.notes = append(t.notes, func() { t.witness.inserted(batch, out, nil) })
	}
	return out, err
}

func (t *watchedTx) Apply(ctx context.Context, batch []semel.Change) ([]semel.Applying, error) {
	out, err := t.Tx.Apply(ctx, batch)
	for _, c := range batch {
		t.keys = append(t.keys, c.Key)
	}
	if err == nil {
		t.notes = append(t.notes, func() { t.witness.applied(batch, out, nil) })
	}
	return out, err
}

// Defer watches a change that is kept back; see [semel.Deferrer].
func (t *watchedTx) Defer(c semel.Change) (func() semel.Operation, bool) {
	d, ok := t.Tx.(semel.Deferrer)
	if !ok {
		return nil, false
	}
	answer, ok := d.Defer(c)
	if ok {
		t.keys = append(t.keys, c.Key)
		t.notes = append(t.notes, func() {
			op := answer()
			t.witness.applied([]semel.Change{c}, []semel.Applying{{Applied: true, Operation: &op}}, nil)
		})
	}
	return answer, ok
}
