package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/sqlite"
)

// A world is a ledger in a real store whose clock can be moved, and what workers
// told of themselves.
type world struct {
	t      testing.TB
	ledger *semel.Ledger
	store  *faulty
	ahead  atomic.Int64 // of the host's clock, in nanoseconds
	logs   *logLines
}

func newWorld(t testing.TB, kinds ...string) *world {
	t.Helper()
	w := &world{t: t, logs: &logLines{}}
	store, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "semel.db"), &sqlite.Options{
		Clock: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	w.store = &faulty{Store: store}
	options := &semel.Options{Logger: slog.New(slog.DiscardHandler)}
	if len(kinds) == 0 {
		kinds = []string{"order"}
	}
	for _, k := range kinds {
		options.Kinds = append(options.Kinds, semel.Kind{Name: k})
	}
	if w.ledger, err = semel.New(context.Background(), w.store, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.ledger.Close()
		store.Close()
	})
	return w
}

// advance moves the store's clock.
func (w *world) advance(d time.Duration) { w.ahead.Add(int64(d)) }

func (w *world) accept(account, kind, id string) semel.Key {
	w.t.Helper()
	key := semel.Key{Account: account, Kind: kind, ID: id}
	if _, err := w.ledger.Accept(context.Background(), semel.Request{Key: key, Params: []byte(`{"id":"` + id + `"}`)}); err != nil {
		w.t.Fatal(err)
	}
	return key
}

func (w *world) get(key semel.Key) semel.Operation {
	w.t.Helper()
	op, err := w.ledger.Get(context.Background(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	return op
}

func (w *world) history(key semel.Key) semel.History {
	w.t.Helper()
	h, err := w.ledger.History(context.Background(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// settled waits for the end of an operation.
func (w *world) settled(key semel.Key) semel.Operation {
	w.t.Helper()
	patience := time.Minute        // on a busy machine
	if time.Now().Year() == 2000 { // in a synctest bubble
		patience = 100 * time.Hour
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	op, err := w.ledger.Wait(ctx, key)
	if err != nil || !op.State.Settled() && op.State != semel.NeedsReconciliation {
		h := w.history(key)
		text, _ := json.MarshalIndent(h.Executions, "", " ")
		w.t.Fatalf("%s: %s, %v\n%s", key, op.State, err, text)
	}
	return op
}

// ghost claims like a worker that is going to die.
func (w *world) ghost(k Kind) semel.Lease {
	w.t.Helper()
	for range 1000 { // what was accepted in this very millisecond is due in the next
		leases, err := w.ledger.Claim(context.Background(), semel.ClaimRequest{Worker: "ghost", Max: 1, Kinds: []semel.ClaimKind{{
			Kind: k.Name, Lease: k.Lease, Contract: stored(k.Contract), BeginNow: !k.Contract.Shape().Opaque()}}})
		if err != nil {
			w.t.Fatal(err)
		}
		if len(leases) == 1 {
			return leases[0]
		}
		time.Sleep(time.Millisecond)
	}
	w.t.Fatal("nothing was due")
	return semel.Lease{}
}

// start runs a worker until the test ends, or until stop is called.
func (w *world) start(kinds []Kind, options *Options) (stop func()) {
	w.t.Helper()
	var o Options
	if options != nil {
		o = *options
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewJSONHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if o.PollInterval == 0 {
		o.PollInterval, o.IdleInterval = 5*time.Millisecond, 20*time.Millisecond
	}
	worker, err := New(w.ledger, kinds, &o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

func preset(t *testing.T, name string) contract.Contract {
	t.Helper()
	c, err := contract.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// quick is a kind with short waits. Its lease is long: a machine that stands still for
// a while does not end it.
func quick(c contract.Contract, e effect.Effect) Kind {
	k, err := NewKind(Kind{Name: "order", Contract: c, Effect: e, Timeout: 10 * time.Second, Lease: time.Minute,
		Retry: Retry{Base: 5 * time.Millisecond, Cap: 20 * time.Millisecond}})
	if err != nil {
		panic(err)
	}
	return k
}

// doing is an effect of two functions.
type doing struct {
	do     func(ctx context.Context, call *effect.Call) effect.Result
	lookUp func(ctx context.Context, call *effect.Call) effect.LookUpResult
}

func (d doing) Do(ctx context.Context, call *effect.Call) effect.Result { return d.do(ctx, call) }
func (d doing) LookUp(ctx context.Context, call *effect.Call) effect.LookUpResult {
	return d.lookUp(ctx, call)
}

// faulty is a store that can be told to fail: before a call, so that nothing is
// done, or after it, so that it is done and nobody knows.
type faulty struct {
	semel.Store
	mu            sync.Mutex
	before, after map[string]func() error
	calls         map[string]int
}

func (f *faulty) fail(when, method string, fault func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before == nil {
		f.before, f.after = map[string]func() error{}, map[string]func() error{}
	}
	if when == "before" {
		f.before[method] = fault
	} else {
		f.after[method] = fault
	}
}

func (f *faulty) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = nil, nil
}

func (f *faulty) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

func (f *faulty) fault(faults *map[string]func() error, method string) error {
	f.mu.Lock()
	if faults == &f.before {
		if f.calls == nil {
			f.calls = map[string]int{}
		}
		f.calls[method]++
	}
	fault := (*faults)[method]
	f.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault()
}

func down() error { return &semel.Error{Code: semel.CodeUnavailable, Msg: "the test took it down"} }

// times fails n times.
func times(n int, fault func() error) func() error {
	var left atomic.Int64
	left.Store(int64(n))
	return func() error {
		if left.Add(-1) < 0 {
			return nil
		}
		return fault()
	}
}

func faulted[A any](f *faulty, method string, run func() (A, error)) (A, error) {
	var none A
	if err := f.fault(&f.before, method); err != nil {
		return none, err
	}
	a, err := run()
	if late := f.fault(&f.after, method); late != nil {
		return none, late
	}
	return a, err
}

func (f *faulty) Apply(ctx context.Context, batch []semel.Change) ([]semel.Applying, error) {
	method := "apply"
	if x := batch[0].Execution; x != nil && x.Begin {
		method = "begin"
	} else if x != nil && x.End {
		method = "finish"
	}
	return faulted(f, method, func() ([]semel.Applying, error) { return f.Store.Apply(ctx, batch) })
}

func (f *faulty) Claim(ctx context.Context, req semel.ClaimRequest) ([]semel.Claimed, error) {
	return faulted(f, "claim", func() ([]semel.Claimed, error) { return f.Store.Claim(ctx, req) })
}

func (f *faulty) Renew(ctx context.Context, batch []semel.Renewal) ([]bool, error) {
	return faulted(f, "renew", func() ([]bool, error) { return f.Store.Renew(ctx, batch) })
}

func (f *faulty) Get(ctx context.Context, keys []semel.Key) ([]semel.Found, error) {
	return faulted(f, "get", func() ([]semel.Found, error) { return f.Store.Get(ctx, keys) })
}
