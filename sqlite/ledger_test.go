package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlite"
	"github.com/semel-dev/semel/storetest"
)

func TestLedger(t *testing.T) {
	storetest.RunLedger(t, func(t *testing.T) storetest.LedgerHarness {
		clock := storetest.NewClock()
		store, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "semel.db"), &sqlite.Options{Clock: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		ledger, err := semel.New(context.Background(), store, &semel.Options{Kinds: storetest.LedgerKinds()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ledger.Close() })
		return storetest.LedgerHarness{API: ledger, Ledger: ledger, Clock: clock}
	})
}
