package sqlite

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/semel-dev/semel"
)

// Claim implements [semel.Store]. It looks at the lanes whose turn it is, takes
// an equal share from each of them and the oldest due work within, and does not
// touch anything else: its cost depends on Max alone, not on what is waiting.
func (s *Store) Claim(ctx context.Context, req semel.ClaimRequest) ([]semel.Claimed, error) {
	due, err := s.anyDue(ctx, req)
	if !due || err != nil {
		return nil, err
	}
	mark := rand.Text()
	var claimed []semel.Claimed
	err = s.write(ctx, "claim", func(ctx context.Context, r runner, now moment) error {
		claimed, err = s.claimIn(ctx, r, now, req, mark)
		return err
	})
	var lost *commitError
	if errors.As(err, &lost) {
		return s.readBackClaims(ctx, claimed, mark, lost)
	}
	return claimed, err
}

// anyDue keeps those who ask in vain away from the write lock.
func (s *Store) anyDue(ctx context.Context, req semel.ClaimRequest) (due bool, err error) {
	if req.Max <= 0 {
		return false, nil
	}
	now := s.now().ms()
	err = s.read(ctx, "claim", func(ctx context.Context, r runner) error {
		for _, k := range req.Kinds {
			var one int
			if due, err = r.row(ctx, `SELECT 1 FROM semel_queue WHERE kind = ? AND turn_at <= ? LIMIT 1`, []any{k.Kind, now}, &one); due || err != nil {
				return err
			}
		}
		return nil
	})
	return due, err
}

// A turn is a lane with due work, and how far its work was picked.
type turn struct {
	lane
	at     int64 // turn_at
	served int64 // how often it was served
	kind   *share
	due    int64  // the last one picked
	lastID string // the last one picked
}

// A share is a kind of the request and how many more of it may be leased.
type share struct {
	semel.ClaimKind
	left int
}

// A pick is one piece of work that is going to be leased.
type pick struct {
	key  semel.Key
	due  int64
	kind *share
}

func (s *Store) claimIn(ctx context.Context, r runner, now moment, req semel.ClaimRequest, mark string) ([]semel.Claimed, error) {
	turns, err := nextTurns(ctx, r, now, req)
	if err != nil {
		return nil, err
	}
	picks, err := pickWork(ctx, r, now, turns, req.Max)
	if err != nil {
		return nil, err
	}
	up := newUpkeep()
	claimed := make([]semel.Claimed, len(picks))
	for i, p := range picks {
		if claimed[i], err = s.lease(ctx, r, now, p, req.Worker, mark, up); err != nil {
			return nil, err
		}
		up.lane(laneOf(p.key)).served = now.ms()
	}
	return claimed, up.flush(ctx, r)
}

// nextTurns returns the lanes whose turn has come, the longest waiting first, and
// no more of them than can be served.
func nextTurns(ctx context.Context, r runner, now moment, req semel.ClaimRequest) ([]*turn, error) {
	var turns []*turn
	seen := map[string]bool{}
	for _, k := range req.Kinds {
		if seen[k.Kind] {
			continue
		}
		seen[k.Kind] = true
		kind := &share{ClaimKind: k, left: req.Max}
		if k.Max > 0 {
			kind.left = min(kind.left, k.Max)
		}
		err := r.each(ctx, `SELECT turn_at, served, shard, account FROM semel_queue WHERE kind = ? AND turn_at <= ?
			ORDER BY turn_at, served, shard, account LIMIT ?`, []any{k.Kind, now.ms(), kind.left}, func(rows *sql.Rows) error {
			t := &turn{lane: lane{kind: k.Kind}, kind: kind, due: noHorizon}
			turns = append(turns, t)
			return rows.Scan(&t.at, &t.served, &t.shard, &t.account)
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(turns, func(a, b *turn) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.served, b.served))
	})
	return turns[:min(len(turns), req.Max)], nil
}

// pickWork takes equal shares from all turns, and shares out again what some of
// them had no use for. The oldest work comes first in the answer.
func pickWork(ctx context.Context, r runner, now moment, turns []*turn, max int) ([]pick, error) {
	var picks []pick
	for len(turns) > 0 && len(picks) < max {
		each := (max - len(picks) + len(turns) - 1) / len(turns)
		more := turns[:0]
		for _, t := range turns {
			n := min(each, max-len(picks), t.kind.left)
			if n == 0 {
				continue
			}
			got, err := t.pick(ctx, r, now, n)
			if err != nil {
				return nil, err
			}
			picks = append(picks, got...)
			t.kind.left -= len(got)
			if len(got) == n {
				more = append(more, t)
			}
		}
		turns = more
	}
	slices.SortStableFunc(picks, func(a, b pick) int { return cmp.Compare(a.due, b.due) })
	return picks, nil
}

func (t *turn) pick(ctx context.Context, r runner, now moment, n int) ([]pick, error) {
	var picks []pick
	err := r.each(ctx, `SELECT due_at, operation_id FROM semel_work WHERE shard = ?1 AND kind = ?2 AND account = ?3
		AND due_at <= ?4 AND (due_at, operation_id) > (?5, ?6) ORDER BY due_at, operation_id LIMIT ?7`,
		[]any{t.shard, t.lane.kind, t.account, now.ms(), t.due, t.lastID, n}, func(rows *sql.Rows) error {
			if err := rows.Scan(&t.due, &t.lastID); err != nil {
				return err
			}
			picks = append(picks, pick{semel.Key{Account: t.account, Kind: t.lane.kind, ID: t.lastID}, t.due, t.kind})
			return nil
		})
	return picks, err
}

// lease gives one lease. The transaction holds the write lock, so the work is
// still due.
func (s *Store) lease(ctx context.Context, r runner, now moment, p pick, worker, mark string, up *upkeep) (semel.Claimed, error) {
	op, due, err := s.loadDue(ctx, r, p.key)
	if err != nil {
		return semel.Claimed{}, err
	}
	if op == nil || (op.State != semel.Accepted && op.State != semel.Processing) {
		return semel.Claimed{}, &semel.Error{Op: "claim", Code: semel.CodeInternal, Key: p.key, Msg: "there is work without an operation to do"}
	}
	c := semel.Claimed{Begun: op.State == semel.Accepted && p.kind.BeginNow, Now: timeOf(now.ms())}
	if op.Token > 0 {
		if c.Prior, err = s.executions(ctx, r, p.key); err != nil {
			return c, err
		}
	}
	up.moved(p.key.Kind, op.State, semel.Processing)
	op.State, op.Owner, op.UpdatedAt = semel.Processing, mark, c.Now
	op.Token++
	op.Revision++
	op.Executions += flag(c.Begun)
	c.Operation = *op
	ends := now.until(p.kind.Lease)
	n, err := r.exec(ctx, `UPDATE semel_operation SET state = ?5, executions = ?6, revision = ?7, token = ?8, owner = ?9, updated_at = ?10, due_at = ?11
		WHERE shard = ?1 AND account = ?2 AND kind = ?3 AND operation_id = ?4 AND token = ?8 - 1`,
		s.keyArgs(p.key, op.State, op.Executions, op.Revision, op.Token, mark, now.ms(), ends)...)
	if err == nil && n != 1 {
		err = fmt.Errorf("the token of %s moved under the write lock", p.key)
	}
	if err == nil {
		err = s.addExecution(ctx, r, p.key, execution{op.Token, worker, p.kind.Contract, p.kind.Lease, c.Begun}, now)
	}
	if err == nil {
		err = moveWork(ctx, r, p.key, due, ends, up)
	}
	return c, err
}

// readBackClaims keeps the leases that are really ours after a commit with an
// error. What is not told to anybody comes back when its lease ends.
func (s *Store) readBackClaims(ctx context.Context, claimed []semel.Claimed, mark string, lost *commitError) ([]semel.Claimed, error) {
	rows, err := s.readBack(ctx, len(claimed), func(i int) (semel.Key, bool) { return claimed[i].Operation.Key, true })
	if err != nil {
		return nil, unknown("claim", lost)
	}
	var ours []semel.Claimed
	for i, op := range rows {
		if op != nil && op.Owner == mark && op.Token == claimed[i].Operation.Token {
			ours = append(ours, claimed[i])
		}
	}
	if len(ours) == 0 {
		return nil, refusal("claim", lost)
	}
	return ours, nil
}
