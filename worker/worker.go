package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/effect"
)

// Options configure a [Worker].
type Options struct {
	// Name says in the history who executed. Defaults to the host's name, the
	// process ID and a random word.
	Name string
	// Hosts are limits of external services, by [Kind.Host]: how many calls run at
	// a time in this process. Defaults to the sum of its kinds' limits.
	Hosts map[string]int
	// DrainTimeout is how long calls under way may go on when Run's context ends.
	// Defaults to 20 s.
	DrainTimeout time.Duration
	// PollInterval is how often due work is looked for, give or take a half; while
	// there is none it doubles up to IdleInterval. Defaults to 250 ms and 5 s.
	PollInterval, IdleInterval time.Duration
	// Wake tells that there may be new work. It is a hint: losing one costs no more
	// than the wait for the next poll. Defaults to none.
	Wake <-chan struct{}
	// ProgressInterval is how often the progress of one operation is stored.
	// Defaults to 1 s.
	ProgressInterval time.Duration
	// Observe is told what happened, for metrics: "call" and "look_up" with what
	// was proven or found, "retry" with why it is called again, "hidden_sends",
	// "panic", "lease_ending", "handed_back", "host_closed". It must be quick and safe
	// for concurrent use. Defaults to nothing.
	Observe func(semel.Observation)
	// Logger gets identity, token, times, outcome and error code. Defaults to
	// [slog.Default].
	Logger *slog.Logger
	// Random returns numbers in [0, 1), for jitter. Defaults to math/rand/v2.
	Random func() float64
}

func (o *Options) setDefaults() {
	if o.Name == "" {
		name, _ := os.Hostname()
		o.Name = fmt.Sprintf("%s-%d-%s", name, os.Getpid(), rand.Text()[:6])
	}
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = 20 * time.Second
	}
	if o.PollInterval <= 0 {
		o.PollInterval = 250 * time.Millisecond
	}
	if o.IdleInterval <= 0 {
		o.IdleInterval = 5 * time.Second
	}
	o.IdleInterval = max(o.IdleInterval, o.PollInterval)
	if o.ProgressInterval <= 0 {
		o.ProgressInterval = time.Second
	}
	if o.Observe == nil {
		o.Observe = func(semel.Observation) {}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Random == nil {
		o.Random = mathrand.Float64
	}
}

// A Worker executes operations of some kinds. Make one with [New].
type Worker struct {
	ledger *semel.Ledger
	opts   Options
	kinds  map[string]*runningKind
	groups [][]*runningKind // kinds that are claimed together
	keeper *keeper

	started  atomic.Bool
	stopping atomic.Bool
	wake     chan struct{} // holds one signal: look for work now
	freed    chan struct{} // holds one signal: an execution has ended
	running  sync.WaitGroup

	mu sync.Mutex // guards the counts in kinds and hosts
}

// runningKind is a kind with what runs of it.
type runningKind struct {
	Kind
	contract string
	finder   effect.Finder // nil if the effect can't look up
	host     *host
	running  int // as far as their effect
	writing  int // their outcome
}

// New makes a worker for some kinds. It says everything that is wrong with them:
// a contract that does not hold together, an effect that can't work under its
// contract, a call that takes longer than its lease, a retry budget beyond the
// retention of the external service.
func New(ledger *semel.Ledger, kinds []Kind, options *Options) (*Worker, error) {
	w := &Worker{ledger: ledger, kinds: map[string]*runningKind{}, wake: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
	if options != nil {
		w.opts = *options
	}
	w.opts.setDefaults()
	w.keeper = newKeeper(w)
	var problems []error
	if len(kinds) == 0 {
		problems = append(problems, errors.New("there are no kinds to execute"))
	}
	byHost := map[string][]*runningKind{}
	var names []string
	for _, k := range kinds {
		k, err := NewKind(k)
		if err == nil && w.kinds[k.Name] != nil {
			err = fmt.Errorf("kind %q is there twice", k.Name)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		r := &runningKind{Kind: k, contract: stored(k.Contract)}
		r.finder, _ = k.Effect.(effect.Finder)
		w.kinds[k.Name] = r
		if byHost[k.Host] == nil {
			names = append(names, k.Host)
		}
		byHost[k.Host] = append(byHost[k.Host], r)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("worker: %w", errors.Join(problems...))
	}
	w.groupByHost(names, byHost)
	return w, nil
}

// groupByHost makes the groups of kinds that are claimed together: those that
// share a host share what it has room for, and all others go in one claim.
func (w *Worker) groupByHost(names []string, byHost map[string][]*runningKind) {
	var alone []*runningKind
	for _, name := range names {
		kinds := byHost[name]
		limit := w.opts.Hosts[name]
		if limit <= 0 {
			for _, k := range kinds {
				limit += k.Concurrency
			}
		}
		h := newHost(limit)
		for _, k := range kinds {
			k.host = h
		}
		if len(kinds) == 1 {
			alone = append(alone, kinds[0])
		} else {
			w.groups = append(w.groups, kinds)
		}
	}
	if len(alone) > 0 {
		w.groups = append(w.groups, alone)
	}
}

// Run executes until ctx ends, then drains, and returns nil. It must be called
// once. When it returns, nothing of it runs any more, unless an effect does not
// return although its context has ended; its result is then lost to this process,
// and the lease ends by itself.
func (w *Worker) Run(ctx context.Context) error {
	if w.started.Swap(true) {
		return errors.New("worker: Run was called before")
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() { w.keeper.run(keeping) })
	w.claimLoop(ctx)
	w.drain()
	stop()
	keeper.Wait()
	return nil
}

// lastWords is how long effects have to return, and results to be written, after
// the drain's timeout has cancelled them.
const lastWords = 5 * time.Second

// drain waits for what runs. What has not begun is handed back by its own
// goroutine, which sees that the worker is stopping.
func (w *Worker) drain() {
	w.stopping.Store(true)
	done := make(chan struct{})
	go func() {
		w.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-time.After(w.opts.DrainTimeout):
	}
	w.keeper.mu.Lock()
	for h := range w.keeper.leases {
		h.cancel(errStopping)
	}
	w.keeper.mu.Unlock()
	select {
	case <-done:
	case <-time.After(lastWords):
		w.opts.Logger.Warn("effects still run after the drain; their leases will end by themselves")
	}
}

func (w *Worker) observe(name string, k *runningKind, label string) {
	w.opts.Observe(semel.Observation{Name: name, Kind: k.Name, Label: label})
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
