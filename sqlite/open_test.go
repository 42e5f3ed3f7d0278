package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlite"
)

func wantCode(t *testing.T, err error, code semel.Code, words string) {
	t.Helper()
	var e *semel.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(err.Error(), words) {
		t.Fatalf("got %v, want %s with %q", err, code, words)
	}
	if e.WasRecorded() != semel.RecordedNo {
		t.Fatalf("recorded %q, want no: %v", e.WasRecorded(), err)
	}
}

func TestFilesAreTheirOwners(t *testing.T) {
	dir := t.TempDir()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "semel.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Insert(ctx, []semel.Insertion{insertion()}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", f.Name(), info.Mode(), err)
		}
	}
	if len(files) < 3 {
		t.Errorf("only %d files: not in WAL mode?", len(files))
	}
}

// Many that open a new file at once all succeed, and find one schema.
func TestOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			store, err := sqlite.Open(ctx, path, &sqlite.Options{LockTimeout: time.Minute})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			defer store.Close()
			if _, err := store.Insert(ctx, []semel.Insertion{insertion()}); err != nil {
				t.Errorf("insert: %v", err)
			}
		})
	}
	all.Wait()
}

// A file keeps the sharding that it was made with.
func TestSharding(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	open := func(s semel.Sharding) error {
		store, err := sqlite.Open(ctx, path, &sqlite.Options{Sharding: s})
		if err == nil {
			err = store.Close()
		}
		return err
	}
	wantCode(t, open("colour"), semel.CodeInvalid, "colour")
	for _, s := range []semel.Sharding{semel.ShardByKey, "", semel.ShardByKey} {
		if err := open(s); err != nil {
			t.Fatalf("sharding %q: %v", s, err)
		}
	}
	wantCode(t, open(semel.ShardByAccount), semel.CodeInvalid, `made with sharding by "key"`)
}

func TestPaths(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b.db", "percent%20.db", "question?x=1.db", "hash#1.db", "菜单.db", "quote'\".db", "file:x.db", "semi;colon&and.db"} {
		path := filepath.Join(dir, name)
		store, err := sqlite.Open(ctx, path, nil)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		store.Close()
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q lies elsewhere: %v", name, err)
		}
	}
	_, err := sqlite.Open(ctx, "", nil)
	wantCode(t, err, semel.CodeInvalid, "path of a file")
	_, err = sqlite.Open(ctx, ":memory:", nil)
	wantCode(t, err, semel.CodeInvalid, "path of a file")
	_, err = sqlite.Open(ctx, filepath.Join(dir, "no", "such", "folder.db"), nil)
	wantCode(t, err, semel.CodeUnavailable, "can't be opened")
	_, err = sqlite.Open(ctx, dir, nil)
	wantCode(t, err, semel.CodeUnavailable, "can't be opened")
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letter.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("Dear Sir or Madam, ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(ctx, path, nil)
	wantCode(t, err, semel.CodeUnavailable, "damaged")

	path = filepath.Join(t.TempDir(), "semel.db")
	store, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := store.Insert(ctx, []semel.Insertion{insertion()}); err != nil {
			t.Fatal(err)
		}
	}
	store.Close()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := f.Stat()
	f.WriteAt(make([]byte, info.Size()-4096), 4096) // all pages but the first
	f.Close()
	store, err = sqlite.Open(ctx, path, nil)
	if err == nil {
		_, err = store.Insert(ctx, []semel.Insertion{insertion()})
		store.Close()
	}
	wantCode(t, err, semel.CodeUnavailable, "damaged")
}

// A writer that stays gives a clear refusal after LockTimeout; readers do not mind.
func TestLockedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	store, err := sqlite.Open(ctx, path, &sqlite.Options{LockTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	known := insertion()
	if _, err := store.Insert(ctx, []semel.Insertion{known}); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Insert(ctx, []semel.Insertion{insertion()})
	wantCode(t, err, semel.CodeUnavailable, "another writer")
	found, err := store.Get(ctx, []semel.Key{known.Key})
	if err != nil || found[0].Operation == nil {
		t.Errorf("a look-up while somebody writes: %+v, %v", found, err)
	}
	second, err := sqlite.Open(ctx, path, &sqlite.Options{LockTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Errorf("open while somebody writes: %v", err)
	} else {
		second.Close()
	}
	tx.Rollback()
	if _, err := store.Insert(ctx, []semel.Insertion{insertion()}); err != nil {
		t.Errorf("after the writer left: %v", err)
	}
}
