package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
)

// By these answers the handler says that the key is not used up: the next repeat
// runs it again, at any node, and only one at a time.
func TestReleasedKeys(t *testing.T) {
	cases := map[string]http.HandlerFunc{
		"429": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "slowly", 429) },
		"409": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "busy", 409) },
		"NotApplied and 503": func(w http.ResponseWriter, r *http.Request) {
			if !idempotency.NotApplied(r.Context()) {
				t.Error("nobody listens")
			}
			http.Error(w, "down", 503)
		},
		"NotApplied and a panic": func(w http.ResponseWriter, r *http.Request) {
			idempotency.NotApplied(r.Context())
			panic(http.ErrAbortHandler)
		},
		"the header and 502": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Idempotency-Outcome", "not-applied")
			http.Error(w, "down", 502)
		},
	}
	onBoth(t, func(t *testing.T, w *world) {
		nodes := []*node{w.node(nil), w.node(nil)}
		var runs atomic.Int64
		var handle http.HandlerFunc
		for _, n := range nodes {
			n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
				if runs.Add(1) <= 3 {
					handle(w, r)
					return
				}
				created(w, r)
			})
		}
		for name, h := range cases {
			handle = h
			key := newKey()
			runs.Store(0)
			for i := range 3 {
				a := nodes[i%2].send("POST", "/orders", key, `{}`)
				if a.err == nil && (a.status < 400 || a.replayed()) {
					t.Errorf("%s, answer %d: %s", name, i, a)
				}
				if name == "NotApplied and 503" && a.header.Get("Idempotency-Outcome") != "not-applied" {
					t.Errorf("%s: the client is not told: %s", name, a)
				}
				if int(runs.Load()) != i+1 {
					t.Fatalf("%s: %d runs after %d requests: %s", name, runs.Load(), i+1, a)
				}
			}
			if a := nodes[1].send("POST", "/orders", key, `{"other":1}`); a.status != 422 {
				t.Errorf("%s: a changed request got %s", name, a)
			}
			for i := range 4 {
				a := nodes[i%2].send("POST", "/orders", key, `{}`)
				if a.status != 201 || a.replayed() != (i > 0) {
					t.Errorf("%s: in the end %s", name, a)
				}
			}
			if runs.Load() != 4 {
				t.Errorf("%s: %d runs", name, runs.Load())
			}
			op := nodes[0].operation("POST /orders", key)
			history, err := nodes[0].ledger.History(context.Background(), op.Key)
			if err != nil || op.State != semel.Succeeded || op.Executions != 4 || op.Failure != nil {
				t.Errorf("%s: %+v, %v", name, op, err)
			}
			begun, applied := 0, 0
			for _, x := range history.Executions {
				if !x.BegunAt.IsZero() {
					begun++
				}
				if x.Outcome == semel.Applied {
					applied++
				}
			}
			if begun != 4 || applied != 1 {
				t.Errorf("%s: %d executions began, %d applied", name, begun, applied)
			}
		}
	})
}

// Many repeats of a free key at once: one runs.
func TestReleasedKeyIsTakenOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		nodes := []*node{w.node(nil), w.node(nil)}
		var runs, refusals atomic.Int64
		refusals.Store(1)
		for _, n := range nodes {
			n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
				if refusals.Add(-1) >= 0 {
					http.Error(w, "slowly", 429)
					return
				}
				runs.Add(1)
				time.Sleep(20 * time.Millisecond) // so that the others meet it
				created(w, r)
			})
		}
		for range 5 {
			key := newKey()
			refusals.Store(1)
			runs.Store(0)
			nodes[0].send("POST", "/orders", key, `{}`)
			var all sync.WaitGroup
			for i := range 40 {
				all.Go(func() {
					a := nodes[i%2].send("POST", "/orders", key, `{}`, "Prefer: wait=20")
					if a.status != 201 {
						t.Errorf("a repeat got %s", a)
					}
				})
			}
			all.Wait()
			if runs.Load() != 1 {
				t.Errorf("%d runs", runs.Load())
			}
		}
	})
}

// A process that dies in a second run, after the first was released, leaves a
// doubt like any other.
func TestDoubtAfterRelease(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(nil)
		runs := 0
		n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			if runs++; runs == 1 {
				http.Error(w, "slowly", 429)
				return
			}
			http.Error(w, "boom", 500)
		})
		key := newKey()
		n.send("POST", "/orders", key, `{}`)
		n.send("POST", "/orders", key, `{}`)
		for range 3 {
			if a := n.send("POST", "/orders", key, `{}`); !outcomeUnknown(a) {
				t.Errorf("got %s", a)
			}
		}
		if runs != 2 {
			t.Errorf("%d runs", runs)
		}
	})
}

// What is in doubt is looked up by the route's own hook: also more than once, and
// what it finds is what repeats get.
func TestLookUp(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(nil)
		runs := atomic.Int64{}
		n.handle("POST /looked-up", func(w http.ResponseWriter, r *http.Request) {
			if runs.Add(1) == 1 {
				http.Error(w, "boom", 500)
				return
			}
			created(w, r)
		})
		set := func(f func(context.Context, idempotency.Doubt) (idempotency.Finding, error)) { w.lookUp.Store(&f) }
		looks := atomic.Int64{}
		for _, c := range []struct {
			name   string
			look   func(context.Context, idempotency.Doubt) (idempotency.Finding, error)
			repeat func(answer) bool
			runs   int64
			looks  int64
		}{
			{"it happened", func(_ context.Context, d idempotency.Doubt) (idempotency.Finding, error) {
				asked, ok := d.Request()
				if !ok || asked.Path != "/looked-up" || string(asked.JSON) != `{"item":"rice"}` || len(d.Executions) != 1 || d.Executions[0].Outcome != semel.Unknown {
					t.Errorf("the look-up is asked %+v, %+v", asked, d)
				}
				return idempotency.Finding{Outcome: semel.Applied, Evidence: "seen", Answer: &idempotency.Answer{Status: 201, Body: []byte("found"), Header: http.Header{"Location": {"/x"}}}}, nil
			}, func(a answer) bool {
				return a.status == 201 && a.body == "found" && a.replayed() && a.header.Get("Location") == "/x"
			}, 1, 1},
			{"it happened, and no more is known", func(context.Context, idempotency.Doubt) (idempotency.Finding, error) {
				return idempotency.Finding{Outcome: semel.Applied}, nil
			}, doneNotKept(200), 1, 1},
			{"it did not happen", func(context.Context, idempotency.Doubt) (idempotency.Finding, error) {
				return idempotency.Finding{Outcome: semel.NotApplied}, nil
			}, func(a answer) bool { return a.status == 201 }, 2, 1},
			{"nobody can tell", func(context.Context, idempotency.Doubt) (idempotency.Finding, error) {
				return idempotency.Finding{Outcome: semel.Unknown}, nil
			}, outcomeUnknown, 1, 1},
			{"first too early, then it happened", func(context.Context, idempotency.Doubt) (idempotency.Finding, error) {
				if looks.Load() < 3 {
					return idempotency.Finding{Outcome: semel.Unknown, Again: time.Millisecond}, nil
				}
				return idempotency.Finding{Outcome: semel.Applied}, nil
			}, doneNotKept(200), 1, 3},
			{"a look-up that panics, for ever", func(context.Context, idempotency.Doubt) (idempotency.Finding, error) {
				panic("x")
			}, func(a answer) bool { return a.code() == "in-progress" && a.header.Get("Retry-After") != "" }, 1, 1},
		} {
			t.Run(c.name, func(t *testing.T) {
				runs.Store(0)
				looks.Store(0)
				set(func(ctx context.Context, d idempotency.Doubt) (idempotency.Finding, error) {
					looks.Add(1)
					return c.look(ctx, d)
				})
				key := newKey()
				if a := n.send("POST", "/looked-up", key, `{"item":"rice"}`); a.status != 500 {
					t.Fatal(a)
				}
				var a answer
				w.in(t).eventually("the look-up has told", func() bool {
					a = n.send("POST", "/looked-up", key, `{"item":"rice"}`)
					return c.repeat(a) && looks.Load() >= c.looks
				})
				if runs.Load() != c.runs || looks.Load() != c.looks {
					t.Errorf("%d runs, %d look-ups; in the end %s", runs.Load(), looks.Load(), a)
				}
			})
		}
	})
}

// A person's verdict ends a doubt: applied, with or without an answer; not
// applied, never or again.
func TestVerdicts(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(nil)
		runs := 0
		n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			if runs++; runs == 1 {
				http.Error(w, "boom", 500)
				return
			}
			created(w, r)
		})
		for _, c := range []struct {
			name    string
			verdict semel.Resolution
			repeat  func(answer) bool
			runs    int
		}{
			{"applied", semel.Resolution{Verdict: "applied"}, doneNotKept(200), 1},
			{"applied, with its answer", semel.Resolution{Verdict: "applied", Result: []byte(`{"status":201,"header":{"Location":["/y"]},"body":"found"}`)},
				func(a answer) bool {
					return a.status == 201 && a.body == "found" && a.replayed() && a.header.Get("Location") == "/y"
				}, 1},
			{"not applied", semel.Resolution{Verdict: "not_applied", Then: "fail"},
				func(a answer) bool {
					return a.status == 409 && a.code() == "operation-abandoned" && a.header.Get("Retry-After") == ""
				}, 1},
			{"not applied, again", semel.Resolution{Verdict: "not_applied", Then: "retry"}, func(a answer) bool { return a.status == 201 }, 2},
			{"acknowledged", semel.Resolution{Verdict: "acknowledged"}, outcomeUnknown, 1},
		} {
			t.Run(c.name, func(t *testing.T) {
				runs = 0
				key := newKey()
				n.send("POST", "/orders", key, `{}`)
				op := n.operation("POST /orders", key)
				c.verdict.Evidence, c.verdict.By, c.verdict.Revision = "I looked", "mei", op.Revision
				if _, err := n.ledger.Resolve(context.Background(), op.Key, c.verdict); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if a := n.send("POST", "/orders", key, `{}`); !c.repeat(a) {
						t.Errorf("a repeat got %s", a)
					}
				}
				if runs != c.runs {
					t.Errorf("%d runs", runs)
				}
			})
		}
	})
}

// A lease that is lost ends the handler's context, and what it answers then is
// evidence only.
func TestLostLease(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(func(o *idempotency.Options, _ *database) { o.Lease = 3 * time.Second })
		cause := make(chan error, 1)
		n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			n.store.fail(func(call string) bool { return call == "renew" })
			<-r.Context().Done()
			cause <- context.Cause(r.Context())
			// The lease has ended by our own clock; wait until somebody has taken it.
			for range 500 {
				idempotency.Recover(context.Background(), n.ledger, nil)
				if n.operation("POST /orders", keyIn(r)).State == semel.NeedsReconciliation {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			created(w, r)
		})
		key := newKey()
		a := n.send("POST", "/orders", key, `{}`)
		if err := <-cause; err != idempotency.ErrLeaseEnded || !errors.Is(err, context.Canceled) {
			t.Errorf("the context ended with %v", err)
		}
		if !ok201(a) {
			t.Errorf("the client did not get what the handler answered: %s", a)
		}
		n.store.fail(nil)
		if a := n.send("POST", "/orders", key, `{}`); !outcomeUnknown(a) {
			t.Errorf("a repeat got %s", a)
		}
		h, err := n.ledger.History(context.Background(), n.operation("POST /orders", key).Key)
		if err != nil || h.Executions[0].LateOutcome != semel.Applied {
			t.Errorf("the late answer is not kept: %+v %v", h.Executions, err)
		}
	})
}

// A renewal that is refused says that the lease is lost.
func TestLeaseTakenAway(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		// The first renewal, after a third of it, is long before its end, also on a machine
		// that stands still for a while.
		n := w.node(func(o *idempotency.Options, _ *database) { o.Lease = 9 * time.Second })
		n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			op := n.operation("POST /orders", keyIn(r))
			lease := semel.Lease{Operation: op, Token: op.Token, Begun: true}
			if _, err := n.ledger.Finish(context.Background(), lease, semel.Ending{Outcome: semel.Unknown}); err != nil {
				t.Error(err)
			}
			<-r.Context().Done()
			fmt.Fprint(w, context.Cause(r.Context()) == idempotency.ErrLeaseLost)
		})
		if a := n.send("POST", "/orders", newKey(), `{}`); a.body != "true" {
			t.Error(a)
		}
	})
}

// The answer to the creation is lost: nothing runs, the client is told so, and once
// the store is back the key is free.
func TestLostCreation(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(nil)
		lossy := &lossyStore{shakyStore: n.store}
		ledger, err := semel.New(context.Background(), lossy, &semel.Options{Kinds: kindsOf(w), Logger: w.logger()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ledger.Close() })
		n.ledger = ledger
		runs := 0
		n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) { runs++; created(w, r) })
		key := newKey()
		lossy.lose.Store(true)
		if a := n.send("POST", "/orders", key, `{}`); a.status != 503 || runs != 0 {
			t.Errorf("%s after %d runs", a, runs)
		}
		w.eventually("the key is free, and a repeat runs", func() bool { return n.send("POST", "/orders", key, `{}`).status == 201 })
		if runs != 1 {
			t.Errorf("%d runs", runs)
		}
	})
}

// A lossyStore makes one insertion and loses its answer.
type lossyStore struct {
	*shakyStore
	lose atomic.Bool
}

func (s *lossyStore) Insert(ctx context.Context, b []semel.Insertion) ([]semel.Inserted, error) {
	out, err := s.shakyStore.Insert(ctx, b)
	if s.lose.CompareAndSwap(true, false) {
		return nil, &semel.Error{Op: "insert", Code: semel.CodeUnavailable, Recorded: semel.RecordedUnknown, Msg: "the test says so"}
	}
	return out, err
}
