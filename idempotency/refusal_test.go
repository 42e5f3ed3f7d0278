package idempotency_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
)

// refusing makes a node whose handler refuses. meanwhile is called once, after what the
// handler wrote is rolled back and before its refusal is recorded; its error is that of
// the transaction for the record.
func refusing(w *world, meanwhile func() error) *node {
	var begins atomic.Int64
	n := w.node(func(o *idempotency.Options, d *database) {
		o.Begin = func(ctx context.Context) (*idempotency.Transaction, error) {
			if begins.Add(1) == 2 {
				if err := meanwhile(); err != nil {
					return nil, err
				}
			}
			return d.begin(ctx)
		}
	})
	n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		insertOrder(r.Context(), "refused")
		http.Error(w, "insufficient funds", http.StatusPaymentRequired)
	})
	return n
}

func usesTheKeyUp(a answer) bool { return a.header.Get("Idempotency-Outcome") != "not-applied" }

// A handler refuses, and before that is recorded somebody else is faster with its key.
// Whoever asked gets what is on record, or else the refusal, which then says that it
// has not used the key up.
func TestRefusalMeetsARecord(t *testing.T) {
	for name, c := range map[string]struct {
		body   string // of the faster request
		handle http.HandlerFunc
		mine   func(answer) bool // the answer to the one who was refused
		repeat func(answer) bool // and to its repeat
		orders int
	}{
		"it happened": {`{}`, func(w http.ResponseWriter, r *http.Request) { insertOrder(r.Context(), "done"); created(w, r) },
			func(a answer) bool { return a.status == 201 && a.replayed() }, func(a answer) bool { return a.status == 201 && a.replayed() }, 1},
		"refused as well": {`{}`, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "closed", http.StatusForbidden) },
			func(a answer) bool { return a.status == 403 && a.replayed() }, func(a answer) bool { return a.status == 403 && a.replayed() }, 0},
		"another request": {`{"other":1}`, func(w http.ResponseWriter, r *http.Request) { insertOrder(r.Context(), "other"); created(w, r) },
			func(a answer) bool { return a.status == 402 && !usesTheKeyUp(a) && !a.replayed() }, func(a answer) bool { return a.status == 422 }, 1},
		"nothing either": {`{}`, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "boom", 500) },
			func(a answer) bool { return a.status == 402 && usesTheKeyUp(a) }, func(a answer) bool { return a.status == 402 && a.replayed() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world) {
				key, faster := newKey(), w.node(transactional)
				faster.handle("POST /orders", c.handle)
				n := refusing(w, func() error { faster.send("POST", "/orders", key, c.body); return nil })
				if a := n.send("POST", "/orders", key, `{}`); !c.mine(a) {
					t.Errorf("it got %s", a)
				}
				if a := n.send("POST", "/orders", key, `{}`); !c.repeat(a) {
					t.Errorf("a repeat got %s", a)
				}
				if rows := n.count("SELECT count(*) FROM shop_order"); rows != c.orders {
					t.Errorf("%d orders, want %d", rows, c.orders)
				}
			})
		})
	}
}

// What is recorded of a refusal is what is recorded of anything else.
func TestRefusalHasItsAttempt(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		key, n := newKey(), refusing(w, func() error { return nil })
		if a := n.send("POST", "/orders", key, `{}`, "Attempt-Id: first"); a.status != 402 || !usesTheKeyUp(a) {
			t.Errorf("it got %s", a)
		}
		op := n.operation("POST /orders", key)
		history, err := n.ledger.History(context.Background(), op.Key)
		if err != nil || op.State != semel.Failed || op.Attempts != 1 || len(history.Attempts) != 1 || history.Attempts[0].ID != "first" {
			t.Errorf("%+v, %+v, %v", op, history.Attempts, err)
		}
	})
}

// The same while the other one is still at it: the refusal can't wait for it, and
// promises nothing.
func TestRefusalBesideAnotherNode(t *testing.T) {
	for mode, change := range map[string]func(*idempotency.Options, *database){"transactional": transactional, "guarded": nil} {
		t.Run(mode, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world) {
				key, other := newKey(), w.node(change)
				started, run, done := make(chan struct{}), make(chan struct{}), make(chan answer, 1)
				other.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
					close(started)
					<-run
					created(w, r)
				})
				n := refusing(w, func() error {
					go func() { done <- other.send("POST", "/orders", key, `{}`) }()
					<-started
					return nil
				})
				a := n.send("POST", "/orders", key, `{}`)
				close(run)
				if b := <-done; b.status != 201 {
					t.Errorf("the other node answered %s", b)
				}
				if a.status != 402 || usesTheKeyUp(a) || a.replayed() {
					t.Errorf("it got %s", a)
				}
				if op := n.operation("POST /orders", key); op.State != semel.Succeeded || n.count("SELECT count(*) FROM shop_order") != 0 {
					t.Errorf("on record: %+v", op)
				}
				if a := n.send("POST", "/orders", key, `{}`); a.status != 201 || !a.replayed() {
					t.Errorf("a repeat got %s", a)
				}
			})
		})
	}
}

// A refusal that can't be recorded, since the store is down, says so, and a repeat
// runs the handler again.
func TestRefusalWithoutAStore(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		key, n := newKey(), refusing(w, func() error { return errors.New("connection refused") })
		if a := n.send("POST", "/orders", key, `{}`); a.status != 402 || usesTheKeyUp(a) {
			t.Errorf("it got %s", a)
		}
		if _, err := n.ledger.Get(context.Background(), semel.Key{Account: "acme", Kind: idempotency.KindName("POST /orders"), ID: key}); !errors.Is(err, semel.ErrNotFound) {
			t.Errorf("on record: %v", err)
		}
		if a := n.send("POST", "/orders", key, `{}`); a.status != 402 || !usesTheKeyUp(a) || a.replayed() {
			t.Errorf("a repeat got %s", a)
		}
		if a := n.send("POST", "/orders", key, `{}`); a.status != 402 || !a.replayed() {
			t.Errorf("one more repeat got %s", a)
		}
	})
}
