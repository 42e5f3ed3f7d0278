package idempotency_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/postgres"
	"github.com/semel-dev/semel/sqlite"
)

// databases are what every test of meaning runs on.
var databases = []string{"sqlite", "postgres"}

func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	for _, name := range databases {
		t.Run(name, func(t *testing.T) { test(t, newWorld(t, name)) })
	}
}

// patterns are the routes that tests use.
var patterns = []string{"POST /orders", "POST /refunds", "PATCH /orders/{id}", "PUT /orders/{id}", "HEAD /orders", "POST /looked-up", idempotency.AllRoutes, "nightly"}

// A world is one database and the nodes on it.
type world struct {
	*testing.T
	kind string
	dsn  string
	// lookUp is what "POST /looked-up" uses.
	lookUp atomic.Pointer[func(context.Context, idempotency.Doubt) (idempotency.Finding, error)]
	logs   bytes.Buffer
	logMu  sync.Mutex
}

func newWorld(t *testing.T, kind string) *world {
	w := &world{T: t, kind: kind}
	switch kind {
	case "sqlite":
		w.dsn = filepath.Join(t.TempDir(), "shop.db")
	case "postgres":
		w.dsn = pgtest.Database(t)
	}
	return w
}

// in is the same database in a subtest.
func (w *world) in(t *testing.T) *world { return &world{T: t, kind: w.kind, dsn: w.dsn} }

func (w *world) Write(p []byte) (int, error) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.logs.Write(p)
}

func (w *world) logger() *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// A database is one process's way into it.
type database struct {
	store semel.Store // possibly wrapped
	begin func(context.Context) (*idempotency.Transaction, error)
	exec  func(ctx context.Context, sql string) error // outside of a transaction
	count func(sql string) int
	close func()
}

func openDatabase(ctx context.Context, kind, dsn string) (*database, error) {
	d := &database{}
	switch kind {
	case "sqlite":
		store, err := sqlite.Open(ctx, dsn, nil)
		if err != nil {
			return nil, err
		}
		db, err := sqlite.OpenDB(dsn)
		if err != nil {
			return nil, err
		}
		d.store = store
		d.begin = func(ctx context.Context) (*idempotency.Transaction, error) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return nil, err
			}
			return &idempotency.Transaction{Tx: sqlite.Tx(store, tx), Value: tx, Commit: tx.Commit, Rollback: tx.Rollback}, nil
		}
		d.exec = func(ctx context.Context, text string) error { _, err := db.ExecContext(ctx, text); return err }
		d.count = func(text string) (n int) { db.QueryRow(text).Scan(&n); return n }
		d.close = func() { db.Close(); store.Close() }
	case "postgres":
		store, err := postgres.Open(ctx, dsn, nil)
		if err != nil {
			return nil, err
		}
		pool, err := pgxpool.New(ctx, dsn)
		if err != nil {
			return nil, err
		}
		d.store = store
		d.begin = func(ctx context.Context) (*idempotency.Transaction, error) {
			tx, err := postgres.Begin(ctx, pool)
			if err != nil {
				return nil, err
			}
			free := context.WithoutCancel(ctx)
			return &idempotency.Transaction{Tx: postgres.Tx(store, tx), Value: tx,
				Commit: func() error { return tx.Commit(free) }, Rollback: func() error { return tx.Rollback(free) }}, nil
		}
		d.exec = func(ctx context.Context, text string) error { _, err := pool.Exec(ctx, text); return err }
		d.count = func(text string) (n int) { pool.QueryRow(context.Background(), text).Scan(&n); return n }
		d.close = func() { pool.Close(); store.Close() }
	}
	return d, d.exec(ctx, "CREATE TABLE IF NOT EXISTS shop_order (id TEXT)")
}

// insertOrder writes a business row in the handler's transaction.
func insertOrder(ctx context.Context, id string) error {
	if tx, ok := idempotency.Tx[*sql.Tx](ctx); ok {
		_, err := tx.ExecContext(ctx, "INSERT INTO shop_order VALUES (?)", id)
		return err
	}
	if tx, ok := idempotency.Tx[pgx.Tx](ctx); ok {
		_, err := tx.Exec(ctx, "INSERT INTO shop_order VALUES ($1)", id)
		return err
	}
	return fmt.Errorf("there is no transaction")
}

// A node is one process of a service: its own store handle, ledger and server.
type node struct {
	*database
	w      *world
	store  *shakyStore
	ledger *semel.Ledger
	mux    *http.ServeMux
	opts   idempotency.Options
	server *httptest.Server

	handleAll func(*idempotency.Handler) // notes a handler to drain
	observed  *outside                   // counts what the ledger tells, as "name/label"
}

// account takes the credential's owner: "Bearer acme/2" is a credential of acme.
func account(r *http.Request) (string, error) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "/")
	return name, nil
}

func kindsOf(w *world) []semel.Kind {
	var routes []idempotency.Route
	for _, p := range patterns {
		route := idempotency.Route{Pattern: p}
		if p == "POST /looked-up" {
			route.LookUp = func(ctx context.Context, d idempotency.Doubt) (idempotency.Finding, error) {
				return (*w.lookUp.Load())(ctx, d)
			}
		}
		routes = append(routes, route)
	}
	return idempotency.Kinds(routes...)
}

// node starts one more node. change may adjust the options.
func (w *world) node(change func(*idempotency.Options, *database)) *node {
	w.Helper()
	d, err := openDatabase(context.Background(), w.kind, w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	n := &node{database: d, w: w, store: &shakyStore{Store: d.store}, mux: http.NewServeMux(), observed: &outside{counts: map[string]int{}}}
	n.ledger, err = semel.New(context.Background(), n.store, &semel.Options{Kinds: kindsOf(w), Logger: w.logger(), PollInterval: 20 * time.Millisecond,
		Observe: func(o semel.Observation) { n.observed.happen(o.Name + "/" + o.Label) }})
	if err != nil {
		w.Fatal(err)
	}
	n.opts = idempotency.Options{Account: account, Lease: time.Minute, Logger: w.logger()}
	if change != nil {
		change(&n.opts, d)
	}
	n.server = httptest.NewUnstartedServer(n.mux)
	n.server.Config.ErrorLog = slog.NewLogLogger(w.logger().Handler(), slog.LevelInfo)
	n.server.Start()
	var handlers []*idempotency.Handler
	n.handleAll = func(h *idempotency.Handler) { handlers = append(handlers, h) }
	w.Cleanup(func() {
		n.server.CloseClientConnections()
		n.server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		n.store.fail(nil)
		for _, h := range handlers {
			if err := h.Drain(ctx); err != nil {
				w.Error("drain:", err)
			}
		}
		n.ledger.Close()
		d.close()
	})
	return n
}

// handle puts a handler behind the middleware.
func (n *node) handle(pattern string, f http.HandlerFunc) *idempotency.Handler {
	h := idempotency.NewHandler(f, n.ledger, &n.opts)
	n.mux.Handle(pattern, h)
	n.handleAll(h)
	return h
}

// An answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func (a answer) replayed() bool { return a.header.Get("Idempotency-Replayed") == "true" }

func (a answer) code() string {
	_, rest, _ := strings.Cut(a.body, `"code":"`)
	code, _, _ := strings.Cut(rest, `"`)
	return code
}

func (a answer) String() string {
	body := a.body
	if len(body) > 200 {
		body = body[:200] + "…"
	}
	return fmt.Sprintf("%d %v %s (error %v)", a.status, a.header, body, a.err)
}

// plainClient sends once and asks for no compression by itself.
var plainClient = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 600},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// send sends one request; header lines are "Name: value".
func (n *node) send(method, path, key, body string, lines ...string) answer {
	return send(n.server.URL, method, path, key, body, lines...)
}

func send(base, method, path, key, body string, lines ...string) answer {
	req, err := http.NewRequest(method, base+path, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		return answer{err: err}
	}
	req.ContentLength = int64(len(body))
	if body == "" {
		req.Body = http.NoBody
	}
	req.Header.Set("Authorization", "Bearer acme")
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		req.Header[http.CanonicalHeaderKey(name)] = append(removeFirst(req.Header, name), value)
	}
	resp, err := plainClient.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	header := resp.Header
	for name, lines := range resp.Trailer {
		header["Trailer-"+name] = lines
	}
	return answer{resp.StatusCode, header, string(text), err}
}

// removeFirst lets a line replace what send sets by itself, once.
func removeFirst(h http.Header, name string) []string {
	name = http.CanonicalHeaderKey(name)
	if name == "Authorization" || name == "Content-Type" {
		return nil
	}
	return h[name]
}

// operation returns the one operation of acme under a key.
func (n *node) operation(pattern, key string) semel.Operation {
	n.w.Helper()
	op, err := n.ledger.Get(context.Background(), semel.Key{Account: "acme", Kind: idempotency.KindName(pattern), ID: key})
	if err != nil {
		n.w.Fatal(err)
	}
	return op
}

// record runs a request at this node, whose handler creates.
func (n *node) record(pattern, key string) {
	n.w.Helper()
	n.handle(pattern, created)
	method, path, _ := strings.Cut(pattern, " ")
	if a := n.send(method, path, key, `{}`); a.status != 201 {
		n.w.Fatal(a)
	}
}

// eventually waits for something that another goroutine or process brings about.
func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	deadline := time.Now().Add(time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			w.logMu.Lock()
			defer w.logMu.Unlock()
			w.Fatalf("it never came about: %s\n%s", what, w.logs.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A shakyStore counts the calls that reach the database, and fails them when told
// to.
type shakyStore struct {
	semel.Store
	calls atomic.Int64
	down  atomic.Pointer[func(call string) bool]
}

// fail makes the calls fail for which which returns true; nil ends that.
func (s *shakyStore) fail(which func(call string) bool) {
	if which == nil {
		s.down.Store(nil)
		return
	}
	s.down.Store(&which)
}

func (s *shakyStore) before(call string) error {
	s.calls.Add(1)
	if down := s.down.Load(); down != nil && (*down)(call) {
		return &semel.Error{Op: call, Code: semel.CodeUnavailable, Recorded: semel.RecordedNo, Msg: "the test says so"}
	}
	return nil
}

func (s *shakyStore) Insert(ctx context.Context, b []semel.Insertion) ([]semel.Inserted, error) {
	if err := s.before("insert"); err != nil {
		return nil, err
	}
	return s.Store.Insert(ctx, b)
}

func (s *shakyStore) Get(ctx context.Context, k []semel.Key) ([]semel.Found, error) {
	if err := s.before("get"); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, k)
}

func (s *shakyStore) Apply(ctx context.Context, b []semel.Change) ([]semel.Applying, error) {
	if err := s.before("apply"); err != nil {
		return nil, err
	}
	return s.Store.Apply(ctx, b)
}

func (s *shakyStore) Claim(ctx context.Context, r semel.ClaimRequest) ([]semel.Claimed, error) {
	if err := s.before("claim"); err != nil {
		return nil, err
	}
	return s.Store.Claim(ctx, r)
}

func (s *shakyStore) Renew(ctx context.Context, b []semel.Renewal) ([]bool, error) {
	if err := s.before("renew"); err != nil {
		return nil, err
	}
	return s.Store.Renew(ctx, b)
}

func (s *shakyStore) History(ctx context.Context, k semel.Key) (semel.History, error) {
	if err := s.before("history"); err != nil {
		return semel.History{}, err
	}
	return s.Store.History(ctx, k)
}

// An outside is the external world: it counts effects by name.
type outside struct {
	mu     sync.Mutex
	counts map[string]int
	server *httptest.Server
}

func newOutside(t *testing.T) *outside {
	o := &outside{counts: map[string]int{}}
	o.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { o.happen(r.URL.Path) }))
	t.Cleanup(o.server.Close)
	return o
}

func (o *outside) happen(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts[name]++
	return o.counts[name]
}

func (o *outside) count(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts[name]
}

var serial atomic.Int64

// newKey makes a key that is no UUIDv7, so that reports can be read.
func newKey() string { return "key-" + strconv.FormatInt(serial.Add(1), 10) }
