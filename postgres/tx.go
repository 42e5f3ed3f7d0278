package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

// A Sender is a transaction of a caller's: a pgx.Tx (best one that [Begin] made), or
// a *pgx.Conn on which one is open (such as the one behind a *sql.Conn of
// pgx/v5/stdlib).
type Sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Tx returns a [semel.Tx] that works inside tx, a transaction on the database of
// store. What it writes commits or rolls back with tx. The sharding and the clock
// are those of store.
//
// An insertion waits for an uncommitted rival of the same key up to
// Options.LockTimeout; then it is [semel.CodeInProgress]. Above READ COMMITTED, a
// lost race is [semel.CodeRetryTransaction]: run the whole transaction again; and one
// that is older than the kind's retention does not see what was forgotten since, so
// begin nothing in it. After every error PostgreSQL has rolled the transaction back;
// end it with Rollback.
//
// Like tx, it is used by one goroutine at a time.
func Tx(store *Store, tx Sender) semel.Tx { return &txn{store, tx} }

type txn struct {
	store *Store
	tx    Sender
}

func (t *txn) Insert(ctx context.Context, members []semel.Insertion) ([]semel.Inserted, error) {
	out := make([]semel.Inserted, len(members))
	var which []int
	for i, in := range members {
		if err := in.Validate(); err != nil {
			out[i].Err = err
		} else {
			which = append(which, i)
		}
	}
	if len(which) == 0 {
		return out, nil
	}
	if err := t.store.saveBegun(ctx, members); err != nil {
		return nil, err
	}
	if own, ok := t.tx.(*Transaction); ok && !own.shared && !t.store.opts.NoAdvisoryLocks && len(which) == 1 && members[which[0]].Begun != nil {
		var err error
		out[which[0]], err = t.reserve(ctx, own, members[which[0]])
		if err != nil {
			return nil, err
		}
		return out, nil
	}
	some, err := t.insert(ctx, pickOf(members, which))
	if err != nil {
		return nil, err
	}
	for n, i := range which {
		out[i] = some[n]
	}
	return out, nil
}

func (t *txn) insert(ctx context.Context, members []semel.Insertion) (out []semel.Inserted, err error) {
	err = t.send(ctx, "insert", func(b *batch) {
		c := t.store.insertColumns(members)
		out = t.store.queueInsert(b, c, members)
		queueOthers(b, c, members, out)
	})
	return out, err
}

func (t *txn) Get(ctx context.Context, keys []semel.Key) ([]semel.Found, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var out []semel.Found
	err := t.send(ctx, "get", func(b *batch) { out = t.store.queueGet(b, keys) })
	return out, err
}

func (t *txn) Apply(ctx context.Context, members []semel.Change) ([]semel.Applying, error) {
	out := make([]semel.Applying, len(members))
	which := sortChanges(members, out)
	if len(which) == 0 {
		return out, nil
	}
	a := t.store.newApply(pickOf(members, which))
	if err := t.send(ctx, "apply", a.steps()...); err != nil {
		return nil, err
	}
	for n, i := range which {
		out[i] = a.out[n]
	}
	return out, nil
}

// The settings of the transaction are put aside and put back: they are the caller's.
// (Without ours the arrays in the statements would be planned anew every time, and
// that takes longer than all the rest.)
var ownSettings, putBack = func() (own, back string) {
	for i, set := range settings(0) {
		value := "'" + set[1] + "'"
		if i == 0 { // the lock timeout
			value = "$1"
		}
		own += fmt.Sprintf(", set_config('semel.%[1]s', current_setting('%[1]s'), true), set_config('%[1]s', %[2]s, true)", set[0], value)
		back += fmt.Sprintf(", set_config('%[1]s', current_setting('semel.%[1]s'), true)", set[0])
	}
	return "SELECT" + own[1:], "SELECT" + back[1:]
}()

// send sends the steps in the caller's transaction: one round trip for each.
func (t *txn) send(ctx context.Context, op string, steps ...step) error {
	if err := ctx.Err(); err != nil {
		return refusal(op, err)
	}
	for i, fill := range steps {
		var b batch
		sendBatch := t.tx.SendBatch
		own, _ := t.tx.(*Transaction)
		if own != nil {
			own.flush(&b)
			sendBatch = own.send
		}
		if i == 0 {
			b.queue(ownSettings, t.store.lockTimeout)
		}
		fill(&b)
		if i == len(steps)-1 {
			b.queue(putBack)
		}
		if err := sendBatch(ctx, &b.Batch).Close(); err != nil {
			return inTransaction(op, err)
		}
		if own != nil {
			own.kept = nil
		}
	}
	return nil
}

// inTransaction is refusal for a caller's transaction, which is over after an error.
func inTransaction(op string, err error) *semel.Error {
	e := refusal(op, err)
	switch state := sqlState(err); {
	case state == "40001", state == "40P01", state == noTimeToWrite, taken(err):
		e.Code, e.Msg = semel.CodeRetryTransaction, "another transaction was faster"
		e.Hint = "roll back, and run the whole transaction again"
	case state == keptBroken:
		e.Code, e.Msg = semel.CodeLeaseLost, "the operation was rolled back before its end could be written"
		e.Hint = "roll back"
	case lockTimedOut(err) && op != "get" && op != "apply":
		e.Code, e.Msg = semel.CodeInProgress, "a transaction that has not ended yet is recording the same operation"
		e.Hint = "roll back, and run the whole transaction again later"
	case state == alreadyBroken:
		e.Code, e.Msg = semel.CodeRetryTransaction, "the transaction failed before this call"
		e.Hint = "roll back, and run the whole transaction again"
	case errors.Is(err, pgx.ErrTxClosed):
		// Who has ended it, and how, is not known here.
		e.Code, e.Recorded, e.Msg, e.Hint = semel.CodeInternal, semel.RecordedUnknown, "the transaction is over", ""
	}
	return e
}
