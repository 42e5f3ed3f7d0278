package memstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

// Claim implements [semel.Store]. Accounts take turns: whoever was served longest
// ago comes first, and within an account the oldest due work.
func (s *Store) Claim(ctx context.Context, req semel.ClaimRequest) ([]semel.Claimed, error) {
	now, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	left := map[string]int{}
	kinds := map[string]semel.ClaimKind{}
	for _, k := range req.Kinds {
		kinds[k.Kind], left[k.Kind] = k, req.Max
		if k.Max > 0 {
			left[k.Kind] = min(k.Max, req.Max)
		}
	}
	waiting := map[string][]*row{} // by account
	for k, r := range s.data.rows {
		if _, wanted := kinds[k.Kind]; wanted && r.working && !r.due.After(now) {
			waiting[k.Account] = append(waiting[k.Account], r)
		}
	}
	for _, rows := range waiting {
		slices.SortFunc(rows, func(a, b *row) int { return cmp.Or(a.due.Compare(b.due), a.op.Key.Compare(b.op.Key)) })
	}
	var out []semel.Claimed
	for len(out) < req.Max && len(waiting) > 0 {
		account := s.next(waiting)
		r := waiting[account][0]
		if waiting[account] = waiting[account][1:]; len(waiting[account]) == 0 {
			delete(waiting, account)
		}
		if left[r.op.Key.Kind]--; left[r.op.Key.Kind] < 0 {
			continue
		}
		s.data.claims++
		s.data.served[account] = s.data.claims
		out = append(out, r.lease(kinds[r.op.Key.Kind], req.Worker, now))
	}
	return out, nil
}

// next is the account whose turn it is.
func (s *Store) next(waiting map[string][]*row) string {
	var first string
	for account, rows := range waiting {
		if first == "" || cmp.Or(cmp.Compare(s.data.served[account], s.data.served[first]), rows[0].due.Compare(waiting[first][0].due)) < 0 {
			first = account
		}
	}
	return first
}

func (r *row) lease(k semel.ClaimKind, worker string, now time.Time) semel.Claimed {
	c := semel.Claimed{Begun: r.op.State == semel.Accepted && k.BeginNow, Prior: cloneExecutions(r.executions), Now: now}
	r.op.State, r.op.Owner, r.op.UpdatedAt, r.due = semel.Processing, rand.Text(), now, now.Add(k.Lease)
	r.op.Token++
	r.op.Revision++
	x := semel.Execution{Token: r.op.Token, Worker: worker, Contract: k.Contract, ClaimedAt: now, LeaseEndsAt: r.due}
	if c.Begun {
		x.BegunAt = now
		r.op.Executions++
	}
	r.executions = append(r.executions, x)
	c.Operation = *copyOf(r.op)
	return c
}

func cloneExecutions(list []semel.Execution) []semel.Execution {
	out := slices.Clone(list)
	for i := range out {
		out[i].Evidence, out[i].LateEvidence = slices.Clone(out[i].Evidence), slices.Clone(out[i].LateEvidence)
	}
	return out
}

// Renew implements [semel.Store].
func (s *Store) Renew(ctx context.Context, batch []semel.Renewal) ([]bool, error) {
	now, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	held := make([]bool, len(batch))
	for i, n := range batch {
		r := s.data.rows[n.Key]
		if held[i] = r != nil && r.op.Token == n.Token && r.op.State == semel.Processing; !held[i] {
			continue
		}
		r.due = now.Add(n.Lease)
		if x := r.execution(n.Token); x != nil {
			x.LeaseEndsAt = r.due
		}
		if n.Progress != nil {
			p := *n.Progress
			r.op.Progress = &p
		}
	}
	return held, nil
}

// KeepLate implements [semel.Store].
func (s *Store) KeepLate(ctx context.Context, late semel.Late) error {
	now, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if r := s.data.rows[late.Key]; r != nil {
		if x := r.execution(late.Token); x != nil && x.LateAt.IsZero() {
			x.LateOutcome, x.LateEvidence, x.LateAt = late.Outcome, slices.Clone(late.Evidence), now
		}
	}
	return nil
}

// RecordAttempts implements [semel.Store].
func (s *Store) RecordAttempts(ctx context.Context, batch []semel.Attempt) error {
	now, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, a := range batch {
		r := s.data.rows[a.Key]
		if r == nil || r.op.Expired {
			continue
		}
		r.op.Attempts++
		a.At = now
		r.attempts = append(r.attempts, a)
		if over := len(r.attempts) - semel.MaxAttempts; over > 0 {
			r.attempts = slices.Delete(r.attempts, 0, over)
		}
	}
	return nil
}

// Purge implements [semel.Store].
func (s *Store) Purge(ctx context.Context, reqs []semel.PurgeRequest) (semel.Purged, error) {
	now, leave, err := s.enter(ctx)
	if err != nil {
		return semel.Purged{}, err
	}
	defer leave()
	var done semel.Purged
	for _, req := range reqs {
		for shard := range semel.Shards {
			l := lane{shard, req.Kind}
			if at, known := s.data.horizons[l]; !known || at < now.Add(-req.Retention).UnixMilli() {
				s.data.horizons[l] = now.Add(-req.Retention).UnixMilli()
			}
		}
		stripped, deleted := 0, 0
		for key, r := range s.data.rows {
			if op := &r.op; key.Kind == req.Kind && op.State.Settled() && !op.Expired && stripped < req.Max &&
				!op.ExpiresAt.IsZero() && !op.ExpiresAt.After(now) {
				r.strip()
				stripped++
			}
		}
		for key, r := range s.data.rows {
			if key.Kind == req.Kind && r.op.Expired && deleted < req.Max && !r.idTime.IsZero() &&
				!r.idTime.After(r.op.CreatedAt) && r.idTime.UnixMilli() <= s.data.horizons[laneOf(key)] {
				delete(s.data.rows, key)
				deleted++
			}
		}
		done.Stripped += stripped
		done.Deleted += deleted
	}
	return done, nil
}

func (r *row) strip() {
	op := &r.op
	op.Expired = true
	op.Params, op.Result, op.Request, op.Failure, op.Progress = nil, nil, nil, nil, nil
	op.AsSent, op.Fingerprint, op.SchemaVersion = "", "", ""
	r.executions, r.attempts, r.verdicts = nil, nil, nil
}
