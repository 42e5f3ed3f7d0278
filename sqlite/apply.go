package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// Apply implements [semel.Tx]. The batch is one transaction.
func (s *Store) Apply(ctx context.Context, batch []semel.Change) ([]semel.Applying, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	out, err := s.applyAll(ctx, batch)
	if err != nil && len(batch) > 1 && concernsOne(err) {
		return singly(batch, func(c semel.Change) semel.Applying {
			one, err := s.applyAll(ctx, []semel.Change{c})
			if err != nil {
				return semel.Applying{Err: err}
			}
			return one[0]
		}), nil
	}
	return out, err
}

func (s *Store) applyAll(ctx context.Context, batch []semel.Change) (out []semel.Applying, err error) {
	err = s.write(ctx, "apply", func(ctx context.Context, r runner, now moment) error {
		out, err = s.applyIn(ctx, r, now, batch)
		return err
	})
	var lost *commitError
	if errors.As(err, &lost) {
		return s.readBackChanges(ctx, batch, out, lost)
	}
	return out, err
}

// applyIn applies a batch in a transaction that is open already.
func (s *Store) applyIn(ctx context.Context, r runner, now moment, batch []semel.Change) ([]semel.Applying, error) {
	out := make([]semel.Applying, len(batch))
	up := newUpkeep()
	for i, c := range batch {
		if !c.State.Valid() {
			out[i].Err = &semel.Error{Op: "apply", Code: semel.CodeInvalid, Key: c.Key, Recorded: semel.RecordedNo,
				Msg: fmt.Sprintf("there is no state %q", c.State)}
			continue
		}
		op, err := s.change(ctx, r, now, c, up)
		if err != nil {
			return nil, err
		}
		out[i] = semel.Applying{Applied: op != nil, Operation: op}
	}
	return out, up.flush(ctx, r)
}

// change makes one change and returns the row after it, or nil if the condition
// does not hold.
func (s *Store) change(ctx context.Context, r runner, now moment, c semel.Change, up *upkeep) (*semel.Operation, error) {
	op, due, err := s.loadDue(ctx, r, c.Key)
	if err != nil || op == nil || op.Revision != c.Revision || op.Token != c.Token {
		return nil, err
	}
	if !op.Expired {
		up.moved(c.Key.Kind, op.State, c.State)
	}
	alter(op, c, now)
	nextDue := due
	switch c.Work {
	case semel.WorkDue:
		nextDue = now.after(c.Due)
	case semel.WorkDone:
		nextDue = 0
	}
	code, message := failureArgs(op.Failure)
	n, err := r.exec(ctx, `UPDATE semel_operation SET state = ?5, executions = ?6, acknowledged = ?7, contradicted = ?8,
		revision = ?9, token = ?10, cleared_token = ?11, owner = ?12, updated_at = ?13, expires_at = ?14,
		failure_code = ?15, failure_message = ?16, result = ?17, due_at = ?18
		WHERE shard = ?1 AND account = ?2 AND kind = ?3 AND operation_id = ?4 AND revision = ?19 AND token = ?20`,
		s.keyArgs(c.Key, op.State, op.Executions, flag(op.Acknowledged), flag(op.Contradicted),
			op.Revision, op.Token, op.ClearedToken, op.Owner, now.ms(), msOf(op.ExpiresAt),
			code, message, blob(op.Result), nextDue, c.Revision, c.Token)...)
	if err != nil || n == 0 {
		return nil, err
	}
	err = moveWork(ctx, r, c.Key, due, nextDue, up)
	if err == nil && c.Execution != nil {
		err = s.changeExecution(ctx, r, c.Key, *c.Execution, now)
	}
	if err == nil && c.Verdict != nil {
		v := c.Verdict
		_, err = r.exec(ctx, `INSERT INTO semel_verdict (shard, account, kind, operation_id, revision, verdict, then_do, evidence,
			by_whom, result, token, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			s.keyArgs(c.Key, op.Revision, v.Verdict, v.Then, v.Evidence, v.By, blob(v.Result), v.Token, now.ms())...)
	}
	return op, err
}

// alter makes the row after a change out of the row before it.
func alter(op *semel.Operation, c semel.Change, now moment) {
	if c.State.Settled() && !op.State.Settled() {
		op.ExpiresAt = timeOf(now.after(c.Retain))
	}
	op.State, op.Owner, op.UpdatedAt = c.State, c.Owner, timeOf(now.ms())
	op.Revision++
	if c.NextToken != 0 {
		op.Token = c.NextToken
	}
	if c.ClearedToken != 0 {
		op.ClearedToken = c.ClearedToken
	}
	if c.Result != nil {
		op.Result = clone(c.Result)
	}
	if c.Failure != nil {
		f := *c.Failure
		op.Failure = &f
	} else if c.State == semel.Succeeded || c.State == semel.Abandoned {
		op.Failure = nil
	}
	op.Acknowledged = op.Acknowledged || c.Acknowledged
	op.Contradicted = op.Contradicted || c.Contradicted
	if c.Begun {
		op.Executions++
	}
}

func (s *Store) changeExecution(ctx context.Context, r runner, k semel.Key, x semel.ExecutionChange, now moment) error {
	if x.Begin {
		_, err := r.exec(ctx, `UPDATE semel_execution SET begun_at = ?6 WHERE shard = ?1 AND account = ?2 AND kind = ?3
			AND operation_id = ?4 AND token = ?5 AND begun_at = 0`, s.keyArgs(k, x.Token, now.ms())...)
		if err != nil {
			return err
		}
	}
	if x.End {
		_, err := r.exec(ctx, `UPDATE semel_execution SET ended_at = ?6, outcome = ?7, evidence = ?8 WHERE shard = ?1
			AND account = ?2 AND kind = ?3 AND operation_id = ?4 AND token = ?5`,
			s.keyArgs(k, x.Token, now.ms(), string(x.Outcome), blob(x.Evidence))...)
		return err
	}
	return nil
}

// readBackChanges finds out what became of a batch whose commit was answered
// with an error.
func (s *Store) readBackChanges(ctx context.Context, batch []semel.Change, out []semel.Applying, lost *commitError) ([]semel.Applying, error) {
	rows, err := s.readBack(ctx, len(batch), func(i int) (semel.Key, bool) { return batch[i].Key, out[i].Applied })
	if err != nil {
		return nil, unknown("apply", lost)
	}
	for i, op := range rows {
		c := batch[i]
		switch {
		case !out[i].Applied:
		case op != nil && op.Owner == c.Owner:
			out[i].Operation = op
		case op != nil && op.Revision == c.Revision && op.Token == c.Token:
			out[i] = semel.Applying{Err: refusal("apply", lost)}
		default: // changed again since, by us or before us
			out[i] = semel.Applying{Err: unknown("apply", lost)}
		}
	}
	return out, nil
}

func msOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
