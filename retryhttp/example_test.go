package retryhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// orders is a service that creates one order for each key, and loses its first answer.
func orders() *httptest.Server {
	var mu sync.Mutex
	known := map[string]int{}
	lost := false
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		if known[key] == 0 {
			known[key] = len(known) + 1
		}
		if !lost {
			lost = true
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "order %d of %d", known[key], len(known))
	}))
}

// An order is created, and the answer is lost. The transport asks again with the same
// key, and says afterwards what it took.
func Example() {
	server := orders()
	defer server.Close()
	api, err := contract.Preset(contract.Idempotent)
	if err != nil {
		panic(err)
	}
	client := retryhttp.New(nil, &retryhttp.Options{Contract: &api}).Client()

	var report retryhttp.Report
	ctx := retryhttp.With(context.Background(), retryhttp.Call{
		Key:    semel.NewID(), // made once, before the first send
		Report: &report,
	})
	req, err := http.NewRequestWithContext(ctx, "POST", server.URL, strings.NewReader("2 pizzas"))
	if err != nil {
		panic(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(string(body))
	fmt.Println(report.State(), "after", report.Sends, "sends")
	// Output:
	// order 1 of 1
	// applied after 2 sends
}

// Without a key nobody can tell whether a second order would be one too many. The
// request goes out once, and the error says what is known.
func ExampleTransport_RoundTrip_unconfirmed() {
	server := orders()
	defer server.Close()
	client := retryhttp.New(nil, nil).Client()
	_, err := client.Post(server.URL, "text/plain", strings.NewReader("2 pizzas"))
	fmt.Println(errors.Is(err, retryhttp.ErrUnconfirmed))
	// Output: true
}
