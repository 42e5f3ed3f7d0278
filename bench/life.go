package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/postgres"
	"github.com/semel-dev/semel/worker"
)

// inParallel runs f for 0 to n-1 in some goroutines.
func inParallel(goroutines, n int, f func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && failed.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := f(i); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// median measures one caller alone.
func (p *place) median(f func() error) (sample, error) {
	var times []time.Duration
	m := p.measure()
	for end := time.Now().Add(*length); time.Now().Before(end); {
		begin := time.Now()
		if err := f(); err != nil {
			return sample{}, err
		}
		times = append(times, time.Since(begin))
	}
	cpu := m.sample(len(times)).cpu
	slices.Sort(times)
	return sample{each: times[len(times)/2], cpu: cpu}, nil
}

// startWorker runs our worker with an effect that does nothing; done counts what it
// has recorded.
func startWorker(ctx context.Context, ledger *semel.Ledger, wake chan struct{}) (stop func(), err error) {
	promise, err := contract.Preset(contract.Idempotent)
	if err != nil {
		return nil, err
	}
	nothing := effect.Func(func(context.Context, *effect.Call) effect.Result {
		return effect.Applied(json.RawMessage(`{}`))
	})
	w, err := worker.New(ledger, []worker.Kind{{Name: "export", Contract: promise, Effect: nothing, Concurrency: workers}},
		&worker.Options{PollInterval: 10 * time.Millisecond, IdleInterval: 20 * time.Millisecond, Wake: wake})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	return func() { cancel(); <-ended }, nil
}

// workers is how many executions run at a time, ours and River's: both gain up to
// here. Ours writes up to half as many outcomes at once.
const workers = 4000

// life: accept, claim, a no-op effect and its record, all at the same time.
func life(ctx context.Context, p *place) (line, error) {
	url, err := p.database(ctx)
	if err != nil {
		return line{}, err
	}
	store, err := postgres.Open(ctx, url, nil)
	if err != nil {
		return line{}, err
	}
	p.later(func() { store.Close() })
	recorded := newCounter()
	wake := make(chan struct{}, 1)
	ledger, err := semel.New(ctx, store, &semel.Options{MaxBatch: workers / 2, Kinds: []semel.Kind{{Name: "export"}}, Observe: func(o semel.Observation) {
		switch o.Name {
		case "finish":
			recorded.add()
		case "accept":
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	}})
	if err != nil {
		return line{}, err
	}
	p.later(func() { ledger.Close() })
	river, err := newRiver(ctx, p)
	if err != nil {
		return line{}, err
	}
	return line{name: "full life: accept, claim, no-op, recorded", aim: "≥ 2", against: "River: unique insert and work",
		ours: func(ctx context.Context) (sample, error) {
			stop, err := startWorker(ctx, ledger, wake)
			if err != nil {
				return sample{}, err
			}
			defer stop()
			return p.lives(recorded, accept(ctx, ledger))
		},
		baseline: func(ctx context.Context) (sample, error) {
			stop, err := river.start(ctx)
			if err != nil {
				return sample{}, err
			}
			defer stop()
			return p.lives(river.worked, func() error { return river.insert(ctx) })
		}}, nil
}

// lives asks with 64 callers for a while and waits until all of it is recorded.
func (p *place) lives(recorded *counter, ask func() error) (sample, error) {
	before := recorded.n.Load()
	m := p.measure()
	asked, err := p.spread(64, ask)
	if err != nil {
		return asked, err
	}
	n := int64(asked.n)
	if err := recorded.wait(before + n); err != nil {
		return asked, err
	}
	return m.sample(int(n)), nil
}

// burnDown: a backlog is worked off.
func burnDown(ctx context.Context, p *place) (line, error) {
	url, err := p.database(ctx)
	if err != nil {
		return line{}, err
	}
	store, err := postgres.Open(ctx, url, nil)
	if err != nil {
		return line{}, err
	}
	p.later(func() { store.Close() })
	recorded := newCounter()
	ledger, err := semel.New(ctx, store, &semel.Options{MaxBatch: workers / 2, Kinds: []semel.Kind{{Name: "export"}}, Observe: func(o semel.Observation) {
		if o.Name == "finish" {
			recorded.add()
		}
	}})
	if err != nil {
		return line{}, err
	}
	p.later(func() { ledger.Close() })
	river, err := newRiver(ctx, p)
	if err != nil {
		return line{}, err
	}
	return line{name: fmt.Sprintf("burn-down of %d", *jobs), aim: "≥ 1.0", against: "River", rounds: min(*rounds, 3),
		ours: func(ctx context.Context) (sample, error) {
			if err := fill(ctx, store, *jobs, func(int) (string, time.Duration) { return "acme", 0 }); err != nil {
				return sample{}, err
			}
			return p.burn(recorded, func() (func(), error) { return startWorker(ctx, ledger, nil) })
		},
		baseline: func(ctx context.Context) (sample, error) {
			if err := river.fill(ctx, *jobs); err != nil {
				return sample{}, err
			}
			return p.burn(river.worked, func() (func(), error) { return river.start(ctx) })
		}}, nil
}

func (p *place) burn(recorded *counter, start func() (func(), error)) (sample, error) {
	before := recorded.n.Load()
	m := p.measure()
	stop, err := start()
	if err != nil {
		return sample{}, err
	}
	defer stop()
	if err := recorded.wait(before + int64(*jobs)); err != nil {
		return sample{}, err
	}
	return m.sample(*jobs), nil
}

// fill records operations that nobody works on yet.
func fill(ctx context.Context, store semel.Store, n int, where func(i int) (account string, due time.Duration)) error {
	for at := 0; at < n; at += 2000 {
		var batch []semel.Insertion
		for i := at; i < min(n, at+2000); i++ {
			batch = append(batch, insertion(where(i)))
		}
		out, err := store.Insert(ctx, batch)
		if err != nil {
			return err
		}
		for _, o := range out {
			if o.Err != nil {
				return o.Err
			}
		}
	}
	return nil
}

// A counter counts what is recorded.
type counter struct {
	n    atomic.Int64
	mu   sync.Mutex
	want int64
	full chan struct{}
}

func newCounter() *counter { return &counter{full: make(chan struct{}, 1)} }

func (c *counter) add() {
	n := c.n.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.want > 0 && n >= c.want {
		select {
		case c.full <- struct{}{}:
		default:
		}
	}
}

func (c *counter) wait(n int64) error {
	c.mu.Lock()
	c.want = n
	for len(c.full) > 0 {
		<-c.full
	}
	c.mu.Unlock()
	for c.n.Load() < n {
		select {
		case <-c.full:
		case <-time.After(5 * time.Minute):
			return fmt.Errorf("after five minutes %d of %d are recorded", c.n.Load(), n)
		}
	}
	return nil
}
