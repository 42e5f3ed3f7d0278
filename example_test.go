package semel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/schema"
	"github.com/semel-dev/semel/sqlite"
)

func Example() {
	dir, _ := os.MkdirTemp("", "semel")
	defer os.RemoveAll(dir)
	if err := run(context.Background(), filepath.Join(dir, "semel.db")); err != nil {
		fmt.Println(err)
	}
	// Output:
	// accepted, a repeat: false, a conflict: false
	// accepted, a repeat: true, a conflict: false
	// , a repeat: false, a conflict: true
}

func run(ctx context.Context, file string) error {
	store, err := sqlite.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "order", Canon: schema.JSON("order")}}})
	if err != nil {
		return err
	}
	defer ledger.Close()

	key := semel.Key{Account: "acme", Kind: "order", ID: semel.NewID()} // made once, before the first send
	for _, params := range []string{`{"amount": 1}`, `{ "amount": 1.0 }`, `{"amount": 2}`} {
		got, err := ledger.Accept(ctx, semel.Request{Key: key, Params: []byte(params)})
		fmt.Printf("%s, a repeat: %v, a conflict: %v\n", got.Operation.State, got.Replayed, errors.Is(err, semel.ErrMismatch))
	}
	return nil
}
