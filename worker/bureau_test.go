package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

// A bureau is an external service over real sockets. It keeps its own books, so
// that a test can count what really happened, and goes wrong as it is told.
//
//	POST /{shape}/orders        has an effect
//	GET  /{shape}/orders/{key}  finds it
type bureau struct {
	*httptest.Server
	mu      sync.Mutex
	did     *sync.Cond        // an effect happened
	effects map[string]int    // by the order's id in the body
	sends   map[string]int    // requests that arrived, by id
	keys    map[string]string // keys by id: each id must keep its own
	books   map[string]entry  // by key
	busy    map[string]bool   // by key
	// wrong chooses what goes wrong with a request; nil for nothing.
	wrong func(shape, id string, nth int) string
	lost  func(format string, args ...any)
	gone  chan struct{}
}

type entry struct {
	status int
	body   string
}

func newBureau(t *testing.T) *bureau {
	b := &bureau{effects: map[string]int{}, sends: map[string]int{}, keys: map[string]string{}, books: map[string]entry{}, busy: map[string]bool{},
		lost: t.Errorf, gone: make(chan struct{})}
	b.did = sync.NewCond(&b.mu)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{shape}/orders", b.post)
	mux.HandleFunc("GET /{shape}/orders/{key}", b.find)
	b.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		close(b.gone)
		b.Close()
	})
	return b
}

func (b *bureau) count(id string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.effects[id]
}

func (b *bureau) arrived(id string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sends[id]
}

// await blocks until an order has had its effect.
func (b *bureau) await(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.effects[id] == 0 {
		b.did.Wait()
	}
}

// arrive notes a request, and tells what is to go wrong with it.
func (b *bureau) arrive(shape, id, key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sends[id]++
	if known, ok := b.keys[id]; ok && known != key {
		b.lost("order %s came under two keys", id)
	}
	b.keys[id] = key
	if b.wrong == nil {
		return ""
	}
	return b.wrong(shape, id, b.sends[id])
}

// do has the effect, once for a key where the shape protects repeats.
func (b *bureau) do(shape, id, key string) entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.books[key]; ok && protects(shape) {
		return e
	}
	b.effects[id]++
	b.did.Broadcast()
	e := entry{201, fmt.Sprintf(`{"id":%q,"state":"done"}`, id)}
	b.books[key] = e
	return e
}

func protects(shape string) bool { return shape == "idempotent" || shape == "stored" }

func (b *bureau) post(w http.ResponseWriter, r *http.Request) {
	var order struct{ ID string }
	body, _ := io.ReadAll(r.Body)
	json.Unmarshal(body, &order)
	shape, id, key := r.PathValue("shape"), order.ID, r.Header.Get("Idempotency-Key")
	if want := `{"id":"` + id + `"}`; string(body) != want {
		b.lost("order %s came as %s", id, body)
	}
	wrong := b.arrive(shape, id, key)
	switch wrong {
	case "reset-before":
		hangUp(w, "")
		return
	case "503-before":
		http.Error(w, "", 503)
		return
	case "maintenance":
		w.Header().Set("Retry-After", "0")
		answer(w, 503, `{"code":"maintenance"}`)
		return
	case "429":
		answer(w, 429, `{}`)
		return
	case "400":
		answer(w, 400, `{"code":"bad"}`)
		return
	case "mismatch":
		answer(w, 422, `{}`)
		return
	case "timeout-before":
		b.hang(r)
		return
	case "late":
		b.hang(r)
		time.Sleep(50 * time.Millisecond) // the caller is gone, and now it happens
		b.do(shape, id, key)
		return
	}
	if protects(shape) {
		b.mu.Lock()
		if b.busy[key] {
			b.mu.Unlock()
			answer(w, 409, `{}`)
			return
		}
		b.busy[key] = true
		if e, ok := b.books[key]; ok {
			w.Header().Set("Idempotency-Replayed", "true")
			defer answer(w, e.status, e.body)
		}
		b.mu.Unlock()
		defer func() {
			b.mu.Lock()
			delete(b.busy, key)
			b.mu.Unlock()
		}()
		if w.Header().Get("Idempotency-Replayed") != "" {
			return
		}
	}
	e := b.do(shape, id, key)
	switch wrong {
	case "reset-after":
		hangUp(w, "")
	case "cut-answer":
		hangUp(w, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	case "timeout-after":
		b.hang(r)
	case "500-after", "500-stored":
		if shape == "stored" || wrong == "500-stored" {
			b.mu.Lock()
			b.books[key] = entry{500, `{}`}
			b.mu.Unlock()
		}
		answer(w, 500, `{}`)
	case "502-after":
		http.Error(w, "", 502)
	case "slow":
		time.Sleep(20 * time.Millisecond)
		answer(w, e.status, e.body)
	default:
		answer(w, e.status, e.body)
	}
}

func (b *bureau) find(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	e, ok := b.books[r.PathValue("key")]
	wrong := ""
	if b.wrong != nil {
		wrong = b.wrong("look-up", "", 0)
	}
	b.mu.Unlock()
	switch {
	case strings.HasPrefix(wrong, "reset"):
		hangUp(w, "")
	case strings.HasPrefix(wrong, "5"):
		answer(w, 500, `{}`)
	case !ok:
		answer(w, 404, `{"code":"no_such_order"}`)
	default:
		answer(w, 200, e.body)
	}
}

// hang waits until the caller has gone.
func (b *bureau) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-b.gone:
	}
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, body)
}

func hangUp(w http.ResponseWriter, text string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	io.WriteString(conn, text)
	if tcp, ok := conn.(*net.TCPConn); ok && text == "" {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// shapes are the contracts that the bureau keeps.
func shapes(t *testing.T) map[string]contract.Contract {
	turned := []contract.Match{{Status: 429}, {Status: 503, Code: "maintenance", At: "/code"}}
	idem, query, opaque := preset(t, contract.Idempotent), preset(t, contract.Queryable), preset(t, contract.Opaque)
	query.LookUp.AbsentAfter = contract.Duration(2 * time.Second) // much longer than "late" takes
	query.LookUp.ConsistentAfter = 0
	stored := idem
	stored.Name = "stored"
	stored.Stored = contract.Stored{Outcomes: contract.StoresEvery, ServerErrors: contract.ServerErrorReplayed}
	all := map[string]contract.Contract{"idempotent": idem, "queryable": query, "opaque": opaque, "stored": stored}
	for name, c := range all {
		c.Answers.NothingHappened = turned
		all[name] = c
	}
	return all
}

// kind is one of the bureau's shapes with short times, and a timeout that a busy
// machine does not reach by itself.
func (b *bureau) kind(t *testing.T, shape string, c contract.Contract) Kind {
	t.Helper()
	spec := effect.HTTPSpec{URL: b.URL + "/" + shape + "/orders"}
	if c.Shape().Queryable {
		spec.LookUp = &effect.LookUpSpec{URL: b.URL + "/" + shape + "/orders/{key}", KeyAt: "",
			Absent: []contract.Match{{Status: 404, Code: "no_such_order", At: "/code"}}}
	}
	h, err := effect.NewHTTP(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := NewKind(Kind{Name: shape, Contract: c, Effect: h, Host: shape, Concurrency: 8, Timeout: 2 * time.Second, Lease: 4 * time.Second,
		Retry: Retry{Base: 5 * time.Millisecond, Cap: 50 * time.Millisecond, MaxExecutions: 100, Budget: min(time.Hour, max(c.Retention.Minimum.D()/2, 10*time.Minute))}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// chance picks a fault for 30 % of the requests.
func chance(seed uint64, faults ...string) func(shape, id string, nth int) string {
	r := rand.New(rand.NewPCG(seed, 1)) // guarded by the bureau's lock
	return func(string, string, int) string {
		if r.Float64() >= 0.3 {
			return ""
		}
		return faults[r.IntN(len(faults))]
	}
}

// callOnce makes a ghost's call: the effect may happen, and nobody hears of it.
func callOnce(k Kind, a Action, lease ghostLease) {
	ctx, cancel := context.WithTimeout(context.Background(), k.Timeout)
	defer cancel()
	effect.Do(ctx, k.Effect, &effect.Call{Key: lease.Operation.Key, Token: lease.Token, Params: lease.Operation.Params, Request: lease.Request(),
		Contract: *a.Contract, FirstSent: a.FirstSent, Repeat: a.Repeat})
}
