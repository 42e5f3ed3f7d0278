package sqlite_test

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlite"
)

// A process that writes without a pause leaves the others their turn: other
// stores, and transactions of a caller's.
func TestWritersTakeTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	open := func() *sqlite.Store {
		s, err := sqlite.Open(ctx, path, &sqlite.Options{LockTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	busy, other := open(), open()
	db, err := sqlite.OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE mine (n INTEGER)"); err != nil {
		t.Fatal(err)
	}

	stop := make(chan struct{})
	var noise sync.WaitGroup
	var writes atomic.Int64
	noise.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			var batch []semel.Insertion
			for range 20 {
				batch = append(batch, insertion())
			}
			if _, err := busy.Insert(ctx, batch); err != nil {
				t.Errorf("the busy one: %v", err)
				return
			}
			writes.Add(1)
		}
	})
	longest, passed := time.Duration(0), int64(0)
	for n := range 100 {
		begin, before := time.Now(), writes.Load()
		if n%2 == 0 {
			_, err = other.Insert(ctx, []semel.Insertion{insertion()})
		} else {
			tx, e := db.BeginTx(ctx, nil)
			if err = e; err == nil {
				_, err = tx.Exec("INSERT INTO mine VALUES (?)", n)
				tx.Commit()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > longest {
			longest, passed = took, writes.Load()-before
		}
	}
	close(stop)
	noise.Wait()
	// Where all stand still for a while, a slow disk is why; nobody has pushed in.
	if longest > 4*time.Second && passed > 20 {
		t.Errorf("one had to wait %v, during %d writes of the busy one", longest, passed)
	}
	t.Logf("the longest wait was %v, during %d writes of %d of the busy one", longest, passed, writes.Load())
}

func insertion() semel.Insertion {
	return semel.Insertion{Key: semel.Key{Account: "acme", Kind: "note", ID: semel.NewID()}, State: semel.Accepted, Params: params, Owner: "o"}
}

// By the real clock too, what was accepted can be claimed at once.
func TestDueAtOnce(t *testing.T) {
	store, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "semel.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for range 100 {
		if _, err := store.Insert(ctx, []semel.Insertion{insertion()}); err != nil {
			t.Fatal(err)
		}
		got, err := store.Claim(ctx, semel.ClaimRequest{Worker: "w", Max: 1, Kinds: []semel.ClaimKind{{Kind: "note", Lease: time.Minute}}})
		if err != nil || len(got) != 1 {
			t.Fatalf("claimed %d, %v", len(got), err)
		}
	}
}
