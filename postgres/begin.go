package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Begin is like pool.Begin, for transactions that [Tx] is used in: it costs the
// ledger no round trip of its own. Nothing is sent yet; the BEGIN goes out with the
// first statement, and what the ledger need not know before the end (see
// [semel.Ledger.FinishLast]), with the COMMIT. The isolation level is that of the
// database; for another one use pool.BeginTx, which works as well and takes longer.
//
// An operation that begins in such a transaction is written once, when it commits.
// Until then its key is held by an advisory lock of the transaction, which rivals
// begun in the same way wait for. One that was begun otherwise does not: then the
// unique constraint decides, and the Commit that comes second is
// [semel.CodeRetryTransaction] and rolls back; it is [semel.CodeInProgress] if that
// rival has not committed after Options.LockTimeout. (Above READ COMMITTED, where a
// transaction would not see what it has waited for, an operation is written as it
// begins.)
func Begin(ctx context.Context, pool *pgxpool.Pool) (*Transaction, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &Transaction{conn: conn}, nil
}

// A Transaction is a [pgx.Tx] made by [Begin]. End it with its Commit or Rollback,
// and not by a COMMIT of your own: the pending work of an operation that has begun in it,
// and has not ended, is written by Commit. Like every pgx.Tx it is used by one
// goroutine at a time, and Rollback may be called after it has ended.
//
// What it keeps back it writes before a statement whose text may end the transaction,
// or a part of it. A savepoint or COMMIT that is not in the text, such as one prepared
// under a name elsewhere, is not seen.
type Transaction struct {
	conn *pgxpool.Conn // nil: it has ended
	tx   pgx.Tx        // nil: no BEGIN was sent
	kept *reservation  // nil: all is written. The next one writes the one before
	// shared: a part of tx that ends with it was handed out, or there may be a
	// savepoint. From then on nothing is kept back, and the COMMIT goes by tx, which
	// closes that part as well.
	shared bool
}

var _ pgx.Tx = (*Transaction)(nil)

// How the statements that were kept back fail.
const (
	keptTaken     = "23505" // unique_violation, of the operation's key
	keptBroken    = "23502" // not_null_violation: the lock on the key was rolled back
	noTimeToWrite = "22012" // division_by_zero: the horizon has passed
	alreadyBroken = "25P02" // in_failed_sql_transaction: a statement before them failed
)

// started sends the BEGIN by itself, if that was not done yet.
func (t *Transaction) started(ctx context.Context) (pgx.Tx, error) {
	if t.conn == nil {
		return nil, pgx.ErrTxClosed
	}
	if t.tx == nil {
		tx, err := t.conn.Begin(ctx)
		if err != nil {
			return nil, err
		}
		t.tx = tx
	}
	return t.tx, nil
}

// startedFor is started for a statement of the caller's.
func (t *Transaction) startedFor(ctx context.Context, sql string) (pgx.Tx, error) {
	tx, err := t.started(ctx)
	if err == nil && endsPart(sql) {
		err = t.share(ctx)
	}
	return tx, err
}

// endsPart reports whether sql may end the transaction, or make a part of it that
// ends by itself; it may be wrong about others.
func endsPart(sql string) bool {
	for _, word := range []string{"savepoint", "commit", "prepare transaction"} {
		if containsFold(sql, word) {
			return true
		}
	}
	for statement := range strings.SplitSeq(sql, ";") { // END is a COMMIT; within a statement it is an expression's
		if statement = strings.TrimSpace(statement); len(statement) >= 3 && strings.EqualFold(statement[:3], "end") {
			return true
		}
	}
	return false
}

func containsFold(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == word[0] && strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// share writes what was kept back, before something that could roll it back without
// the rest. From then on nothing is kept back.
func (t *Transaction) share(ctx context.Context) error {
	t.shared = true
	if err := t.write(ctx); err != nil {
		return inTransaction("savepoint", err)
	}
	return nil
}

// SendBatch implements [pgx.Tx]. The first one takes the BEGIN along.
func (t *Transaction) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.conn != nil && (t.kept != nil || !t.shared) && slices.ContainsFunc(b.QueuedQueries, func(q *pgx.QueuedQuery) bool { return endsPart(q.SQL) }) {
		if err := t.share(ctx); err != nil {
			return pgx.FailedBatchResults(b, err)
		}
	}
	return t.send(ctx, b)
}

// send is SendBatch for what does not end anything.
func (t *Transaction) send(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.conn == nil {
		return pgx.FailedBatchResults(b, pgx.ErrTxClosed)
	}
	if t.tx != nil {
		return t.tx.SendBatch(ctx, b)
	}
	var all pgx.Batch
	all.BeginTx(pgx.TxOptions{})
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	results := t.conn.SendBatch(ctx, &all)
	t.tx = results.Tx()
	results.Exec() // an error stays in the results
	return results
}

// Commit implements [pgx.Tx]. What was kept back for it goes out on the same way;
// if that can't be written, nothing is committed, and the error is a *semel.Error. So
// it is ([semel.CodeRetryTransaction]) if the database has rolled the transaction back
// since it lost a race.
func (t *Transaction) Commit(ctx context.Context) error {
	if t.conn == nil {
		return pgx.ErrTxClosed
	}
	defer t.end()
	if t.tx == nil {
		return nil // nothing was sent
	}
	if t.shared {
		if err := t.write(ctx); err != nil {
			t.tx.Rollback(ctx)
			return committing(err, false)
		}
	}
	if t.kept == nil {
		return committing(t.tx.Commit(ctx), true)
	}
	var b batch
	var tag pgconn.CommandTag
	written := false // what was kept
	t.flush(&b)
	b.QueuedQueries[b.Len()-1].Exec(func(pgconn.CommandTag) error { written = true; return nil })
	b.Queue("COMMIT").Exec(func(c pgconn.CommandTag) error { tag = c; return nil })
	if err := t.tx.SendBatch(ctx, &b.Batch).Close(); err != nil {
		t.tx.Rollback(ctx) // else the connection is not used again
		return committing(err, written)
	}
	if tag.String() == "ROLLBACK" {
		return pgx.ErrTxCommitRollback
	}
	return nil
}

// committing is the error of a commit: of what was kept back, or, when that was
// written, of the COMMIT itself.
func committing(err error, written bool) error {
	state := sqlState(err)
	if aborted(err) && (!written || state == "40001" || state == "40P01") {
		return inTransaction("commit", err)
	}
	return err
}

// Rollback implements [pgx.Tx].
func (t *Transaction) Rollback(ctx context.Context) error {
	if t.conn == nil {
		return pgx.ErrTxClosed
	}
	defer t.end()
	if t.tx == nil {
		return nil
	}
	return t.tx.Rollback(ctx)
}

func (t *Transaction) end() {
	t.conn.Release()
	t.conn, t.kept = nil, nil
}

// write writes what was kept back.
func (t *Transaction) write(ctx context.Context) error {
	if t.kept == nil {
		return nil
	}
	var b batch
	t.flush(&b)
	err := t.tx.SendBatch(ctx, &b.Batch).Close()
	if err == nil {
		t.kept = nil
	}
	return err
}

// Begin implements [pgx.Tx] with a savepoint. What was kept back is written before
// it, and before a SAVEPOINT of your own: it must not be rolled back with it.
func (t *Transaction) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := t.startedFor(ctx, "SAVEPOINT")
	if err != nil {
		return nil, err
	}
	return tx.Begin(ctx)
}

// Exec implements [pgx.Tx].
func (t *Transaction) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tx, err := t.startedFor(ctx, sql)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	return tx.Exec(ctx, sql, args...)
}

// Query implements [pgx.Tx].
func (t *Transaction) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	tx, err := t.startedFor(ctx, sql)
	if err != nil {
		return failed(err).Query()
	}
	return tx.Query(ctx, sql, args...)
}

// QueryRow implements [pgx.Tx].
func (t *Transaction) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	tx, err := t.startedFor(ctx, sql)
	if err != nil {
		return failed(err).QueryRow()
	}
	return tx.QueryRow(ctx, sql, args...)
}

func failed(err error) pgx.BatchResults { return pgx.FailedBatchResults(&pgx.Batch{}, err) }

// CopyFrom implements [pgx.Tx].
func (t *Transaction) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	tx, err := t.started(ctx)
	if err != nil {
		return 0, err
	}
	return tx.CopyFrom(ctx, table, columns, rows)
}

// Prepare implements [pgx.Tx].
func (t *Transaction) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	tx, err := t.startedFor(ctx, sql)
	if err != nil {
		return nil, err
	}
	return tx.Prepare(ctx, name, sql)
}

// LargeObjects implements [pgx.Tx].
func (t *Transaction) LargeObjects() pgx.LargeObjects {
	tx, err := t.started(context.Background())
	if err == nil {
		t.shareUnseen()
	}
	if err != nil { // those of a transaction that is over
		var b pgx.Batch
		b.BeginTx(pgx.TxOptions{})
		tx = pgx.FailedBatchResults(&b, err).Tx()
	}
	return tx.LargeObjects()
}

// Conn implements [pgx.Tx]. It is nil once the transaction has ended, or if it could
// not be begun. From then on nothing is kept back, since what goes over the connection
// itself is not seen here.
func (t *Transaction) Conn() *pgx.Conn {
	tx, err := t.started(context.Background())
	if err != nil {
		return nil
	}
	t.shareUnseen()
	return tx.Conn()
}

// shareUnseen is share for what can't tell of an error: it stays in the transaction, or
// the connection is gone.
func (t *Transaction) shareUnseen() {
	ctx := context.Background()
	if t.kept != nil {
		bounded, cancel := context.WithTimeout(ctx, t.kept.store.opts.Timeout)
		defer cancel()
		ctx = bounded
	}
	t.share(ctx)
}
