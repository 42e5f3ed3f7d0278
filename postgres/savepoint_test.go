package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/postgres"
)

// ways are both ways to begin a transaction; they differ in speed alone.
var ways = map[string]func(context.Context, *pgxpool.Pool) (pgx.Tx, error){"Begin": pipelined, "pool.Begin": plain}

// What is kept back for the commit is not rolled back with a savepoint.
func TestSavepointTakesNothingAlong(t *testing.T) {
	for name, begin := range ways {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), newShop(t, nil)
			play := func(id string, finish bool) {
				tx, err := begin(ctx, s.pool)
				s.must(err)
				in := s.ledger.In(postgres.Tx(s.store, tx))
				acc, err := in.Accept(ctx, orderRequest(id))
				s.must(err)
				if finish {
					_, err = in.FinishLast(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied, Result: []byte(`{}`)})
					s.must(err)
				}
				sp, err := tx.Begin(ctx)
				s.must(err)
				_, err = in.Accept(ctx, orderRequest(id+"-inner"))
				s.must(err)
				s.must(sp.Rollback(ctx))
				s.must(tx.Commit(ctx))
				_, err = s.ledger.Get(ctx, orderRequest(id+"-inner").Key)
				if !errors.Is(err, semel.ErrNotFound) {
					t.Errorf("what was rolled back is there: %v", err)
				}
			}
			play("open", false)
			play("done", true)
			pending, err := s.store.Pending(ctx, []string{"acme"}, 10)
			s.must(err)
			if pending[0] != 1 {
				t.Errorf("%d work rows, want that of the open one", pending[0])
			}
			op, err := s.ledger.Get(ctx, orderRequest("done").Key)
			if err != nil || op.State != semel.Succeeded {
				t.Errorf("what was finished is %s, %v", op.State, err)
			}
		})
	}
}

// A savepoint that is left open ends with its transaction: it does not reach into
// the next one on the same connection.
func TestSavepointEndsWithItsTransaction(t *testing.T) {
	for name, begin := range ways {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), newShop(t, nil)
			tx, err := begin(ctx, s.pool)
			s.must(err)
			in := s.ledger.In(postgres.Tx(s.store, tx))
			acc, err := in.Accept(ctx, orderRequest("one"))
			s.must(err)
			left, err := tx.Begin(ctx)
			s.must(err)
			_, err = left.Exec(ctx, "INSERT INTO shop_order VALUES ('one')")
			s.must(err)
			_, err = in.FinishLast(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied, Result: []byte(`{}`)})
			s.must(err)
			s.must(tx.Commit(ctx))

			next, err := s.pool.Begin(ctx)
			s.must(err)
			inner, err := next.Begin(ctx)
			s.must(err)
			_, err = inner.Exec(ctx, "INSERT INTO shop_order VALUES ('next')")
			s.must(err)
			if err := left.Rollback(ctx); !errors.Is(err, pgx.ErrTxClosed) {
				t.Errorf("the savepoint of a transaction that is over: %v", err)
			}
			s.must(inner.Commit(ctx))
			s.must(next.Commit(ctx))
			if n := s.orders(); n != 2 {
				t.Errorf("%d orders, want 2", n)
			}
		})
	}
}

// Law 8 in a transaction: a key that is too old, or too late, is told so, also in
// the first transaction of a session.
func TestExpiredInTransaction(t *testing.T) {
	for name, begin := range ways {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), newShop(t, nil)
			old := orderRequest(semel.NewID())
			late := orderRequest(semel.NewID())
			late.AcceptUntil = time.Now().Add(-time.Minute)
			_, err := s.store.Purge(ctx, []semel.PurgeRequest{{Kind: "order", Retention: -time.Hour, Max: 10}})
			s.must(err)
			late.Key.ID = "undated"
			for range 2 {
				for want, req := range map[error]semel.Request{semel.ErrExpired: old, semel.ErrDeadlinePassed: late} {
					tx, err := begin(ctx, s.pool)
					s.must(err)
					if _, err := s.ledger.In(postgres.Tx(s.store, tx)).Accept(ctx, req); !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
					s.must(tx.Rollback(ctx))
				}
			}
		})
	}
}

// A savepoint of one's own is one all the same: what was finished before it stays
// finished when it is rolled back, and what was finished after it does not.
func TestSavepointOfOnesOwn(t *testing.T) {
	sent := map[string]func(context.Context, pgx.Tx, string) error{
		"Exec": func(ctx context.Context, tx pgx.Tx, sql string) error { _, err := tx.Exec(ctx, sql); return err },
		"Query": func(ctx context.Context, tx pgx.Tx, sql string) error {
			rows, err := tx.Query(ctx, sql)
			rows.Close()
			return err
		},
		"QueryRow": func(ctx context.Context, tx pgx.Tx, sql string) error {
			if err := tx.QueryRow(ctx, sql).Scan(); !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return nil
		},
		"SendBatch": func(ctx context.Context, tx pgx.Tx, sql string) error {
			var b pgx.Batch
			b.Queue("SELECT 1")
			b.Queue(sql)
			return tx.SendBatch(ctx, &b).Close()
		},
		"Prepare": func(ctx context.Context, tx pgx.Tx, sql string) error {
			if _, err := tx.Prepare(ctx, sql, sql); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, sql)
			return err
		},
		"Conn": func(ctx context.Context, tx pgx.Tx, sql string) error { _, err := tx.Conn().Exec(ctx, sql); return err },
	}
	ctx, s := t.Context(), newShop(t, nil)
	for way, begin := range ways {
		for name, send := range sent {
			t.Run(way+"/"+name, func(t *testing.T) {
				prefix := way + "." + name + "."
				tx, err := begin(ctx, s.pool)
				s.must(err)
				defer tx.Rollback(ctx)
				in := s.ledger.In(postgres.Tx(s.store, tx))
				order := func(id string) (finish func()) {
					acc, err := in.Accept(ctx, orderRequest(prefix+id))
					s.must(err)
					return func() {
						_, err = tx.Exec(ctx, "INSERT INTO shop_order VALUES ($1)", prefix+id)
						s.must(err)
						_, err = in.FinishLast(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied})
						s.must(err)
					}
				}
				open := order("open")
				order("before")()
				s.must(send(ctx, tx, "SAVEPOINT mine"))
				order("within")()
				open()
				s.must(send(ctx, tx, "rollback to savepoint mine"))
				s.must(tx.Commit(ctx))
				for id, want := range map[string]semel.State{"before": semel.Succeeded, "open": semel.Processing, "within": ""} {
					op, err := s.ledger.Get(ctx, orderRequest(prefix+id).Key)
					if op.State != want || (err != nil) != (want == "") {
						t.Errorf("%s is %q, %v", id, op.State, err)
					}
				}
				var ids string
				if err := s.pool.QueryRow(ctx, "SELECT string_agg(id, ' ') FROM shop_order WHERE starts_with(id, $1)", prefix).Scan(&ids); err != nil || ids != prefix+"before" {
					t.Errorf("orders %s, %v", ids, err)
				}
			})
		}
	}
}
