package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// Options configure a [Store].
type Options struct {
	// Sharding says what the bucket of an operation is hashed from; a file keeps
	// the one it was made with, and Open refuses another one. Defaults to that of
	// the file, and to [semel.ShardByAccount] for a new file.
	Sharding semel.Sharding
	// LockTimeout is how long a write waits for other writers of the file.
	// Defaults to 5 s.
	LockTimeout time.Duration
	// Readers is how many look-ups can run at the same time. Defaults to 4.
	Readers int
	// Clock replaces the host's clock in tests. Defaults to [time.Now].
	Clock func() time.Time
}

// A Store is a [semel.Store] in an SQLite file. It is safe for concurrent use,
// and other processes may use the same file at the same time.
type Store struct {
	db          *sql.DB
	turn        *turnstile
	sharding    semel.Sharding
	clock       func() time.Time
	lockTimeout time.Duration

	writer  chan *session // holds the one writing session while it is free
	readers chan *session
	closing chan struct{}
	once    sync.Once
	closed  error

	// commit runs a COMMIT. Tests put faults here.
	commit func(func() error) error
}

var _ semel.Store = (*Store)(nil)

// Open opens the file at path, makes it (mode 0600) if it is not there, and
// brings its tables up to date.
//
// Errors by code: [semel.CodeInvalid] for another sharding, or a file of a newer
// release; [semel.CodeUnavailable] if the file can't be opened, is damaged, can't
// be written, or stays locked.
func Open(ctx context.Context, path string, options *Options) (*Store, error) {
	o := Options{}
	if options != nil {
		o = *options
	}
	o.setDefaults()
	if s := o.Sharding; s != "" && s != semel.ShardByAccount && s != semel.ShardByKey {
		return nil, &semel.Error{Op: "open", Code: semel.CodeInvalid, Recorded: semel.RecordedNo,
			Msg: fmt.Sprintf("there is no sharding %q", s), Hint: `it is "account" or "key"`}
	}
	if err := create(path); err != nil {
		return nil, refusal("open", err)
	}
	base, err := connector(path, busyTimeout)
	if err != nil {
		return nil, refusal("open", err)
	}
	s := &Store{db: sql.OpenDB(base), turn: newTurnstile(path), clock: o.Clock, lockTimeout: o.LockTimeout,
		writer: make(chan *session, 1), readers: make(chan *session, o.Readers), closing: make(chan struct{}),
		commit: func(commit func() error) error { return commit() }}
	s.db.SetMaxIdleConns(-1) // a session's connection is its own, with its pragmas
	if err := s.connect(ctx, o.Readers); err != nil {
		s.db.Close()
		s.turn.close()
		return nil, refusal("open", err)
	}
	if err := s.migrate(ctx, o.Sharding); err != nil {
		s.Close()
		return nil, refusal("open", err)
	}
	return s, nil
}

func (o *Options) setDefaults() {
	if o.LockTimeout <= 0 {
		o.LockTimeout = 5 * time.Second
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

// connect opens the sessions. The very first one turns the file to WAL, which
// needs it for itself for a moment.
func (s *Store) connect(ctx context.Context, readers int) error {
	deadline := time.Now().Add(s.lockTimeout)
	for {
		w, err := newSession(ctx, s.db, writes)
		if err == nil {
			s.writer <- w
			break
		}
		if !isBusy(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for range readers {
		r, err := newSession(ctx, s.db, reads)
		if err != nil {
			return err
		}
		s.readers <- r
	}
	return nil
}

var creating sync.Mutex

// create makes an empty file that only its owner can read; SQLite gives the same
// mode to the files beside it. A file that is there is not touched: closing a
// second descriptor would drop the locks that SQLite holds on it.
func create(path string) error {
	if path == "" || path == ":memory:" {
		return &semel.Error{Code: semel.CodeInvalid, Recorded: semel.RecordedNo, Msg: "the store needs the path of a file"}
	}
	creating.Lock()
	defer creating.Unlock()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Ping reports whether the file can be read.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, "ping", func(ctx context.Context, r runner) error {
		_, err := meta(ctx, r, "schema_version")
		return err
	})
}

// Close waits for what is running and closes the file. Calls that come later,
// and those that wait for the writer, get [semel.CodeUnavailable].
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closing)
		w := <-s.writer
		w.close()
		for range cap(s.readers) {
			select {
			case r := <-s.readers:
				r.close()
			case <-time.After(s.lockTimeout): // a reader that hangs does not keep us
			}
		}
		s.closed = s.db.Close()
		s.turn.close()
	})
	return s.closed
}

func (s *Store) shard(k semel.Key) int { return s.sharding.Shard(k) }
