package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/semel-dev/semel"
)

// A runner runs statements: on a connection of the store's, where they stay
// prepared, or in a transaction of the caller's.
type runner interface {
	exec(ctx context.Context, query string, args ...any) (changed int64, err error)
	// row scans the first row into dest and reports whether there was one.
	row(ctx context.Context, query string, args []any, dest ...any) (bool, error)
	// each calls scan for every row.
	each(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error
	// script runs several statements at once, without arguments.
	script(ctx context.Context, text string) error
}

// A session is one connection with its prepared statements; one goroutine at a
// time uses it.
type session struct {
	conn   *sql.Conn
	pragma string // what makes it a reader or a writer
	stmts  map[string]*sql.Stmt
}

const (
	reads  = "PRAGMA query_only = ON"
	writes = "PRAGMA busy_timeout = 0" // begin waits, and fairly
)

func newSession(ctx context.Context, db *sql.DB, pragma string) (*session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, pragma); err != nil {
		conn.Close()
		return nil, err
	}
	return &session{conn: conn, pragma: pragma, stmts: map[string]*sql.Stmt{}}, nil
}

// mend replaces a connection that the driver gave up.
func (s *session) mend(ctx context.Context, db *sql.DB, err error) {
	if !errors.Is(err, sql.ErrConnDone) && !errors.Is(err, driver.ErrBadConn) {
		return
	}
	s.conn.Close() // its statements went with it: closing them now would touch freed memory
	fresh, err := newSession(context.WithoutCancel(ctx), db, s.pragma)
	if err == nil {
		*s = *fresh
	}
}

func (s *session) close() error {
	for _, stmt := range s.stmts {
		stmt.Close()
	}
	return s.conn.Close()
}

func (s *session) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := s.stmts[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.conn.PrepareContext(ctx, query)
	if err == nil {
		s.stmts[query] = stmt
	}
	return stmt, err
}

func (s *session) exec(ctx context.Context, query string, args ...any) (int64, error) {
	stmt, err := s.stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	res, err := stmt.ExecContext(ctx, args...)
	return changed(res, err)
}

func (s *session) row(ctx context.Context, query string, args []any, dest ...any) (bool, error) {
	stmt, err := s.stmt(ctx, query)
	if err != nil {
		return false, err
	}
	return found(stmt.QueryRowContext(ctx, args...).Scan(dest...))
}

func (s *session) each(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	stmt, err := s.stmt(ctx, query)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	return drain(rows, err, scan)
}

func (s *session) script(ctx context.Context, text string) error {
	_, err := s.conn.ExecContext(ctx, text)
	return err
}

// inTx runs statements in a transaction of the caller's.
type inTx struct{ tx *sql.Tx }

func (t inTx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := t.tx.ExecContext(ctx, query, args...)
	return changed(res, err)
}

func (t inTx) row(ctx context.Context, query string, args []any, dest ...any) (bool, error) {
	return found(t.tx.QueryRowContext(ctx, query, args...).Scan(dest...))
}

func (t inTx) each(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := t.tx.QueryContext(ctx, query, args...)
	return drain(rows, err, scan)
}

func (t inTx) script(ctx context.Context, text string) error {
	_, err := t.tx.ExecContext(ctx, text)
	return err
}

func changed(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func drain(rows *sql.Rows, err error, scan func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// write runs fn in one transaction that holds the write lock from its start, so
// that nothing fn reads can change before the commit. Once it has begun it does
// not end with ctx, and fn gets one that lasts: it is short, and its answer is
// worth more than the time.
//
// The error is a *commitError if the commit was answered with one, else a
// *semel.Error after which nothing is written.
func (s *Store) write(ctx context.Context, op string, fn func(context.Context, runner, moment) error) error {
	w, err := s.takeWriter(ctx)
	if err != nil {
		return refusal(op, err)
	}
	defer func() { s.writer <- w }()
	if err := s.begin(ctx, w); err != nil {
		w.mend(ctx, s.db, err)
		return refusal(op, err)
	}
	ctx = context.WithoutCancel(ctx)
	done := false
	defer func() {
		if !done { // also when fn panics: the connection goes back clean
			w.exec(ctx, "ROLLBACK")
		}
	}()
	if err := fn(ctx, w, s.now()); err != nil {
		return refusal(op, err)
	}
	err = s.commit(func() error { _, err := w.exec(ctx, "COMMIT"); return err })
	if err != nil {
		return &commitError{err}
	}
	done = true
	return nil
}

func (s *Store) takeWriter(ctx context.Context) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case w := <-s.writer:
		return w, nil
	case <-s.closing:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin takes the write lock, in turn with other processes.
func (s *Store) begin(ctx context.Context, w *session) error {
	deadline := time.Now().Add(s.lockTimeout)
	leave, err := s.turn.enter(ctx, deadline, s.closing)
	if err != nil {
		return err
	}
	defer leave()
	var busy error
	err = poll(ctx, deadline, s.closing, func() (bool, error) {
		_, err := w.exec(context.WithoutCancel(ctx), "BEGIN IMMEDIATE")
		if isBusy(err) {
			busy = err
			return false, nil
		}
		return err == nil, err
	})
	if err == errTurn && busy != nil {
		return busy
	}
	return err
}

// read runs fn on a connection that only reads. Like write, it does not end with
// ctx once it has begun: a look-up by key is over before anybody could stop it.
func (s *Store) read(ctx context.Context, op string, fn func(context.Context, runner) error) error {
	r, err := s.takeReader(ctx)
	if err != nil {
		return refusal(op, err)
	}
	defer func() { s.readers <- r }()
	ctx = context.WithoutCancel(ctx)
	if err := fn(ctx, r); err != nil {
		r.mend(ctx, s.db, err)
		return refusal(op, err)
	}
	return nil
}

// snapshot is read for several statements that must agree with each other, and
// that may take long: it ends with ctx.
func (s *Store) snapshot(ctx context.Context, op string, fn func(context.Context, runner) error) error {
	return s.read(ctx, op, func(lasting context.Context, r runner) error {
		if _, err := r.exec(lasting, "BEGIN"); err != nil {
			return err
		}
		defer r.exec(lasting, "ROLLBACK")
		return fn(ctx, r)
	})
}

func (s *Store) takeReader(ctx context.Context) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case r := <-s.readers:
		return r, nil
	case <-s.closing:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var errClosed = &semel.Error{Code: semel.CodeUnavailable, Recorded: semel.RecordedNo, Msg: "the store is closed"}

// A moment is the store's now.
type moment struct{ t time.Time }

func (s *Store) now() moment { return moment{s.clock()} }

// ms is the moment as it is stored: cut to the millisecond.
func (m moment) ms() int64 { return m.t.UnixMilli() }

// after is d later than ms, for what is due or expires: at once if d is zero.
func (m moment) after(d time.Duration) int64 {
	return m.ms() + int64((d+time.Millisecond-1)/time.Millisecond)
}

// until is d later than the moment itself, rounded up: a lease never ends early.
func (m moment) until(d time.Duration) int64 {
	return m.t.Add(d + time.Millisecond - 1).UnixMilli()
}

// timeOf reads a stored time; 0 is the zero time.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
