package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
)

// OpenDB opens the file at path with what this package needs on every
// connection: WAL, synchronous=FULL, a busy timeout of 5 s, and transactions that
// take the write lock when they begin, so that none fails half-way because
// another one was faster. The file is made (mode 0600) if it is not there. Use it
// for your own tables beside those of the ledger, together with [Tx].
func OpenDB(path string) (*sql.DB, error) {
	if err := create(path); err != nil {
		return nil, refusal("open", err)
	}
	base, err := connector(path, busyTimeout)
	if err != nil {
		return nil, refusal("open", err)
	}
	return sql.OpenDB(&turning{base, newTurnstile(path)}), nil
}

// busyTimeout is how long SQLite itself waits for a lock.
const busyTimeout = 5 * time.Second

// connector opens connections with our pragmas.
func connector(path string, busy time.Duration) (driver.Connector, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()),
		"journal_mode(WAL)", "synchronous(FULL)", "journal_size_limit(67108864)", "wal_autocheckpoint(4000)", "cache_size(-16384)",
	}}
	u := url.URL{Path: filepath.ToSlash(abs)}
	return sqlite.NewConnector("file:" + u.EscapedPath() + "?" + q.Encode())
}

// turning lets transactions begin in turn with the writes of the stores.
type turning struct {
	driver.Connector
	turn *turnstile
}

func (t *turning) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := t.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := c.(fullConn)
	if !ok {
		return c, nil
	}
	return &turningConn{full, t.turn}, nil
}

// Close is called when the database is closed.
func (t *turning) Close() error { return t.turn.close() }

// fullConn is what a connection of the driver can do.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type turningConn struct {
	fullConn
	turn *turnstile
}

// Unwrap is for functions of the driver that take a connection.
func (c *turningConn) Unwrap() driver.Conn { return c.fullConn }

func (c *turningConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if opts.ReadOnly {
		return c.fullConn.BeginTx(ctx, opts)
	}
	leave, err := c.turn.enter(ctx, time.Now().Add(busyTimeout), nil)
	if err != nil {
		return nil, refusal("begin", err)
	}
	defer leave()
	return c.fullConn.BeginTx(ctx, opts)
}
