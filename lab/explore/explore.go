// Package explore runs the real ledger, the real HTTP interface, the real decisions
// of the worker and the real durable client, on a real SQLite file, through every
// fault at every boundary.
//
// A [Schedule] is a script of what callers do, a contract shape, and faults,
// each at a numbered boundary: a call to the store, a call to the external
// service, a message between caller and server, a write to the client's journal, or
// a wait of the client. A run without faults numbers the boundaries; then every
// fault is put at every one of them, and, at depth 2, a second fault at every
// boundary after the first. Time is a variable: a run of a month takes some
// milliseconds.
//
//	report, err := explore.Run(ctx, &explore.Options{Depth: 2})
//	fmt.Println(report.Schedules, report.Failures)
//
// Every run is recorded and judged by package lab/history: by its rules, and by
// whether the recording is linearizable. A run is a pure function of its schedule,
// so a failure is replayed by its text:
//
//	semel lab explore --replay 'idempotent/submit:7=crash-after,12=lost-lease'
//
// What is explored is a worker without goroutines: [worker.Step] decides, and a
// loop here does what it says, one call at a time. Renewal and concurrency are
// left to the tests of package worker and to the lab's processes. With two faults the
// client's journal is in memory; how its file survives a kill inside a write is shown
// by the tests of package client.
package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel/lab/history"
)

// Options say what to explore.
type Options struct {
	// Depth is how many faults a schedule has at most: 1 or 2. Defaults to 2.
	Depth int
	// Shapes are contract shapes: idempotent, queryable, opaque. Defaults to all.
	Shapes []string
	// Scripts are what the caller does; see [Scripts]. Defaults to all.
	Scripts []string
	// Sample is how many of the pairs are run, chosen by Seed; zero for all of them.
	Sample int
	// Seed chooses the sample. Defaults to 0, which is a seed like any other.
	Seed uint64
	// Parallel is how many schedules run at a time. Defaults to GOMAXPROCS.
	Parallel int
	// MaxFailures ends the exploration. Defaults to 10.
	MaxFailures int
	// Progress is told how far it is, now and then, one call at a time; planned is 0
	// while the single faults run, which say what pairs there are. Defaults to nobody.
	Progress func(done, planned int)
}

// A Failure is a schedule that broke a promise, as few faults as it takes.
type Failure struct {
	Schedule   Schedule
	Violations []history.Violation
}

// String is what to say of it, with the way to see it again.
func (f Failure) String() string {
	return fmt.Sprintf("%s\n%s  again: semel lab explore --replay '%s'", f.Schedule, history.Report(f.Violations, 5), f.Schedule)
}

// A Report says what was explored.
type Report struct {
	// Schedules is how many ran; Singles and Pairs are its parts, beside one run
	// without faults for each shape and script.
	Schedules, Singles, Pairs int
	// Planned is how many there are: all but where a sample was asked for.
	Planned  int
	Failures []Failure
	Took     time.Duration
}

// Run explores. The error is one of the machinery; broken promises are failures.
// When ctx ends before, the report is of what has run until then.
func Run(ctx context.Context, options *Options) (Report, error) {
	var o Options
	if options != nil {
		o = *options
	}
	if o.Depth == 0 {
		o.Depth = 2
	}
	if o.Shapes == nil {
		o.Shapes = Shapes
	}
	if o.Scripts == nil {
		o.Scripts = Scripts
	}
	if o.MaxFailures == 0 {
		o.MaxFailures = 10
	}
	if o.Parallel == 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	begun := time.Now()
	x, err := newExplorer(ctx, o)
	if err != nil {
		return Report{}, err
	}
	defer x.close()
	err = x.explore(ctx)
	slices.SortFunc(x.report.Failures, func(a, b Failure) int { return strings.Compare(a.Schedule.String(), b.Schedule.String()) })
	x.report.Took = time.Since(begun)
	return x.report, err
}

// Replay runs one schedule and returns what it broke, and the recording.
func Replay(ctx context.Context, s Schedule) ([]history.Violation, history.History, error) {
	l, err := newLane(ctx)
	if err != nil {
		return nil, history.History{}, err
	}
	defer l.close()
	ran, err := l.run(ctx, s)
	return ran.violations, ran.recording, err
}

// A lane explores with files of its own, one schedule at a time.
type lane struct {
	dir   string
	files int
	base  *base
}

func newLane(ctx context.Context) (*lane, error) {
	// In memory where there is such a folder: what is explored is not the disk.
	dir, err := os.MkdirTemp("/dev/shm", "semel-explore-")
	if err != nil {
		if dir, err = os.MkdirTemp("", "semel-explore-"); err != nil {
			return nil, err
		}
	}
	l := &lane{dir: dir}
	if err := l.fresh(ctx); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return l, nil
}

// fresh begins a new file: at first, after a failure, and when the old one is
// large.
func (l *lane) fresh(ctx context.Context) error {
	if l.base != nil {
		l.base.close()
		os.RemoveAll(l.base.dir)
	}
	l.files++
	dir := fmt.Sprintf("%s/%d", l.dir, l.files)
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		l.base, err = newBase(ctx, dir)
	}
	return err
}

func (l *lane) close() {
	if l.base != nil {
		l.base.close()
	}
	os.RemoveAll(l.dir)
}

func (l *lane) run(ctx context.Context, s Schedule) (outcome, error) {
	if l.base.runs >= 500 {
		if err := l.fresh(ctx); err != nil {
			return outcome{}, err
		}
	}
	// It takes milliseconds, and one that is cut off would say something false.
	ran, err := l.base.run(context.WithoutCancel(ctx), s)
	if err != nil {
		return ran, fmt.Errorf("%s: %w", s, err)
	}
	if len(ran.violations) > 0 {
		err = l.fresh(ctx) // what is left behind must not disturb others
	}
	return ran, err
}

// An explorer divides the schedules among lanes.
type explorer struct {
	options Options
	lanes   []*lane

	mu      sync.Mutex // guards what follows
	report  Report
	planned int
}

func newExplorer(ctx context.Context, o Options) (*explorer, error) {
	x := &explorer{options: o}
	for range max(o.Parallel, 1) {
		l, err := newLane(ctx)
		if err != nil {
			x.close()
			return nil, err
		}
		x.lanes = append(x.lanes, l)
	}
	return x, nil
}

func (x *explorer) close() {
	for _, l := range x.lanes {
		l.close()
	}
}

// each runs do for 0 to n-1, in lanes, until one fails, or there are failures enough.
func (x *explorer) each(ctx context.Context, n int, do func(l *lane, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var together sync.WaitGroup
	for _, l := range x.lanes {
		together.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil && !x.enough(); i = int(next.Add(1)) - 1 {
				if err := do(l, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	together.Wait()
	return context.Cause(ctx)
}

// enough reports whether there are failures enough.
func (x *explorer) enough() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.report.Failures) >= x.options.MaxFailures
}

func (x *explorer) explore(ctx context.Context) error {
	o := x.options
	var plain []Schedule
	for _, shape := range o.Shapes {
		for _, script := range o.Scripts {
			plain = append(plain, Schedule{Shape: shape, Script: script})
		}
	}
	found := make([][]Schedule, len(plain))
	err := x.each(ctx, len(plain), func(l *lane, i int) (err error) {
		found[i], err = x.singles(ctx, l, plain[i])
		return err
	})
	if err != nil || o.Depth < 2 || x.enough() {
		return err
	}
	pairs := slices.Concat(found...)
	x.report.Planned += len(pairs)
	if o.Sample > 0 && o.Sample < len(pairs) {
		random := rand.New(rand.NewPCG(o.Seed, 0))
		random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		pairs = pairs[:o.Sample]
	}
	x.planned = x.report.Schedules + len(pairs)
	return x.each(ctx, len(pairs), func(l *lane, i int) error {
		_, err := x.try(ctx, l, pairs[i])
		return err
	})
}

// singles runs a script without faults, then with every single one, and returns
// the pairs that follow from what these runs met.
func (x *explorer) singles(ctx context.Context, l *lane, s Schedule) (pairs []Schedule, err error) {
	plain, err := x.try(ctx, l, s)
	if err != nil || len(plain.violations) > 0 {
		return nil, err
	}
	for at, b := range plain.boundaries {
		for _, kind := range faultsAt(b) {
			one := s.with(Fault{At: at, Kind: kind})
			ran, err := x.try(ctx, l, one)
			if err != nil || x.enough() {
				return nil, err
			}
			if len(ran.violations) > 0 {
				continue // it fails by itself; a second fault would say nothing new
			}
			for later := at + 1; later < len(ran.boundaries); later++ {
				for _, second := range faultsAt(ran.boundaries[later]) {
					pairs = append(pairs, one.with(Fault{At: later, Kind: second}))
				}
			}
		}
	}
	return pairs, nil
}

// try runs a schedule, and notes a failure with as few faults as it takes.
func (x *explorer) try(ctx context.Context, l *lane, s Schedule) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	ran, err := l.run(ctx, s)
	if err != nil {
		return ran, err
	}
	x.count(s)
	if len(ran.violations) == 0 {
		return ran, nil
	}
	least, violations := s, ran.violations
	for i := 0; i < len(least.Faults); {
		fewer := least
		fewer.Faults = slices.Delete(slices.Clone(least.Faults), i, i+1)
		again, err := l.run(ctx, fewer)
		if err != nil {
			return ran, err
		}
		if len(again.violations) > 0 {
			least, violations = fewer, again.violations
			continue
		}
		i++
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.ContainsFunc(x.report.Failures, func(f Failure) bool { return f.Schedule.String() == least.String() }) {
		x.report.Failures = append(x.report.Failures, Failure{least, violations})
	}
	return ran, nil
}

// count counts a schedule that ran.
func (x *explorer) count(s Schedule) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &x.report
	r.Schedules++
	switch len(s.Faults) {
	case 1:
		r.Singles++
		r.Planned++
	case 2:
		r.Pairs++
	}
	if x.options.Progress != nil && r.Schedules%100 == 0 {
		x.options.Progress(r.Schedules, x.planned)
	}
}

// String says it in a few lines.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d schedules ran (%d single faults, %d pairs of %d) in %s\n", r.Schedules, r.Singles, r.Pairs, r.Planned-r.Singles, r.Took.Round(time.Millisecond))
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "\n%s\n", f)
	}
	return b.String()
}
