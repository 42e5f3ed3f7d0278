package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel/lab/internal/expect"
)

// A Scenario is one interruption, and what must come of it.
type Scenario struct {
	// Name is one word for the command line, and Group another one for several
	// scenarios that belong together; empty where it stands alone.
	Name, Group string
	// Title says what happens, in a few words.
	Title string
	// Unsafe says what its broken variant does; empty where there is none.
	Unsafe string
	// Expect is what must come of it.
	Expect Expect
	run    func(*stage) (Counts, error)
}

// Expect is what must come of a scenario.
type Expect struct {
	// Sends is how often the caller's request goes out; zero where that is not the
	// point.
	Sends int
	// Operations is how many are on record.
	Operations int
	// Effects and Most are how many effects there are outside, at least and at most.
	Effects, Most int
	// Visible is what the user sees in the end.
	Visible string
}

// once is what most scenarios are about.
func once(visible string) Expect { return Expect{Operations: 1, Effects: 1, Most: 1, Visible: visible} }

// String says it in words.
func (e Expect) String() string {
	effects := expect.Plural(e.Effects, "effect")
	if e.Effects != e.Most {
		effects = fmt.Sprintf("%d to %s", e.Effects, expect.Plural(e.Most, "effect"))
	}
	text := fmt.Sprintf("%s, %s, %s", expect.Plural(e.Operations, "operation"), effects, e.Visible)
	if e.Sends > 0 {
		text = expect.Plural(e.Sends, "send") + ", " + text
	}
	return text
}

// Counts is what came of a scenario.
type Counts struct {
	// Sends is how often the caller's request went out.
	Sends int `json:"sends"`
	// Operations is how many are on record.
	Operations int `json:"operations"`
	// Effects is how many there were outside.
	Effects int `json:"effects"`
	// Visible is what the user sees in the end.
	Visible string `json:"visible"`
	// Wrong says what else was not as it should be.
	Wrong []string `json:"wrong,omitempty"`
	// Notes say what may be worth knowing.
	Notes []string `json:"notes,omitempty"`
	// Expect replaces the scenario's own, where that depends on the size.
	Expect *Expect `json:"-"`
}

func (c *Counts) complain(format string, args ...any) {
	c.Wrong = append(c.Wrong, fmt.Sprintf(format, args...))
}

// A Result is a scenario with its counts and the verdict.
type Result struct {
	Scenario string `json:"scenario"`
	Title    string `json:"title"`
	// Unsafe says that this was the broken variant.
	Unsafe bool `json:"unsafe,omitempty"`
	Counts
	// Expected is what must come of it, in words.
	Expected string `json:"expected"`
	// Pass: everything is as expected.
	Pass bool `json:"pass"`
	// TookMS is how long it took, in milliseconds.
	TookMS int64 `json:"took_ms"`
}

// judge compares counts with what is expected.
func judge(s Scenario, unsafe bool, c Counts, took time.Duration) Result {
	e := s.Expect
	if c.Expect != nil {
		e = *c.Expect
	}
	return Result{Scenario: s.Name, Title: s.Title, Unsafe: unsafe, Counts: c, Expected: e.String(), TookMS: took.Milliseconds(),
		Pass: (e.Sends == 0 || c.Sends == e.Sends) && c.Operations == e.Operations && c.Effects >= e.Effects && c.Effects <= e.Most && c.Visible == e.Visible && len(c.Wrong) == 0}
}

// RunOptions configure [Run].
type RunOptions struct {
	// Store is "sqlite", or a postgres:// URL. Defaults to sqlite, in a temporary
	// folder.
	Store string
	// Unsafe runs the broken variants.
	Unsafe bool
	// Full runs the scenarios that have a size at their full one. Defaults to what
	// takes seconds.
	Full bool
	// Parallel is how many scenarios run at a time. Defaults to 4.
	Parallel int
	// Progress is told how many scenarios are done, and which one was the latest.
	// Defaults to nothing.
	Progress func(done, all int, latest Result)
}

// Run runs scenarios, and returns their results in the same order. The error is
// about the lab itself: something could not be started, or did not answer.
func Run(ctx context.Context, scenarios []Scenario, options *RunOptions) ([]Result, error) {
	o := RunOptions{}
	if options != nil {
		o = *options
	}
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	if o.Progress == nil {
		o.Progress = func(int, int, Result) {}
	}
	if strings.Contains(o.Store, "://") {
		if err := checkStore(ctx, o.Store); err != nil {
			return nil, fmt.Errorf("--store: %w", err)
		}
	}
	results, errs := make([]Result, len(scenarios)), make([]error, len(scenarios))
	slots := make(chan struct{}, o.Parallel)
	var mu sync.Mutex
	var all sync.WaitGroup
	done := 0
	for i, s := range scenarios {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i], errs[i] = runOne(ctx, s, o)
			mu.Lock()
			defer mu.Unlock()
			done++
			o.Progress(done, len(scenarios), results[i])
		})
	}
	all.Wait()
	return results, errors.Join(errs...)
}

// patience is how long a scenario may take, however busy the machine is; at full
// size, so many times as long.
const (
	patience = 5 * time.Minute
	fullSize = 6
)

func runOne(ctx context.Context, s Scenario, o RunOptions) (_ Result, err error) {
	if o.Unsafe && s.Unsafe == "" {
		return Result{}, fmt.Errorf("%s has no unsafe variant", s.Name)
	}
	limit := patience
	if o.Full {
		limit *= fullSize
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "semel-lab-")
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stage := newStage(ctx, dir, o.Store, o.Unsafe, o.Full)
	defer func() { err = errors.Join(err, stage.clear()) }()
	begun := time.Now()
	counts, err := s.run(stage)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", s.Name, err)
	}
	return judge(s, o.Unsafe, counts, time.Since(begun)), nil
}
