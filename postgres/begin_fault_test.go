package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/postgres"
)

// orderOnce is a whole order in a transaction of its own, up to the first error. Before
// each step it calls next.
func (s *shop) orderOnce(pool *pgxpool.Pool, id string, next func(step string, tx pgx.Tx)) error {
	ctx := context.Background()
	tx, err := postgres.Begin(ctx, pool)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	in := s.ledger.In(postgres.Tx(s.store, tx))
	next("accept", tx)
	acc, err := in.Accept(ctx, orderRequest(id))
	if err != nil || acc.Lease == nil {
		return err
	}
	next("order", tx)
	if _, err = tx.Exec(ctx, "INSERT INTO shop_order VALUES ($1)", id); err != nil {
		return err
	}
	if _, err = in.FinishLast(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied, Result: []byte(`"` + id + `"`)}); err != nil {
		return err
	}
	next("commit", tx)
	return tx.Commit(ctx)
}

// ordered checks that after an order ended with err, and was made again, there is one.
func (s *shop) ordered(id string, err error) {
	s.Helper()
	key := orderRequest(id).Key
	if e := new(semel.Error); errors.As(err, &e) && e.WasRecorded() == semel.RecordedNo {
		if op, err := s.ledger.Get(context.Background(), key); err == nil {
			s.Errorf("%s: recorded, though the error said no: %+v (%v)", id, op, e)
		}
	}
	if err := s.orderOnce(s.pool, id, func(string, pgx.Tx) {}); err != nil {
		s.Errorf("%s: once more: %v", id, err)
	}
	var n int
	s.must(s.pool.QueryRow(context.Background(), "SELECT count(*) FROM shop_order WHERE id = $1", id).Scan(&n))
	if op, err := s.ledger.Get(context.Background(), key); n != 1 || err != nil || op.State != semel.Succeeded || string(op.Result) != `"`+id+`"` {
		s.Errorf("%s: %d orders, %+v, %v", id, n, op, err)
	}
}

// Wherever the connection of a transaction breaks, what is recorded is what is there,
// and a repeat finds it or runs.
func TestBeginCut(t *testing.T) {
	ctx, s, tr := context.Background(), newShop(t, &postgres.Options{LockTimeout: time.Minute}), &trap{}
	u, err := url.Parse(s.pool.Config().ConnString())
	s.must(err)
	proxy, err := fault.NewTCPProxy(u.Host, &fault.TCPOptions{Hook: tr.hook})
	s.must(err)
	defer proxy.Close()
	u.Host = proxy.Addr()
	cut, err := pgxpool.New(ctx, u.String())
	s.must(err)
	defer cut.Close()
	for n, c := range cuts {
		for _, step := range []string{"accept", "order", "commit"} {
			id := fmt.Sprintf("%d-%s-%s", n, step, semel.NewID())
			before := tr.sprung.Load()
			err := s.orderOnce(cut, id, func(at string, _ pgx.Tx) {
				if at == step {
					tr.set(id, c.to, c.back)
				}
			})
			if err == nil || tr.sprung.Load() != before+1 {
				t.Fatalf("%s at %s: the connection was not cut, %v", c.name, step, err)
			}
			s.ordered(id, err)
		}
	}
}

// The same when the database ends the session, or cancels a statement that takes too
// long, also within the COMMIT.
func TestBeginKilled(t *testing.T) {
	ctx, s := context.Background(), newShop(t, &postgres.Options{LockTimeout: time.Minute})
	_, err := s.pool.Exec(ctx, `CREATE FUNCTION rest() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
	CREATE CONSTRAINT TRIGGER rests AFTER INSERT ON shop_order DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION rest()`)
	s.must(err)
	killed := s.another(func(*pgxpool.Config) {})
	holder := s.another(func(*pgxpool.Config) {})
	for _, how := range []string{"pg_terminate_backend", "pg_cancel_backend"} {
		for _, step := range []string{"accept", "order", "commit", "COMMIT"} {
			id := how + "." + step
			held, err := holder.Begin(ctx)
			s.must(err)
			if step == "COMMIT" {
				_, err = held.Exec(ctx, "SELECT pg_advisory_xact_lock(1)")
				s.must(err)
			}
			ended := make(chan struct{})
			err = s.orderOnce(killed, id, func(at string, tx pgx.Tx) {
				end := func(pid int) {
					_, err := s.pool.Exec(ctx, "SELECT "+how+"($1)", pid)
					if err != nil {
						t.Error(err)
					}
				}
				switch {
				case at == "commit" && step == "COMMIT":
					pid := pidOf(s, tx)
					go func() { defer close(ended); s.waits(pid); end(pid) }()
				case at == step:
					end(pidOf(s, tx))
					close(ended)
				}
			})
			<-ended
			s.must(held.Rollback(ctx))
			if err == nil && (how == "pg_terminate_backend" || step == "COMMIT") { // else there was nothing to cancel
				t.Errorf("%s: it went on", id)
			}
			var e *pgconn.PgError
			if step == "COMMIT" && (!errors.As(err, &e) || errors.As(err, new(*semel.Error))) {
				t.Errorf("%s: %v", id, err)
			}
			s.ordered(id, err)
		}
	}
}
