package labtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
	"github.com/semel-dev/semel/internal/node"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/lab/labtest"
	"github.com/semel-dev/semel/lab/service"
	"github.com/semel-dev/semel/postgres"
)

const pattern = "POST /orders"

func orderRequest(id string) *http.Request {
	req, err := http.NewRequest("POST", "/orders", strings.NewReader(fmt.Sprintf(`{"order":%q}`, id)))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

// protected puts package idempotency before a handler, on the row's database.
func protected(ctx context.Context, database string, next http.Handler, options idempotency.Options) (http.Handler, error) {
	store, err := node.OpenStore(ctx, database, "")
	if err != nil {
		return nil, err
	}
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: idempotency.Kinds(idempotency.Route{Pattern: pattern})})
	if err != nil {
		return nil, err
	}
	options.Account, options.Lease = func(*http.Request) (string, error) { return "acme", nil }, 2*time.Second
	mux := http.NewServeMux()
	mux.Handle(pattern, idempotency.NewHandler(next, ledger, &options))
	return mux, nil
}

// forwarding is a handler with its effect outside.
func forwarding(place labtest.Place) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := http.Post(place.Service+"/orders/opaque", "application/json", r.Body)
		if err != nil {
			http.Error(w, "no answer", http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
	})
}

func forwards(t *testing.T) labtest.Handler {
	t.Helper()
	books, err := service.New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { books.Close() })
	return labtest.Handler{
		New: func(ctx context.Context, place labtest.Place) (http.Handler, error) {
			return protected(ctx, place.Database, forwarding(place), idempotency.Options{})
		},
		Service: books,
		Request: orderRequest,
		Count:   func(_ labtest.Place, id string) (int, error) { return done(books, id) },
	}
}

// A handler with an effect outside, guarded by package idempotency, on both stores.
func TestGuardedHandler(t *testing.T) {
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			h := forwards(t)
			h.Store = onStore(t, store)
			labtest.TestHandler(t, h)
		})
	}
}

func onStore(t *testing.T, store string) string {
	if store == "postgres" && !labtest.Child() {
		return pgtest.Database(t)
	}
	return store
}

// A handler whose rows commit with the operation: nothing is ever unknown. The
// example in order_test.go is the same on SQLite.
func TestTransactionalHandlerOnPostgreSQL(t *testing.T) {
	url := onStore(t, "postgres")
	if !labtest.Child() {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			_, err = conn.Exec(t.Context(), "CREATE TABLE orders (body TEXT)")
			conn.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	labtest.TestHandler(t, labtest.Handler{
		Store:   url,
		New:     inPostgres,
		Request: orderRequest,
		Count: func(place labtest.Place, id string) (n int, err error) {
			ctx := context.Background()
			conn, err := pgx.Connect(ctx, place.Database)
			if err != nil {
				return 0, err
			}
			defer conn.Close(ctx)
			err = conn.QueryRow(ctx, "SELECT count(*) FROM orders WHERE body LIKE '%' || $1 || '\"%'", id).Scan(&n)
			return n, err
		},
	})
}

func insert(w http.ResponseWriter, r *http.Request, into func(body string) error) {
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, into(string(body))); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	w.Write(body)
}

func inPostgres(ctx context.Context, place labtest.Place) (http.Handler, error) {
	store, err := postgres.Open(ctx, place.Database, nil)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, place.Database)
	if err != nil {
		return nil, err
	}
	next := func(w http.ResponseWriter, r *http.Request) {
		tx, _ := idempotency.Tx[pgx.Tx](r.Context())
		insert(w, r, func(body string) error {
			_, err := tx.Exec(r.Context(), "INSERT INTO orders VALUES ($1)", body)
			return err
		})
	}
	return protected(ctx, place.Database, http.HandlerFunc(next), idempotency.Options{
		Begin: func(ctx context.Context) (*idempotency.Transaction, error) {
			tx, err := pool.Begin(ctx)
			if err != nil {
				return nil, err
			}
			end := context.WithoutCancel(ctx)
			return &idempotency.Transaction{Tx: postgres.Tx(store, tx), Value: tx,
				Commit: func() error { return tx.Commit(end) }, Rollback: func() error { return tx.Rollback(end) }}, nil
		}})
}
