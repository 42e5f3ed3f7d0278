package orders

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/client"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/retryhttp"
)

// options: at most two transmissions in one call, and no long waits.
var options = &client.Options{MaxAttempts: 2, Budget: 500 * time.Millisecond, Clock: &still{now: time.Now()}, Backoff: retryhttp.Backoff{Base: time.Millisecond, Max: 5 * time.Millisecond}}

// still is a clock that nothing but waiting moves on: how long a disk or a network
// takes is not counted.
type still struct {
	mu  sync.Mutex
	now time.Time
}

func (c *still) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *still) Sleep(_ context.Context, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// restaurant is a service behind a network that breaks.
type restaurant struct {
	Service
	network *fault.Transport
	placer  *Placer
	journal string
	server  *httptest.Server
}

func open(t testing.TB, rules ...string) *restaurant {
	t.Helper()
	r := &restaurant{journal: filepath.Join(t.TempDir(), "orders.db")}
	r.server = httptest.NewServer(&r.Service)
	r.network = fault.NewTransport(&http.Transport{})
	t.Cleanup(func() { r.network.Close(); r.network.CloseIdleConnections(); r.server.Close() })
	r.breaks(t, rules...)
	r.restart(t)
	return r
}

func (r *restaurant) breaks(t testing.TB, rules ...string) {
	t.Helper()
	parsed, err := fault.ParseRules(strings.Join(rules, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.network.SetRules(parsed...); err != nil {
		t.Fatal(err)
	}
}

// restart begins a new life with the same journal.
func (r *restaurant) restart(t testing.TB) {
	t.Helper()
	journal, err := client.OpenJournal(r.journal, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { journal.Close() })
	if r.placer, err = NewPlacer(r.server.URL, journal, r.network, options); err != nil {
		t.Fatal(err)
	}
}

// flow is what went out, such as "POST lost, GET 200, POST 201".
func (r *restaurant) flow() string {
	var list []string
	for _, e := range r.network.Log() {
		if e.Status == 0 {
			list = append(list, e.Method+" lost")
		} else {
			list = append(list, fmt.Sprint(e.Method, " ", e.Status))
		}
	}
	return strings.Join(list, ", ")
}

// Query, then the same key again, then "unconfirmed".
func TestFlow(t *testing.T) {
	for _, c := range []struct {
		name   string
		rules  []string
		flow   string
		want   string
		orders int
	}{
		{"all is well", nil, "POST 201", "settled", 1},
		{"the answer is lost: the query finds the order", []string{"lose-answer method=POST count=1"},
			"POST lost, GET 200", "settled", 1},
		{"the request is lost: the query finds nothing, and the same key is sent again", []string{"cut-before method=POST count=1"},
			"POST lost, GET 200, POST 201", "settled", 1},
		{"the answers to order and query are lost: the same key is sent again", []string{"lose-answer method=POST count=1", "lose-answer method=GET count=1"},
			"POST lost, GET lost, POST 201", "settled", 1},
		{"no answer to anything, and the order is there", []string{"lose-answer"},
			"POST lost, GET lost, POST lost, GET lost", "unconfirmed: ask", 1},
		{"no answer to anything, and nothing has arrived", []string{"cut-before"},
			"POST lost, GET lost, POST lost, GET lost", "unconfirmed: ask", 0},
		{"somebody on the way says 502, and the order is there", []string{"status method=POST count=1 code=502"},
			"POST 502, GET 200", "settled", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := open(t, c.rules...)
			out, err := r.placer.Place(t.Context(), "17", Order{Dish: "soup"})
			if got := tell(out); got != c.want || err != nil {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
			if got := r.flow(); got != c.flow {
				t.Errorf("flow: %s\nwant: %s", got, c.flow)
			}
			if n := len(r.Orders()); n != c.orders {
				t.Errorf("%d orders; want %d", n, c.orders)
			}
			// With the network in order, in the next life, it is found or placed: once.
			r.breaks(t)
			r.restart(t)
			err = r.placer.Resume(t.Context(), func(cart string, out client.Outcome) {
				if got := tell(out); got != "settled" || cart != "17" {
					t.Errorf("cart %s: %s", cart, got)
				}
			})
			if n := len(r.Orders()); n != 1 || err != nil {
				t.Errorf("%d orders in the end, error %v", n, err)
			}
			if pending, err := r.placer.client.Pending(t.Context()); len(pending) > 0 || err != nil {
				t.Errorf("left in the journal: %v, %v", pending, err)
			}
			for _, e := range r.network.Log() {
				if e.Method == http.MethodPost && e.Key != "cart-17" {
					t.Errorf("sent under the key %q", e.Key)
				}
			}
		})
	}
}

func TestAnotherOrderOfTheSameCart(t *testing.T) {
	r := open(t, "lose-answer")
	out, err := r.placer.Place(t.Context(), "17", Order{Dish: "soup"})
	if tell(out) != "unconfirmed: ask" || err != nil {
		t.Fatal(tell(out), err)
	}
	// The journal knows it without asking anybody …
	if out, err := r.placer.Place(t.Context(), "17", Order{Dish: "fish"}); !errors.Is(err, semel.ErrMismatch) || out != nil {
		t.Errorf("%v, %v", out, err)
	}
	// … and the service, where the journal was lost.
	r.breaks(t)
	r.journal += "-new"
	r.restart(t)
	out, err = r.placer.Place(t.Context(), "17", Order{Dish: "fish"})
	if tell(out) != "rejected: 422" || err != nil {
		t.Errorf("%v, %v", tell(out), err)
	}
	if len(r.Orders()) != 1 {
		t.Error("there are two orders")
	}
}

func tell(out client.Outcome) string {
	switch o := out.(type) {
	case client.Settled:
		return "settled"
	case client.Rejected:
		return fmt.Sprint("rejected: ", o.Problem.Status)
	case client.Unconfirmed:
		return "unconfirmed: " + string(o.Next)
	}
	return "nothing"
}

// No answer comes from anywhere. The order is unconfirmed, and neither failed nor
// placed anew. Later it turns out that it had arrived.
func Example() {
	service := &Service{}
	server := httptest.NewServer(service)
	defer server.Close()
	network := fault.NewTransport(&http.Transport{}, fault.MustRule("lose-answer"))
	defer network.CloseIdleConnections()
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	journal, err := client.OpenJournal(filepath.Join(dir, "orders.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer journal.Close()
	placer, err := NewPlacer(server.URL, journal, network, options)
	if err != nil {
		fmt.Println(err)
		return
	}

	outcome, err := placer.Place(context.Background(), "17", Order{Dish: "soup"})
	if u, ok := outcome.(client.Unconfirmed); ok {
		fmt.Println("unconfirmed after", u.Attempts, "attempts; next:", u.Next, err)
	}

	network.SetRules() // the network is back
	err = placer.Resume(context.Background(), func(cart string, outcome client.Outcome) {
		if s, ok := outcome.(client.Settled); ok {
			fmt.Println("cart", cart, s.Operation.State, string(s.Operation.Result))
		}
	})
	fmt.Println(len(service.Orders()), "order", err)
	// Output:
	// unconfirmed after 2 attempts; next: ask <nil>
	// cart 17 succeeded {"number":1,"dish":"soup"}
	// 1 order <nil>
}
