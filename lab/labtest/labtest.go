package labtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/lab/history"
	"github.com/semel-dev/semel/lab/internal/child"
	"github.com/semel-dev/semel/lab/internal/expect"
	"github.com/semel-dev/semel/lab/internal/stops"
)

// StoreEnv is the environment variable with the default of [Effect.Store] and
// [Handler.Store].
const StoreEnv = "SEMEL_LAB_STORE"

// Child reports whether this process is one of those that a test of this package
// starts and kills. It is for a TestMain that would set up what they don't need.
func Child() bool { return child.Is() }

// A Place is where one row of a matrix is played: what every process of the row is
// built with.
type Place struct {
	// Database is a SQLite file of the row's own, or the URL of a PostgreSQL database
	// that all rows share.
	Database string
	// Service is the URL of the external service; the faults are on the way there.
	// Empty without one.
	Service string
	// Dir is a folder of the row's own, which outlives its processes.
	Dir string
}

// setup is what a process is told.
type setup struct {
	Test  string // the test that it belongs to
	Place Place

	// These are for workers.
	Name, Kind string
	Wait       bool // wait for the word, after "ready"
	StopAt     stops.Point
	Pause      bool
}

// inChild runs a process of this test, if this is one, and does not return then.
func inChild(t *testing.T, run func(context.Context, setup) error) {
	if !child.Is() {
		return
	}
	var s setup
	err := child.Setup(&s)
	if err == nil && s.Test != t.Name() {
		t.SkipNow() // the process belongs to another test
	}
	if err == nil {
		err = run(context.Background(), s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

var running sync.Map // the names of tests that play a matrix

// enter makes sure that the processes of a test find their way back to it.
func enter(t *testing.T) {
	t.Helper()
	if _, twice := running.LoadOrStore(t.Name(), true); twice {
		t.Fatal("labtest: one matrix for each test; wrap each in a t.Run")
	}
	t.Cleanup(func() { running.Delete(t.Name()) })
}

// pattern is the -test.run that selects one test.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// A row is what both matrices have in common: one interruption on a place of its own.
type row struct {
	t     *testing.T
	ctx   context.Context
	test  string // the test that its processes belong to
	place Place
	net   *fault.Proxy // before the service; nil without one
	id    string
	rec   history.Recorder
	sent  atomic.Int32
}

// newRow makes a place. What is on it is taken away when the test ends.
func newRow(t *testing.T, test, store string, service http.Handler, patience time.Duration) *row {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r := &row{t: t, ctx: ctx, test: test, id: "lab-" + strings.ToLower(rand.Text()[:10])}
	r.place.Dir = t.TempDir()
	switch {
	case store == "" && os.Getenv(StoreEnv) != "":
		r.place.Database = os.Getenv(StoreEnv)
	case store != "":
		r.place.Database = store
	}
	if r.place.Database == "" || r.place.Database == "sqlite" {
		r.place.Database = filepath.Join(r.place.Dir, "semel.db")
	}
	if service != nil {
		server := httptest.NewServer(service)
		t.Cleanup(server.Close)
		r.net, r.place.Service = r.proxy(server.URL)
	}
	return r
}

// proxy puts a network that can be told to fail before a server.
func (r *row) proxy(to string) (*fault.Proxy, string) {
	r.t.Helper()
	target, err := url.Parse(to)
	r.must(err)
	p, err := fault.NewProxy(target, nil)
	r.must(err)
	r.t.Cleanup(func() { p.Close() })
	base, err := p.Listen("127.0.0.1:0")
	r.must(err)
	return p, base
}

func (r *row) must(err error) {
	r.t.Helper()
	if err == nil {
		return
	}
	if r.ctx.Err() != nil {
		err = fmt.Errorf("%w: it took too long", err)
	}
	r.t.Fatal(err)
}

// start starts a process of the test, and kills it in the end.
func (r *row) start(s setup, files ...*os.File) *child.Process {
	r.t.Helper()
	s.Test, s.Place = r.test, r.place
	p, err := child.Start(r.ctx, []string{"-test.run=" + pattern(r.test), "-test.timeout=0"}, s, files...)
	r.must(err)
	r.t.Cleanup(p.Kill)
	return p
}

// changing selects the requests that may change something.
const changing = " method=POST,PUT,PATCH,DELETE"

func rules(t *testing.T, p *fault.Proxy, text string) {
	t.Helper()
	parsed, err := fault.ParseRules(text)
	if err == nil {
		err = p.SetRules(parsed...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// held waits until a request is held. Where none comes, the calls do not go where
// they should.
func (r *row) held(p *fault.Proxy, why string) {
	r.t.Helper()
	if err := p.WaitHeld(r.ctx, 1); err != nil {
		r.must(errors.Join(err, errors.New(why)))
	}
}

// quiet waits until nothing is at work behind a network, not even for a caller that
// is dead.
func (r *row) quiet(networks ...*fault.Proxy) {
	r.t.Helper()
	for _, p := range networks {
		for p != nil {
			n := p.Progress().Started
			r.must(p.WaitDone(r.ctx, n))
			if p.Progress().Started == n {
				break
			}
		}
	}
}

// An account is what came of a row, to be judged and told.
type account struct {
	want       expect.Want
	operations int
	effects    int
	visible    string
	wrong      []string
	history    history.History
}

// judge fails the test if anything is not as it should be, and says what happened.
func (r *row) judge(what string, a account, networks ...*fault.Proxy) {
	r.t.Helper()
	for _, v := range history.Check(a.history) {
		a.wrong = append(a.wrong, v.Rule+": "+v.Text)
	}
	counts := fmt.Sprintf("%s, %s, %s", expect.Plural(a.operations, "operation"), expect.Plural(a.effects, "effect"), a.visible)
	if len(a.wrong) == 0 {
		r.t.Logf("%s: %s", what, counts)
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n  %s; each operation should be %s\n", what, counts, a.want)
	for _, w := range a.wrong {
		fmt.Fprintf(&text, "  wrong: %s\n", w)
	}
	for _, p := range networks {
		if p != nil {
			tell(&text, p.Log())
		}
	}
	executions(&text, a.history)
	r.t.Error(text.String())
}

// tell writes what went over a network.
func tell(text *strings.Builder, log []fault.Entry) {
	for _, e := range log {
		fmt.Fprintf(text, "  %s %s %s", e.Begun.Format("15:04:05.000"), e.Method, e.Path)
		if e.Key != "" {
			fmt.Fprintf(text, " key %s", e.Key)
		}
		fmt.Fprintf(text, ": the other side answered %v", e.Upstream)
		if e.Rule != "" {
			fmt.Fprintf(text, ", but %q (%s)", e.Rule, e.Outcome)
		}
		text.WriteString("\n")
	}
}

// executions writes what is on record of the workers.
func executions(text *strings.Builder, h history.History) {
	for _, e := range h.Events {
		if e.What != history.Final || e.History == nil {
			continue
		}
		for _, x := range e.History.Executions {
			fmt.Fprintf(text, "  %s %s, execution %d: %s %s\n", x.ClaimedAt.Format("15:04:05.000"), x.Worker, x.Token, word(string(x.Outcome), "no word"), x.Evidence)
		}
	}
}

func word(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
