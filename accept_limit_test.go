package semel_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlite"
)

// counted counts what a real store is asked for.
type counted struct {
	semel.Store
	reads, writes atomic.Int64
}

func (c *counted) Get(ctx context.Context, keys []semel.Key) ([]semel.Found, error) {
	c.reads.Add(int64(len(keys)))
	return c.Store.Get(ctx, keys)
}

func (c *counted) Insert(ctx context.Context, batch []semel.Insertion) ([]semel.Inserted, error) {
	c.writes.Add(int64(len(batch)))
	return c.Store.Insert(ctx, batch)
}

func (c *counted) Apply(ctx context.Context, batch []semel.Change) ([]semel.Applying, error) {
	c.writes.Add(int64(len(batch)))
	return c.Store.Apply(ctx, batch)
}

// node is a ledger of a process of its own on the store.
func node(t *testing.T, store semel.Store, limits *semel.Limits) (*counted, func(id string) (semel.Acceptance, error)) {
	t.Helper()
	c := &counted{Store: store}
	ledger, err := semel.New(t.Context(), c, &semel.Options{Kinds: []semel.Kind{{Name: "order"}}, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ledger.Close() })
	return c, func(id string) (semel.Acceptance, error) {
		return ledger.Accept(t.Context(), semel.Request{Key: semel.Key{Account: "acme", Kind: "order", ID: id}, Params: []byte(id)})
	}
}

func openStore(t *testing.T) semel.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// A refused request is one read and no write, and nothing at all where look-ups are
// spent too.
func TestARefusalIsOneReadAtMost(t *testing.T) {
	for _, c := range []struct {
		name  string
		looks float64
		reads int64
	}{{"look-ups are left", 1000, 1}, {"look-ups are spent", 1e-6, 0}} {
		t.Run(c.name, func(t *testing.T) {
			store, accept := node(t, openStore(t), &semel.Limits{NewPerSecond: 1e-6, Burst: 1, LooksPerSecond: c.looks})
			if _, err := accept("1"); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				reads, writes := store.reads.Load(), store.writes.Load()
				if _, err := accept(fmt.Sprint("more-", i)); !errors.Is(err, semel.ErrTooMany) {
					t.Fatalf("not refused: %v", err)
				}
				if r, w := store.reads.Load()-reads, store.writes.Load()-writes; r != c.reads || w != 0 {
					t.Errorf("%d reads and %d writes for a refusal, want %d and 0", r, w, c.reads)
				}
			}
		})
	}
}

// Repeats of what another node took, or this one before its restart, leave the
// allowance of new operations as it is.
func TestARepeatAtAnotherNodeIsNotNew(t *testing.T) {
	store := openStore(t)
	_, first := node(t, store, nil)
	for i := range 20 {
		if _, err := first(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	_, second := node(t, store, &semel.Limits{NewPerSecond: 1e-6, Burst: 2, LooksPerSecond: 1000})
	for i := range 20 {
		if acc, err := second(fmt.Sprint(i)); err != nil || !acc.Replayed {
			t.Fatalf("repeat %d: %+v, %v", i, acc, err)
		}
	}
	for _, id := range []string{"new-1", "new-2"} {
		if acc, err := second(id); err != nil || acc.Replayed {
			t.Errorf("%s after the repeats: %v", id, err)
		}
	}
	if _, err := second("new-3"); !errors.Is(err, semel.ErrTooMany) {
		t.Errorf("a third new one, where two are allowed: %v", err)
	}
}

// What is refused as invalid would never wait, and takes nothing of the allowance of
// new operations: it is a look-up, since it might be the repeat of an older request.
func TestAnInvalidRequestIsNotNew(t *testing.T) {
	ledger, err := semel.New(t.Context(), openStore(t), &semel.Options{
		Kinds: []semel.Kind{{Name: "order", Request: func(params []byte) ([]byte, error) {
			if string(params) == "bad" {
				return nil, errors.New("bad")
			}
			return params, nil
		}}},
		Limits: &semel.Limits{NewPerSecond: 1e-6, Burst: 1, LooksPerSecond: 1000},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ledger.Close() })
	accept := func(id, params string) error {
		_, err := ledger.Accept(t.Context(), semel.Request{Key: semel.Key{Account: "acme", Kind: "order", ID: id}, Params: []byte(params)})
		return err
	}
	for i := range 3 {
		if err := accept(fmt.Sprint(i), "bad"); !errors.Is(err, semel.ErrInvalid) {
			t.Fatalf("not refused as invalid: %v", err)
		}
	}
	if err := accept("good", "good"); err != nil {
		t.Errorf("the first new one: %v", err)
	}
}
