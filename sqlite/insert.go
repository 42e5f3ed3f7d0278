package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/semel-dev/semel"
)

// Insert implements [semel.Tx]. The batch is one transaction.
func (s *Store) Insert(ctx context.Context, batch []semel.Insertion) ([]semel.Inserted, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	out, err := s.insertAll(ctx, batch)
	if err != nil && len(batch) > 1 && concernsOne(err) {
		return singly(batch, func(in semel.Insertion) semel.Inserted {
			one, err := s.insertAll(ctx, []semel.Insertion{in})
			if err != nil {
				return semel.Inserted{Err: err}
			}
			return one[0]
		}), nil
	}
	return out, err
}

func (s *Store) insertAll(ctx context.Context, batch []semel.Insertion) (out []semel.Inserted, err error) {
	err = s.write(ctx, "insert", func(ctx context.Context, r runner, now moment) error {
		out, err = s.insertIn(ctx, r, now, batch)
		return err
	})
	var lost *commitError
	if errors.As(err, &lost) {
		return s.readBackInserts(ctx, batch, out, lost)
	}
	return out, err
}

// singly gives every member of a failed batch a try of its own.
func singly[Q, A any](batch []Q, try func(Q) A) []A {
	out := make([]A, len(batch))
	for i, q := range batch {
		out[i] = try(q)
	}
	return out
}

// insertIn inserts a batch in a transaction that is open already.
func (s *Store) insertIn(ctx context.Context, r runner, now moment, batch []semel.Insertion) ([]semel.Inserted, error) {
	out := make([]semel.Inserted, len(batch))
	up := newUpkeep()
	known := horizons{}
	for i, in := range batch {
		if err := in.Validate(); err != nil {
			out[i].Err = err
			continue
		}
		refused, err := s.refuses(ctx, r, now, in, known)
		if err != nil {
			return nil, err
		}
		if refused == 0 {
			if out[i].Operation, err = s.create(ctx, r, now, in, up); err != nil {
				return nil, err
			}
			if out[i].Operation != nil {
				out[i].Verdict = semel.Created
				continue
			}
		}
		// The key is taken, or it would be refused if it were free.
		op, err := s.load(ctx, r, in.Key)
		switch {
		case err != nil:
			return nil, err
		case op != nil:
			out[i] = semel.Inserted{Verdict: semel.Exists, Operation: op}
		default:
			out[i].Verdict = refused
		}
	}
	return out, up.flush(ctx, r)
}

// refuses says what a free key would be refused for; 0 for nothing.
func (s *Store) refuses(ctx context.Context, r runner, now moment, in semel.Insertion, known horizons) (semel.InsertVerdict, error) {
	if !in.IDTime.IsZero() {
		horizon, err := known.of(ctx, s, r, in.Key)
		if err != nil {
			return 0, err
		}
		if in.IDTime.UnixMilli() <= horizon {
			return semel.PastHorizon, nil
		}
	}
	if !in.AcceptUntil.IsZero() && now.ms() > in.AcceptUntil.UnixMilli() {
		return semel.PastDeadline, nil
	}
	return 0, nil
}

// noHorizon is before every ID's time.
const noHorizon = -1 << 62

func (s *Store) horizon(ctx context.Context, r runner, shard int, kind string) (int64, error) {
	h := int64(noHorizon)
	_, err := r.row(ctx, `SELECT horizon_at FROM semel_horizon WHERE shard = ? AND kind = ?`, []any{shard, kind}, &h)
	return h, err
}

// horizons remembers horizons for one batch.
type horizons map[lane]int64

func (known horizons) of(ctx context.Context, s *Store, r runner, k semel.Key) (int64, error) {
	at := lane{shard: s.shard(k), kind: k.Kind}
	if h, ok := known[at]; ok {
		return h, nil
	}
	h, err := s.horizon(ctx, r, s.shard(k), k.Kind)
	known[at] = h
	return h, err
}

// create writes the rows of a new operation, or returns nil if the key is taken:
// the primary key decides.
func (s *Store) create(ctx context.Context, r runner, now moment, in semel.Insertion, up *upkeep) (*semel.Operation, error) {
	var due int64
	var expires time.Time
	if in.State.Settled() {
		expires = timeOf(now.after(in.Retain))
	} else {
		due = now.after(in.Due)
	}
	op := in.Operation(timeOf(now.ms()), expires)
	if in.Begun != nil {
		due = now.until(in.Due) // the end of its lease
	}
	args := s.keyArgs(in.Key, op.State, op.AsSent, op.Fingerprint, op.SchemaVersion,
		ms(in.IDTime.UnixMilli(), !in.IDTime.IsZero()), op.Attempts, op.Executions, op.Token, op.Owner,
		now.ms(), now.ms(), msOf(op.ExpiresAt), due, blob(op.Params), blob(op.Request))
	n, err := r.exec(ctx, `INSERT INTO semel_operation (shard, account, kind, operation_id, state, as_sent, fingerprint,
		schema_version, id_time, attempts, executions, revision, token, owner, created_at, updated_at, expires_at, due_at, params, request)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (shard, account, kind, operation_id) DO NOTHING`, args...)
	if err != nil || n == 0 {
		return nil, err
	}
	if in.AttemptID != "" {
		if err := s.addAttempt(ctx, r, in.Key, 1, in.AttemptID, now); err != nil {
			return nil, err
		}
	}
	if in.Begun != nil {
		x := execution{token: 1, worker: in.Begun.Worker, contract: in.Begun.Contract, lease: in.Begun.Lease, begun: true}
		if err := s.addExecution(ctx, r, in.Key, x, now); err != nil {
			return nil, err
		}
	}
	up.moved(in.Key.Kind, semel.None, in.State)
	return op, moveWork(ctx, r, in.Key, 0, due, up)
}

// readBackInserts finds out what became of a batch whose commit was answered
// with an error. A row that is not ours was written by somebody else: it exists.
func (s *Store) readBackInserts(ctx context.Context, batch []semel.Insertion, out []semel.Inserted, lost *commitError) ([]semel.Inserted, error) {
	rows, err := s.readBack(ctx, len(batch), func(i int) (semel.Key, bool) { return batch[i].Key, out[i].Verdict == semel.Created })
	if err != nil {
		return nil, unknown("insert", lost)
	}
	for i, op := range rows {
		switch {
		case out[i].Verdict != semel.Created:
		case op == nil:
			out[i] = semel.Inserted{Err: refusal("insert", lost)}
		case op.Owner != batch[i].Owner:
			out[i] = semel.Inserted{Verdict: semel.Exists, Operation: op}
		}
	}
	return out, nil
}

// readBack reads the rows of the members that want it, on a connection that does
// not remember the failed transaction.
func (s *Store) readBack(ctx context.Context, n int, member func(int) (semel.Key, bool)) ([]*semel.Operation, error) {
	ctx = context.WithoutCancel(ctx)
	rows := make([]*semel.Operation, n)
	err := s.snapshot(ctx, "read back", func(ctx context.Context, r runner) (err error) {
		for i := range n {
			if key, wanted := member(i); wanted && err == nil {
				rows[i], err = s.load(ctx, r, key)
			}
		}
		return err
	})
	return rows, err
}
