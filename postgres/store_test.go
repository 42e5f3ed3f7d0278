package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/postgres"
	"github.com/semel-dev/semel/storetest"
)

// TestStore has the judge look at every way to open a store, and at both ways to
// begin a caller's transaction.
func TestStore(t *testing.T) {
	for name, c := range map[string]struct {
		options postgres.Options
		begin   func(context.Context, *pgxpool.Pool) (pgx.Tx, error)
	}{
		"by account":     {postgres.Options{}, pipelined},
		"by key":         {postgres.Options{Sharding: semel.ShardByKey}, plain},
		"fewer features": {postgres.Options{NoSkipLocked: true, NoAdvisoryLocks: true}, pipelined},
		"pooler":         {postgres.Options{Pooler: true, NoNotify: true}, pipelined},
	} {
		t.Run(name, func(t *testing.T) {
			url := pgtest.Database(t)
			storetest.Run(t, func(t *testing.T) storetest.Harness { return harness(t, emptySchema(t, url), c.options, c.begin) })
		})
	}
}

func plain(ctx context.Context, pool *pgxpool.Pool) (pgx.Tx, error) { return pool.Begin(ctx) }

func pipelined(ctx context.Context, pool *pgxpool.Pool) (pgx.Tx, error) {
	tx, err := postgres.Begin(ctx, pool)
	if err != nil {
		return nil, err
	}
	return tx, nil
}

// schemas counts the schemas that emptySchema has made.
var schemas atomic.Int64

// emptySchema returns the URL of a new, empty schema of a database: as good as a
// database of its own, and made in a moment.
func emptySchema(t *testing.T, database string) string {
	ctx, name := context.Background(), fmt.Sprintf("s%d", schemas.Add(1))
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	return database + "&search_path=" + name
}

func harness(t *testing.T, url string, options postgres.Options, begin func(context.Context, *pgxpool.Pool) (pgx.Tx, error)) storetest.Harness {
	ctx, clock := context.Background(), storetest.NewClock()
	options.Clock = clock.Now
	options.LockTimeout = 5 * time.Second // nobody is told to come back since the machine stood still
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return storetest.Harness{
		Clock: clock,
		Open:  func() (semel.Store, error) { return postgres.Open(ctx, url, &options) },
		Begin: func(store semel.Store) (storetest.Transaction, error) {
			tx, err := begin(ctx, pool)
			if err != nil {
				return storetest.Transaction{}, err
			}
			return storetest.Transaction{Tx: postgres.Tx(store.(*postgres.Store), tx),
				Commit:   func() error { return tx.Commit(ctx) },
				Rollback: func() error { return tx.Rollback(ctx) }}, nil
		},
	}
}
