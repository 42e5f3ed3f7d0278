package semel

import (
	"context"
	"slices"
	"sync"
)

// A group turns concurrent calls into batches: while one batch is on its way,
// the calls that arrive form the next. There is no timer, so a lone call goes
// out at once. Where the store can use several at a time, further batches set out
// as soon as enough calls wait to be worth it.
type group[Q, A any] struct {
	max   int // calls in one batch
	width int // batches on their way at a time
	run   func(context.Context, []Q) ([]A, error)
	keyOf func(Q) Key
	// light: a call that finds the group idle runs in its own goroutine and under
	// its own context. It is for reads, of which nothing is left when they end early.
	light bool

	mu      sync.Mutex
	running int
	waiting []*call[Q, A]
}

// worthwhile is how many calls must wait for a batch beside another one: fewer
// are better off in the next one.
const worthwhile = 16

type call[Q, A any] struct {
	ctx    context.Context
	q      Q
	answer A
	err    error
	done   chan struct{} // closed when answer and err are set
}

func newGroup[Q, A any](max, width int, run func(context.Context, []Q) ([]A, error), keyOf func(Q) Key) *group[Q, A] {
	return &group[Q, A]{max: max, width: width, run: run, keyOf: keyOf}
}

// do runs q in some batch. If ctx ends first the error is CodeUnavailable, with
// Recorded "no" if q was not yet in a batch, else "unknown": the batch goes on.
func (g *group[Q, A]) do(ctx context.Context, q Q) (A, error) {
	if g.light && g.enter() {
		defer g.leave()
		return one(g.run(ctx, []Q{q}))
	}
	c := &call[Q, A]{ctx: ctx, q: q, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	if g.running == 0 || g.running < g.width && len(g.waiting) >= worthwhile {
		g.running++
		go g.loop()
	}
	g.mu.Unlock()

	select {
	case <-c.done:
		return c.answer, c.err
	case <-ctx.Done():
	}
	var none A
	left := &Error{Op: "batch", Code: CodeUnavailable, Msg: "the caller left while the write was on its way", Err: ctx.Err()}
	g.mu.Lock()
	if i := slices.Index(g.waiting, c); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		left.Msg, left.Recorded = "the caller left before the write began", RecordedNo
	}
	g.mu.Unlock()
	return none, left
}

// enter reports whether the group was idle.
func (g *group[Q, A]) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running > 0 || len(g.waiting) > 0 {
		return false
	}
	g.running++
	return true
}

// leave hands over to those that came meanwhile.
func (g *group[Q, A]) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) > 0 {
		go g.loop()
	} else {
		g.running--
	}
}

func (g *group[Q, A]) loop() {
	for {
		g.mu.Lock()
		n := min(len(g.waiting), g.max)
		if n == 0 || g.running > 1 && n < worthwhile {
			g.running--
			g.mu.Unlock()
			return
		}
		batch := slices.Clone(g.waiting[:n])
		g.waiting = slices.Delete(g.waiting, 0, n)
		g.mu.Unlock()
		g.flush(batch)
	}
}

// flush runs a batch in one order of keys, so that concurrent writers do not
// deadlock. It does not end with the context of any one caller.
func (g *group[Q, A]) flush(batch []*call[Q, A]) {
	slices.SortStableFunc(batch, func(a, b *call[Q, A]) int { return g.keyOf(a.q).Compare(g.keyOf(b.q)) })
	questions := make([]Q, len(batch))
	for i, c := range batch {
		questions[i] = c.q
	}
	answers, err := g.run(context.WithoutCancel(batch[0].ctx), questions)
	for i, c := range batch {
		if c.err = err; err == nil {
			c.answer = answers[i]
		}
		close(c.done)
	}
}
