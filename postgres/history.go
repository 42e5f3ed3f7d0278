package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

const (
	isKey = `shard = $1 AND account = $2 AND kind = $3 AND operation_id = $4`

	executionColumns = `x.token, x.worker, x.contract, x.step, x.claimed_at, x.lease_ends_at, coalesce(x.begun_at, 0), coalesce(x.ended_at, 0),
	coalesce(x.outcome, ''), x.evidence, coalesce(x.late_outcome, ''), x.late_evidence, coalesce(x.late_at, 0)`

	// latestExecution is that of an operation o in the same form.
	latestExecution = `SELECT o.run_token, o.run_worker, o.run_contract, o.run_step, o.run_claimed_at, o.run_ends_at, coalesce(o.run_begun_at, 0),
	coalesce(o.run_ended_at, 0), coalesce(o.run_outcome, ''), o.run_evidence, coalesce(o.run_late_outcome, ''), o.run_late_evidence, coalesce(o.run_late_at, 0)
FROM semel_operation o WHERE ` + isKey + ` AND o.run_token IS NOT NULL`
)

// History implements [semel.Store].
func (s *Store) History(ctx context.Context, key semel.Key) (semel.History, error) {
	var h semel.History
	args := []any{s.shard(key), key.Account, key.Kind, key.ID}
	err := s.snapshot(ctx, "history", func(b *batch) {
		h = semel.History{Attempts: []semel.Attempt{}, Executions: []semel.Execution{}, Verdicts: []semel.Verdict{}}
		b.each(`SELECT attempt_id, at FROM semel_attempt WHERE `+isKey+` ORDER BY number`, args, func(rows pgx.Rows) error {
			a, at := semel.Attempt{Key: key}, int64(0)
			err := rows.Scan(&a.ID, &at)
			a.At = timeOf(at)
			h.Attempts = append(h.Attempts, a)
			return err
		})
		execution := func(rows pgx.Rows) error {
			x, err := scanExecution(rows)
			h.Executions = append(h.Executions, x)
			return err
		}
		b.each(`SELECT `+executionColumns+` FROM semel_execution x WHERE `+isKey+` ORDER BY token`, args, execution)
		b.each(latestExecution, args, execution)
		b.each(`SELECT verdict, then_do, evidence, by_whom, result, token, at FROM semel_verdict WHERE `+isKey+` ORDER BY revision`, args, func(rows pgx.Rows) error {
			v, at := semel.Verdict{}, int64(0)
			err := rows.Scan(&v.Verdict, &v.Then, &v.Evidence, &v.By, (*[]byte)(&v.Result), &v.Token, &at)
			v.At = timeOf(at)
			h.Verdicts = append(h.Verdicts, v)
			return err
		})
	})
	if err == nil {
		err = s.readContracts(ctx, h.Executions)
	}
	return h, err
}

func scanExecution(rows pgx.Rows, first ...any) (semel.Execution, error) {
	var x semel.Execution
	var claimed, ends, begun, ended, lateAt int64
	err := rows.Scan(append(first, &x.Token, &x.Worker, &x.Contract, &x.Step, &claimed, &ends, &begun, &ended, (*string)(&x.Outcome),
		(*[]byte)(&x.Evidence), (*string)(&x.LateOutcome), (*[]byte)(&x.LateEvidence), &lateAt)...)
	x.ClaimedAt, x.LeaseEndsAt, x.BegunAt, x.EndedAt, x.LateAt = timeOf(claimed), timeOf(ends), timeOf(begun), timeOf(ended), timeOf(lateAt)
	return x, err
}
