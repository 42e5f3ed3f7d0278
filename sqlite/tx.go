package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/semel-dev/semel"
	lib "modernc.org/sqlite/lib"
)

// Tx returns a [semel.Tx] that works inside tx, a transaction on the file of
// store, begun on a database from [OpenDB]. What it writes commits or rolls back
// with tx; when a call fails, what that call wrote is undone, and tx may go on.
// The sharding and the clock are those of store.
//
// In a transaction that began by reading, a write can find that another one came
// in between: that is [semel.CodeRetryTransaction], and the whole transaction
// must be run again. It does not happen with transactions of OpenDB.
//
// Like tx, it is used by one goroutine at a time.
func Tx(store *Store, tx *sql.Tx) semel.Tx { return &txn{store, inTx{tx}} }

type txn struct {
	store *Store
	r     inTx
}

func (t *txn) Insert(ctx context.Context, batch []semel.Insertion) (out []semel.Inserted, err error) {
	err = t.undoable(ctx, "insert", func(ctx context.Context) error {
		out, err = t.store.insertIn(ctx, t.r, t.store.now(), batch)
		return err
	})
	return out, err
}

func (t *txn) Get(ctx context.Context, keys []semel.Key) ([]semel.Found, error) {
	out, err := t.store.getIn(ctx, t.r, keys)
	if err != nil {
		return nil, retryable("get", err)
	}
	return out, nil
}

func (t *txn) Apply(ctx context.Context, batch []semel.Change) (out []semel.Applying, err error) {
	err = t.undoable(ctx, "apply", func(ctx context.Context) error {
		out, err = t.store.applyIn(ctx, t.r, t.store.now(), batch)
		return err
	})
	return out, err
}

// undoable runs fn behind a savepoint.
func (t *txn) undoable(ctx context.Context, op string, fn func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return refusal(op, err)
	}
	ctx = context.WithoutCancel(ctx)
	if _, err := t.r.exec(ctx, "SAVEPOINT semel"); err != nil {
		return retryable(op, err)
	}
	err := fn(ctx)
	if err != nil {
		t.r.exec(ctx, "ROLLBACK TO semel")
	}
	if _, e := t.r.exec(ctx, "RELEASE semel"); err == nil {
		err = e
	}
	if err != nil {
		return retryable(op, err)
	}
	return nil
}

// retryable is refusal, but a lost race is told as such: SQLite can't wait in a
// transaction that has read an older state.
func retryable(op string, err error) error {
	e := refusal(op, err)
	if code := resultCode(err); code == lib.SQLITE_BUSY {
		e.Code = semel.CodeRetryTransaction
		e.Msg = "another transaction wrote first"
		e.Hint = "roll back, and run the whole transaction again"
	}
	if errors.Is(err, sql.ErrTxDone) {
		e.Code, e.Msg, e.Hint = semel.CodeInternal, "the transaction is over", ""
	}
	return e
}
