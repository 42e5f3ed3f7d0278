package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlite"
)

// In a transaction that began by reading, a write may find that another one came
// in between. That is told as such, and the next try works. (A database from
// OpenDB does not come into this.)
func TestRetryTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	store, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mine := insertion()
	for try := range 2 {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		inside := sqlite.Tx(store, tx)
		if _, err := inside.Get(ctx, []semel.Key{mine.Key}); err != nil {
			t.Fatal(err)
		}
		if try == 0 {
			if _, err := store.Insert(ctx, []semel.Insertion{insertion()}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = inside.Insert(ctx, []semel.Insertion{mine})
		switch {
		case try == 0:
			var e *semel.Error
			if !errors.As(err, &e) || e.Code != semel.CodeRetryTransaction || e.WasRecorded() != semel.RecordedNo {
				t.Fatalf("got %v, want retry-transaction", err)
			}
			tx.Rollback()
		case err != nil:
			t.Fatal(err)
		default:
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A call that fails leaves nothing behind in the transaction, which goes on.
func TestFailedCallIsUndone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	store, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	db, err := sqlite.OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE mine (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("INSERT INTO mine VALUES (1); ALTER TABLE semel_work RENAME TO semel_elsewhere"); err != nil {
		t.Fatal(err)
	}
	a := insertion()
	if _, err := sqlite.Tx(store, tx).Insert(ctx, []semel.Insertion{a}); err == nil {
		t.Fatal("an insertion without a table for its work succeeded")
	}
	var rows int
	if err := tx.QueryRow("SELECT count(*) FROM semel_operation").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d operations are left of it, %v", rows, err)
	}
	if _, err := tx.Exec("ALTER TABLE semel_elsewhere RENAME TO semel_work"); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Tx(store, tx).Insert(ctx, []semel.Insertion{a}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	found, err := store.Get(ctx, []semel.Key{a.Key})
	if err != nil || found[0].Operation == nil {
		t.Errorf("%+v, %v", found, err)
	}
}

// A transaction that is over says so.
func TestTxIsOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	store, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	db, err := sqlite.OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	tx.Rollback()
	_, err = sqlite.Tx(store, tx).Insert(ctx, []semel.Insertion{insertion()})
	var e *semel.Error
	if !errors.As(err, &e) || e.Code != semel.CodeInternal {
		t.Errorf("got %v", err)
	}
}
