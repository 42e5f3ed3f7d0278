package storetest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

// unlike names the first difference between two sights of one revision. What may
// change without a revision is left out: attempts, progress, and what expiry
// strips. Light rows come from lists and lack what is large.
func unlike(a, b semel.Operation, light bool) string {
	a.Attempts, b.Attempts, a.Progress, b.Progress = 0, 0, nil, nil
	if a.Expired != b.Expired || light {
		for _, op := range []*semel.Operation{&a, &b} {
			op.Params, op.Request, op.Result = nil, nil, nil
		}
	}
	if a.Expired != b.Expired {
		for _, op := range []*semel.Operation{&a, &b} {
			op.Expired, op.Failure, op.AsSent, op.Fingerprint, op.SchemaVersion = false, nil, "", "", ""
		}
	}
	return difference(a, b)
}

// difference names the first field in which two operations differ.
func difference(a, b any) string {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		f, g := x.Field(i).Interface(), y.Field(i).Interface()
		if t, ok := f.(time.Time); ok {
			if !t.Equal(g.(time.Time)) {
				return fmt.Sprintf("%s is %s and %s", x.Type().Field(i).Name, t, g)
			}
			continue
		}
		if !reflect.DeepEqual(f, g) {
			return fmt.Sprintf("%s is %s and %s", x.Type().Field(i).Name, show(f), show(g))
		}
	}
	return ""
}

func show(v any) string {
	if b := reflect.ValueOf(v); b.Kind() == reflect.Slice && b.Type().Elem().Kind() == reflect.Uint8 {
		if b.IsNil() {
			return "nil"
		}
		if b.Len() > 60 {
			return fmt.Sprintf("%d bytes", b.Len())
		}
		return fmt.Sprintf("%q", b.Bytes())
	}
	if b := reflect.ValueOf(v); b.Kind() == reflect.Pointer && !b.IsNil() {
		return fmt.Sprintf("%+v", b.Elem().Interface())
	}
	return fmt.Sprintf("%v", v)
}

// judge looks at everything that was seen and at everything that is there.
func (w *world) judge() {
	w.Helper()
	store, err := w.h.Open()
	if err != nil {
		w.Errorf("the database can't be opened after the test: %v", err)
		return
	}
	defer store.Close()
	s := &watched{Store: store, witness: w.witness}
	ops := w.judgeRows(s)
	w.judgeCounts(s, ops)

	w.witness.mu.Lock()
	defer w.witness.mu.Unlock()
	for key := range w.witness.seen {
		w.witness.judgeSeen(key)
	}
	for key, writes := range w.witness.writes {
		w.witness.judgeWrites(key, writes)
	}
	for _, fault := range w.witness.faults {
		w.Errorf("invariant: %s", fault)
	}
}

// judgeRows reads every operation that a list shows or the witness knows.
func (w *world) judgeRows(s *watched) map[semel.Key]semel.Operation {
	w.Helper()
	listed := map[semel.Key]bool{}
	var keys []semel.Key
	last := time.Time{}
	for q := (semel.Query{Size: 500}); ; {
		page, err := s.List(w.ctx, q)
		if err != nil {
			w.Errorf("invariant: the list can't be read: %v", err)
			break
		}
		for _, op := range page.Operations {
			w.check(!listed[op.Key], "invariant: %s is in the list twice", op.Key)
			w.check(last.IsZero() || !op.CreatedAt.After(last), "invariant: %s is in the list before an older one", op.Key)
			w.check(op.Params == nil && op.Request == nil && op.Result == nil, "invariant: %s is in the list with its content", op.Key)
			listed[op.Key], last = true, op.CreatedAt
			keys = append(keys, op.Key)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	w.witness.mu.Lock()
	for key := range w.witness.seen {
		if !listed[key] {
			keys = append(keys, key)
		}
	}
	w.witness.mu.Unlock()

	ops := map[semel.Key]semel.Operation{}
	for chunk := range slices.Chunk(keys, 200) {
		found, err := s.Get(w.ctx, chunk)
		if err != nil {
			w.Errorf("invariant: get: %v", err)
			return ops
		}
		for i, f := range found {
			if f.Operation == nil {
				w.judgeGone(chunk[i], f, listed[chunk[i]])
				continue
			}
			ops[chunk[i]] = *f.Operation
			w.check(listed[chunk[i]] != f.Operation.Expired, "invariant: %s expired: %v, listed: %v", chunk[i], f.Operation.Expired, listed[chunk[i]])
			w.judgeRow(s, *f.Operation)
		}
	}
	return ops
}

// judgeGone: only what was settled may go, and only behind the horizon.
func (w *world) judgeGone(key semel.Key, f semel.Found, listed bool) {
	w.Helper()
	w.witness.mu.Lock()
	defer w.witness.mu.Unlock()
	revisions := w.witness.seen[key]
	w.check(!listed, "invariant: %s is in the list only", key)
	if len(revisions) == 0 {
		return
	}
	last := revisions[slices.Max(slices.Collect(maps.Keys(revisions)))]
	w.check(last.State.Settled(), "invariant: %s is gone; it was last seen %s", key, last.State)
	w.check(f.PastHorizon, "invariant: %s is gone, and the horizon does not say so", key)
}

func (w *world) judgeRow(s *watched, op semel.Operation) {
	w.Helper()
	w.check(op.State.Valid(), "invariant: %s has state %q", op.Key, op.State)
	w.check(op.ExpiresAt.IsZero() != op.State.Settled(), "invariant: %s is %s and expires at %v", op.Key, op.State, op.ExpiresAt)
	w.check(op.Revision >= 1 && op.Token >= 0 && op.ClearedToken <= op.Token, "invariant: %s has revision %d, token %d, cleared %d",
		op.Key, op.Revision, op.Token, op.ClearedToken)
	h, err := s.History(w.ctx, op.Key)
	if err != nil {
		w.Errorf("invariant: history of %s: %v", op.Key, err)
		return
	}
	if op.Expired {
		w.check(len(h.Attempts)+len(h.Executions)+len(h.Verdicts) == 0, "invariant: %s is stripped and has a history", op.Key)
		w.check(op.State.Settled(), "invariant: %s is stripped and %s", op.Key, op.State)
		w.check(op.Params == nil && op.Request == nil && op.Result == nil && op.AsSent == "" && op.Fingerprint == "",
			"invariant: %s is stripped and has content", op.Key)
		return
	}
	token, applied, begun := int64(0), 0, 0
	for _, x := range h.Executions {
		w.check(x.Token > token && x.Token <= op.Token, "invariant: %s at token %d has an execution %d after %d", op.Key, op.Token, x.Token, token)
		token = x.Token
		if x.Outcome == semel.Applied {
			applied++
		}
		if !x.BegunAt.IsZero() {
			begun++
		}
	}
	w.check(applied <= 1, "invariant: %s was applied %d times", op.Key, applied)
	w.check(begun == op.Executions, "invariant: %s counts %d executions, and %d began", op.Key, op.Executions, begun)
	w.check(len(h.Attempts) <= op.Attempts && len(h.Attempts) >= min(op.Attempts, semel.MaxAttempts),
		"invariant: %s counts %d attempts and keeps %d", op.Key, op.Attempts, len(h.Attempts))
	for _, v := range h.Verdicts {
		w.check(v.Token <= op.Token, "invariant: %s at token %d has a verdict with %d", op.Key, op.Token, v.Token)
	}
}

// judgeCounts holds the counts against the rows. There is a work row exactly
// while an operation is accepted or processing.
func (w *world) judgeCounts(s *watched, ops map[semel.Key]semel.Operation) {
	w.Helper()
	working := map[string]int{}
	states := map[string]map[semel.State]int64{}
	for key, op := range ops {
		working[key.Account] += 0
		if op.State == semel.Accepted || op.State == semel.Processing {
			working[key.Account]++
		}
		if !op.Expired {
			if states[key.Kind] == nil {
				states[key.Kind] = map[semel.State]int64{}
			}
			states[key.Kind][op.State]++
		}
	}
	accounts := slices.Sorted(maps.Keys(working))
	counts, err := s.Pending(w.ctx, accounts, 1<<30)
	if err != nil || len(counts) != len(accounts) {
		w.Errorf("invariant: pending answered %d of %d, %v", len(counts), len(accounts), err)
		return
	}
	for i, account := range accounts {
		w.check(counts[i] == working[account], "invariant: account %s has %d work rows for %d operations accepted or processing",
			account, counts[i], working[account])
	}
	stats, err := s.Stats(w.ctx)
	if err != nil {
		w.Errorf("invariant: stats: %v", err)
		return
	}
	for _, k := range stats.Kinds {
		for state, n := range k.States {
			w.check(states[k.Kind][state] == n, "invariant: stats count %d %s of kind %s; there are %d", n, state, k.Kind, states[k.Kind][state])
			delete(states[k.Kind], state)
		}
	}
	for kind, left := range states {
		w.check(len(left) == 0, "invariant: stats of kind %s leave out %v", kind, left)
	}
}

// judgeSeen holds the revisions of one operation against each other.
func (w *witness) judgeSeen(key semel.Key) {
	revisions := w.seen[key]
	var before *semel.Operation
	for _, n := range slices.Sorted(maps.Keys(revisions)) {
		op := revisions[n]
		if before == nil {
			before = &op
			continue
		}
		same := op.CreatedAt.Equal(before.CreatedAt)
		if !op.Expired && !before.Expired {
			same = same && op.AsSent == before.AsSent && op.Fingerprint == before.Fingerprint && op.SchemaVersion == before.SchemaVersion &&
				bytes.Equal(op.Params, before.Params) && bytes.Equal(op.Request, before.Request) && (op.Request == nil) == (before.Request == nil)
		}
		if !same {
			w.fault("%s changed its meaning between revisions %d and %d", key, before.Revision, n)
		}
		if op.Token < before.Token || op.ClearedToken < before.ClearedToken || op.Executions < before.Executions || op.UpdatedAt.Before(before.UpdatedAt) {
			w.fault("%s: token, cleared token, executions or time fell between revisions %d and %d", key, before.Revision, n)
		}
		if before.State.Settled() && (op.State != before.State || !op.ExpiresAt.Equal(before.ExpiresAt) || (!op.Expired && !bytes.Equal(op.Result, before.Result))) {
			w.fault("%s was settled as %s at revision %d, and is %s at %d", key, before.State, before.Revision, op.State, n)
		}
		if (before.Acknowledged && !op.Acknowledged) || (before.Contradicted && !op.Contradicted) {
			w.fault("%s lost a flag between revisions %d and %d", key, before.Revision, n)
		}
		before = &op
	}
}

// judgeWrites holds the writes to one operation against each other.
func (w *witness) judgeWrites(key semel.Key, writes []written) {
	slices.SortStableFunc(writes, func(a, b written) int { return cmp.Compare(a.op.Revision, b.op.Revision) })
	sure := !w.unsure[key] && !w.allUnsure
	succeeded := 0
	var lease *written
	for i, x := range writes {
		if sure && x.op.Revision != int64(i+1) {
			w.fault("%s: the %d. write made revision %d", key, i+1, x.op.Revision)
			sure = false
		}
		if i == 0 {
			if b := x.insertion.Begun; b != nil {
				lease = &written{now: x.op.CreatedAt, lease: b.Lease}
			}
			continue
		}
		before := writes[i-1].op
		if x.op.Revision == before.Revision {
			w.fault("%s: two writes made revision %d", key, x.op.Revision)
		}
		if x.op.State == semel.Succeeded && before.State != semel.Succeeded {
			succeeded++
		}
		if x.how == "claim" && x.op.Token <= before.Token {
			w.fault("%s: a claim got token %d after %d", key, x.op.Token, before.Token)
		}
		if x.how == "insert" {
			w.fault("%s was created twice", key)
		}
		switch {
		case x.how == "apply" && x.change.Work != semel.WorkKeep:
			lease = nil
		case x.how == "claim":
			if lease != nil && sure && !lease.renewed && x.now.Before(lease.now.Add(lease.lease)) {
				w.fault("%s was leased at %v while a lease of %v ran since %v", key, x.now, lease.lease, lease.now)
			}
			lease = &writes[i]
		}
	}
	if succeeded > 1 {
		w.fault("%s succeeded %d times", key, succeeded)
	}
}
