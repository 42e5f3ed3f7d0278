package labtest_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
	"github.com/semel-dev/semel/lab/labtest"
	"github.com/semel-dev/semel/sqlite"
)

// A complete example: a handler as a team has it, and its test. Copy this file.

// NewShop is the handler under test: an order is a row, which commits together with
// the operation.
func NewShop(ctx context.Context, file string) (http.Handler, error) {
	store, err := sqlite.Open(ctx, file, nil)
	if err != nil {
		return nil, err
	}
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: idempotency.Kinds(idempotency.Route{Pattern: "POST /orders"})})
	if err != nil {
		return nil, err
	}
	db, err := openOrders(ctx, file)
	if err != nil {
		return nil, err
	}
	createOrder := func(w http.ResponseWriter, r *http.Request) {
		tx, _ := idempotency.Tx[*sql.Tx](r.Context())
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = tx.ExecContext(r.Context(), "INSERT INTO orders VALUES (?)", string(body))
		}
		if err != nil {
			http.Error(w, "sorry", http.StatusInternalServerError) // rolls back
			return
		}
		w.WriteHeader(http.StatusCreated)
		w.Write(body)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", idempotency.NewHandler(http.HandlerFunc(createOrder), ledger, &idempotency.Options{
		Account: func(*http.Request) (string, error) { return "acme", nil },
		Begin: func(ctx context.Context) (*idempotency.Transaction, error) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return nil, err
			}
			return &idempotency.Transaction{Tx: sqlite.Tx(store, tx), Value: tx, Commit: tx.Commit, Rollback: tx.Rollback}, nil
		},
	}))
	return mux, nil
}

func openOrders(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sqlite.OpenDB(file)
	if err == nil {
		_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS orders (body TEXT)")
	}
	return db, err
}

func TestShop(t *testing.T) {
	labtest.TestHandler(t, labtest.Handler{
		Store: "sqlite",
		New: func(ctx context.Context, place labtest.Place) (http.Handler, error) {
			return NewShop(ctx, place.Database)
		},
		Request: func(id string) *http.Request {
			req, _ := http.NewRequest("POST", "/orders", strings.NewReader(fmt.Sprintf(`{"order":%q}`, id)))
			req.Header.Set("Content-Type", "application/json")
			return req
		},
		Count: func(place labtest.Place, id string) (n int, err error) {
			db, err := openOrders(t.Context(), place.Database)
			if err != nil {
				return 0, err
			}
			defer db.Close()
			err = db.QueryRow(`SELECT count(*) FROM orders WHERE body->>'order' = ?`, id).Scan(&n)
			return n, err
		},
	})
}
