package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/sqlite"
)

// A server in twenty lines, asked twice for the same thing.
func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "semel")
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(ctx, filepath.Join(dir, "semel.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	ledger, _ := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "note"}}})
	defer ledger.Close()

	token := httpapi.NewToken() // shown once; only its hash is kept
	tokens, _ := httpapi.NewTokens([]httpapi.Token{{Hash: httpapi.HashToken(token), Account: "acme"}})
	server := httptest.NewServer(httpapi.New(ledger, &httpapi.Options{Tokens: tokens, Logger: slog.New(slog.DiscardHandler)}))
	defer server.Close() // a real one: httpapi.NewHTTPServer(addr, handler).ListenAndServe()

	for range 2 {
		r, _ := http.NewRequest("PUT", server.URL+"/v1/operations/note/my-first-note", strings.NewReader(`{"text":"hello"}`))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		fmt.Println(resp.StatusCode, resp.Header.Get("ETag"), resp.Header.Get("Idempotency-Replayed") == "true")
	}
	// Output:
	// 201 "1" false
	// 200 "1" true
}
