package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/client"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/sqlite"
	"github.com/semel-dev/semel/worker"
)

// The answer to the request is lost. The client asks, finds the operation, and
// follows it to its end. It was sent once, and there is one note.
func Example() {
	server := startServer(fault.MustRule("lose-answer method=PUT count=1"))
	defer server.stop()

	journal, err := client.OpenJournal(filepath.Join(server.dir, "intents.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer journal.Close()
	api, err := client.Semel(server.url, &client.SemelOptions{Authorize: client.Bearer(server.token)})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := client.New(api, journal, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := c.Do(context.Background(), client.Intent{Kind: "note", Body: []byte(`{"text":"Hello"}`)})
	switch o := outcome.(type) {
	case client.Settled:
		fmt.Println(o.Operation.State, string(o.Operation.Result))
	case client.Rejected:
		fmt.Println("refused, and nothing happened:", o.Problem.Detail)
	case client.Unconfirmed:
		fmt.Println("nobody knows yet; next:", o.Next)
	default:
		fmt.Println(err)
	}
	// Output:
	// succeeded {"note":1}
}

// A process writes an intent down and ends. The next one takes up what it finds,
// and writes down what became of it.
func ExampleClient_Resume() {
	ctx := context.Background()
	server := startServer()
	defer server.stop()
	api, err := client.Semel(server.url, &client.SemelOptions{Authorize: client.Bearer(server.token)})
	if err != nil {
		fmt.Println(err)
		return
	}
	file := filepath.Join(server.dir, "intents.db")

	journal, _ := client.OpenJournal(file, nil)
	first, _ := client.New(api, journal, nil)
	_, err = first.Begin(ctx, client.Intent{Kind: "note", Note: "page 7", Body: []byte(`{"text":"Hello"}`)})
	fmt.Println("begun:", err)
	journal.Close()

	journal, _ = client.OpenJournal(file, nil)
	defer journal.Close()
	second, _ := client.New(api, journal, nil)
	err = second.Resume(ctx, func(e client.Entry, outcome client.Outcome) error {
		if o, ok := outcome.(client.Settled); ok {
			fmt.Println(e.Note, o.Operation.State)
		}
		return nil // written down: it may be forgotten
	})
	pending, _ := second.Pending(ctx)
	fmt.Println("resumed:", err, len(pending))
	// Output:
	// begun: <nil>
	// page 7 succeeded
	// resumed: <nil> 0
}

// Any API that has a contract: this one can be asked by the key, and does not
// protect a repeat. The answer is lost; sending again would be a second order.
func ExampleHTTP() {
	orders := map[string]string{}
	shop := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			orders[r.Header.Get("Idempotency-Key")] = "soup"
			w.WriteHeader(http.StatusCreated)
		} else if orders[r.PathValue("key")] == "" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	mux := http.NewServeMux()
	mux.Handle("POST /orders", shop)
	mux.Handle("GET /orders/{key}", shop)
	server := httptest.NewServer(fault.NewHandler(mux, fault.MustRule("lose-answer method=POST")))
	defer server.Close()

	promise, err := contract.Preset(contract.Queryable)
	if err != nil {
		fmt.Println(err)
		return
	}
	api := client.HTTP(promise, nil)
	api.LookUp = func(ctx context.Context, in client.Intent) client.Seen {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/orders/"+in.Key, nil)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return client.Seen{} // it can't tell
		}
		resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			return client.Seen{Found: contract.FoundSucceeded}
		case http.StatusNotFound:
			return client.Seen{Found: contract.FoundNothing}
		}
		return client.Seen{}
	}
	c, err := client.New(api, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := c.Do(context.Background(), client.Intent{Kind: "order", URL: server.URL + "/orders", Body: []byte(`{"dish":"soup"}`)})
	settled, ok := outcome.(client.Settled)
	fmt.Println(ok, settled.Operation.State, err)
	fmt.Println(len(orders), "order")
	// Output:
	// true succeeded <nil>
	// 1 order
}

// exampleServer is a Semel server with one kind, "note", and a worker.
type exampleServer struct {
	dir, url, token string
	stop            func()
}

func startServer(rules ...fault.Rule) *exampleServer {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "semel")
	check(err)
	store, err := sqlite.Open(ctx, filepath.Join(dir, "semel.db"), nil)
	check(err)
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "note"}}})
	check(err)
	token := httpapi.NewToken()
	tokens, err := httpapi.NewTokens([]httpapi.Token{{Hash: httpapi.HashToken(token), Account: "acme"}})
	check(err)
	handler := fault.NewHandler(httpapi.New(ledger, &httpapi.Options{Tokens: tokens}), rules...)
	server := httptest.NewServer(handler)

	promise, err := contract.Preset(contract.Idempotent)
	check(err)
	notes := 0
	work, err := worker.New(ledger, []worker.Kind{{Name: "note", Contract: promise,
		Effect: effect.Func(func(context.Context, *effect.Call) effect.Result {
			notes++
			return effect.Applied(map[string]int{"note": notes})
		})}}, nil)
	check(err)
	running, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- work.Run(running) }()
	return &exampleServer{dir: dir, url: server.URL, token: token, stop: func() {
		cancel()
		<-done
		handler.Close()
		server.Close()
		ledger.Close()
		store.Close()
		os.RemoveAll(dir)
	}}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
