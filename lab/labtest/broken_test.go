package labtest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/lab/labtest"
	"github.com/semel-dev/semel/lab/service"
)

// A mistake is an effect or a handler as it is often written, the rows that must
// find it out, and what they must say.
type mistake struct {
	name string
	play func(*testing.T)
	// kind is "effect" or "handler", red the rows that fail, green one that doesn't.
	kind  string
	red   []string
	green string
	says  string
}

var mistakes = []mistake{
	{"a-new-key-for-each-try", func(t *testing.T) {
		e := orders(t, service.Idempotent)
		e.New = func(place labtest.Place) (effect.Effect, error) {
			return posting(place.Service+"/orders/idempotent", func(*effect.Call) string { return semel.NewID() }), nil
		}
		labtest.TestEffect(t, e)
	}, "effect", []string{"answer-lost", "killed-done", "killed-answered", "outlived-answered"}, "undisturbed", "one effect: 2 effects"},

	{"a-contract-that-promises-too-much", func(t *testing.T) {
		e := orders(t, service.Opaque)
		e.Contract, _ = contract.Preset(contract.Idempotent)
		labtest.TestEffect(t, e)
	}, "effect", []string{"done-then-503", "duplicated", "killed-sent"}, "cut-before", "wrong: 2 effects"},

	{"no-answer-taken-for-nothing-happened", func(t *testing.T) {
		e := orders(t, service.Opaque)
		e.New = func(place labtest.Place) (effect.Effect, error) {
			call := posting(place.Service+"/orders/opaque", key)
			return effect.Func(func(ctx context.Context, c *effect.Call) effect.Result {
				r := call.Do(ctx, c)
				if r.Proof.Proves == contract.Unknown {
					return effect.NotApplied("no-answer", "it timed out")
				}
				return r
			}), nil
		}
		labtest.TestEffect(t, e)
	}, "effect", []string{"answer-lost", "delivered-late"}, "undisturbed", "wrong: 2 effects"},

	{"deaf-to-the-end-of-its-lease", func(t *testing.T) {
		e := orders(t, service.Opaque)
		e.New = func(place labtest.Place) (effect.Effect, error) {
			call := posting(place.Service+"/orders/opaque", key)
			return effect.Func(func(ctx context.Context, c *effect.Call) effect.Result {
				return call.Do(context.WithoutCancel(ctx), c)
			}), nil
		}
		labtest.TestEffect(t, e)
	}, "effect", []string{"outlived-before-call"}, "killed-done", "wrong: 1 effect"},

	{"calls-past-the-network", func(t *testing.T) {
		e := orders(t, service.Opaque)
		e.New = func(labtest.Place) (effect.Effect, error) {
			return effect.Func(func(context.Context, *effect.Call) effect.Result { return effect.Applied(nil) }), nil
		}
		labtest.TestEffect(t, e)
	}, "effect", []string{"undisturbed"}, "", "no call went to Place.Service"},

	{"can-not-be-built", func(t *testing.T) {
		e := orders(t, service.Opaque)
		e.New = func(labtest.Place) (effect.Effect, error) { return nil, errors.New("no such bank") }
		labtest.TestEffect(t, e)
	}, "effect", []string{"undisturbed"}, "", "no such bank"},

	{"two-matrices-in-one-test", func(t *testing.T) {
		labtest.TestEffect(t, orders(t, service.Opaque))
		labtest.TestEffect(t, orders(t, service.Opaque))
	}, "effect", nil, "undisturbed", "one matrix for each test"},

	{"no-key-at-all", func(t *testing.T) {
		h := forwards(t)
		h.New = func(_ context.Context, place labtest.Place) (http.Handler, error) { return forwarding(place), nil }
		labtest.TestHandler(t, h)
	}, "handler", []string{"answer-lost", "delivered-late", "two-at-once", "changed-request"}, "", "one effect: 3 effects"},

	{"looks-then-inserts-in-memory", func(t *testing.T) {
		h := forwards(t)
		h.New = func(_ context.Context, place labtest.Place) (http.Handler, error) {
			return lookThenInsert(forwarding(place)), nil
		}
		labtest.TestHandler(t, h)
	}, "handler", []string{"two-at-once", "killed-answered", "killed-done", "outlived"}, "answer-lost", "one effect: 2 effects"},
}

// brokenEnv makes this binary play a mistake, as a test that is to fail.
const brokenEnv = "SEMEL_LABTEST_BROKEN"

// The matrix finds mistakes out, in the rows where they show, and says what they are.
func TestMatrixGoesRed(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			if os.Getenv(brokenEnv) != "" {
				m.play(t)
				return
			}
			t.Parallel()
			rows := m.red
			if m.green != "" {
				rows = append([]string{m.green}, rows...)
			}
			within := t.Name() + "/" + m.kind + "/"
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestMatrixGoesRed$/^"+m.name+"$/^"+m.kind+"$/^("+strings.Join(rows, "|")+")$")
			cmd.Env = append(os.Environ(), brokenEnv+"=1")
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), m.says) {
				t.Errorf("%v, and it does not say %q:\n%s", err, m.says, out)
			}
			for _, row := range m.red {
				if !strings.Contains(string(out), "--- FAIL: "+within+row+" (") {
					t.Errorf("%s is not red:\n%s", row, out)
				}
			}
			if m.green != "" && !strings.Contains(string(out), "--- PASS: "+within+m.green+" (") {
				t.Errorf("%s is not green:\n%s", m.green, out)
			}
		})
	}
}

func key(call *effect.Call) string {
	k, err := call.DownstreamKey()
	if err != nil {
		return ""
	}
	return k
}

// posting is an effect that posts an order under a key.
func posting(url string, key func(*effect.Call) string) effect.Effect {
	return effect.Func(func(ctx context.Context, call *effect.Call) effect.Result {
		req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(string(call.Request)))
		if err != nil {
			return effect.NotApplied("no-request", err.Error())
		}
		req.Header.Set("Idempotency-Key", key(call))
		resp, err := call.Client().Do(req)
		if err != nil {
			return effect.Unknown("no-answer", "no answer")
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusCreated {
			return effect.Unknown("no-outcome", resp.Status)
		}
		return effect.Applied(nil)
	})
}

// lookThenInsert remembers keys, with a gap between the look and the insert, and no
// longer than its process lives. The gap lasts until somebody else has looked too, if
// that comes within a second.
func lookThenInsert(next http.Handler) http.Handler {
	var mu sync.Mutex
	seen, looking := map[string]bool{}, map[string]chan struct{}{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := r.Header.Get("Idempotency-Key")
		mu.Lock()
		known, looked := seen[k], looking[k]
		if looked != nil {
			close(looked)
			delete(looking, k)
		} else if !known {
			looking[k] = make(chan struct{})
		}
		gap := looking[k]
		mu.Unlock()
		if known {
			w.WriteHeader(http.StatusCreated)
			return
		}
		if gap != nil {
			select {
			case <-gap:
			case <-time.After(time.Second):
			}
		}
		next.ServeHTTP(w, r)
		mu.Lock()
		seen[k] = true
		delete(looking, k)
		mu.Unlock()
	})
}
