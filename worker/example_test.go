package worker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/sqlite"
	"github.com/semel-dev/semel/worker"
)

// A worker whose first call gets no answer. The contract says that the same key
// has no second effect, so it calls again.
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

	calls := 0
	promise, _ := contract.Preset(contract.Idempotent)
	w, err := worker.New(ledger, []worker.Kind{{
		Name:     "export",
		Contract: promise,
		Effect: effect.Func(func(_ context.Context, call *effect.Call) effect.Result {
			if calls++; calls == 1 {
				return effect.Unknown("no-answer", "The printer did not answer.")
			}
			fmt.Println("called again:", call.Repeat)
			return effect.Applied(map[string]string{"image": "menu.png"})
		}),
	}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- w.Run(running) }()

	key := semel.Key{Account: "acme", Kind: "export", ID: semel.NewID()}
	ledger.Accept(ctx, semel.Request{Key: key, Params: []byte(`{"page":1}`)})
	op, err := ledger.Wait(ctx, key)
	fmt.Println(op.State, string(op.Result), op.Executions, err)
	stop()
	fmt.Println(<-done)
	// Output:
	// called again: true
	// succeeded {"image":"menu.png"} 2 <nil>
	// <nil>
}
