package idempotency_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"net/http"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
)

// What one request costs in this process, on SQLite: a first call, a replay from
// memory, and one from the file.
func BenchmarkHandler(b *testing.B) {
	w := &world{kind: "sqlite", dsn: b.TempDir() + "/shop.db"}
	d, err := openDatabase(b.Context(), w.kind, w.dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer d.close()
	ledger, err := semel.New(b.Context(), d.store, &semel.Options{Kinds: kindsOf(w)})
	if err != nil {
		b.Fatal(err)
	}
	defer ledger.Close()
	handler := func(remember int) http.Handler {
		return idempotency.NewHandler(http.HandlerFunc(created), ledger, &idempotency.Options{Account: account, Remember: remember})
	}
	send := func(h http.Handler, key string) {
		r := httptest.NewRequest("POST", "/orders", strings.NewReader(`{"item":"noodles","count":2}`))
		r.Pattern = "POST /orders"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer acme")
		r.Header.Set("Idempotency-Key", key)
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, r); rec.Code != 201 {
			b.Fatal(rec.Code, rec.Body)
		}
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			send(http.HandlerFunc(created), "k")
		}
	})
	b.Run("first", func(b *testing.B) {
		h := handler(0)
		for b.Loop() {
			send(h, semel.NewID())
		}
	})
	for name, remember := range map[string]int{"replay from memory": 0, "replay from the file": -1} {
		b.Run(name, func(b *testing.B) {
			h := handler(remember)
			for b.Loop() {
				send(h, "known")
			}
		})
	}
}
