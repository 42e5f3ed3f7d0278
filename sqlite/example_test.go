package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlite"
)

// A ledger in a file: one operation, asked for twice.
func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "semel")
	defer os.RemoveAll(dir)

	store, err := sqlite.Open(ctx, filepath.Join(dir, "semel.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "export"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ledger.Close()

	request := semel.Request{Key: semel.Key{Account: "acme", Kind: "export", ID: semel.NewID()}, Params: []byte(`{"page":1}`)}
	for range 2 {
		answer, err := ledger.Accept(ctx, request)
		fmt.Println(answer.Operation.State, answer.Replayed, err)
	}
	// Output:
	// accepted false <nil>
	// accepted true <nil>
}

// open makes a ledger and a database with a business table in one new file.
func open(ctx context.Context, dir string) (*semel.Ledger, *sqlite.Store, error) {
	store, err := sqlite.Open(ctx, filepath.Join(dir, "shop.db"), nil)
	if err != nil {
		return nil, nil, err
	}
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "order"}}})
	return ledger, store, err
}

// The business row and the operation commit together, or not at all.
func ExampleTx() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "semel")
	defer os.RemoveAll(dir)
	ledger, store, err := open(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	defer ledger.Close()

	db, err := sqlite.OpenDB(filepath.Join(dir, "shop.db")) // the same file
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	db.Exec("CREATE TABLE basket (name TEXT)")

	order := func(id, name string, payable bool) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.Exec("INSERT INTO basket VALUES (?)", name); err != nil {
			return err
		}
		request := semel.Request{Key: semel.Key{Account: "acme", Kind: "order", ID: id}, Params: []byte(`{}`)}
		if _, err := ledger.In(sqlite.Tx(store, tx)).Accept(ctx, request); err != nil {
			return err
		}
		if !payable {
			return errors.New("rolled back")
		}
		return tx.Commit()
	}
	fmt.Println(order("order-1", "noodles", true))
	fmt.Println(order("order-2", "dumplings", false))

	var baskets int
	db.QueryRow("SELECT count(*) FROM basket").Scan(&baskets)
	page, _ := ledger.List(ctx, semel.Query{})
	fmt.Println(baskets, "basket,", len(page.Operations), "operation")
	// Output:
	// <nil>
	// rolled back
	// 1 basket, 1 operation
}

// The effect is a write to the same database, so the execution is finished in
// the transaction that makes it: it is never unknown whether it happened.
func ExampleTx_finish() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "semel")
	defer os.RemoveAll(dir)
	ledger, store, err := open(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	defer ledger.Close()
	db, err := sqlite.OpenDB(filepath.Join(dir, "shop.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	db.Exec("CREATE TABLE stock (item TEXT PRIMARY KEY, n INT); INSERT INTO stock VALUES ('rice', 10)")

	key := semel.Key{Account: "acme", Kind: "order", ID: semel.NewID()}
	ledger.Accept(ctx, semel.Request{Key: key, Params: []byte(`{"item":"rice","n":3}`)})

	leases, err := ledger.Claim(ctx, semel.ClaimRequest{Worker: "w1", Max: 1,
		Kinds: []semel.ClaimKind{{Kind: "order", Lease: time.Minute, BeginNow: true}}})
	if err != nil || len(leases) != 1 {
		fmt.Println(leases, err)
		return
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tx.Rollback()
	tx.Exec("UPDATE stock SET n = n - 3 WHERE item = 'rice'")
	_, err = ledger.In(sqlite.Tx(store, tx)).Finish(ctx, leases[0],
		semel.Ending{Outcome: semel.Applied, Result: json.RawMessage(`{"left":7}`)})
	if err == nil { // a lost lease would leave the stock as it was
		err = tx.Commit()
	}
	op, _ := ledger.Get(ctx, key)
	fmt.Println(err, op.State, string(op.Result))
	// Output: <nil> succeeded {"left":7}
}
