package idempotency_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
)

// The one-effect table, in guarded mode: whatever goes wrong around one effect
// outside, it happens once, on both stores, and every repeat at every node gets a
// defined answer.
func TestOneEffectWhateverHappens(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 2<<20/16)
	type world2 struct {
		*world
		a, b *node
		out  *outside
	}
	const slow = 6 * time.Second // a lease that is renewed in time, also on a busy machine
	cases := []struct {
		name string
		// handle runs after the effect.
		handle func(w http.ResponseWriter, r *http.Request, x world2)
		// first checks what the first client got; nil if nothing is promised.
		first func(a answer) bool
		// repeat is what every repeat gets once the operation is decided.
		repeat func(a answer) bool
		state  semel.State
		lease  time.Duration
		heal   func(x world2) // after it
	}{
		{name: "nothing", handle: func(w http.ResponseWriter, r *http.Request, x world2) { created(w, r) }, first: ok201, repeat: replayOf(`{"ok":true}`), state: semel.Succeeded},
		{name: "an answer of 2 MiB", state: semel.Succeeded,
			handle: func(w http.ResponseWriter, r *http.Request, x world2) {
				w.Header().Set("Location", "/orders/1")
				w.WriteHeader(201)
				io.WriteString(w, big)
			},
			first:  func(a answer) bool { return a.status == 201 && a.body == big && !a.replayed() },
			repeat: doneNotKept(201)},
		{name: "Flush", state: semel.Succeeded,
			handle: func(w http.ResponseWriter, r *http.Request, x world2) {
				w.WriteHeader(201)
				io.WriteString(w, `{"ok"`)
				w.(http.Flusher).Flush()
				io.WriteString(w, `:true}`)
			},
			first: ok201, repeat: replayOf(`{"ok":true}`)},
		{name: "a stream of 2 MiB", state: semel.Succeeded,
			handle: func(w http.ResponseWriter, r *http.Request, x world2) {
				for i := 0; i < len(big); i += 64 << 10 {
					io.WriteString(w, big[i:i+64<<10])
					http.NewResponseController(w).Flush()
				}
			},
			first:  func(a answer) bool { return a.status == 200 && a.body == big },
			repeat: doneNotKept(200)},
		{name: "a refusal after it", state: semel.Failed,
			handle: func(w http.ResponseWriter, r *http.Request, x world2) { http.Error(w, "no", 422) },
			first:  func(a answer) bool { return a.status == 422 && a.body == "no\n" && !a.replayed() },
			repeat: func(a answer) bool { return a.status == 422 && a.body == "no\n" && a.replayed() }},
		{name: "500 after it", state: semel.NeedsReconciliation,
			handle: func(w http.ResponseWriter, r *http.Request, x world2) { http.Error(w, "boom", 500) },
			first:  func(a answer) bool { return a.status == 500 && a.body == "boom\n" },
			repeat: outcomeUnknown},
		{name: "a panic after it", state: semel.NeedsReconciliation,
			handle: func(w http.ResponseWriter, r *http.Request, x world2) { panic(http.ErrAbortHandler) },
			first:  func(a answer) bool { return a.err != nil }, repeat: outcomeUnknown},
		{name: "a hijacked connection", state: semel.Succeeded,
			handle: func(w http.ResponseWriter, r *http.Request, x world2) {
				conn, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					panic(err)
				}
				rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
				rw.Flush()
				conn.Close()
			},
			first: func(a answer) bool { return a.body == "hi" }, repeat: doneNotKept(200)},
		{name: "a store failure after it", state: semel.Succeeded,
			handle: func(w http.ResponseWriter, r *http.Request, x world2) {
				x.a.store.fail(func(call string) bool { return true })
				created(w, r)
			},
			heal:  func(x world2) { x.a.store.fail(nil) },
			first: ok201, repeat: replayOf(`{"ok":true}`)},
		{name: "a handler slower than its lease", state: semel.Succeeded, lease: slow,
			handle: func(w http.ResponseWriter, r *http.Request, x world2) {
				op := x.a.operation("POST /orders", keyIn(r))
				// Until well after the lease would have ended, by the store's clock.
				x.eventually("the lease has been renewed past its end", func() bool {
					h, err := x.b.ledger.History(context.Background(), op.Key)
					return err == nil && h.Executions[0].LeaseEndsAt.Sub(op.CreatedAt) > 2*slow
				})
				if n, err := idempotency.Recover(context.Background(), x.b.ledger, nil); n != 0 || err != nil {
					x.Errorf("somebody could take over %d operations (%v)", n, err)
				}
				created(w, r)
			},
			first: ok201, repeat: replayOf(`{"ok":true}`)},
	}
	onBoth(t, func(t *testing.T, w *world) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				x := world2{world: w.in(t), out: newOutside(t)}
				lease := c.lease
				if lease == 0 {
					lease = time.Minute
				}
				change := func(o *idempotency.Options, _ *database) { o.Lease = lease }
				x.a, x.b = x.node(change), x.node(change)
				for _, n := range []*node{x.a, x.b} {
					n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
						x.out.happen(keyIn(r))
						c.handle(w, r, x)
					})
				}
				key := newKey()
				first := x.a.send("POST", "/orders", key, `{"item":"rice"}`)
				if c.heal != nil {
					c.heal(x)
				}
				if c.first != nil && !c.first(first) {
					t.Errorf("the first client got %s", first)
				}
				x.eventually("it is decided", func() bool { return x.b.operation("POST /orders", key).State == c.state })
				for i := range 3 {
					for name, n := range map[string]*node{"a": x.a, "b": x.b} {
						if again := n.send("POST", "/orders", key, `{"item":"rice"}`); !c.repeat(again) {
							t.Errorf("repeat %d at node %s got %s", i, name, again)
						}
					}
				}
				if n := x.out.count(key); n != 1 {
					t.Errorf("there were %d effects", n)
				}
			})
		}
	})
}

func keyIn(r *http.Request) string {
	key, _ := idempotency.KeyOf(r.Context())
	return key.ID
}

// created is what a handler does when nothing goes wrong.
func created(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/orders/1")
	w.WriteHeader(201)
	io.WriteString(w, `{"ok":true}`)
}

func ok201(a answer) bool { return a.status == 201 && a.body == `{"ok":true}` && !a.replayed() }

func replayOf(body string) func(answer) bool {
	return func(a answer) bool { return a.status == 201 && a.body == body && a.replayed() }
}

func outcomeUnknown(a answer) bool {
	return a.status == 409 && a.code() == "outcome-unknown" && a.header.Get("Retry-After") == ""
}

func doneNotKept(status int) func(answer) bool {
	return func(a answer) bool {
		return a.status == status && a.code() == "answer-not-kept" && a.replayed() && strings.Contains(a.body, `"recorded":"yes"`)
	}
}

// A client that goes away in the middle does not take the effect's record along.
func TestClientGone(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n, out := w.node(nil), newOutside(t)
		entered, leave, noticed := make(chan struct{}), make(chan struct{}), make(chan (<-chan struct{}), 2)
		h := idempotency.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out.happen(keyIn(r))
			close(entered)
			<-leave
			if err := r.Context().Err(); err != nil {
				t.Errorf("the handler's context ended with the client: %v", err)
			}
			created(w, r)
		}), n.ledger, &n.opts)
		n.mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			noticed <- r.Context().Done()
			h.ServeHTTP(w, r)
		})
		ctx, cancel := context.WithCancel(context.Background())
		key := newKey()
		req, _ := http.NewRequestWithContext(ctx, "POST", n.server.URL+"/orders", strings.NewReader(`{}`))
		req.Header.Set("Idempotency-Key", key)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer acme")
		gone := make(chan error)
		go func() {
			_, err := plainClient.Do(req)
			gone <- err
		}()
		<-entered
		cancel()
		if err := <-gone; err == nil {
			t.Fatal("the client got an answer")
		}
		<-<-noticed // the server knows
		close(leave)
		w.eventually("it is recorded", func() bool { return n.operation("POST /orders", key).State == semel.Succeeded })
		if again := n.send("POST", "/orders", key, `{}`); !replayOf(`{"ok":true}`)(again) {
			t.Errorf("the repeat got %s", again)
		}
		if out.count(key) != 1 {
			t.Errorf("there were %d effects", out.count(key))
		}
	})
}

// A killed process: guarded operations are unknown if and only if the handler may
// have begun, never run again, and not in progress for longer than the lease.
func TestKilledProcess(t *testing.T) {
	cases := []struct {
		die     string
		effects int
		repeat  func(answer) bool
	}{
		{"before-effect", 0, outcomeUnknown},
		{"after-effect", 1, outcomeUnknown},
		{"after-flush", 1, outcomeUnknown},
		{"before-record", 1, outcomeUnknown},
		{"after-record", 1, func(a answer) bool { return a.status == 201 && a.replayed() && strings.Contains(a.body, `"id"`) }},
	}
	onBoth(t, func(t *testing.T, w *world) {
		out := newOutside(t)
		survivor := w.node(func(o *idempotency.Options, _ *database) { o.Lease = time.Second })
		survivor.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			out.happen("/" + keyIn(r))
			created(w, r)
		})
		for _, c := range cases {
			t.Run(c.die, func(t *testing.T) {
				url, ended := w.process(processConfig{Outside: out.server.URL, Lease: time.Second})
				key := newKey()
				if a := send(url, "POST", "/orders", key, `{}`, "Die: "+c.die); a.err == nil && c.die != "after-flush" {
					t.Fatalf("the node lived on: %s", a)
				}
				<-ended
				inProgress := 0
				w.in(t).eventually("the lease has ended and a repeat is told", func() bool {
					a := survivor.send("POST", "/orders", key, `{}`)
					if a.status == 409 && a.code() == "in-progress" {
						if a.header.Get("Retry-After") == "" {
							t.Error("in progress, and no Retry-After")
						}
						inProgress++
						time.Sleep(20 * time.Millisecond)
						return false
					}
					if !c.repeat(a) {
						t.Fatalf("the repeat got %s", a)
					}
					return true
				})
				for range 3 {
					if a := survivor.send("POST", "/orders", key, `{}`); !c.repeat(a) {
						t.Errorf("a later repeat got %s", a)
					}
				}
				if n := out.count("/" + key); n != c.effects {
					t.Errorf("there were %d effects, want %d", n, c.effects)
				}
			})
		}
	})
}

// The same in transactional mode: all or nothing, and nothing is ever unknown.
func TestKilledProcessInTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		survivor := w.node(func(o *idempotency.Options, d *database) { o.Begin = d.begin })
		survivor.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			if err := insertOrder(r.Context(), keyIn(r)); err != nil {
				t.Error(err)
			}
			w.Header().Set("Location", "/orders/"+keyIn(r))
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"id":%q}`, keyIn(r))
		})
		for _, die := range []string{"before-effect", "after-effect", "before-commit", "after-commit"} {
			t.Run(die, func(t *testing.T) {
				url, ended := w.process(processConfig{Transactional: true, Lease: time.Minute})
				key := newKey()
				if a := send(url, "POST", "/orders", key, `{}`, "Die: "+die); a.err == nil {
					t.Fatalf("the node lived on: %s", a)
				}
				<-ended
				rows := survivor.count("SELECT count(*) FROM shop_order WHERE id = '" + key + "'")
				if committed := die == "after-commit"; rows > 1 || committed != (rows == 1) {
					t.Errorf("%d rows right after the crash", rows)
				}
				var a answer
				w.in(t).eventually("the repeat is answered", func() bool {
					// PostgreSQL may still be about to notice that the connection is gone.
					a = survivor.send("POST", "/orders", key, `{}`)
					return a.code() != "in-progress"
				})
				if a.status != 201 || a.body != fmt.Sprintf(`{"id":%q}`, key) || a.replayed() != (die == "after-commit") {
					t.Errorf("the repeat got %s", a)
				}
				if rows := survivor.count("SELECT count(*) FROM shop_order WHERE id = '" + key + "'"); rows != 1 {
					t.Errorf("%d rows in the end", rows)
				}
			})
		}
	})
}
