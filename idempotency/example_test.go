package idempotency_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
	"github.com/semel-dev/semel/sqlite"
)

// exampleLedger opens a ledger in a new file, with the kinds of some routes.
func exampleLedger(routes ...idempotency.Route) (ledger *semel.Ledger, store *sqlite.Store, path string, done func()) {
	dir, err := os.MkdirTemp("", "semel")
	if err != nil {
		panic(err)
	}
	path = filepath.Join(dir, "shop.db")
	if store, err = sqlite.Open(context.Background(), path, nil); err != nil {
		panic(err)
	}
	ledger, err = semel.New(context.Background(), store, &semel.Options{Kinds: idempotency.Kinds(routes...)})
	if err != nil {
		panic(err)
	}
	return ledger, store, path, func() { ledger.Close(); store.Close(); os.RemoveAll(dir) }
}

// whoAsks is your authentication: it returns the account of the credential.
func whoAsks(r *http.Request) (string, error) {
	if r.Header.Get("Authorization") != "Bearer secret" {
		return "", errors.New("unknown token")
	}
	return "acme", nil
}

// post sends a request as a client would, and prints what it gets.
func post(url, key, body string) {
	req, _ := http.NewRequest("POST", url, strings.NewReader(body))
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer secret")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode >= 400 {
		var p struct{ Code string }
		json.Unmarshal(text, &p)
		text = []byte(p.Code)
	}
	replayed := ""
	if resp.Header.Get("Idempotency-Replayed") == "true" {
		replayed = "(again)"
	}
	fmt.Println(strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", strings.TrimSpace(string(text)), " ", replayed)))
}

// A handler with an effect outside: one line makes it safe to repeat.
func Example() {
	ledger, _, _, done := exampleLedger(idempotency.Route{Pattern: "POST /orders"})
	defer done()

	orders := 0
	createOrder := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		orders++ // an external service is called
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d", orders)
	})

	mux := http.NewServeMux()
	mux.Handle("POST /orders", idempotency.NewHandler(createOrder, ledger, &idempotency.Options{Account: whoAsks}))

	server := httptest.NewServer(mux)
	defer server.Close()
	key := semel.NewID() // made by the client, before the first send
	post(server.URL+"/orders", key, `{"item": "noodles", "n": 2}`)
	post(server.URL+"/orders", key, `{"n": 2, "item": "noodles"}`)
	post(server.URL+"/orders", key, `{"item": "noodles", "n": 3}`)
	// Output:
	// 201 order 1
	// 201 order 1 (again)
	// 422 fingerprint-mismatch
}

// Business row, operation and answer commit together. With PostgreSQL, Begin uses
// postgres.Begin, postgres.Tx and a pgx.Tx in the same way.
func ExampleTx() {
	ledger, store, path, done := exampleLedger(idempotency.Route{Pattern: "POST /orders"})
	defer done()
	db, err := sqlite.OpenDB(path) // the same file
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	db.Exec("CREATE TABLE basket (item TEXT)")

	createOrder := func(w http.ResponseWriter, r *http.Request) {
		tx, _ := idempotency.Tx[*sql.Tx](r.Context())
		item, _ := io.ReadAll(r.Body)
		if _, err := tx.ExecContext(r.Context(), "INSERT INTO basket VALUES (?)", string(item)); err != nil {
			http.Error(w, "sorry", http.StatusInternalServerError) // rolls back
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "ordered %s", item)
	}
	options := &idempotency.Options{
		Account: whoAsks,
		Begin: func(ctx context.Context) (*idempotency.Transaction, error) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return nil, err
			}
			return &idempotency.Transaction{Tx: sqlite.Tx(store, tx), Value: tx, Commit: tx.Commit, Rollback: tx.Rollback}, nil
		},
	}

	mux := http.NewServeMux()
	mux.Handle("POST /orders", idempotency.NewHandler(http.HandlerFunc(createOrder), ledger, options))
	server := httptest.NewServer(mux)
	defer server.Close()
	key := semel.NewID()
	post(server.URL+"/orders", key, `"rice"`)
	post(server.URL+"/orders", key, `"rice"`)
	var rows int
	db.QueryRow("SELECT count(*) FROM basket").Scan(&rows)
	fmt.Println(rows, "row")
	// Output:
	// 201 ordered "rice"
	// 201 ordered "rice" (again)
	// 1 row
}

// What the handler knows better than a status code: the external service was not
// called, so the key is not used up.
func ExampleNotApplied() {
	ledger, _, _, done := exampleLedger(idempotency.Route{Pattern: "POST /orders"})
	defer done()

	open := false
	createOrder := func(w http.ResponseWriter, r *http.Request) {
		if !open {
			idempotency.NotApplied(r.Context())
			http.Error(w, "the kitchen is closed", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "cooked")
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", idempotency.NewHandler(http.HandlerFunc(createOrder), ledger, &idempotency.Options{Account: whoAsks}))
	server := httptest.NewServer(mux)
	defer server.Close()

	key := semel.NewID()
	post(server.URL+"/orders", key, `{}`)
	open = true
	post(server.URL+"/orders", key, `{}`)
	post(server.URL+"/orders", key, `{}`)
	// Output:
	// 503
	// 200 cooked
	// 200 cooked (again)
}

// A route that can find out by itself what became of a run that ended without a
// word.
func ExampleRoute() {
	cooked := map[string]string{} // what the kitchen knows, by key
	route := idempotency.Route{
		Pattern: "POST /orders",
		LookUp: func(ctx context.Context, d idempotency.Doubt) (idempotency.Finding, error) {
			if dish, ok := cooked[d.Operation.Key.String()]; ok {
				return idempotency.Finding{Outcome: semel.Applied, Answer: &idempotency.Answer{Status: 200, Body: []byte(dish)}}, nil
			}
			return idempotency.Finding{Outcome: semel.Unknown}, nil // not found proves nothing yet
		},
	}
	ledger, _, _, done := exampleLedger(route)
	defer done()

	createOrder := func(w http.ResponseWriter, r *http.Request) {
		key, _ := idempotency.KeyOf(r.Context())
		cooked[key.String()] = "noodles"
		http.Error(w, "the printer is on fire", http.StatusInternalServerError)
	}
	handler := idempotency.NewHandler(http.HandlerFunc(createOrder), ledger, &idempotency.Options{Account: whoAsks})
	mux := http.NewServeMux()
	mux.Handle("POST /orders", handler)
	server := httptest.NewServer(mux)
	defer server.Close()

	key := semel.NewID()
	post(server.URL+"/orders", key, `{}`)
	handler.Drain(context.Background()) // the look-up is running in the background
	post(server.URL+"/orders", key, `{}`)
	// Output:
	// 500
	// 200 noodles (again)
}

// A message that a queue delivers twice.
func ExampleDo() {
	ledger, _, _, done := exampleLedger(idempotency.Route{Pattern: "send-invoice"})
	defer done()

	consume := func(messageID string, message []byte) error {
		key := semel.Key{Account: "acme", Kind: "send-invoice", ID: messageID}
		result, err := idempotency.Do(context.Background(), ledger, key, message, func(ctx context.Context) (json.RawMessage, error) {
			fmt.Println("sent")
			return json.RawMessage(`{"mail":7}`), nil
		})
		fmt.Println(string(result), err)
		return err // in progress, or the store is down: deliver it again later
	}
	consume("message-1", []byte(`{"invoice":42}`))
	consume("message-1", []byte(`{"invoice":42}`))
	// Output:
	// sent
	// {"mail":7} <nil>
	// {"mail":7} <nil>
}
