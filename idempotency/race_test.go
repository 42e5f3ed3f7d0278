package idempotency_test

import (
	"context"
	"errors"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
)

// 500 first calls of one key at once, on two nodes: one run; everybody ends with
// its answer, or with 409 and Retry-After. Then 500 repeats: at most one read for
// each that is not shared.
func TestManyFirstCalls(t *testing.T) {
	const callers = 500
	for _, mode := range []string{"guarded", "transactional"} {
		t.Run(mode, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world) {
				change := func(o *idempotency.Options, d *database) {
					if mode == "transactional" {
						o.Begin = d.begin
					}
				}
				nodes := []*node{w.node(change), w.node(change)}
				var runs atomic.Int64
				entered, leave := make(chan struct{}), make(chan struct{})
				for _, n := range nodes {
					n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
						if runs.Add(1) == 1 {
							close(entered)
						}
						<-leave
						if mode == "transactional" {
							if err := insertOrder(r.Context(), keyIn(r)); err != nil {
								t.Error(err)
							}
						}
						created(w, r)
					})
				}
				key := newKey()
				storm := func(lines ...string) (same, busy, other int) {
					var all sync.WaitGroup
					var mu sync.Mutex
					for i := range callers {
						all.Go(func() {
							a := nodes[i%2].send("POST", "/orders", key, `{}`, lines...)
							mu.Lock()
							defer mu.Unlock()
							switch {
							case a.status == 201 && a.body == `{"ok":true}`:
								same++
							case a.status == 409 && a.code() == "in-progress" && a.header.Get("Retry-After") != "":
								busy++
							default:
								other++
								if other < 5 {
									t.Errorf("a caller got %s", a)
								}
							}
						})
					}
					all.Wait()
					return same, busy, other
				}
				go func() {
					<-entered
					time.Sleep(50 * time.Millisecond) // let them meet it while it runs
					close(leave)
				}()
				same, busy, other := storm()
				if runs.Load() != 1 || same == 0 || other > 0 {
					t.Errorf("%d runs; %d got the answer, %d were told to come back, %d got something else", runs.Load(), same, busy, other)
				}
				t.Logf("first calls: %d answers, %d in progress", same, busy)

				// All are repeats now.
				for _, n := range nodes {
					n.send("POST", "/orders", key, `{}`) // each node has met the key
				}
				before := nodes[0].store.calls.Load() + nodes[1].store.calls.Load()
				same, busy, other = storm()
				reads := nodes[0].store.calls.Load() + nodes[1].store.calls.Load() - before
				if same != callers || busy+other > 0 || reads > callers {
					t.Errorf("repeats: %d answers, %d in progress, %d other; %d reads", same, busy, other, reads)
				}
				t.Logf("%d repeats cost %d reads", callers, reads)
				if mode == "transactional" {
					if rows := nodes[0].count("SELECT count(*) FROM shop_order WHERE id = '" + key + "'"); rows != 1 {
						t.Errorf("%d rows", rows)
					}
				}
			})
		})
	}
}

// A record that is settled is answered from memory for a while, by the same rules;
// what is not settled never is.
func TestRemembered(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(nil)
		status := 201
		n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) })
		key := newKey()
		n.send("POST", "/orders", key, `{}`)
		before := n.store.calls.Load()
		if a := n.send("POST", "/orders", key, `{}`); !a.replayed() || n.store.calls.Load() != before {
			t.Errorf("%s after %d calls", a, n.store.calls.Load()-before)
		}
		if a := n.send("POST", "/orders", key, `{"other":1}`); a.status != 422 || n.store.calls.Load() != before {
			t.Errorf("a changed request: %s", a)
		}
		if replays, rejects := n.observed.count("replay/succeeded"), n.observed.count("reject/fingerprint-mismatch"); replays != 1 || rejects != 1 {
			t.Errorf("%d replays and %d rejects were told, want 1 and 1", replays, rejects)
		}
		if a := n.send("POST", "/orders", key, `{}`, "Authorization: Bearer bolt"); a.replayed() {
			t.Errorf("another account: %s", a)
		}
		status = 500
		key = newKey()
		n.send("POST", "/orders", key, `{}`)
		n.send("POST", "/orders", key, `{}`)
		op := n.operation("POST /orders", key)
		if _, err := n.ledger.Resolve(context.Background(), op.Key, semel.Resolution{Verdict: "applied", Evidence: "seen", By: "mei", Revision: op.Revision}); err != nil {
			t.Fatal(err)
		}
		if a := n.send("POST", "/orders", key, `{}`); !doneNotKept(200)(a) {
			t.Errorf("after a verdict: %s", a)
		}
	})
}

// One replay is one read, and nothing is written on its way.
func TestReplayIsOneRead(t *testing.T) {
	for _, mode := range []string{"guarded", "transactional"} {
		t.Run(mode, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world) {
				n := w.node(func(o *idempotency.Options, d *database) {
					o.Remember = -1
					if mode == "transactional" {
						o.Begin = d.begin
					}
				})
				n.handle("POST /orders", created)
				key := newKey()
				n.send("POST", "/orders", key, `{}`)
				op := n.operation("POST /orders", key)
				for i := range 10 {
					before := n.store.calls.Load()
					if a := n.send("POST", "/orders", key, `{}`); !a.replayed() {
						t.Fatal(a)
					}
					if calls := n.store.calls.Load() - before; calls != 1 {
						t.Errorf("a replay took %d calls of the store", calls)
					}
					if told := n.observed.count("replay/succeeded"); told != i+1 {
						t.Errorf("%d replays were told, want %d", told, i+1)
					}
				}
				if after := n.operation("POST /orders", key); after.Revision != op.Revision {
					t.Error("a replay wrote")
				}
			})
		})
	}
}

// Repeats of one key that meet share one read.
func TestHotKey(t *testing.T) {
	for _, mode := range []string{"guarded", "transactional"} {
		t.Run(mode, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world) {
				n := w.node(func(o *idempotency.Options, d *database) {
					o.Remember = -1
					if mode == "transactional" {
						o.Begin = d.begin
					}
				})
				h := idempotency.NewHandler(http.HandlerFunc(created), n.ledger, &n.opts)
				const callers = 100
				var arrived atomic.Int64
				n.mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
					arrived.Add(1)
					h.ServeHTTP(w, r)
				})
				key := newKey()
				n.send("POST", "/orders", key, `{}`)
				arrived.Store(0)
				before := n.store.calls.Load()
				open := make(chan struct{})
				n.store.fail(func(string) bool { <-open; return false }) // slow, not failing
				var all sync.WaitGroup
				for i := range callers {
					all.Go(func() {
						body, status := `{}`, 201
						if i%10 == 0 {
							body, status = `{"other":1}`, 422
						}
						if a := n.send("POST", "/orders", key, body); a.status != status {
							t.Errorf("a repeat got %s", a)
						}
					})
				}
				w.eventually("all are there", func() bool { return arrived.Load() == callers })
				w.eventually("one asks, and the others wait for its answer", func() bool { return asking() == callers })
				close(open)
				all.Wait()
				if reads := n.store.calls.Load() - before; reads > 3 {
					t.Errorf("%d repeats cost %d reads", callers, reads)
				}
			})
		})
	}
}

// asking counts the requests that ask the ledger, or stand still until another one has.
// There is no signal for it.
func asking() (n int) {
	var stacks strings.Builder
	pprof.Lookup("goroutine").WriteTo(&stacks, 2)
	for stack := range strings.SplitSeq(stacks.String(), "\n\n") {
		state, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(stack, "(*guard).enter(") && (strings.Contains(state, "[select") || strings.Contains(state, "[chan receive")) {
			n++
		}
	}
	return n
}

// Repeats may wait for the first answer, here and at another node.
func TestPreferWait(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		nodes := []*node{w.node(nil), w.node(nil)}
		var runs atomic.Int64
		entered, leave := make(chan struct{}), make(chan struct{})
		for _, n := range nodes {
			n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
				runs.Add(1)
				close(entered)
				<-leave
				created(w, r)
			})
		}
		key := newKey()
		var all sync.WaitGroup
		all.Go(func() { nodes[0].send("POST", "/orders", key, `{}`) })
		<-entered
		before := nodes[0].store.calls.Load()
		if a := nodes[0].send("POST", "/orders", key, `{}`); a.code() != "in-progress" || nodes[0].store.calls.Load() != before {
			t.Errorf("a repeat beside it needs the store: %s", a)
		}
		if a := nodes[1].send("POST", "/orders", key, `{}`, "Prefer: respond-async, wait=0"); a.code() != "in-progress" {
			t.Errorf("no time to wait: %s", a)
		}
		var waiting atomic.Int64
		for i := range 10 {
			all.Go(func() {
				waiting.Add(1)
				a := nodes[i%2].send("POST", "/orders", key, `{}`, `Prefer: wait="30"`)
				if !replayOf(`{"ok":true}`)(a) || a.header.Get("Preference-Applied") != "wait=30" {
					t.Errorf("a waiting repeat got %s", a)
				}
			})
		}
		w.eventually("they wait", func() bool { return waiting.Load() == 10 })
		if a := nodes[0].send("POST", "/orders", key, `{"other":1}`, "Prefer: wait=30"); a.status != 422 {
			t.Errorf("a changed request has to wait: %s", a)
		}
		close(leave)
		all.Wait()
		if runs.Load() != 1 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

// With the store down nothing runs.
func TestStoreDown(t *testing.T) {
	for _, mode := range []string{"guarded", "transactional"} {
		t.Run(mode, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world) {
				var n *node
				n = w.node(func(o *idempotency.Options, d *database) {
					if mode == "transactional" {
						o.Begin = func(ctx context.Context) (*idempotency.Transaction, error) {
							if err := n.store.before("begin"); err != nil {
								return nil, errors.New("connection refused")
							}
							return d.begin(ctx)
						}
					}
				})
				var runs atomic.Int64
				n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) { runs.Add(1); created(w, r) })
				known := newKey()
				n.send("POST", "/orders", known, `{}`)
				forgotten := newKey()
				w.node(nil).record("POST /orders", forgotten)
				n.store.fail(func(string) bool { return true })
				if a := n.send("POST", "/orders", known, `{}`); !a.replayed() {
					t.Errorf("a record in memory: %s", a)
				}
				for _, key := range []string{newKey(), forgotten} {
					a := n.send("POST", "/orders", key, `{}`)
					if a.status != 503 || a.code() != "store-unavailable" || a.header.Get("Retry-After") == "" || a.header.Get("Content-Type") != "application/problem+json" {
						t.Errorf("with the store down: %s", a)
					}
				}
				if runs.Load() != 1 {
					t.Errorf("%d runs", runs.Load())
				}
				n.store.fail(nil)
				if a := n.send("POST", "/orders", forgotten, `{}`); !a.replayed() {
					t.Errorf("once it is back: %s", a)
				}
			})
		})
	}
}
