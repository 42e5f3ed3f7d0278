package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// Why an effect's context ends. They count as cancellations to whoever looks.
var (
	errLeaseEnding error = cancelled("the lease is about to end and could not be renewed")
	errLeaseLost   error = cancelled("the lease is lost")
	errStopping    error = cancelled("the worker is stopping")
	errFinished    error = cancelled("the execution is finished")
)

type cancelled string

func (c cancelled) Error() string        { return "worker: " + string(c) }
func (c cancelled) Is(target error) bool { return target == context.Canceled }

// held is a lease that this process works under.
type held struct {
	kind   *runningKind
	asked  time.Time // when the claim was asked for: the lease is counted from here
	got    time.Time // when it was answered
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer // cancels before the lease ends

	mu       sync.Mutex
	lease    semel.Lease
	ends     time.Time // never later than the store has it
	renewAt  time.Time
	sent     time.Time // when the latest renewal was asked for
	progress *semel.Progress
	closed   bool
	writing  bool // guarded by Worker.mu: it has left its slot
}

func newHeld(k *runningKind, lease semel.Lease, asked, got time.Time) *held {
	h := &held{kind: k, lease: lease, asked: asked, got: got}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	h.ends, h.renewAt = asked.Add(lease.Length), asked.Add(lease.Length/3)
	h.timer = time.AfterFunc(h.untilCancel(time.Now()), func() { h.cancel(errLeaseEnding) })
	return h
}

func (h *held) untilCancel(now time.Time) time.Duration {
	return h.ends.Add(-h.kind.margin()).Sub(now)
}

// renewed takes in a renewal that was asked for at a time. Progress that came
// meanwhile is due after the interval.
func (h *held) renewed(asked time.Time, interval time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends, h.renewAt = asked.Add(h.lease.Length), asked.Add(h.lease.Length/3)
	if at := h.sent.Add(interval); h.progress != nil && at.Before(h.renewAt) {
		h.renewAt = at
	}
	// An effect whose context has ended stays ended: it may be on its way out.
	if h.ctx.Err() == nil && !h.closed {
		h.timer.Reset(h.untilCancel(time.Now()))
	}
}

func (h *held) current() (semel.Lease, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease, h.ends
}

func (h *held) set(lease semel.Lease) {
	h.mu.Lock()
	h.lease = lease
	h.mu.Unlock()
}

func (h *held) close() {
	h.mu.Lock()
	h.closed = true
	h.timer.Stop()
	h.mu.Unlock()
	h.cancel(errFinished)
}

// A keeper renews all leases of a process together.
type keeper struct {
	w       *Worker
	mu      sync.Mutex
	leases  map[*held]bool
	changed chan struct{} // holds one signal: look at the due times again
}

func newKeeper(w *Worker) *keeper {
	return &keeper{w: w, leases: map[*held]bool{}, changed: make(chan struct{}, 1)}
}

func (k *keeper) add(h *held) {
	k.mu.Lock()
	k.leases[h] = true
	k.mu.Unlock()
	k.signal()
}

func (k *keeper) remove(h *held) {
	k.mu.Lock()
	delete(k.leases, h)
	k.mu.Unlock()
}

func (k *keeper) signal() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// report notes progress: the renewal that carries it comes at once, but no more
// often than the interval.
func (k *keeper) report(h *held, p semel.Progress) {
	h.mu.Lock()
	h.progress = &p
	if at := h.sent.Add(k.w.opts.ProgressInterval); at.Before(h.renewAt) {
		h.renewAt = at
	}
	h.mu.Unlock()
	k.signal()
}

// run renews until ctx ends.
func (k *keeper) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next := k.renewDue(ctx)
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-k.changed:
		}
	}
}

const maxRenewals = 500

// renewDue renews what is due, and what is due soon, in batches. It returns how
// long until the next one.
func (k *keeper) renewDue(ctx context.Context) time.Duration {
	for {
		batch, next := k.due(time.Now())
		if len(batch) == 0 || ctx.Err() != nil {
			return next
		}
		k.renew(ctx, batch)
	}
}

// due takes what is due; a lease that is due within a tenth of its length comes
// along, so that leases of one claim stay together.
func (k *keeper) due(now time.Time) (batch []*held, next time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next = time.Hour
	var soon []*held
	for h := range k.leases {
		h.mu.Lock()
		wait := h.renewAt.Sub(now)
		switch {
		case wait <= 0 && len(batch) < maxRenewals:
			batch = append(batch, h)
		case wait <= h.lease.Length/10 && wait > 0 && h.progress == nil:
			soon = append(soon, h)
		}
		if wait > 0 {
			next = min(next, wait)
		}
		h.mu.Unlock()
	}
	if len(batch) > 0 {
		batch = append(batch, soon[:min(len(soon), maxRenewals-len(batch))]...)
	}
	return batch, next
}

func (k *keeper) renew(ctx context.Context, batch []*held) {
	asked := time.Now()
	leases := make([]semel.Lease, len(batch))
	progress := make([]*semel.Progress, len(batch))
	patience := time.Minute
	for i, h := range batch {
		h.mu.Lock()
		leases[i], progress[i], h.progress = h.lease, h.progress, nil
		h.sent = asked
		// Until the answer is there, and if there is none: again after a tenth.
		h.renewAt = asked.Add(h.lease.Length / 10)
		patience = min(patience, h.lease.Length/3)
		h.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	held, err := k.w.ledger.Renew(ctx, leases, progress)
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			k.w.opts.Logger.Warn("leases not renewed", "count", len(batch), "code", semel.AsError("renew", err).Code)
		}
		for i, h := range batch {
			h.mu.Lock()
			if h.progress == nil {
				h.progress = progress[i]
			}
			h.renewAt = time.Now().Add(h.lease.Length / 10)
			h.mu.Unlock()
		}
		return
	}
	for i, h := range batch {
		if held[i] {
			h.renewed(asked, k.w.opts.ProgressInterval)
			continue
		}
		k.remove(h)
		h.cancel(errLeaseLost)
	}
}
