package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/httpapi/problem"
	"github.com/semel-dev/semel/sqlite"
)

// The credentials of every world.
var (
	acme    = httpapi.NewToken()
	globex  = httpapi.NewToken()
	root    = httpapi.NewToken() // operator of everything, without an account
	auditor = httpapi.NewToken() // operator of acme only, and a member of initech
)

// secret stands in parameters and results, and must be in no log.
const secret = "SECRET-番茄炒蛋"

// A world is a server on a real store behind a real socket.
type world struct {
	testing.TB
	store  *sqlite.Store
	ledger *semel.Ledger
	server *httpapi.Server
	http   *httptest.Server
	url    string
	prefix string // under which the server is mounted
	logs   *logBuffer
	clock  *clock
	active sync.WaitGroup // requests inside the server
}

type clock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// setup is what a test may change before the world begins.
type setup struct {
	ledger semel.Options
	server httpapi.Options
	http   func(*http.Server)
}

func newWorld(t testing.TB, change func(*setup)) *world {
	t.Helper()
	w := &world{TB: t, logs: &logBuffer{}, clock: &clock{}}
	logger := slog.New(slog.NewJSONHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	tokens, err := httpapi.NewTokens([]httpapi.Token{
		{Hash: httpapi.HashToken(acme), Account: "acme"},
		{Hash: httpapi.HashToken(globex), Account: "globex", Name: "globex-backend"},
		{Hash: httpapi.HashToken(root), Operator: true, Accounts: []string{"*"}, Name: "root"},
		{Hash: httpapi.HashToken(auditor), Account: "initech", Operator: true, Accounts: []string{"acme"}, Name: "alice"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := setup{
		ledger: semel.Options{Logger: logger, PollInterval: 20 * time.Millisecond, Kinds: []semel.Kind{
			{Name: "note", Description: "A note", Contract: "kept for ever", Retention: time.Hour},
			{Name: "export"},
		}},
		server: httpapi.Options{Tokens: tokens, Logger: logger, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			io.WriteString(w, "up 1\n")
		})},
	}
	if change != nil {
		change(&s)
	}
	if w.store, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), &sqlite.Options{Clock: w.clock.now}); err != nil {
		t.Fatal(err)
	}
	if w.ledger, err = semel.New(t.Context(), w.store, &s.ledger); err != nil {
		t.Fatal(err)
	}
	w.server = httpapi.New(w.ledger, &s.server)
	w.http = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.active.Add(1)
		defer w.active.Done()
		w.server.ServeHTTP(rw, r)
	}))
	w.http.Config.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	if s.http != nil {
		s.http(w.http.Config)
	}
	w.http.Start()
	w.url = w.http.URL
	t.Cleanup(func() {
		w.server.Drain()
		w.http.Close()
		w.ledger.Close()
		w.store.Close()
		w.checkLogs()
	})
	return w
}

// checkLogs holds for every test: no parameters, results or credentials.
func (w *world) checkLogs() {
	logs := w.logs.String()
	for _, never := range []string{"SECRET-", "番茄", acme, globex, root, auditor, "semel_session=", "Bearer "} {
		if i := strings.Index(logs, never); i >= 0 {
			w.Errorf("a log line has %q: …%s…", never, logs[max(0, i-300):min(len(logs), i+100)])
		}
	}
}

// A reply is a whole answer.
type reply struct {
	status int
	http.Header
	body []byte
	w    *world
}

// request options
type with func(*http.Request)

func header(name, value string) with {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func as(token string) with {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

var nobody with = func(r *http.Request) { r.Header.Del("Authorization") }

func body(s string) with {
	return func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(s)), int64(len(s))
		if r.Header.Get("Content-Type") == "" {
			r.Header.Set("Content-Type", "application/json")
		}
	}
}

// do sends a request, as acme unless told otherwise, and holds the answer against
// the description.
func (w *world) do(method, path string, options ...with) reply {
	w.Helper()
	a, err := w.try(w.Context(), method, path, options...)
	if err != nil {
		w.Fatal(err)
	}
	return a
}

func (w *world) try(ctx context.Context, method, path string, options ...with) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url+w.prefix+path, nil)
	if err != nil {
		return reply{}, err
	}
	as(acme)(r)
	for _, o := range options {
		o(r)
	}
	resp, err := w.http.Client().Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err
	}
	a := reply{resp.StatusCode, resp.Header, text, w}
	if err := description.check(method, strings.TrimPrefix(r.URL.EscapedPath(), w.prefix), a); err != nil {
		w.Errorf("%s %s: %v", method, path, err)
	}
	return a, nil
}

// is checks the status.
func (a reply) is(status int) reply {
	a.w.Helper()
	if a.status != status {
		a.w.Fatalf("status %d instead of %d: %s", a.status, status, a.body)
	}
	return a
}

// op is the operation in the answer.
func (a reply) op() semel.Operation {
	a.w.Helper()
	return decoded[semel.Operation](a)
}

func decoded[T any](a reply) T {
	a.w.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.w.Fatalf("%v in %s", err, a.body)
	}
	return v
}

// problem checks that the answer is that problem.
func (a reply) problem(status int, code semel.Code) problem.Problem {
	a.w.Helper()
	p, ok := problem.Decode(a.status, a.Header, a.body)
	if !ok || a.status != status || p.Code != code {
		a.w.Fatalf("status %d and not a problem %d %s: %s", a.status, status, code, a.body)
	}
	var inside struct{ Status int }
	json.Unmarshal(a.body, &inside)
	if inside.Status != status {
		a.w.Errorf("the problem says status %d under status %d", inside.Status, status)
	}
	return p
}

// has checks one header.
func (a reply) has(name, want string) reply {
	a.w.Helper()
	if got := a.Values(name); want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0] != want) {
		a.w.Errorf("%s is %q instead of %q", name, got, want)
	}
	return a
}

// note is the path of a note.
func note(id string) string { return "/v1/operations/note/" + id }

// menu is some parameters.
const menu = `{"dish":"` + secret + `"}`

// create makes a note and returns its path and operation.
func (w *world) create(options ...with) (string, semel.Operation) {
	w.Helper()
	path := note(semel.NewID())
	return path, w.do("PUT", path, append([]with{body(menu)}, options...)...).is(201).op()
}

// claim leases the one operation that is due.
func (w *world) claim(lease time.Duration) semel.Lease {
	w.Helper()
	return w.claimUnder(`{"name":"queryable","look_up":{"by":"key","absent_after":"90s"}}`, lease)
}

// claimUnder claims under this contract.
func (w *world) claimUnder(contract string, lease time.Duration) semel.Lease {
	w.Helper()
	for {
		leases, err := w.ledger.Claim(w.Context(), semel.ClaimRequest{Worker: "w1", Max: 1,
			Kinds: []semel.ClaimKind{{Kind: "note", Lease: lease, Contract: contract, BeginNow: true}}})
		if err != nil {
			w.Fatal(err)
		}
		if len(leases) > 0 { // due times are rounded up to the next millisecond
			return leases[0]
		}
	}
}

func (w *world) finish(lease semel.Lease, end semel.Ending) semel.Operation {
	w.Helper()
	op, err := w.ledger.Finish(w.Context(), lease, end)
	if err != nil {
		w.Fatal(err)
	}
	return op
}

// doubtful makes an operation that needs reconciliation.
func (w *world) doubtful(options ...with) (string, semel.Operation) {
	w.Helper()
	path, _ := w.create(options...)
	return path, w.finish(w.claim(time.Minute), semel.Ending{Outcome: semel.Unknown, Evidence: []byte(`{"seen":"timeout"}`),
		Failure: &semel.Failure{Code: "timeout", Message: "no answer in time"}})
}

// operatorPath is an operation's path for operators.
func operatorPath(op semel.Operation) string { return "/v1/operator/operations/" + op.Key.String() }
