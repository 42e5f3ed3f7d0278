package explore

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
)

// A process is a server or a worker: a ledger of its own on the common store. A
// dead one neither writes nor reads any more. Runs hand living ones on, with
// nothing in their memory of another run's keys.
type process struct {
	ledger  *semel.Ledger
	handler http.Handler
	store   *boundaryStore

	w      *world
	worker bool
	dead   bool
	key    semel.Key // what a server is asked about
}

// newProcess starts a process.
func (w *world) newProcess(ctx context.Context, worker bool) *process {
	var p *process
	if n := len(w.base.idle); n > 0 {
		p = w.base.idle[n-1]
		w.base.idle = w.base.idle[:n-1]
	} else if p = w.bootProcess(ctx); w.err != nil {
		return p
	}
	p.w, p.worker, p.key = w, worker, semel.Key{}
	w.used = append(w.used, p)
	return p
}

func (w *world) bootProcess(ctx context.Context) *process {
	p := &process{}
	p.store = &boundaryStore{Store: w.base.store, p: p}
	quiet := slog.New(slog.DiscardHandler)
	p.ledger, w.err = semel.New(ctx, p.store, &semel.Options{
		Kinds: []semel.Kind{{Name: kindName, Retention: retention}}, Logger: quiet,
		PollInterval: time.Hour, // nothing happens by itself
	})
	if w.err == nil {
		p.handler = httpapi.New(p.ledger, &httpapi.Options{Logger: quiet, SessionKey: make([]byte, 32),
			Heartbeat: time.Millisecond, // a stream without news says so at once, and then it is cut
			Authenticate: func(*http.Request) (httpapi.Identity, error) {
				return httpapi.Identity{Account: account, Operator: true, Accounts: []string{account}}, nil
			}})
	}
	return p
}

// close gives a worker's process back, unless it has died in this run.
func (p *process) close() {
	if p.dead || p.w == nil || !p.worker {
		return
	}
	w := p.w
	for i, used := range w.used {
		if used == p {
			w.used = append(w.used[:i], w.used[i+1:]...)
			break
		}
	}
	p.w = nil
	w.base.idle = append(w.base.idle, p)
}

// node returns the node that answers now.
func (w *world) node(ctx context.Context) *process {
	if w.server == nil || w.server.dead {
		w.server = w.newProcess(ctx, false)
	}
	return w.server
}

// boundaryStore is the store of one process, with the faults of the run.
type boundaryStore struct {
	semel.Store
	p *process
}

func unavailable(recorded semel.Recorded) error {
	return &semel.Error{Op: "explore", Code: semel.CodeUnavailable, Recorded: recorded, Msg: "a fault"}
}

// at makes a call with whatever fault is put there.
func at[A any](s *boundaryStore, where boundary, call func() (A, error)) (A, error) {
	var none A
	p := s.p
	if p.dead {
		return none, unavailable(semel.RecordedUnknown)
	}
	if !p.worker {
		switch where {
		case toStore:
			where = fromServer
		case toRow:
			where = fromRow
		}
	}
	switch p.w.meet(where) {
	case ErrorBefore:
		return none, unavailable(semel.RecordedNo)
	case ErrorAfter:
		if _, err := call(); err != nil {
			return none, err
		}
		return none, unavailable(semel.RecordedUnknown)
	case CrashBefore:
		p.dead = true
		return none, unavailable(semel.RecordedUnknown)
	case CrashAfter:
		call()
		p.dead = true
		return none, unavailable(semel.RecordedUnknown)
	case LostLease:
		p.w.loseLease()
	case Overtaken:
		p.w.overtake(p.key)
	}
	return call()
}

func (s *boundaryStore) Insert(ctx context.Context, batch []semel.Insertion) ([]semel.Inserted, error) {
	return at(s, toStore, func() ([]semel.Inserted, error) { return s.Store.Insert(ctx, batch) })
}

func (s *boundaryStore) Get(ctx context.Context, keys []semel.Key) ([]semel.Found, error) {
	return at(s, toRow, func() ([]semel.Found, error) { return s.Store.Get(ctx, keys) })
}

func (s *boundaryStore) Apply(ctx context.Context, batch []semel.Change) ([]semel.Applying, error) {
	return at(s, toStore, func() ([]semel.Applying, error) { return s.Store.Apply(ctx, batch) })
}

func (s *boundaryStore) Claim(ctx context.Context, req semel.ClaimRequest) ([]semel.Claimed, error) {
	return at(s, toClaim, func() ([]semel.Claimed, error) { return s.Store.Claim(ctx, req) })
}

func (s *boundaryStore) KeepLate(ctx context.Context, late semel.Late) error {
	_, err := at(s, toStore, func() (struct{}, error) { return struct{}{}, s.Store.KeepLate(ctx, late) })
	return err
}

func (s *boundaryStore) Purge(ctx context.Context, reqs []semel.PurgeRequest) (semel.Purged, error) {
	return at(s, toPurge, func() (semel.Purged, error) { return s.Store.Purge(ctx, reqs) })
}
