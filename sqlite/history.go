package sqlite

import (
	"context"
	"database/sql"

	"github.com/semel-dev/semel"
)

// History implements [semel.Store].
func (s *Store) History(ctx context.Context, key semel.Key) (semel.History, error) {
	h := semel.History{Attempts: []semel.Attempt{}, Executions: []semel.Execution{}, Verdicts: []semel.Verdict{}}
	err := s.snapshot(ctx, "history", func(ctx context.Context, r runner) error {
		err := r.each(ctx, `SELECT attempt_id, at FROM semel_attempt WHERE `+isKey+` ORDER BY number`, s.keyArgs(key), func(rows *sql.Rows) error {
			a, at := semel.Attempt{Key: key}, int64(0)
			err := rows.Scan(&a.ID, &at)
			a.At = timeOf(at)
			h.Attempts = append(h.Attempts, a)
			return err
		})
		if err != nil {
			return err
		}
		xs, err := s.executions(ctx, r, key)
		if err != nil {
			return err
		}
		h.Executions = append(h.Executions, xs...)
		return r.each(ctx, `SELECT verdict, then_do, evidence, by_whom, result, token, at FROM semel_verdict WHERE `+isKey+` ORDER BY revision`,
			s.keyArgs(key), func(rows *sql.Rows) error {
				v, at, result := semel.Verdict{}, int64(0), []byte(nil)
				err := rows.Scan(&v.Verdict, &v.Then, &v.Evidence, &v.By, bytesIn{&result}, &v.Token, &at)
				v.Result, v.At = result, timeOf(at)
				h.Verdicts = append(h.Verdicts, v)
				return err
			})
	})
	return h, err
}

// executions returns the executions of one operation, oldest first.
func (s *Store) executions(ctx context.Context, r runner, key semel.Key) ([]semel.Execution, error) {
	var all []semel.Execution
	err := r.each(ctx, `SELECT token, worker, contract, step, claimed_at, lease_ends_at, begun_at, ended_at, outcome, evidence,
		late_outcome, late_evidence, late_at FROM semel_execution WHERE `+isKey+` ORDER BY token`, s.keyArgs(key), func(rows *sql.Rows) error {
		var x semel.Execution
		var claimed, ends, begun, ended, lateAt int64
		var evidence, late []byte
		err := rows.Scan(&x.Token, &x.Worker, &x.Contract, &x.Step, &claimed, &ends, &begun, &ended, &x.Outcome, bytesIn{&evidence},
			&x.LateOutcome, bytesIn{&late}, &lateAt)
		x.ClaimedAt, x.LeaseEndsAt, x.BegunAt, x.EndedAt, x.LateAt = timeOf(claimed), timeOf(ends), timeOf(begun), timeOf(ended), timeOf(lateAt)
		x.Evidence, x.LateEvidence = evidence, late
		all = append(all, x)
		return err
	})
	return all, err
}
