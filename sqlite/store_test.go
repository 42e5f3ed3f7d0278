package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlite"
	"github.com/semel-dev/semel/storetest"
)

func TestStore(t *testing.T) {
	for _, sharding := range []semel.Sharding{semel.ShardByAccount, semel.ShardByKey} {
		t.Run(string(sharding), func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Harness { return harness(t, sharding) })
		})
	}
}

func harness(t *testing.T, sharding semel.Sharding) storetest.Harness {
	path, clock := filepath.Join(t.TempDir(), "semel.db"), storetest.NewClock()
	db, err := sqlite.OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return storetest.Harness{
		Clock: clock,
		Open: func() (semel.Store, error) {
			return sqlite.Open(context.Background(), path,
				&sqlite.Options{Clock: clock.Now, Sharding: sharding, LockTimeout: 5 * time.Second})
		},
		Begin: func(store semel.Store) (storetest.Transaction, error) {
			tx, err := db.BeginTx(context.Background(), nil)
			if err != nil {
				return storetest.Transaction{}, err
			}
			return storetest.Transaction{Tx: sqlite.Tx(store.(*sqlite.Store), tx), Commit: tx.Commit, Rollback: tx.Rollback}, nil
		},
	}
}
