package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/idempotency"
)

func transactional(o *idempotency.Options, d *database) { o.Begin = d.begin }

// The business row, the operation and the answer are there together or not at all,
// whatever the handler answers.
func TestTransactionByAnswer(t *testing.T) {
	cases := []struct {
		name   string
		handle func(w http.ResponseWriter, r *http.Request)
		rows   int // for each run
		final  bool
		state  semel.State
	}{
		{"201", func(w http.ResponseWriter, r *http.Request) { created(w, r) }, 1, true, semel.Succeeded},
		{"303", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(303) }, 1, true, semel.Succeeded},
		{"422", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", 422) }, 0, true, semel.Failed},
		{"409", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "busy", 409) }, 0, false, ""},
		{"500", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "boom", 500) }, 0, false, ""},
		{"NotApplied", func(w http.ResponseWriter, r *http.Request) { idempotency.NotApplied(r.Context()); created(w, r) }, 0, false, ""},
		{"a panic", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, 0, false, ""},
	}
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(transactional)
		var runs atomic.Int64
		var handle http.HandlerFunc
		n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			runs.Add(1)
			if err := insertOrder(r.Context(), keyIn(r)); err != nil {
				t.Error(err)
			}
			handle(w, r)
		})
		for _, c := range cases {
			handle = c.handle
			runs.Store(0)
			key := newKey()
			first := n.send("POST", "/orders", key, `{}`)
			rows := n.count("SELECT count(*) FROM shop_order WHERE id = '" + key + "'")
			op, err := n.ledger.Get(context.Background(), semel.Key{Account: "acme", Kind: "post.orders", ID: key})
			if rows != c.rows || (err == nil) != c.final || !c.final && !errors.Is(err, semel.ErrNotFound) || op.State != c.state {
				t.Errorf("%s: %d rows, record %v %q, answer %s", c.name, rows, err, op.State, first)
			}
			again := n.send("POST", "/orders", key, `{}`)
			want := int64(2)
			if c.final {
				want = 1
			}
			if runs.Load() != want || c.final && (!again.replayed() || again.status != first.status || again.body != first.body) {
				t.Errorf("%s: %d runs, the repeat got %s", c.name, runs.Load(), again)
			}
		}
	})
}

// A first call is one transaction of the caller's: begun once, committed once.
func TestOneTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		var begins, commits, rollbacks atomic.Int64
		n := w.node(func(o *idempotency.Options, d *database) {
			o.Begin = func(ctx context.Context) (*idempotency.Transaction, error) {
				begins.Add(1)
				tx, err := d.begin(ctx)
				if err != nil {
					return nil, err
				}
				counted := *tx
				counted.Commit = func() error { commits.Add(1); return tx.Commit() }
				counted.Rollback = func() error { rollbacks.Add(1); return tx.Rollback() }
				return &counted, nil
			}
		})
		n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			insertOrder(r.Context(), keyIn(r))
			created(w, r)
		})
		key, before := newKey(), n.store.calls.Load()
		n.send("POST", "/orders", key, `{}`)
		if begins.Load() != 1 || commits.Load() != 1 || rollbacks.Load() != 0 || n.store.calls.Load() != before {
			t.Errorf("%d begun, %d committed, %d rolled back, %d calls outside", begins.Load(), commits.Load(), rollbacks.Load(), n.store.calls.Load()-before)
		}
	})
}

// The answer of the commit is lost: what is told is what is so.
func TestLostCommit(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		var really, unreadable atomic.Bool
		var n *node
		n = w.node(func(o *idempotency.Options, d *database) {
			o.Begin = func(ctx context.Context) (*idempotency.Transaction, error) {
				tx, err := d.begin(ctx)
				if err != nil {
					return nil, err
				}
				lossy := *tx
				lossy.Commit = func() error {
					if really.Load() {
						if err := tx.Commit(); err != nil {
							t.Error(err)
						}
					}
					if unreadable.Load() {
						n.store.fail(func(string) bool { return true })
					}
					return errors.New("connection reset by peer")
				}
				return &lossy, nil
			}
		})
		var runs atomic.Int64
		n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			runs.Add(1)
			insertOrder(r.Context(), keyIn(r))
			created(w, r)
		})
		rows := func(key string) int {
			return n.count("SELECT count(*) FROM shop_order WHERE id = '" + key + "'")
		}
		really.Store(true)
		key := newKey()
		if a := n.send("POST", "/orders", key, `{}`); !ok201(a) || rows(key) != 1 {
			t.Errorf("it was committed: %s", a)
		}
		unreadable.Store(true)
		key = newKey()
		if a := n.send("POST", "/orders", key, `{}`); a.status != 503 || rows(key) != 1 {
			t.Errorf("it was committed, and nobody can read: %s", a)
		}
		n.store.fail(nil)
		runs.Store(0)
		if a := n.send("POST", "/orders", key, `{}`); !a.replayed() || runs.Load() != 0 {
			t.Errorf("the repeat: %s after %d runs", a, runs.Load())
		}
		unreadable.Store(false)
		really.Store(false)
		key = newKey()
		if a := n.send("POST", "/orders", key, `{}`); a.status != 503 || a.code() != "store-unavailable" || rows(key) != 0 {
			t.Errorf("it was not committed: %s", a)
		}
		really.Store(true)
		if a := n.send("POST", "/orders", key, `{}`); !ok201(a) || rows(key) != 1 {
			t.Errorf("the repeat: %s", a)
		}
	})
}

// Where a key is optional, a request without one has its transaction all the same.
func TestTransactionWithoutKey(t *testing.T) {
	c := idempotency.DefaultContract()
	c.Use.Required = contract.Optional
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(func(o *idempotency.Options, d *database) { o.Begin, o.Contract = d.begin, &c })
		status := 201
		n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			if err := insertOrder(r.Context(), "unkeyed"); err != nil {
				t.Error(err)
			}
			_, keyed := idempotency.KeyOf(r.Context())
			w.WriteHeader(status)
			fmt.Fprint(w, keyed)
		})
		for i, want := range []int{1, 2, 2} {
			if i == 2 {
				status = 400
			}
			a := n.send("POST", "/orders", "", `{}`)
			if rows := n.count("SELECT count(*) FROM shop_order"); rows != want || a.body != "false" {
				t.Errorf("%d rows, %s", rows, a)
			}
		}
	})
}

// A key that was freed in guarded mode is run in a transaction by the next
// release of the service, and the other way round nothing is lost.
func TestModeChanges(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		guarded, later := w.node(nil), w.node(transactional)
		guarded.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "slowly", 429) })
		fail := true
		later.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			if err := insertOrder(r.Context(), keyIn(r)); err != nil {
				t.Error(err)
			}
			if fail {
				http.Error(w, "boom", 500)
				return
			}
			created(w, r)
		})
		key := newKey()
		guarded.send("POST", "/orders", key, `{}`)
		if a := later.send("POST", "/orders", key, `{}`, "Prefer: wait=10"); a.status != 500 {
			t.Errorf("the first try in a transaction: %s", a)
		}
		fail = false
		if a := later.send("POST", "/orders", key, `{}`, "Prefer: wait=10"); !ok201(a) {
			t.Errorf("the second: %s", a)
		}
		if rows := later.count("SELECT count(*) FROM shop_order WHERE id = '" + key + "'"); rows != 1 {
			t.Errorf("%d rows", rows)
		}
		if a := guarded.send("POST", "/orders", key, `{}`); !a.replayed() {
			t.Error(a)
		}
	})
}
