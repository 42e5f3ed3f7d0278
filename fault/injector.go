package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrClosed is what a request meets after Close.
var ErrClosed = errors.New("fault: closed")

// form is one of the two kinds of places where rules work.
type form int

const (
	httpForm form = iota
	byteForm
)

// Injector holds the rules of one [Transport], [Handler], [Listener],
// [TCPProxy] or [Proxy], counts what they select, and remembers what happened
// to each request. It is part of these; there is none of its own. All methods
// may be called from any goroutine.
type Injector struct {
	form   form
	ctx    context.Context // ends with Close; detached requests live as long
	cancel context.CancelFunc
	wg     sync.WaitGroup // every goroutine of this injector

	mu      sync.Mutex
	closed  bool
	rules   []*armed
	log     history
	held    []*hold
	changed chan struct{} // closed, and replaced, whenever something happened
}

// newInjector panics on rules that cannot work, because they are written in the program.
func newInjector(f form, rules []Rule) *Injector {
	ctx, cancel := context.WithCancel(context.Background())
	in := &Injector{form: f, ctx: ctx, cancel: cancel, changed: make(chan struct{})}
	if err := in.SetRules(rules...); err != nil {
		panic(err.Error())
	}
	return in
}

// SetRules replaces the rules; all counters start again at zero. Requests that
// are under way keep the rule that they met. On an error, the old rules stay:
// a rule is not valid, or needs a protocol where there are only bytes.
func (in *Injector) SetRules(rules ...Rule) error {
	fresh := make([]*armed, len(rules))
	for i, r := range rules {
		if err := checkRule(&r, in.form); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
		fresh[i] = &armed{Rule: r}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.rules = fresh
	in.wake()
	return nil
}

func checkRule(r *Rule, f form) error {
	if err := r.Validate(); err != nil {
		return err
	}
	s, _ := specOf(r.Fault)
	selects := r.Path != "" || r.Method != "" || r.Host != "" || len(r.Header) > 0
	switch {
	case f == httpForm && r.Contains != "":
		return errors.New("fault: contains looks at bytes, and works only with Listener and TCPProxy")
	case f == httpForm:
		return nil
	case !s.bytes:
		return fmt.Errorf("fault: %s needs a protocol, and here are only bytes", r.Fault)
	case selects:
		return errors.New("fault: path, method, host and header need HTTP, and here are only bytes; use contains")
	case r.Bytes == 0 && r.Contains == "" && (r.Fault == CutDuring || r.Fault == CutAfter),
		r.Bytes == 0 && r.Fault == CutAfter:
		return fmt.Errorf("fault: %s needs bytes= here, because nobody knows what half would be", r.Fault)
	}
	return nil
}

// RuleState is a rule and its counters.
type RuleState struct {
	Rule    Rule `json:"rule"`
	Seen    int  `json:"seen"`    // requests, connections or occurrences that it selected
	Applied int  `json:"applied"` // those that it was applied to
}

// Rules returns the rules in their order, with their counters.
func (in *Injector) Rules() []RuleState {
	in.mu.Lock()
	defer in.mu.Unlock()
	states := make([]RuleState, len(in.rules))
	for i, a := range in.rules {
		states[i] = RuleState{Rule: a.Rule, Seen: a.seen, Applied: a.applied}
	}
	return states
}

// pick counts one event for every rule that selects it, and returns the first
// one that is due, or nil. This is the one place where counters move.
func (in *Injector) pick(selects func(*Rule) bool) *Rule {
	in.mu.Lock()
	defer in.mu.Unlock()
	var winner *armed
	for _, a := range in.rules {
		if selects(&a.Rule) && a.due() && winner == nil {
			winner = a
		}
	}
	if winner == nil {
		return nil
	}
	winner.applied++
	rule := winner.Rule
	return &rule
}

// has reports whether one of the rules is about f.
func (in *Injector) has(f Fault) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, a := range in.rules {
		if a.Fault == f {
			return true
		}
	}
	return false
}

// start runs f in a goroutine that Close waits for. It reports false, and runs
// nothing, after Close.
func (in *Injector) start(f func()) bool {
	if !in.enter() {
		return false
	}
	go func() {
		defer in.wg.Done()
		f()
	}()
	return true
}

// enter makes Close wait until the caller says in.wg.Done. It reports false,
// and does nothing, after Close.
func (in *Injector) enter() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	in.wg.Add(1)
	return true
}

// detach returns a context with the values of ctx that ends with Close, not
// with ctx.
func (in *Injector) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	free, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(in.ctx, cancel)
	return free, func() { stop(); cancel() }
}

// shut refuses new work and ends what waits; the caller then waits on in.wg.
func (in *Injector) shut() {
	in.mu.Lock()
	in.closed = true
	in.wake()
	in.mu.Unlock()
	in.cancel()
}

// wake tells everybody who waits to look again. in.mu is held.
func (in *Injector) wake() {
	close(in.changed)
	in.changed = make(chan struct{})
}
