package bench

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/semel-dev/semel"
)

// What happens outside, when the first try has its effect and then something goes
// wrong, and the client sends the same request three more times. The table is
// printed; that ours never has a second effect is tested.
func TestOneEffect(t *testing.T) {
	s := newShop(t)
	cases := []struct {
		name  string
		wrong func(w http.ResponseWriter) // on the first run only, after the effect
	}{
		{"500 after the effect", func(w http.ResponseWriter) { http.Error(w, "boom", 500) }},
		{"panic after the effect", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
		{"slower than the lock", func(w http.ResponseWriter) { time.Sleep(1500 * time.Millisecond); created(w) }},
		{"an answer of 2 MiB", func(w http.ResponseWriter) { w.Write([]byte(strings.Repeat("x", 2<<20))) }},
		{"Flush", func(w http.ResponseWriter) { created(w); http.NewResponseController(w).Flush() }},
	}
	text := fmt.Sprintf("%-26s %8s %8s %8s\n", "effects", "semel", "by hand", "fiber")
	for _, c := range cases {
		effects := &tally{counts: map[string]int{}}
		handler := func(name string) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if effects.add(name) == 1 {
					c.wrong(w)
					return
				}
				created(w)
			})
		}
		fast := s.fiberHandler(func(ctx fiber.Ctx) (err error) {
			if effects.add("fiber") == 1 {
				w := &recorder{header: http.Header{}, status: 200}
				defer func() {
					if recover() != nil {
						err = fiber.ErrInternalServerError // what its recover middleware does
					}
				}()
				c.wrong(w)
				if w.status >= 500 {
					return fiber.NewError(w.status, "boom")
				}
				return ctx.Status(w.status).Send(w.body)
			}
			return ctx.SendStatus(201)
		})
		ours, plain := s.guarded(handler("semel"), 0), s.plain(handler("by hand"))
		key := semel.NewID()
		for _, send := range []func(){func() { post(ours, key) }, func() { post(plain, key) }, func() { postFast(fast, key) }} {
			impatient := make(chan struct{})
			go func() { // the client gives up after a second and asks again
				defer close(impatient)
				defer func() { recover() }()
				send()
			}()
			select {
			case <-impatient:
			case <-time.After(1200 * time.Millisecond):
			}
			for range 3 {
				func() {
					defer func() { recover() }()
					send()
				}()
			}
			<-impatient
		}
		text += fmt.Sprintf("%-26s %8d %8d %8d\n", c.name, effects.get("semel"), effects.get("by hand"), effects.get("fiber"))
		if effects.get("semel") != 1 {
			t.Errorf("%s: %d effects", c.name, effects.get("semel"))
		}
	}
	t.Log("\n" + text)
}

// recorder stands in for a ResponseWriter under Fiber.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(s int)   { r.status = s }
func (r *recorder) Write(p []byte) (int, error) {
	r.body = append(r.body, p...)
	return len(p), nil
}

// A process that dies after the effect, as a new process finds it: the record of a
// run that never ends.
func TestOneEffectAfterCrash(t *testing.T) {
	s := newShop(t)
	key, effects := semel.NewID(), &tally{counts: map[string]int{}}
	stuck := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if effects.add(name) == 1 {
				select {} // as if it had died: nothing is ever recorded, and nothing renewed
			}
			created(w)
		})
	}
	plain := s.plain(stuck("by hand"))
	go post(plain, key)
	fast := func() func() {
		h := s.fiberHandler(func(ctx fiber.Ctx) error {
			if effects.add("fiber") == 1 {
				select {}
			}
			return ctx.SendStatus(201)
		})
		return func() { postFast(h, key) }
	}
	go fast()()
	// Ours: the operation as a dead process leaves it.
	if _, err := s.ledger.Accept(context.Background(), semel.Request{Key: semel.Key{Account: "acme", Kind: "post.orders", ID: key},
		Fingerprint: fingerprintOf(t, s), Begun: &semel.Begun{Worker: "dead", Contract: "{}", Lease: time.Second}}); err != nil {
		t.Fatal(err)
	}
	effects.add("semel")
	time.Sleep(1500 * time.Millisecond)
	ours := s.guarded(stuck("semel"), 0)
	status, body := post(ours, key)
	post(plain, key)
	fast()() // another process: its locks are its own
	t.Logf("\n%-26s %8s %8s %8s\n%-26s %8d %8d %8d", "effects", "semel", "by hand", "fiber", "crash after the effect", effects.get("semel"), effects.get("by hand"), effects.get("fiber"))
	if effects.get("semel") != 1 || status != 409 || !strings.Contains(body, "outcome-unknown") {
		t.Errorf("%d effects; the repeat got %d %s", effects.get("semel"), status, body)
	}
}

// fingerprintOf returns the fingerprint of the request that post sends.
func fingerprintOf(t *testing.T, s *shop) string {
	probe := semel.NewID()
	post(s.guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { created(w) }), 0), probe)
	op, err := s.ledger.Get(context.Background(), semel.Key{Account: "acme", Kind: "post.orders", ID: probe})
	must(t, err)
	return op.AsSent
}

// A tally counts by name.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) add(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[name]++
	return t.counts[name]
}

func (t *tally) get(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[name]
}
