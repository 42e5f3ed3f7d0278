package explore

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/lab/history"
	"github.com/semel-dev/semel/sqlite"
)

// base is the file that runs share, with a clock that the runs move.
type base struct {
	dir   string
	store *sqlite.Store
	now   atomic.Int64 // milliseconds
	runs  int
	// Keys are of this file alone, and of one run.
	number int64
	ids    int
	idle   []*process
}

var bases atomic.Int64

func newBase(ctx context.Context, dir string) (*base, error) {
	b := &base{dir: dir, number: bases.Add(1)}
	b.now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	store, err := sqlite.Open(ctx, dir+"/semel.db", &sqlite.Options{Clock: func() time.Time { return time.UnixMilli(b.now.Load()) }})
	b.store = store
	return b, err
}

func (b *base) close() {
	for _, p := range b.idle {
		p.ledger.Close()
	}
	b.store.Close()
}

const (
	kindName  = "charge"
	account   = "acme"
	retention = 30 * 24 * time.Hour
)

// A world is one run. It has one intent: one thing that somebody wants once,
// under whatever keys.
type world struct {
	base     *base
	schedule Schedule
	contract contract.Contract
	keys     []semel.Key // those that were asked for
	record   history.Recorder
	service  *service
	server   *process // the node that answers; a new one after a crash
	users    []*user
	used     []*process
	// boundaries are those met so far; the index is the number of a fault.
	boundaries []boundary
	delayed    []delayed
	strays     []func() // what arrives when all is over
	calls      int
	nested     bool // another process has its turn within a turn: no further ones
	err        error
}

type delayed struct {
	at time.Time
	do func()
}

type outcome struct {
	boundaries []boundary
	violations []history.Violation
	recording  history.History
}

// run runs a schedule to its end and judges it.
func (b *base) run(ctx context.Context, s Schedule) (outcome, error) {
	promised, err := contractOf(s.Shape)
	if err != nil {
		return outcome{}, err
	}
	b.runs++
	b.advance(time.Hour)
	w := &world{base: b, schedule: s, contract: promised}
	w.service = &service{w: w, effects: map[string]int{}, since: map[string]time.Time{}}
	w.play(ctx)
	w.leave()
	recording := w.record.History(map[string]history.Promise{kindName: {Unknown: s.Shape == "opaque"}})
	violations := history.Check(recording)
	if len(violations) == 0 && s.Script != "direct" { // it says the least of them
		violations = history.Linearizable(recording)
	}
	return outcome{w.boundaries, violations, recording}, w.err
}

// leave gives back what the run has used.
func (w *world) leave() {
	for _, u := range w.users {
		u.die()
	}
	for _, p := range w.used {
		p.w, p.dead = nil, false
		w.base.idle = append(w.base.idle, p)
	}
}

// newKey makes a key that is dated by the run's clock.
func (w *world) newKey() semel.Key {
	w.base.ids++
	ms := w.base.now.Load()
	key := semel.Key{Account: account, Kind: kindName, ID: fmt.Sprintf("%08x-%04x-7000-8%03x-%012x", ms>>16, ms&0xffff, w.base.number&0xfff, w.base.ids)}
	w.asked(key)
	return key
}

// asked notes a key that somebody has asked for.
func (w *world) asked(key semel.Key) {
	if !slices.Contains(w.keys, key) {
		w.keys = append(w.keys, key)
	}
}

func (w *world) add(e history.Event) {
	e.Intent, e.At = "it", w.base.time()
	w.record.Add(e)
}

func (b *base) time() time.Time { return time.UnixMilli(b.now.Load()).UTC() }

func (b *base) advance(d time.Duration) { b.now.Add(d.Milliseconds()) }

// advance lets time pass; what was late arrives at its time.
func (w *world) advance(d time.Duration) {
	end := w.base.time().Add(d)
	for {
		next := -1
		for i, l := range w.delayed {
			if !l.at.After(end) && (next < 0 || l.at.Before(w.delayed[next].at)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		l := w.delayed[next]
		w.delayed = append(w.delayed[:next], w.delayed[next+1:]...)
		if gap := l.at.Sub(w.base.time()); gap > 0 {
			w.base.advance(gap)
		}
		l.do()
	}
	if gap := end.Sub(w.base.time()); gap > 0 {
		w.base.advance(gap)
	}
}

func (w *world) later(d time.Duration, do func()) {
	w.delayed = append(w.delayed, delayed{w.base.time().Add(d), do})
}

// meet numbers a boundary and returns the fault that is put there.
func (w *world) meet(b boundary) Kind {
	at := len(w.boundaries)
	w.boundaries = append(w.boundaries, b)
	for _, f := range w.schedule.Faults {
		if f.At == at {
			return f.Kind
		}
	}
	return ""
}

// loseLease lets the lease end, as if this worker had been stopped, and another
// one take its turn, before it goes on.
func (w *world) loseLease() {
	if w.nested {
		return
	}
	w.nested = true
	w.advance(lease + time.Second)
	w.turn(context.Background())
	w.nested = false
}

// overtake lets another caller ask for the same at another node, and a worker take
// its turn, before a server goes on.
func (w *world) overtake(key semel.Key) {
	if w.nested {
		return
	}
	w.nested = true
	mine := w.server
	w.server = nil
	w.put(context.Background(), key, "rival", "one")
	w.turn(context.Background())
	w.server = mine
	w.nested = false
}
