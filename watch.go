package semel

import (
	"context"
	"sync"
	"time"
)

// Watch sends the operation as it is, then as it is after every change of
// revision or progress that it sees, and closes the channel when the operation
// is settled or ctx ends. Changes in quick succession may be seen as one.
// Changes by other processes are found by polling.
//
// Errors as [Ledger.Get].
func (l *Ledger) Watch(ctx context.Context, key Key) (<-chan Operation, error) {
	sub := l.watchers.subscribe(key)
	op, err := l.Get(ctx, key)
	if err != nil {
		l.watchers.unsubscribe(key, sub)
		return nil, wrap("watch", key, err)
	}
	out := make(chan Operation)
	go func() {
		defer close(out)
		defer l.watchers.unsubscribe(key, sub)
		last := op
		for send := true; ; {
			if send {
				select {
				case out <- last:
				case <-ctx.Done():
					return
				}
			}
			if last.State.Settled() {
				return
			}
			select {
			case <-ctx.Done():
				return
			case next := <-sub.news:
				if send = changed(last, next); send {
					last = next
				}
			}
		}
	}()
	return out, nil
}

// Wait returns the operation as soon as it is settled, or needs reconciliation,
// and else as it is when ctx ends. Errors as [Ledger.Get].
func (l *Ledger) Wait(ctx context.Context, key Key) (Operation, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changes, err := l.Watch(watching, key)
	if err != nil {
		return Operation{}, err
	}
	var last Operation
	for op := range changes {
		last = op
		if op.State == NeedsReconciliation {
			break
		}
	}
	if last.State == None { // ctx ended before the first one was read
		return l.Get(context.WithoutCancel(ctx), key)
	}
	return last, nil
}

func changed(a, b Operation) bool {
	if b.Revision != a.Revision {
		return b.Revision > a.Revision
	}
	if b.Progress == nil || a.Progress == nil {
		return b.Progress != nil
	}
	return *a.Progress != *b.Progress
}

// watchers polls all watched keys together, and only while there are any.
type watchers struct {
	store    Store
	interval time.Duration
	mu       sync.Mutex
	subs     map[Key]map[*subscription]bool
	running  bool
	stop     context.CancelFunc
	ctx      context.Context
	idle     sync.WaitGroup
}

// A subscription holds the newest news only.
type subscription struct{ news chan Operation }

func newWatchers(store Store, interval time.Duration) *watchers {
	w := &watchers{store: store, interval: interval, subs: map[Key]map[*subscription]bool{}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

func (w *watchers) subscribe(key Key) *subscription {
	s := &subscription{news: make(chan Operation, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.subs[key] == nil {
		w.subs[key] = map[*subscription]bool{}
	}
	w.subs[key][s] = true
	if !w.running && w.ctx.Err() == nil {
		w.running = true
		w.idle.Add(1)
		go w.poll()
	}
	return s
}

func (w *watchers) unsubscribe(key Key, s *subscription) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.subs[key], s)
	if len(w.subs[key]) == 0 {
		delete(w.subs, key)
	}
}

// tell hands news to whoever watches; older news in the same slot give way.
func (w *watchers) tell(op *Operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.subs[op.Key] {
		select {
		case old := <-s.news:
			if old.Revision > op.Revision {
				s.news <- old
				continue
			}
		default:
		}
		s.news <- *op
	}
}

func (w *watchers) poll() {
	defer w.idle.Done()
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-ticker.C:
		}
		w.mu.Lock()
		keys := make([]Key, 0, len(w.subs))
		for k := range w.subs {
			keys = append(keys, k)
		}
		if len(keys) == 0 {
			w.running = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		for len(keys) > 0 {
			n := min(len(keys), 200)
			found, err := w.store.Get(w.ctx, keys[:n])
			for _, f := range found {
				if err == nil && f.Operation != nil {
					w.tell(f.Operation)
				}
			}
			keys = keys[n:]
		}
	}
}

func (w *watchers) close() {
	w.mu.Lock()
	w.stop()
	w.mu.Unlock()
	w.idle.Wait()
}
