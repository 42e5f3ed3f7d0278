package postgres_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/postgres"
)

// A shop is a database with a ledger and a business table, and the pool that the
// business uses, of one connection.
type shop struct {
	*testing.T
	store  *postgres.Store
	ledger *semel.Ledger
	pool   *pgxpool.Pool
	trips  [][]string // the statements of each round trip of the pool
}

func newShop(t *testing.T, options *postgres.Options) *shop {
	s, ctx, url := &shop{T: t}, context.Background(), pgtest.Database(t)
	cfg, err := pgxpool.ParseConfig(url)
	s.must(err)
	cfg.MaxConns, cfg.ConnConfig.Tracer = 1, s
	cfg.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // its trips are counted
	s.pool, err = pgxpool.NewWithConfig(ctx, cfg)
	s.must(err)
	s.store, err = postgres.Open(ctx, url, options)
	s.must(err)
	s.ledger, err = semel.New(ctx, s.store, &semel.Options{Kinds: []semel.Kind{{Name: "order"}}})
	s.must(err)
	t.Cleanup(func() { s.ledger.Close(); s.store.Close(); s.pool.Close() })
	_, err = s.pool.Exec(ctx, "CREATE TABLE shop_order (id text PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
	s.must(err)
	return s
}

func (s *shop) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *shop) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.trips = append(s.trips, []string{firstWord(d.SQL)})
	return ctx
}

func (s *shop) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *shop) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	var trip []string
	for _, q := range d.Batch.QueuedQueries {
		trip = append(trip, firstWord(q.SQL))
	}
	s.trips = append(s.trips, trip)
	return ctx
}

func (s *shop) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (s *shop) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func firstWord(sql string) string { return strings.ToUpper(strings.Fields(sql)[0]) }

func (s *shop) begin() *postgres.Transaction {
	s.Helper()
	tx, err := postgres.Begin(context.Background(), s.pool)
	s.must(err)
	return tx
}

func orderRequest(id string) semel.Request {
	return semel.Request{Key: semel.Key{Account: "acme", Kind: "order", ID: id}, Params: []byte(`{}`),
		Begun: &semel.Begun{Worker: "w", Contract: "{}", Lease: time.Minute}}
}

// order does the whole of it, with the business row between.
func (s *shop) order(tx *postgres.Transaction, id string) (done func() semel.Operation, commit error) {
	s.Helper()
	ctx := context.Background()
	in := s.ledger.In(postgres.Tx(s.store, tx))
	acc, err := in.Accept(ctx, orderRequest(id))
	s.must(err)
	if acc.Lease == nil {
		s.Fatalf("%s is there already: %+v", id, acc.Operation)
	}
	_, err = tx.Exec(ctx, "INSERT INTO shop_order VALUES ($1)", id)
	s.must(err)
	done, err = in.FinishLast(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied, Result: []byte(`{}`)})
	s.must(err)
	return done, tx.Commit(ctx)
}

func (s *shop) orders() (n int) {
	s.Helper()
	s.must(s.pool.QueryRow(context.Background(), "SELECT count(*) FROM shop_order").Scan(&n))
	return n
}

// The ledger's part of a caller's transaction costs no round trip, and writes each of
// its rows once.
func TestBeginCostsNothing(t *testing.T) {
	s := newShop(t, nil)
	_, err := s.order(s.begin(), "prepares")
	s.must(err)
	s.trips = nil
	done, err := s.order(s.begin(), "counted")
	s.must(err)
	want := [][]string{{"BEGIN", "SELECT", "SELECT"}, {"INSERT"}, {"INSERT", "INSERT", "COMMIT"}}
	if !slices.EqualFunc(s.trips, want, slices.Equal[[]string]) {
		t.Errorf("round trips %v, want %v", s.trips, want)
	}
	op, err := s.ledger.Get(context.Background(), orderRequest("counted").Key)
	if err != nil || op.State != semel.Succeeded || s.orders() != 2 || done().Revision != op.Revision || !done().ExpiresAt.Equal(op.ExpiresAt) {
		t.Errorf("afterwards: %+v, %v", op, err)
	}
}

// Nothing is committed unless the end of the operation can be written too.
func TestBeginAllOrNothing(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		spoil func(s *shop, tx *postgres.Transaction, id string)
		code  semel.Code // empty: the database's own error
	}{
		"one who did not wait took the key": {func(s *shop, tx *postgres.Transaction, id string) {
			_, err := s.ledger.Accept(ctx, orderRequest(id))
			s.must(err)
		}, semel.CodeRetryTransaction},
		"the horizon has passed it": {func(s *shop, tx *postgres.Transaction, id string) {
			_, err := s.store.Purge(ctx, []semel.PurgeRequest{{Kind: "order", Retention: time.Nanosecond, Max: 10}})
			s.must(err)
		}, semel.CodeRetryTransaction},
		"the business can't": {func(s *shop, tx *postgres.Transaction, id string) {
			_, err := tx.Exec(ctx, "INSERT INTO shop_order VALUES ($1)", id)
			s.must(err)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, nil)
			tx, id := s.begin(), semel.NewID()
			in := s.ledger.In(postgres.Tx(s.store, tx))
			acc, err := in.Accept(ctx, orderRequest(id))
			s.must(err)
			_, err = tx.Exec(ctx, "INSERT INTO shop_order VALUES ($1)", id)
			s.must(err)
			for wait := time.Now(); time.Since(wait) < 3*time.Millisecond; { // the ID is older than the horizon then
			}
			c.spoil(s, tx, id)
			_, err = in.FinishLast(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied})
			s.must(err)
			err = tx.Commit(ctx)
			if e := semel.AsError("", err); err == nil || c.code != "" && e.Code != c.code || c.code == "" && errors.As(err, new(*semel.Error)) {
				t.Errorf("the commit: %v", err)
			}
			if !errors.Is(tx.Rollback(ctx), pgx.ErrTxClosed) {
				t.Error("the transaction has not ended")
			}
			if n := s.orders(); n != 0 {
				t.Errorf("%d orders", n)
			}
			if op, err := s.ledger.Get(ctx, acc.Operation.Key); err == nil && op.State != semel.Processing || err != nil && !errors.Is(err, semel.ErrNotFound) && !errors.Is(err, semel.ErrExpired) {
				t.Errorf("the operation: %+v, %v", op, err)
			}
		})
	}
}

// An operation whose beginning is rolled back by a savepoint that the transaction was
// not told of is not recorded as done.
func TestBeginRolledBack(t *testing.T) {
	ctx, s := context.Background(), newShop(t, nil)
	tx := s.begin()
	in := s.ledger.In(postgres.Tx(s.store, tx))
	exec := func(sql string) {
		_, err := tx.Exec(ctx, "SELECT 1", hidden(sql))
		s.must(err)
	}
	exec("SAVEPOINT mine")
	acc, err := in.Accept(ctx, orderRequest("undone"))
	s.must(err)
	exec("INSERT INTO shop_order VALUES ('undone')")
	exec("ROLLBACK TO mine")
	exec("INSERT INTO shop_order VALUES ('other')")
	_, err = in.FinishLast(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied})
	s.must(err)
	if err := tx.Commit(ctx); !errors.Is(err, semel.ErrLeaseLost) {
		t.Errorf("the commit: %v", err)
	}
	if n := s.orders(); n != 0 {
		t.Errorf("%d orders", n)
	}
	if _, err := s.ledger.Get(ctx, acc.Operation.Key); !errors.Is(err, semel.ErrNotFound) {
		t.Errorf("the operation: %v", err)
	}
}

// hidden is a statement that nobody sees before it is sent.
type hidden string

func (h hidden) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return string(h), nil, nil
}

// Two transactions that begin with the same key do their work one after the other:
// the second one meets the record of the first, and does nothing.
func TestBeginWaitsForItsRival(t *testing.T) {
	ctx, s := context.Background(), newShop(t, &postgres.Options{LockTimeout: time.Minute})
	second, err := pgxpool.NewWithConfig(ctx, s.pool.Config())
	s.must(err)
	defer second.Close()
	first := s.begin()
	in := s.ledger.In(postgres.Tx(s.store, first))
	acc, err := in.Accept(ctx, orderRequest("both"))
	s.must(err)
	_, err = in.FinishLast(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied, Result: []byte(`{"by":"first"}`)})
	s.must(err)
	rival, err := postgres.Begin(ctx, second)
	s.must(err)
	pid := pidOf(s, rival)
	met := make(chan semel.Acceptance, 1)
	go func() {
		acc, err := s.ledger.In(postgres.Tx(s.store, rival)).Accept(ctx, orderRequest("both"))
		if err != nil {
			t.Error(err)
		}
		met <- acc
	}()
	s.waits(pid)
	s.must(first.Commit(ctx))
	if acc := <-met; !acc.Replayed || string(acc.Operation.Result) != `{"by":"first"}` {
		t.Errorf("the second one met %+v", acc)
	}
	s.must(rival.Rollback(ctx))
}

// The caller's settings are what they were, whether the key was free or not, and
// however the transaction was begun.
func TestSettingsStay(t *testing.T) {
	ctx, s := context.Background(), newShop(t, nil)
	const show = `SELECT name || '=' || setting FROM pg_settings WHERE name IN
		('lock_timeout', 'enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'enable_bitmapscan', 'plan_cache_mode', 'jit') ORDER BY name`
	for name, begin := range map[string]func(context.Context, *pgxpool.Pool) (pgx.Tx, error){"Begin": pipelined, "pool.Begin": plain} {
		for _, want := range []string{"created", "known"} {
			tx, err := begin(ctx, s.pool)
			s.must(err)
			_, err = tx.Exec(ctx, "SET LOCAL lock_timeout = '4321ms'")
			s.must(err)
			settings := func() []string {
				rows, err := tx.Query(ctx, show)
				s.must(err)
				all, err := pgx.CollectRows(rows, pgx.RowTo[string])
				s.must(err)
				return all
			}
			before := settings()
			in := s.ledger.In(postgres.Tx(s.store, tx))
			acc, err := in.Accept(ctx, orderRequest(name))
			s.must(err)
			if after := settings(); !slices.Equal(after, before) || len(after) != 7 || acc.Replayed != (want == "known") {
				t.Errorf("%s, %s: %v, before it %v", name, want, after, before)
			}
			if acc.Lease != nil {
				_, err := in.Finish(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied})
				s.must(err)
				if after := settings(); !slices.Equal(after, before) {
					t.Errorf("%s, finished: %v, before it %v", name, after, before)
				}
			}
			s.must(tx.Commit(ctx))
		}
	}
}

// A transaction that is not used sends nothing, one that has ended does nothing, and
// either way its connection is free again.
func TestBeginEnds(t *testing.T) {
	ctx, s := context.Background(), newShop(t, nil)
	s.trips = nil
	s.must(s.begin().Commit(ctx))
	s.must(s.begin().Rollback(ctx))
	if len(s.trips) != 0 {
		t.Errorf("sent %v", s.trips)
	}
	tx := s.begin()
	_, err := tx.Exec(ctx, "INSERT INTO shop_order VALUES ('outer')")
	s.must(err)
	nested, err := tx.Begin(ctx)
	s.must(err)
	_, err = nested.Exec(ctx, "INSERT INTO shop_order VALUES ('inner')")
	s.must(err)
	s.must(nested.Rollback(ctx))
	rows, err := tx.Query(ctx, "SELECT id FROM shop_order")
	s.must(err)
	if ids, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || !slices.Equal(ids, []string{"outer"}) {
		t.Errorf("within: %v, %v", ids, err)
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"shop_order"}, []string{"id"}, pgx.CopyFromRows([][]any{{"copied"}})); err != nil {
		t.Error(err)
	}
	if tx.Conn() == nil {
		t.Error("it has no connection")
	}
	s.must(tx.Rollback(ctx))
	if s.orders() != 0 {
		t.Error("something is left")
	}

	tx = s.begin()
	_, err = tx.Exec(ctx, "INSERT INTO shop_order VALUES ('a')")
	s.must(err)
	s.must(tx.Commit(ctx))
	_, exec := tx.Exec(ctx, "SELECT 1")
	_, query := tx.Query(ctx, "SELECT 1")
	_, nest := tx.Begin(ctx)
	_, prepare := tx.Prepare(ctx, "", "SELECT 1")
	_, large := func() (uint32, error) { o := tx.LargeObjects(); return o.Create(ctx, 0) }()
	var batch pgx.Batch
	batch.Queue("SELECT 1")
	for what, err := range map[string]error{"exec": exec, "query": query, "begin": nest, "prepare": prepare, "large objects": large, "row": tx.QueryRow(ctx, "SELECT 1").Scan(),
		"batch": tx.SendBatch(ctx, &batch).Close(), "commit": tx.Commit(ctx), "rollback": tx.Rollback(ctx)} {
		if !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("%s after the end: %v", what, err)
		}
	}
	if s.orders() != 1 {
		t.Errorf("%d orders, want 1", s.orders())
	}
}

// Where there are no advisory locks, none is asked for, and the rest is as ever.
func TestBeginWithoutAdvisoryLocks(t *testing.T) {
	ctx, s := context.Background(), newShop(t, &postgres.Options{NoAdvisoryLocks: true})
	tx := s.begin()
	in := s.ledger.In(postgres.Tx(s.store, tx))
	acc, err := in.Accept(ctx, orderRequest("plainly"))
	s.must(err)
	locks := 0
	s.must(tx.QueryRow(ctx, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()").Scan(&locks))
	_, err = in.FinishLast(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied})
	s.must(err)
	s.must(tx.Commit(ctx))
	op, err := s.ledger.Get(ctx, acc.Operation.Key)
	if err != nil || op.State != semel.Succeeded || locks != 0 {
		t.Errorf("%d locks; %+v, %v", locks, op, err)
	}
}

// A COMMIT of one's own does not commit the business without its record: what was kept
// back is written before it.
func TestCommitOfOnesOwn(t *testing.T) {
	ctx := context.Background()
	exec := func(sql string) func(*semel.Ledger, *postgres.Transaction) error {
		return func(_ *semel.Ledger, tx *postgres.Transaction) error {
			_, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
			return err
		}
	}
	for name, commit := range map[string]func(*semel.Ledger, *postgres.Transaction) error{
		"COMMIT": exec("COMMIT"), "and chain": exec("commit and chain"), "END": exec("END"), "END WORK": exec("select 1; end work"),
		"batch": func(_ *semel.Ledger, tx *postgres.Transaction) error {
			var b pgx.Batch
			b.Queue("SELECT 1")
			b.Queue("COMMIT")
			return tx.SendBatch(ctx, &b).Close()
		},
		"large objects, and a savepoint": func(in *semel.Ledger, tx *postgres.Transaction) error {
			tx.LargeObjects()
			var b pgx.Batch
			b.Queue("SAVEPOINT mine")
			if err := tx.SendBatch(ctx, &b).Close(); err != nil {
				return err
			}
			if _, err := in.Get(ctx, orderRequest("mine").Key); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "ROLLBACK TO mine"); err != nil {
				return err
			}
			return tx.Commit(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, nil)
			tx := s.begin()
			in := s.ledger.In(postgres.Tx(s.store, tx))
			acc, err := in.Accept(ctx, orderRequest("mine"))
			s.must(err)
			_, err = tx.Exec(ctx, "INSERT INTO shop_order VALUES ('mine')")
			s.must(err)
			err = commit(in, tx)
			tx.Rollback(ctx)
			s.must(err)
			op, err := s.ledger.Get(ctx, acc.Operation.Key)
			if err != nil || op.State != semel.Processing || s.orders() != 1 {
				t.Errorf("%d orders; %+v, %v", s.orders(), op, err)
			}
		})
	}
}
