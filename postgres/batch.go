package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
)

// A batch is a list of statements that go out together and come back together:
// one round trip, one transaction.
type batch struct{ pgx.Batch }

// queue adds a statement whose rows are of no interest.
func (b *batch) queue(sql string, args ...any) { b.Queue(sql, args...) }

// count adds a statement and stores how many rows it changed.
func (b *batch) count(n *int, sql string, args ...any) {
	b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		*n = int(tag.RowsAffected())
		return nil
	})
}

// each adds a statement and calls scan for every row of its answer.
func (b *batch) each(sql string, args []any, scan func(pgx.Rows) error) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// maxTries is how often a transaction that lost a race is run again.
const maxTries = 20

// A step is one round trip of a transaction: it adds statements, and may go by the
// answers of the steps before it.
type step func(*batch)

// write runs one transaction, waiting for other people's locks up to lock. For
// every try its steps are made again. Once it has begun it does not end with ctx:
// it is short, and its answer is worth more than the time.
//
// The error is a *semel.Error after which nothing is written, or a *lostError if
// nobody knows.
func (s *Store) write(ctx context.Context, op string, lock time.Duration, steps ...step) error {
	if err := ctx.Err(); err != nil {
		return refusal(op, err)
	}
	for try := 1; ; try++ {
		err := s.writeOnce(ctx, lock, steps)
		switch {
		case err == nil:
			return nil
		case nothingSent(err) && try < 3 && ctx.Err() == nil && !isClosed(err):
			continue // a connection that had died while it was idle
		case lostRace(err) && try < maxTries:
			time.Sleep(rand.N(time.Duration(try) * 2 * time.Millisecond))
		case nothingSent(err) || aborted(err):
			return refusal(op, err)
		default:
			return &lostError{err}
		}
	}
}

// writeOnce commits with the last step: the COMMIT goes out with its statements,
// or, where there is one step only, there is no BEGIN and no COMMIT at all, and the
// statements of the one round trip are one transaction by themselves.
func (s *Store) writeOnce(ctx context.Context, lock time.Duration, steps []step) error {
	waiting, stop := context.WithTimeout(ctx, s.opts.Timeout)
	defer stop()
	conn, err := s.acquire(waiting)
	if err != nil {
		return err
	}
	defer conn.Release()
	running, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer cancel()
	for i, fill := range steps {
		var b batch
		if i == 0 && len(steps) > 1 {
			b.queue("BEGIN")
		}
		if i == 0 {
			s.prefix(&b, lock)
		}
		fill(&b)
		last := i == len(steps)-1
		if last && i > 0 {
			b.queue("COMMIT")
		}
		if err := conn.SendBatch(running, &b.Batch).Close(); err != nil {
			if len(steps) > 1 && aborted(err) {
				conn.Exec(running, "ROLLBACK") // else the connection is not used again
			}
			if !last && !aborted(err) {
				return &unsentError{err} // its COMMIT was not sent
			}
			return err
		}
	}
	return nil
}

func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil && s.closed.Load() {
		err = errClosed
	}
	if err != nil {
		return nil, &unsentError{err}
	}
	return conn, nil
}

// prefix sets, for this transaction, what the connection is not set to already.
func (s *Store) prefix(b *batch, lock time.Duration) {
	switch {
	case s.opts.Pooler:
		sql, args := "SELECT ", []any{}
		for i, set := range settings(lock) {
			if i > 0 {
				sql += ", "
			}
			sql += "set_config('" + set[0] + "', '" + set[1] + "', true)"
		}
		b.queue(sql, args...)
	case lock != s.opts.BatchLockTimeout:
		b.queue(`SELECT set_config('lock_timeout', $1, true)`, settings(lock)[0][1])
	}
}

// read runs a batch that writes nothing. A connection that breaks is replaced.
func (s *Store) read(ctx context.Context, op string, fill func(*batch)) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	return s.reading(ctx, op, func(conn *pgxpool.Conn) error {
		var b batch
		s.prefix(&b, s.opts.BatchLockTimeout)
		fill(&b)
		return conn.SendBatch(ctx, &b.Batch).Close()
	})
}

// snapshot is read for several statements that must agree with each other.
func (s *Store) snapshot(ctx context.Context, op string, fill func(*batch)) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	return s.reading(ctx, op, func(conn *pgxpool.Conn) error {
		var b batch
		b.queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
		s.prefix(&b, s.opts.BatchLockTimeout)
		fill(&b)
		b.queue("COMMIT")
		return conn.SendBatch(ctx, &b.Batch).Close()
	})
}

// query is read for one statement that finds its rows by their whole key. How long
// it may take is up to ctx alone.
func (s *Store) query(ctx context.Context, op, sql string, args []any, scan func(pgx.Rows) error) error {
	return s.reading(ctx, op, func(conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, sql, args...)
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
	})
}

// reading tries again on another connection, except when the database itself has
// said no.
func (s *Store) reading(ctx context.Context, op string, run func(*pgxpool.Conn) error) error {
	once := func() error {
		conn, err := s.acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		return run(conn)
	}
	for try := 1; ; try++ {
		err := once()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil || isClosed(err) || try >= 3 || aborted(err) && !lostRace(err):
			return refusal(op, err)
		}
	}
}

// plain is for writes that may be repeated: after a lost answer it is not known
// whether they are there, and nobody needs to know.
func plain(op string, err error) error {
	var lost *lostError
	if errors.As(err, &lost) {
		return unknown(op, lost)
	}
	return err
}

// keyColumns are the columns of a list of keys, as arrays.
type keyColumns struct {
	shards              []int16
	accounts, kinds, id []string
}

func (s *Store) columnsOf(n int, key func(int) semel.Key) keyColumns {
	c := keyColumns{make([]int16, n), make([]string, n), make([]string, n), make([]string, n)}
	for i := range n {
		k := key(i)
		c.shards[i], c.accounts[i], c.kinds[i], c.id[i] = s.shard(k), k.Account, k.Kind, k.ID
	}
	return c
}

// lanes are, for each key, the lane of its kind for work that is not due yet.
func (c keyColumns) lanes() []string {
	lanes := make([]string, len(c.id))
	for i := range lanes {
		if i > 0 && c.shards[i] == c.shards[i-1] && c.kinds[i] == c.kinds[i-1] {
			lanes[i] = lanes[i-1]
		} else {
			lanes[i] = laneOf(c.shards[i], c.kinds[i])
		}
	}
	return lanes
}

// laneOf is "shard/kind/", with two digits; the account comes behind it.
func laneOf(shard int16, kind string) string {
	return string([]byte{'0' + byte(shard/10), '0' + byte(shard%10), '/'}) + kind + "/"
}
