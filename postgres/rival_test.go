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

// A rival of another way that holds the key without committing is waited for no
// longer than the store's options say, also by the commit; and what is the caller's
// own waits as long as the caller has said.
func TestCommitWaitsBounded(t *testing.T) {
	ctx, s := context.Background(), newShop(t, &postgres.Options{LockTimeout: 50 * time.Millisecond})
	rivals := s.another(func(c *pgxpool.Config) { c.MaxConns = 3 })
	for name, then := range map[string]func(ctx context.Context, in *semel.Ledger, tx *postgres.Transaction, lease semel.Lease) error{
		"commit": func(ctx context.Context, in *semel.Ledger, tx *postgres.Transaction, lease semel.Lease) error {
			_, err := in.FinishLast(ctx, lease, semel.Ending{Outcome: semel.Applied})
			s.must(err)
			return nil
		},
		"open": func(ctx context.Context, in *semel.Ledger, tx *postgres.Transaction, lease semel.Lease) error {
			return nil
		},
		"savepoint": func(ctx context.Context, in *semel.Ledger, tx *postgres.Transaction, lease semel.Lease) error {
			_, err := tx.Begin(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			tx, err := postgres.Begin(ctx, s.pool)
			s.must(err)
			defer tx.Rollback(ctx)
			in := s.ledger.In(postgres.Tx(s.store, tx))
			acc, err := in.Accept(ctx, orderRequest(name))
			s.must(err)
			_, err = tx.Exec(ctx, "INSERT INTO shop_order VALUES ($1)", name)
			s.must(err)
			rival, err := rivals.Begin(ctx)
			s.must(err)
			defer rival.Rollback(ctx)
			_, err = s.ledger.In(postgres.Tx(s.store, rival)).Accept(ctx, orderRequest(name))
			s.must(err)
			err = then(bounded, in, tx, *acc.Lease)
			if err == nil {
				err = tx.Commit(bounded)
			}
			if e := semel.AsError("", err); e == nil || bounded.Err() != nil || e.WasRecorded() != semel.RecordedNo || e.Code != semel.CodeInProgress {
				t.Errorf("beside an open rival: %v", err)
			}
			tx.Rollback(ctx)
			s.must(rival.Commit(ctx))
			if n := s.orders(); n != 0 {
				t.Errorf("%d orders", n)
			}
		})
	}
}

// What the business has deferred to the commit, and what it can't do, is told as the
// database tells it, and never taken for the ledger's own; but a lost race is one.
func TestCommitSaysWhoFailed(t *testing.T) {
	ctx, s := context.Background(), newShop(t, nil)
	_, err := s.pool.Exec(ctx, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		RAISE EXCEPTION 'the business says no' USING ERRCODE = NEW.id; END $$;
	CREATE CONSTRAINT TRIGGER fails AFTER INSERT ON shop_order DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()`)
	s.must(err)
	for state, code := range map[string]semel.Code{"22012": "", "23502": "", "25P02": "", "P0001": "",
		"40001": semel.CodeRetryTransaction, "40P01": semel.CodeRetryTransaction} {
		_, err := s.order(s.begin(), state)
		if e := new(semel.Error); err == nil || errors.As(err, &e) != (code != "") || e.Code != code {
			t.Errorf("%s: %v", state, err)
		}
		if _, err := s.ledger.Get(ctx, orderRequest(state).Key); !errors.Is(err, semel.ErrNotFound) {
			t.Errorf("%s: %v", state, err)
		}
	}
}

// The settings of the transaction are the caller's own again when its deferred work
// runs, at the commit.
func TestCommitKeepsSettings(t *testing.T) {
	ctx, s := context.Background(), newShop(t, &postgres.Options{LockTimeout: 1234 * time.Millisecond})
	_, err := s.pool.Exec(ctx, `CREATE TABLE seen (value text);
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES (current_setting('lock_timeout')); RETURN NULL; END $$;
	CREATE CONSTRAINT TRIGGER notes AFTER INSERT ON shop_order DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note()`)
	s.must(err)
	tx := s.begin()
	defer tx.Rollback(ctx)
	in := s.ledger.In(postgres.Tx(s.store, tx))
	_, err = in.Accept(ctx, orderRequest("one"))
	s.must(err)
	_, err = tx.Exec(ctx, "SET LOCAL lock_timeout = '4321ms'")
	s.must(err)
	_, err = in.Accept(ctx, orderRequest("two")) // writes the first one
	s.must(err)
	_, err = tx.Exec(ctx, "INSERT INTO shop_order VALUES ('x')")
	s.must(err)
	s.must(tx.Commit(ctx))
	var value string
	s.must(s.pool.QueryRow(ctx, "SELECT value FROM seen").Scan(&value))
	if value != "4321ms" {
		t.Errorf("lock_timeout was %s", value)
	}
}

// A call in a transaction that is over says nothing of what is recorded: whoever ended
// it may have committed it. Whatever the commit was told is there.
func TestTransactionIsOver(t *testing.T) {
	for way, begin := range ways {
		for name, end := range map[string]func(pgx.Tx) error{"commit": func(tx pgx.Tx) error { return tx.Commit(t.Context()) }, "rollback": func(tx pgx.Tx) error { return tx.Rollback(t.Context()) }} {
			t.Run(way+"/"+name, func(t *testing.T) {
				ctx, s := t.Context(), newShop(t, nil)
				tx, err := begin(ctx, s.pool)
				s.must(err)
				in := s.ledger.In(postgres.Tx(s.store, tx))
				acc, err := in.Accept(ctx, orderRequest("one"))
				s.must(err)
				s.must(end(tx))
				for what, call := range map[string]func() error{
					"accept": func() error { _, err := in.Accept(ctx, orderRequest("two")); return err },
					"finish": func() error {
						_, err := in.FinishLast(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied})
						return err
					},
					"get": func() error { _, err := in.Get(ctx, orderRequest("one").Key); return err },
				} {
					if e := semel.AsError("", call()); e == nil || e.Code != semel.CodeInternal || e.WasRecorded() != semel.RecordedUnknown {
						t.Errorf("%s: %v", what, e)
					}
				}
				if op, err := s.ledger.Get(ctx, orderRequest("one").Key); (err == nil) != (name == "commit") || err == nil && op.State != semel.Processing {
					t.Errorf("on record: %+v, %v", op, err)
				}
			})
		}
	}
}

// The shortest wait is one, and not a wait without end.
func TestShortestLockTimeout(t *testing.T) {
	ctx, s := context.Background(), newShop(t, &postgres.Options{LockTimeout: time.Microsecond})
	first := s.begin()
	defer first.Rollback(ctx)
	_, err := s.ledger.In(postgres.Tx(s.store, first)).Accept(ctx, orderRequest("short"))
	s.must(err)
	second, err := postgres.Begin(ctx, s.another(func(*pgxpool.Config) {}))
	s.must(err)
	defer second.Rollback(ctx)
	bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if _, err := s.ledger.In(postgres.Tx(s.store, second)).Accept(bounded, orderRequest("short")); semel.AsError("", err) == nil || semel.AsError("", err).Code != semel.CodeInProgress {
		t.Errorf("beside an open rival: %v", err)
	}
}
