package client

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/retryhttp"
	"github.com/semel-dev/semel/schema"
	"github.com/semel-dev/semel/sqlite"
	"github.com/semel-dev/semel/worker"
)

// secret stands in parameters and results, and must be in no log.
const secret = "SECRET-番茄炒蛋"

// world is a Semel server on a real store behind a real socket, with a worker that
// counts effects, and faults in front.
type world struct {
	testing.TB
	store  *sqlite.Store
	ledger *semel.Ledger
	faults *fault.Handler
	http   *httptest.Server
	token  string
	other  string // token of another account
	logs   *logBuffer

	mu      sync.Mutex
	clock   time.Duration
	effects map[string]int
	effect  func(id string) effect.Result // nil: applied
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

func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, token: httpapi.NewToken(), other: httpapi.NewToken(), logs: &logBuffer{}, effects: map[string]int{}}
	quiet := slog.New(slog.DiscardHandler)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	w.store, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), &sqlite.Options{Clock: w.now})
	must(err)
	w.ledger, err = semel.New(t.Context(), w.store, &semel.Options{Logger: quiet, PollInterval: 10 * time.Millisecond,
		Kinds: []semel.Kind{{Name: "export", Canon: schema.JSON("export")},
			{Name: "doubtful", Canon: schema.JSON("doubtful")},
			{Name: "idle", Canon: schema.JSON("idle"), Retention: time.Hour}}})
	must(err)
	tokens, err := httpapi.NewTokens([]httpapi.Token{{Hash: httpapi.HashToken(w.token), Account: "acme"}, {Hash: httpapi.HashToken(w.other), Account: "globex"}})
	must(err)
	server := httpapi.New(w.ledger, &httpapi.Options{Tokens: tokens, Logger: quiet})
	w.faults = fault.NewHandler(server)
	w.http = httptest.NewServer(w.faults)

	promise, err := contract.Preset(contract.Idempotent)
	must(err)
	job, err := worker.NewKind(worker.Kind{Name: "export", Contract: promise, Effect: effect.Func(w.run)})
	must(err)
	opaque, err := contract.Preset(contract.Opaque)
	must(err)
	doubtful, err := worker.NewKind(worker.Kind{Name: "doubtful", Contract: opaque, Effect: effect.Func(w.run)})
	must(err)
	work, err := worker.New(w.ledger, []worker.Kind{job, doubtful}, &worker.Options{PollInterval: 5 * time.Millisecond, IdleInterval: 10 * time.Millisecond, Logger: quiet})
	must(err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- work.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-done
		server.Drain()
		w.faults.Close()
		w.http.Close()
		w.ledger.Close()
		w.store.Close()
		for _, never := range []string{"SECRET-", "番茄", w.token, w.other, "Bearer ", w.http.URL} {
			if strings.Contains(w.logs.String(), never) {
				t.Errorf("a log line has %q:\n%s", never, w.logs)
			}
		}
	})
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.clock)
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock += d
}

func (w *world) run(_ context.Context, call *effect.Call) effect.Result {
	w.mu.Lock()
	w.effects[call.Key.ID]++
	do := w.effect
	w.mu.Unlock()
	if do != nil {
		return do(call.Key.ID)
	}
	return effect.Applied(map[string]string{"image": secret + ".png"})
}

// ran is how often the effect of an operation was brought about.
func (w *world) ran(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.effects[id]
}

func (w *world) rules(text ...string) {
	w.Helper()
	rules, err := fault.ParseRules(strings.Join(text, "\n"))
	if err == nil {
		err = w.faults.SetRules(rules...)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// asked tells the requests that have reached the server or its faults, as
// "PUT 201".
func (w *world) asked() []string {
	var list []string
	for _, e := range w.faults.Log() {
		what := e.Method
		if strings.HasSuffix(e.Path, "/events") {
			what = "EVENTS"
		}
		if e.Status == 0 {
			what += " lost"
		} else {
			what += fmt.Sprint(" ", e.Status)
		}
		list = append(list, what)
	}
	return list
}

func (w *world) api(options *SemelOptions) *API {
	w.Helper()
	if options == nil {
		options = &SemelOptions{}
	}
	if options.Authorize == nil {
		options.Authorize = Bearer(w.token)
	}
	if options.Transport == nil {
		transport := &http.Transport{}
		w.Cleanup(transport.CloseIdleConnections)
		options.Transport = transport
	}
	api, err := Semel(w.http.URL, options)
	if err != nil {
		w.Fatal(err)
	}
	return api
}

// quick are options with short waits.
func (w *world) quick() *Options {
	return &Options{Budget: 20 * time.Second, Backoff: retryhttp.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond},
		Logger: w.logs.logger(), Quota: &retryhttp.Quota{Reserve: 1e6}}
}

func (w *world) client(journal Journal, options *Options) *Client {
	w.Helper()
	if options == nil {
		options = w.quick()
	}
	c, err := New(w.api(nil), journal, options)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func (w *world) state(kind, id string) semel.State {
	w.Helper()
	op, err := w.ledger.Get(w.Context(), semel.Key{Account: "acme", Kind: kind, ID: id})
	if err != nil {
		return semel.None
	}
	return op.State
}

// intent is an intent of that kind with a secret in its body.
func intent(kind string) Intent {
	return Intent{ID: semel.NewID(), Kind: kind, Body: []byte(`{"title":"` + secret + `"}`)}
}

// is checks that an outcome is a T and returns it.
func is[T Outcome](t testing.TB, out Outcome, err error) T {
	t.Helper()
	got, ok := out.(T)
	if !ok || err != nil {
		t.Fatalf("outcome %T %+v, error %v; want a %T", out, out, err, got)
	}
	return got
}

// empty checks that the journal holds nothing.
func empty(t testing.TB, j Journal) {
	t.Helper()
	all, err := j.List(t.Context())
	if err != nil || len(all) > 0 {
		t.Errorf("the journal holds %d records, error %v", len(all), err)
	}
}
