package fault

import (
	"context"
	"slices"
	"time"
)

// hold is one request that waits to be released.
type hold struct {
	rec      *record
	released chan struct{}
}

// Release lets go of everything that is held at this moment, oldest first,
// and returns how much that was. What comes later is held again.
func (in *Injector) Release() int { return in.release(-1) }

// ReleaseOne lets go of what has been held longest. It returns false where
// nothing is held.
func (in *Injector) ReleaseOne() bool { return in.release(1) == 1 }

func (in *Injector) release(n int) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	if n < 0 || n > len(in.held) {
		n = len(in.held)
	}
	for _, h := range in.held[:n] {
		close(h.released)
		h.rec.entry.Held = false
	}
	in.held = slices.Delete(in.held, 0, n)
	in.log.progress.Held = len(in.held)
	in.wake()
	return n
}

// wait blocks for a delay or a hold: until its time, its release, the end of
// ctx, or Close. It returns nil only for the first two.
func (rec *record) wait(ctx context.Context, rule *Rule) error {
	in := rec.in
	var due <-chan time.Time
	var released chan struct{}
	if rule.Fault == Delay {
		timer := time.NewTimer(rule.For)
		defer timer.Stop()
		due = timer.C
	} else {
		h := in.hold(rec)
		defer in.drop(h)
		released = h.released
	}
	select {
	case <-due:
	case <-released:
	case <-ctx.Done():
		if in.ctx.Err() == nil {
			return ctx.Err()
		}
		return ErrClosed
	case <-in.ctx.Done():
		return ErrClosed
	}
	return nil
}

func (in *Injector) hold(rec *record) *hold {
	in.mu.Lock()
	defer in.mu.Unlock()
	h := &hold{rec: rec, released: make(chan struct{})}
	in.held = append(in.held, h)
	in.log.progress.Held = len(in.held)
	rec.entry.Held = true
	in.wake()
	return h
}

// drop forgets a hold that nobody waits for any more. A released one is gone already.
func (in *Injector) drop(h *hold) {
	in.mu.Lock()
	defer in.mu.Unlock()
	i := slices.Index(in.held, h)
	if i < 0 {
		return
	}
	in.held = slices.Delete(in.held, i, i+1)
	in.log.progress.Held = len(in.held)
	h.rec.entry.Held = false
	in.wake()
}
