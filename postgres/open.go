package postgres

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
)

// Options configure a [Store].
type Options struct {
	// Sharding says what the bucket of an operation is hashed from; a database
	// keeps the one it was made with, and Open refuses another one. Defaults to
	// that of the database, and to [semel.ShardByAccount] for a new one.
	Sharding semel.Sharding
	// NoMigrate leaves the schema as it is: Open then refuses a database that is
	// not up to date. Defaults to false.
	NoMigrate bool
	// MaxConns is how many connections are open at most. Defaults to the URL's
	// pool_max_conns, or else to 10.
	MaxConns int
	// LockTimeout is how long a write waits for a row that somebody else's
	// transaction holds, such as an uncommitted rival of the same key. Defaults to
	// 1 s.
	LockTimeout time.Duration
	// BatchLockTimeout is the same for a batch of several members, which then go one
	// by one. Defaults to 100 ms.
	BatchLockTimeout time.Duration
	// Timeout is how long one write may take altogether, and again how long it may
	// take to find out what became of one whose answer was lost. It does not end
	// with the caller's context. Defaults to 10 s.
	Timeout time.Duration
	// Pooler is for connections through PgBouncer and the like in transaction mode:
	// nothing is prepared, and settings go with every statement. Defaults to false.
	Pooler bool
	// NoSkipLocked is for engines where FOR UPDATE SKIP LOCKED is missing or slow.
	// Claims are as safe without it; nodes that claim at the same moment then wait
	// for each other. Defaults to false.
	NoSkipLocked bool
	// NoAdvisoryLocks is for engines that have none. What [Begin] begins is then written
	// at once, as in any other transaction, and takes longer. Defaults to false.
	NoAdvisoryLocks bool
	// NoNotify sends no NOTIFY when there is new work. Defaults to false.
	NoNotify bool
	// Clock replaces the database's clock in tests. Defaults to none.
	Clock func() time.Time
}

func (o *Options) setDefaults() {
	if o.LockTimeout <= 0 {
		o.LockTimeout = time.Second
	}
	if o.BatchLockTimeout <= 0 {
		o.BatchLockTimeout = 100 * time.Millisecond
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
}

// A Store is a [semel.Store] in a PostgreSQL database. It is safe for concurrent
// use, and other processes may use the same database at the same time.
type Store struct {
	pool      *pgxpool.Pool
	opts      Options
	sharding  semel.Sharding
	turns     *turns
	blocked   blockedKeys
	contracts contracts
	notifier  *notifier
	once      sync.Once
	closed    atomic.Bool

	lockTimeout string // Options.LockTimeout, as the database reads it
}

var (
	_ semel.Store = (*Store)(nil)
	_ semel.Wide  = (*Store)(nil)
)

// Open connects to the database at url (a postgres:// URL or a key=value string,
// with pgxpool's own parameters) and brings its tables up to date.
//
// Errors by code: [semel.CodeInvalid] for another sharding, a database of a newer
// release, or one that is not up to date with Options.NoMigrate;
// [semel.CodeUnavailable] if the database can't be reached.
func Open(ctx context.Context, url string, options *Options) (*Store, error) {
	o := Options{}
	if options != nil {
		o = *options
	}
	o.setDefaults()
	if s := o.Sharding; s != "" && s != semel.ShardByAccount && s != semel.ShardByKey {
		return nil, &semel.Error{Op: "open", Code: semel.CodeInvalid, Recorded: semel.RecordedNo,
			Msg: fmt.Sprintf("there is no sharding %q", s), Hint: `it is "account" or "key"`}
	}
	cfg, err := poolConfig(url, o)
	if err != nil {
		return nil, &semel.Error{Op: "open", Code: semel.CodeInvalid, Recorded: semel.RecordedNo,
			Msg: "the database's URL can't be read", Err: err}
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, refusal("open", err)
	}
	s := &Store{pool: pool, opts: o, turns: newTurns(), lockTimeout: settings(o.LockTimeout)[0][1]}
	if s.sharding, err = prepareSchema(ctx, pool, o); err != nil {
		pool.Close()
		return nil, refusal("open", err)
	}
	if s.sharding == semel.ShardByKey {
		s.turns.spread = semel.Shards
	}
	s.notifier = newNotifier(s)
	return s, nil
}

// settings are those of every connection of ours. The statements are written for
// one plan each, by index; with few rows in a table, or no statistics yet, the
// planner would pick another one and stay with it while the table grows.
func settings(lock time.Duration) [][2]string {
	return [][2]string{
		{"lock_timeout", strconv.FormatInt(max(1, lock.Milliseconds()), 10) + "ms"}, // 0 would be no limit
		{"enable_seqscan", "off"}, {"enable_hashjoin", "off"}, {"enable_mergejoin", "off"}, {"enable_bitmapscan", "off"},
		{"plan_cache_mode", "force_generic_plan"}, {"jit", "off"},
	}
}

func poolConfig(url string, o Options) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	asked, err := pgx.ParseConfig(url) // keeps what pgxpool takes out
	if err != nil {
		return nil, err
	}
	switch {
	case o.MaxConns > 0:
		cfg.MaxConns = int32(o.MaxConns)
	case asked.RuntimeParams["pool_max_conns"] == "":
		cfg.MaxConns = 10
	}
	cfg.MaxConns = max(cfg.MaxConns, 2) // a migration needs one that waits and one that works
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "semel"
	}
	if o.Pooler {
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		return cfg, nil
	}
	for _, set := range settings(o.BatchLockTimeout) {
		cfg.ConnConfig.RuntimeParams[set[0]] = set[1]
	}
	return cfg, nil
}

// Width implements [semel.Wide]: while one batch waits for the disk, another one
// can be sent and worked on.
func (s *Store) Width() int { return 2 }

// Ping reports whether the database can be read.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, "ping", func(b *batch) {
		b.queue(`SELECT value FROM semel_meta WHERE name = 'schema_version'`)
	})
}

// Close waits for what is running and closes the connections. Calls that come
// later get [semel.CodeUnavailable].
func (s *Store) Close() error {
	s.once.Do(func() {
		s.closed.Store(true)
		s.notifier.close()
		s.pool.Close()
	})
	return nil
}

func (s *Store) shard(k semel.Key) int16 { return int16(s.sharding.Shard(k)) }

// now is what statements take as their first argument: nil for the database's own
// clock.
func (s *Store) now() *int64 {
	if s.opts.Clock == nil {
		return nil
	}
	ms := s.opts.Clock().UnixMilli()
	return &ms
}

// span is d in milliseconds, rounded up: a lease never ends early. The database's
// now is cut to the millisecond, so one more is added to it.
func (s *Store) span(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	ms := int64((d + time.Millisecond - 1) / time.Millisecond)
	if s.opts.Clock == nil {
		ms++
	}
	return ms
}

// nowMS is the statement's time, once for each statement; $1 is [Store.now].
const nowMS = `(SELECT coalesce($1::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint))`

// timeOf reads a stored time; 0 is the zero time.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
