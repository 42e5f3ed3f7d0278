package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/postgres"
)

// Two nodes on one database: what one has accepted, the other one knows.
func ExampleOpen() {
	ctx := context.Background()
	url, drop := pgtest.Example() // postgres://…
	defer drop()

	request := semel.Request{Key: semel.Key{Account: "acme", Kind: "order", ID: semel.NewID()}, Params: []byte(`{"dish":"soup"}`)}
	for range 2 {
		store, err := postgres.Open(ctx, url, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer store.Close()
		ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "order"}}})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer ledger.Close()
		answer, err := ledger.Accept(ctx, request)
		fmt.Println(answer.Operation.State, answer.Replayed, err)
	}
	// Output:
	// accepted false <nil>
	// accepted true <nil>
}

// A kitchen has a ledger and its own tables in one database.
type kitchen struct {
	store  *postgres.Store
	ledger *semel.Ledger
	pool   *pgxpool.Pool
}

func openKitchen(ctx context.Context, url string) (*kitchen, error) {
	store, err := postgres.Open(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "order"}}})
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, "CREATE TABLE dish (name text)")
	return &kitchen{store, ledger, pool}, err
}

func (k *kitchen) close() {
	k.pool.Close()
	k.ledger.Close()
	k.store.Close()
}

// dishes counts the business rows.
func (k *kitchen) dishes(ctx context.Context) (n int) {
	k.pool.QueryRow(ctx, "SELECT count(*) FROM dish").Scan(&n)
	return n
}

// The business row and the operation commit together, or not at all. A worker does
// the rest later.
func ExampleTx() {
	ctx := context.Background()
	url, drop := pgtest.Example()
	defer drop()
	k, err := openKitchen(ctx, url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.close()

	order := func(id, dish string, payable bool) error {
		tx, err := k.pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx)
		if _, err := tx.Exec(ctx, "INSERT INTO dish VALUES ($1)", dish); err != nil {
			return err
		}
		request := semel.Request{Key: semel.Key{Account: "acme", Kind: "order", ID: id}, Params: []byte(`{}`)}
		if _, err := k.ledger.In(postgres.Tx(k.store, tx)).Accept(ctx, request); err != nil {
			return err
		}
		if !payable {
			return errors.New("rolled back")
		}
		return tx.Commit(ctx)
	}
	fmt.Println(order("order-1", "noodles", true))
	fmt.Println(order("order-2", "dumplings", false))

	page, err := k.ledger.List(ctx, semel.Query{})
	fmt.Println(k.dishes(ctx), "dish,", len(page.Operations), "operation", err)
	// Output:
	// <nil>
	// rolled back
	// 1 dish, 1 operation <nil>
}

// A worker's effect is a write to the same database, so the execution is finished in
// the transaction that makes it: it is never unknown whether it happened.
func ExampleTx_finish() {
	ctx := context.Background()
	url, drop := pgtest.Example()
	defer drop()
	k, err := openKitchen(ctx, url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.close()
	key := semel.Key{Account: "acme", Kind: "order", ID: semel.NewID()}
	if _, err := k.ledger.Accept(ctx, semel.Request{Key: key, Params: []byte(`{"dish":"soup"}`)}); err != nil {
		fmt.Println(err)
		return
	}

	leases, err := k.ledger.Claim(ctx, semel.ClaimRequest{Worker: "w1", Max: 1,
		Kinds: []semel.ClaimKind{{Kind: "order", Lease: time.Minute, BeginNow: true}}})
	if err != nil || len(leases) != 1 {
		fmt.Println(leases, err)
		return
	}
	tx, err := k.pool.Begin(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tx.Rollback(ctx)
	_, err = tx.Exec(ctx, "INSERT INTO dish VALUES ('soup')")
	if err == nil {
		_, err = k.ledger.In(postgres.Tx(k.store, tx)).Finish(ctx, leases[0],
			semel.Ending{Outcome: semel.Applied, Result: []byte(`{"table":3}`)})
	}
	if err == nil { // after a lost lease there is no dish either
		err = tx.Commit(ctx)
	}
	op, _ := k.ledger.Get(ctx, key)
	fmt.Println(err, op.State, string(op.Result), k.dishes(ctx), "dish")
	// Output: <nil> succeeded {"table":3} 1 dish
}

// An operation that begins and ends in one transaction costs no round trip of its
// own. However often it is asked for, it happens once, and the answer is the same.
func ExampleBegin() {
	ctx := context.Background()
	url, drop := pgtest.Example()
	defer drop()
	k, err := openKitchen(ctx, url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.close()

	order := func(id, dish string) (semel.Operation, error) {
		tx, err := postgres.Begin(ctx, k.pool)
		if err != nil {
			return semel.Operation{}, err
		}
		defer tx.Rollback(ctx)
		in := k.ledger.In(postgres.Tx(k.store, tx))
		answer, err := in.Accept(ctx, semel.Request{Key: semel.Key{Account: "acme", Kind: "order", ID: id},
			Params: fmt.Appendf(nil, `{"dish":%q}`, dish), Begun: &semel.Begun{Worker: "node-1", Lease: time.Minute}})
		if err != nil || answer.Lease == nil { // it is known already
			return answer.Operation, err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO dish VALUES ($1)", dish); err != nil {
			return semel.Operation{}, err
		}
		done, err := in.FinishLast(ctx, *answer.Lease, semel.Ending{Outcome: semel.Applied, Result: []byte(`{"table":3}`)})
		if err != nil {
			return semel.Operation{}, err
		}
		if err := tx.Commit(ctx); err != nil {
			return semel.Operation{}, err
		}
		return done(), nil
	}
	for range 2 {
		op, err := order("order-1", "soup")
		fmt.Println(op.State, string(op.Result), err)
	}
	fmt.Println(k.dishes(ctx), "dish")
	// Output:
	// succeeded {"table":3} <nil>
	// succeeded {"table":3} <nil>
	// 1 dish
}
