package postgres

import (
	"context"
	"hash/fnv"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

// A reservation is an operation that has begun in a [Transaction]. Most of them end
// there as well, and until then nobody else can see them: so until the commit all
// there is of one is a lock on its key, and its row is written once, as it has ended.
// Whether that row is the first of its key is up to the unique constraint then, as
// always; the lock is for rivals in other transactions, which wait for it and do not
// do their work in vain.
type reservation struct {
	store   *Store
	in      semel.Insertion
	created int64 // by the database's clock
	op      semel.Operation

	// How it ended, if it has.
	change   *semel.Change
	evidence []byte
}

const (
	// lockKey waits for a rival up to $1, one in the same schema. What it notes is
	// forgotten by whatever rolls the lock back, such as a savepoint.
	lockKey = `SELECT set_config('semel.lock_timeout', current_setting('lock_timeout'), true), set_config('lock_timeout', $1, true),
	pg_advisory_xact_lock($2::bigint # 'semel_operation'::regclass::oid::bigint), set_config('lock_timeout', current_setting('semel.lock_timeout'), true),
	set_config('semel.reserved', $3, true)`

	// seekKey says whether an operation may begin. It is not part of lockKey: so it sees
	// whatever was committed until then. Where it does not, it says nothing.
	seekKey = `SELECT t.now, CASE WHEN current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') THEN t.now <= $2::bigint
	AND NOT EXISTS (SELECT 1 FROM semel_operation o WHERE o.shard = $3::smallint AND o.account = $4 AND o.kind = $5 AND o.operation_id = $6)
	AND NOT EXISTS (SELECT 1 FROM semel_horizon h WHERE h.shard = $3 AND h.kind = $5 AND h.horizon_at >= $7) END
FROM (SELECT ` + nowMS + ` AS now) t`

	// writeReserved has no ON CONFLICT: it ends the transaction if the key was taken by
	// one that did not ask for the lock, or if the lock was rolled back. For a rival
	// that has not committed it waits up to $30.
	writeReserved = `INSERT INTO semel_operation (shard, account, kind, operation_id, state, as_sent, fingerprint, schema_version, id_time,
	attempts, executions, revision, token, cleared_token, owner, created_at, updated_at, due_at, expires_at, filed, params, request,
	result, failure_code, failure_message, run_token, run_worker, run_contract, run_step, run_claimed_at, run_ends_at, run_begun_at,
	run_ended_at, run_outcome, run_evidence)
SELECT $2::smallint, $3, $4, $5, $6, $7, $8, $9, $10::bigint, $11::bigint, 1, $12::bigint, 1, $13::bigint,
	CASE WHEN current_setting('semel.reserved', true) = $14
		AND set_config('semel.lock_timeout', current_setting('lock_timeout'), true) || set_config('lock_timeout', $30, true) <> '' THEN $15 END,
	$16::bigint, CASE WHEN $18::bigint IS NULL THEN $16 ELSE t.now END, $17::bigint, CASE WHEN $18 IS NULL THEN 0 ELSE t.now + $18 END,
	$19, $20::bytea, $21::bytea, $22::bytea, $23, $24, 1, $25, $26, '', $16, $27::bigint, $16,
	CASE WHEN $18 IS NOT NULL THEN t.now END, $28, $29::bytea
FROM (SELECT ` + nowMS + ` AS now) t
RETURNING updated_at, expires_at, set_config('lock_timeout', current_setting('semel.lock_timeout'), true),
	set_config('semel.expires_at', expires_at::text, true)`

	// keepReserved is the expiry of an operation that has ended, as writeReserved notes
	// it. If the horizon has passed its ID since it was looked for, there is no time to
	// write (see insertStatements), which ends the transaction.
	keepReserved = `INSERT INTO semel_expiry (shard, account, kind, operation_id, expires_at)
VALUES ($1, $2, $3, $4, current_setting('semel.expires_at')::bigint / CASE WHEN EXISTS (
		SELECT 1 FROM semel_horizon h WHERE h.shard = $1 AND h.kind = $3 AND h.horizon_at >= $5) THEN 0 ELSE 1 END)`
)

// lockOf is the advisory lock of a key. Another key with the same one waits in vain, and
// that is all.
func lockOf(k semel.Key) int64 {
	h := fnv.New64a()
	for _, part := range []string{"semel", k.Account, k.Kind, k.ID} {
		io.WriteString(h, part)
		h.Write([]byte{0})
	}
	return int64(h.Sum64())
}

// reserve is Insert for one operation that begins in a [Transaction]: its lock goes
// on the same way as the BEGIN. What is there instead is asked for if it must be.
func (t *txn) reserve(ctx context.Context, own *Transaction, in semel.Insertion) (out semel.Inserted, err error) {
	if err := ctx.Err(); err != nil {
		return out, refusal("insert", err)
	}
	s := t.store
	var b batch
	var created int64
	var free *bool // nil: it is not known
	own.flush(&b)
	b.queue(lockKey, s.lockTimeout, lockOf(in.Key), in.Owner)
	b.each(seekKey, []any{s.now(), orNoTime(in.AcceptUntil), s.shard(in.Key), in.Key.Account, in.Key.Kind, in.Key.ID, orNoTime(in.IDTime)},
		func(rows pgx.Rows) error { return rows.Scan(&created, &free) })
	if err := own.send(ctx, &b.Batch).Close(); err != nil {
		return semel.Inserted{}, inTransaction("insert", err)
	}
	own.kept = nil
	switch {
	case free == nil:
		some, err := t.insert(ctx, []semel.Insertion{in})
		if err != nil {
			return out, err
		}
		return some[0], nil
	case *free:
		out = semel.Inserted{Verdict: semel.Created, Operation: in.Operation(timeOf(created), timeOf(0))}
		in.Params, in.Request = slices.Clone(in.Params), slices.Clone(in.Request) // the caller's memory is the caller's
		own.kept = &reservation{store: s, in: in, created: created, op: *out.Operation}
		return out, nil
	}
	members, all := []semel.Insertion{in}, []semel.Inserted{{}}
	b = batch{}
	queueOthers(&b, s.insertColumns(members), members, all)
	if err := own.send(ctx, &b.Batch).Close(); err != nil {
		return semel.Inserted{}, inTransaction("insert", err)
	}
	return all[0], nil
}

func orNoTime(t time.Time) int64 {
	if t.IsZero() {
		return noTime
	}
	return t.UnixMilli()
}

// Defer implements [semel.Deferrer], for an operation that has begun in this
// [Transaction] and ends there.
func (t *txn) Defer(c semel.Change) (answer func() semel.Operation, ok bool) {
	own, _ := t.tx.(*Transaction)
	if own == nil || own.shared {
		return nil, false
	}
	x := c.Execution
	if !c.State.Settled() || c.Work != semel.WorkDone || c.NextToken != 0 || c.Begun || c.Acknowledged || c.Contradicted || c.Verdict != nil ||
		x == nil || x.Token != 1 || x.Begin || !x.End {
		return nil, false
	}
	r := own.kept
	if r == nil || r.store != t.store || r.in.Key != c.Key || r.change != nil || c.Revision != 1 || c.Token != 1 {
		return nil, false
	}
	r.end(&c)
	return func() semel.Operation { return r.op }, true
}

// flush adds what was kept back. It is kept until it is written.
func (t *Transaction) flush(b *batch) {
	if t.kept != nil {
		t.kept.write(b)
	}
}

// end makes a change: nobody sees the operation before it is written.
func (r *reservation) end(c *semel.Change) {
	r.change = c
	op := &r.op
	op.State, op.Owner, op.Revision, op.ClearedToken = c.State, c.Owner, 2, c.ClearedToken
	op.Result, r.evidence = slices.Clone(c.Result), slices.Clone(c.Execution.Evidence)
	if c.Failure != nil {
		op.Failure = new(*c.Failure)
	}
}

// write adds the operation as it is, and what goes with it.
func (r *reservation) write(b *batch) {
	s, in, op := r.store, r.in, r.op
	shard, key := s.shard(in.Key), in.Key
	var idTime, due, retain *int64
	var outcome, filed, code *string
	var evidence []byte
	var message string
	attempts := 0
	if !in.IDTime.IsZero() {
		idTime = new(in.IDTime.UnixMilli())
	}
	if in.AttemptID != "" {
		attempts = 1
	}
	if op.Failure != nil {
		code, message = &op.Failure.Code, op.Failure.Message
	}
	if c := r.change; c != nil {
		retain = new(s.span(c.Retain))
		outcome, evidence = (*string)(&c.Execution.Outcome), r.evidence
		if c.State != semel.Succeeded {
			filed = (*string)(&c.State)
		}
	} else {
		due = new(r.created + s.span(in.Due))
	}
	b.each(writeReserved, []any{s.now(), shard, key.Account, key.Kind, key.ID, string(op.State), in.AsSent, in.Fingerprint, in.SchemaVersion, idTime,
		attempts, op.Revision, op.ClearedToken, in.Owner, op.Owner, r.created, due, retain, filed, in.Params, in.Request,
		[]byte(op.Result), code, message, in.Begun.Worker, contractID(in.Begun.Contract), r.created + s.span(in.Begun.Lease), outcome, evidence, s.lockTimeout},
		func(rows pgx.Rows) error {
			var updated, expires int64
			err := rows.Scan(&updated, &expires, nil, nil)
			r.op.UpdatedAt, r.op.ExpiresAt = timeOf(updated), timeOf(expires)
			return err
		})
	if r.change != nil {
		b.queue(keepReserved, shard, key.Account, key.Kind, key.ID, orNoTime(in.IDTime))
	}
	if r.change == nil || attempts > 0 {
		in.Owner = op.Owner // by which it is found
		c := s.insertColumns([]semel.Insertion{in})
		if r.change == nil {
			b.queue(insertOne.work.text, insertOne.work.args(c)...)
		}
		if attempts > 0 {
			b.queue(insertOne.attempts.text, insertOne.attempts.args(c)...)
		}
	}
}
