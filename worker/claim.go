package worker

import (
	"context"
	"time"

	"github.com/semel-dev/semel"
)

// claimLoop claims as long as there is room, and waits in between: for a hint, a
// freed slot, a host that may be tried again, or the next poll.
func (w *Worker) claimLoop(ctx context.Context) {
	hints := w.opts.Wake
	idle, failures := 0, 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for ctx.Err() == nil {
		round := w.claimRound(ctx)
		var wait time.Duration
		switch {
		case round.err != nil:
			failures++
			wait = w.jitter(min(w.opts.PollInterval<<min(failures, 10), max(w.opts.IdleInterval, 5*time.Second)))
		case round.claimed > 0:
			idle, failures = 0, 0
			wait = w.jitter(w.opts.PollInterval)
		default:
			failures = 0
			wait = w.jitter(min(w.opts.PollInterval<<min(idle, 20), w.opts.IdleInterval))
			idle++
		}
		if round.reopens > 0 {
			wait = min(wait, round.reopens)
		}
		var freed chan struct{}
		if round.more {
			freed = w.freed // what waits may now have room
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-freed:
		case <-w.wake:
			idle = 0
		case _, open := <-hints:
			idle = 0
			if !open {
				hints = nil
			}
		}
	}
}

// jitter is a random time between a half of d and d.
func (w *Worker) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(w.opts.Random()*float64(d)/2)
}

// A round is what came of asking once for every group.
type round struct {
	claimed int
	// more: some kind got all that it had room for, or had no room at all, so that
	// more of it may be waiting for a free slot.
	more bool
	// reopens is when the first closed host may be tried; zero if none is closed.
	reopens time.Duration
	err     error
}

func (w *Worker) claimRound(ctx context.Context) round {
	var r round
	for _, group := range w.groups {
		req, full, reopens := w.request(group)
		if full {
			r.more = true
		}
		if reopens > 0 && (r.reopens == 0 || reopens < r.reopens) {
			r.reopens = reopens
		}
		if req.Max == 0 {
			continue
		}
		n, more, err := w.claim(ctx, req)
		if err != nil {
			r.err = err
			continue
		}
		r.claimed += n
		r.more = r.more || more
	}
	return r
}

// request asks for as much as a group has room for. It says whether some kind has
// no free slot, and when a closed host may be tried again.
func (w *Worker) request(group []*runningKind) (req semel.ClaimRequest, full bool, reopens time.Duration) {
	now := time.Now()
	req.Worker = w.opts.Name
	w.mu.Lock()
	defer w.mu.Unlock()
	shared := len(group) > 1 && group[0].host == group[1].host
	for _, k := range group {
		room := k.host.room(now)
		if left := k.host.closed.Sub(now); left > 0 && (reopens == 0 || left < reopens) {
			reopens = left
		}
		n := min(k.Concurrency-k.running, 2*k.Concurrency-k.running-k.writing, room)
		if n <= 0 {
			full = full || !now.Before(k.host.closed)
			continue
		}
		req.Kinds = append(req.Kinds, semel.ClaimKind{Kind: k.Name, Max: n, Lease: k.Lease, Contract: k.contract,
			BeginNow: !k.Contract.Shape().Opaque()})
		if req.Max += n; shared {
			req.Max = min(req.Max, room)
		}
	}
	return req, full, reopens
}

// claim asks the ledger, and sets every lease to work. It does not end with ctx:
// a claim that is given up half-way would leave leases that nobody works on.
// It reports whether there may be more than there was room for.
func (w *Worker) claim(ctx context.Context, req semel.ClaimRequest) (n int, more bool, err error) {
	claiming, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	asked := time.Now()
	leases, err := w.ledger.Claim(claiming, req)
	if err != nil {
		w.opts.Logger.Warn("no work claimed", "code", semel.AsError("claim", err).Code)
		return 0, false, err
	}
	got := time.Now()
	if ctx.Err() != nil {
		w.stopping.Store(true)
	}
	perKind := map[string]int{}
	for _, lease := range leases {
		perKind[lease.Operation.Key.Kind]++
		k := w.kinds[lease.Operation.Key.Kind]
		h := newHeld(k, lease, asked, got)
		w.mu.Lock()
		k.running++
		k.host.running++
		w.mu.Unlock()
		w.keeper.add(h)
		w.running.Go(func() {
			defer w.release(h)
			w.work(h)
		})
	}
	more = len(leases) == req.Max
	for _, k := range req.Kinds {
		more = more || perKind[k.Kind] == k.Max
	}
	return len(leases), more, nil
}

// leaveSlot makes room for the next operation: all that this one still needs is
// the store.
func (w *Worker) leaveSlot(h *held) {
	w.mu.Lock()
	h.kind.running--
	h.kind.host.running--
	h.kind.writing++
	h.writing = true
	w.mu.Unlock()
	signal(w.freed)
}

func (w *Worker) release(h *held) {
	w.keeper.remove(h)
	h.close()
	w.mu.Lock()
	if h.writing {
		h.kind.writing--
	} else {
		h.kind.running--
		h.kind.host.running--
	}
	w.mu.Unlock()
	signal(w.freed)
}

// dueIn wakes the claim loop when work that this process put off is due, if the
// next poll might come much later.
func (w *Worker) dueIn(d time.Duration) {
	if d <= 0 {
		signal(w.wake)
	} else if d < w.opts.IdleInterval {
		time.AfterFunc(d, func() { signal(w.wake) })
	}
}
