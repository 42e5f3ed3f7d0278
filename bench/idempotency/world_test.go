package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	fiberidem "github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/postgres"
	"github.com/valyala/fasthttp"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// A shop is a database with one business table, and the ledger beside it.
type shop struct {
	testing.TB
	pool   *pgxpool.Pool
	store  *postgres.Store
	ledger *semel.Ledger
	lease  time.Duration // of a guarded handler
}

// newShop starts a server of its own, which keeps what it has promised: a commit is
// on the disk.
func newShop(t testing.TB) *shop {
	server, err := pgtest.Start()
	if err != nil {
		pgtest.Missing(t, err)
	}
	t.Cleanup(server.Stop)
	ctx, url := context.Background(), server.Database(t)
	s := &shop{TB: t, lease: time.Second}
	must(t, err)
	s.pool, err = pgxpool.New(ctx, url+"&pool_max_conns=20")
	must(t, err)
	s.store, err = postgres.Open(ctx, url, nil)
	must(t, err)
	s.ledger, err = semel.New(ctx, s.store, &semel.Options{Kinds: idempotency.Kinds(idempotency.Route{Pattern: "POST /orders"})})
	must(t, err)
	for _, text := range []string{
		`CREATE TABLE shop_order (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item TEXT)`,
		`CREATE TABLE kv (key TEXT PRIMARY KEY, value BYTEA, expires TIMESTAMPTZ)`,
		`CREATE TABLE plain_key (account TEXT, key TEXT, hash TEXT, locked_at TIMESTAMPTZ, status INT, body BYTEA, created_at TIMESTAMPTZ DEFAULT now(), PRIMARY KEY (account, key))`,
	} {
		_, err := s.pool.Exec(ctx, text)
		must(t, err)
	}
	t.Cleanup(func() { s.ledger.Close(); s.store.Close(); s.pool.Close() })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// insert is the business of the handler: one row.
func insert(ctx context.Context, tx pgx.Tx, item []byte) error {
	_, err := tx.Exec(ctx, "INSERT INTO shop_order (item) VALUES ($1)", string(item))
	return err
}

// bare is the handler as it was: its own one-row transaction.
func (s *shop) bare() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		item, _ := io.ReadAll(r.Body)
		err := pgx.BeginFunc(r.Context(), s.pool, func(tx pgx.Tx) error { return insert(r.Context(), tx, item) })
		if err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		created(w)
	})
}

func created(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/orders/1")
	w.WriteHeader(201)
	io.WriteString(w, `{"state":"ordered"}`)
}

func account(r *http.Request) (string, error) { return "acme", nil }

// guarded is the bare handler behind the middleware.
func (s *shop) guarded(next http.Handler, remember int) http.Handler {
	return idempotency.NewHandler(next, s.ledger, &idempotency.Options{Account: account, Route: route, Remember: remember, Lease: s.lease})
}

func route(*http.Request) string { return "/orders" }

// transactional is the handler that uses the middleware's transaction.
func (s *shop) transactional(begin func(context.Context) (*idempotency.Transaction, error)) http.Handler {
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		item, _ := io.ReadAll(r.Body)
		tx, _ := idempotency.Tx[pgx.Tx](r.Context())
		if err := insert(r.Context(), tx, item); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		created(w)
	})
	return idempotency.NewHandler(next, s.ledger, &idempotency.Options{Account: account, Route: route, Begin: begin})
}

func (s *shop) begin(ctx context.Context) (*idempotency.Transaction, error) {
	tx, err := postgres.Begin(ctx, s.pool)
	if err != nil {
		return nil, err
	}
	return &idempotency.Transaction{Tx: postgres.Tx(s.store, tx), Value: tx,
		Commit: func() error { return tx.Commit(ctx) }, Rollback: func() error { return tx.Rollback(context.WithoutCancel(ctx)) }}, nil
}

// beginPlainly is begin with a transaction that knows nothing of the ledger.
func (s *shop) beginPlainly(ctx context.Context) (*idempotency.Transaction, error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &idempotency.Transaction{Tx: postgres.Tx(s.store, tx), Value: tx,
		Commit: func() error { return tx.Commit(ctx) }, Rollback: func() error { return tx.Rollback(context.WithoutCancel(ctx)) }}, nil
}

// plain is what one writes by hand: insert the key, run, update it with the answer;
// a server error or an old lock lets the next one in.
func (s *shop) plain(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, key := r.Context(), r.Header.Get("Idempotency-Key")
		body, _ := io.ReadAll(r.Body)
		sum := sha256.Sum256(body)
		hash := hex.EncodeToString(sum[:])
		var status *int
		var stored []byte
		var before string
		err := s.pool.QueryRow(ctx, `SELECT hash, status, body FROM plain_key WHERE account = $1 AND key = $2`, "acme", key).Scan(&before, &status, &stored)
		switch {
		case err == nil && before != hash:
			http.Error(w, "mismatch", 422)
			return
		case err == nil && status != nil:
			w.WriteHeader(*status)
			w.Write(stored)
			return
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			http.Error(w, err.Error(), 503)
			return
		}
		tag, err := s.pool.Exec(ctx, `INSERT INTO plain_key (account, key, hash, locked_at) VALUES ($1, $2, $3, now())
			ON CONFLICT (account, key) DO UPDATE SET locked_at = now() WHERE plain_key.locked_at < now() - interval '1 second' OR plain_key.locked_at IS NULL`, "acme", key, hash)
		if err != nil || tag.RowsAffected() == 0 {
			http.Error(w, "in progress", 409)
			return
		}
		rec := httptest.NewRecorder()
		again := r.Clone(ctx)
		again.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(rec, again)
		if rec.Code < 500 {
			_, err = s.pool.Exec(ctx, `UPDATE plain_key SET status = $3, body = $4 WHERE account = $1 AND key = $2`, "acme", key, rec.Code, rec.Body.Bytes())
		} else {
			_, err = s.pool.Exec(ctx, `UPDATE plain_key SET locked_at = NULL WHERE account = $1 AND key = $2`, "acme", key)
		}
		if err != nil {
			http.Error(w, err.Error(), 503)
			return
		}
		w.WriteHeader(rec.Code)
		w.Write(rec.Body.Bytes())
	})
}

// kv is a fiber.Storage in PostgreSQL.
type kv struct{ pool *pgxpool.Pool }

func (k kv) GetWithContext(ctx context.Context, key string) (value []byte, err error) {
	err = k.pool.QueryRow(ctx, `SELECT value FROM kv WHERE key = $1 AND expires > now()`, key).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return value, err
}

func (k kv) SetWithContext(ctx context.Context, key string, value []byte, life time.Duration) error {
	_, err := k.pool.Exec(ctx, `INSERT INTO kv VALUES ($1, $2, now() + $3) ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires`, key, value, life)
	return err
}

func (k kv) DeleteWithContext(ctx context.Context, key string) error {
	_, err := k.pool.Exec(ctx, `DELETE FROM kv WHERE key = $1`, key)
	return err
}

func (k kv) ResetWithContext(ctx context.Context) error {
	_, err := k.pool.Exec(ctx, `TRUNCATE kv`)
	return err
}

func (k kv) Get(key string) ([]byte, error) { return k.GetWithContext(context.Background(), key) }
func (k kv) Set(key string, v []byte, l time.Duration) error {
	return k.SetWithContext(context.Background(), key, v, l)
}
func (k kv) Delete(key string) error { return k.DeleteWithContext(context.Background(), key) }
func (k kv) Reset() error            { return k.ResetWithContext(context.Background()) }
func (k kv) Close() error            { return nil }

// fiberHandler is Fiber's own middleware on that storage.
func (s *shop) fiberHandler(handle fiber.Handler) fasthttp.RequestHandler {
	app := fiber.New()
	app.Use(fiberidem.New(fiberidem.Config{KeyHeader: "Idempotency-Key", Storage: kv{s.pool}, KeyHeaderValidate: func(string) error { return nil }}))
	app.Post("/orders", handle)
	return app.Handler()
}

func (s *shop) fiberInsert() fasthttp.RequestHandler {
	return s.fiberHandler(func(c fiber.Ctx) error {
		ctx, item := context.Background(), c.Body()
		if err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return insert(ctx, tx, item) }); err != nil {
			return err
		}
		c.Set("Location", "/orders/1")
		return c.Status(201).SendString(`{"state":"ordered"}`)
	})
}

const order = `{"item":"noodles","count":2,"note":"no coriander, please"}`

// post sends one request to a handler, without a socket: so all of what is measured
// is the handler's. Like that of a server, its context ends when it was answered.
func post(h http.Handler, key string) (status int, body string) {
	ctx, answered := context.WithCancel(context.Background())
	defer answered()
	r := httptest.NewRequestWithContext(ctx, "POST", "/orders", bytes.NewReader([]byte(order)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func postFast(h fasthttp.RequestHandler, key string) (status int, body string) {
	var c fasthttp.RequestCtx
	c.Request.Header.SetMethod("POST")
	c.Request.SetRequestURI("/orders")
	c.Request.Header.Set("Content-Type", "application/json")
	c.Request.Header.Set("Idempotency-Key", key)
	c.Request.SetBodyString(order)
	h(&c)
	return c.Response.StatusCode(), string(c.Response.Body())
}
