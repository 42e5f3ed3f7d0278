package idempotency

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// storeTimeout bounds each call of the ledger. The calls do not end with the
// request: a client that leaves must not leave a doubt behind.
const storeTimeout = 10 * time.Second

// Why an execution's context ends, as [context.Cause]. Both count as
// [context.Canceled].
var (
	// ErrLeaseLost: another node has taken over, or a person has resolved the
	// operation. What is done from here on is not recorded.
	ErrLeaseLost error = cancelled("the lease is lost")
	// ErrLeaseEnded: the lease could not be renewed in time, since the store could
	// not be reached.
	ErrLeaseEnded error = cancelled("the lease has ended and could not be renewed")

	errFinished error = cancelled("the execution is finished")
)

type cancelled string

func (c cancelled) Error() string        { return "idempotency: " + string(c) }
func (c cancelled) Is(target error) bool { return target == context.Canceled }

// A guard admits one execution of an operation, keeps its lease, and records how
// it ended.
type guard struct {
	ledger *semel.Ledger
	lease  time.Duration
	logger *slog.Logger
	worker string

	mu      sync.Mutex
	running map[semel.Key]*running
	flights map[semel.Key]*flight
	swept   map[string]time.Time // kinds, by when they were last recovered on demand
	pending sync.WaitGroup       // outcomes that are not recorded yet
	recent  *recent
}

func newGuard(ledger *semel.Ledger, lease time.Duration, remember int, logger *slog.Logger) *guard {
	host, _ := os.Hostname()
	return &guard{ledger: ledger, lease: lease, logger: logger, worker: fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:6]),
		recent: newRecent(remember), running: map[semel.Key]*running{}, flights: map[semel.Key]*flight{}, swept: map[string]time.Time{}}
}

// running is an execution of this process. While there is one, a repeat needs no
// read.
type running struct {
	op          semel.Operation // as it was when it began
	fingerprint string
	done        chan struct{} // closed when the outcome is recorded, or given up
}

// A flight is one question to the ledger that several requests wait for.
type flight struct {
	done chan struct{}
	op   *record
	err  error
}

// An entry is what a request meets: a lease to run under, an execution of this
// process, or the record.
type entry struct {
	lease   *semel.Lease
	running *running
	*record
}

// enter decides what becomes of a request. accept asks the ledger; it is called
// for one of the requests that come with a key at a time, and the others share
// its answer. The lease, if there is one, is that request's alone.
func (g *guard) enter(ctx context.Context, req semel.Request, accept func() (semel.Acceptance, error)) (entry, error) {
	if r := g.recent.get(req.Key); r != nil {
		return g.known(r, req)
	}
	for {
		g.mu.Lock()
		if x := g.running[req.Key]; x != nil {
			g.mu.Unlock()
			if x.fingerprint != req.Fingerprint {
				return entry{}, g.told(req.Key, mismatch(&x.op))
			}
			return entry{running: x}, nil
		}
		f := g.flights[req.Key]
		if f == nil {
			f = &flight{done: make(chan struct{})}
			g.flights[req.Key] = f
			g.mu.Unlock()
			return g.fly(f, req, accept)
		}
		g.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return entry{}, &semel.Error{Code: semel.CodeUnavailable, Recorded: semel.RecordedUnknown, Msg: "the caller left", Err: ctx.Err()}
		}
		switch {
		case f.err != nil:
			return entry{}, f.err
		case f.op != nil:
			return g.known(f.op, req)
		}
		// The flight's own request is running now.
	}
}

// known answers from a record that this request has not asked for itself, and says so
// to whoever counts.
func (g *guard) known(r *record, req semel.Request) (entry, error) {
	if err := judge(r.op, req.Fingerprint); err != nil {
		return entry{record: r}, g.told(req.Key, err)
	}
	g.ledger.Observe(semel.Observation{Name: "replay", Kind: req.Key.Kind, Label: string(r.op.State)})
	return entry{record: r}, nil
}

func (g *guard) told(key semel.Key, refused *semel.Error) error {
	g.ledger.Observe(semel.Observation{Name: "reject", Kind: key.Kind, Label: string(refused.Code)})
	return refused
}

func (g *guard) fly(f *flight, req semel.Request, accept func() (semel.Acceptance, error)) (e entry, err error) {
	defer func() {
		g.mu.Lock()
		if e.lease != nil {
			g.running[req.Key] = &running{op: e.op, fingerprint: req.Fingerprint, done: make(chan struct{})}
		}
		delete(g.flights, req.Key)
		g.mu.Unlock()
		close(f.done)
	}()
	acc, err := accept()
	if err != nil {
		f.err = err
		if refused := semel.AsError("accept", err); refused.Code == semel.CodeMismatch && refused.Operation != nil {
			// The others may well have the right request: let them judge.
			f.err, f.op = nil, &record{op: *refused.Operation}
		}
		return entry{}, err
	}
	if acc.Lease != nil {
		return entry{lease: acc.Lease, record: &record{op: acc.Operation}}, nil
	}
	op := acc.Operation
	if op.State == semel.Accepted || op.State == semel.Processing {
		var lease *semel.Lease
		if lease, err = g.takeOver(&op); err != nil {
			f.err = err
			return entry{}, err
		}
		if lease != nil {
			return entry{lease: lease, record: &record{op: op}}, nil
		}
	}
	f.op = &record{op: op}
	g.recent.add(f.op)
	return entry{record: f.op}, nil
}

// left ends an execution of this process, for those who wait here.
func (g *guard) left(key semel.Key) {
	g.mu.Lock()
	x := g.running[key]
	delete(g.running, key)
	g.mu.Unlock()
	if x != nil {
		close(x.done)
	}
}

// judge compares a request with the record that answers it, as the ledger does.
func judge(op semel.Operation, fingerprint string) *semel.Error {
	switch {
	case op.Expired && op.State != semel.Abandoned:
		return &semel.Error{Code: semel.CodeExpired, Key: op.Key, Msg: "a request of this age is no longer remembered, so nobody can say whether it ran; it is not run again"}
	case op.AsSent != "" && op.AsSent != fingerprint:
		return mismatch(&op)
	case op.State == semel.Abandoned:
		return abandoned(op)
	}
	return nil
}

func mismatch(op *semel.Operation) *semel.Error {
	return &semel.Error{Code: semel.CodeMismatch, Operation: op, Msg: "this key was used for a different request; the recorded one is unchanged",
		Hint: "a changed request is a new intent: give it a new key"}
}

func abandoned(op semel.Operation) *semel.Error {
	return &semel.Error{Code: semel.CodeAbandoned, Operation: &op, Msg: "this was given up before it began; it never ran and never will",
		Hint: "send it with a new key if it is wanted after all"}
}

// accept asks the ledger for a new operation that begins at once.
func (g *guard) accept(req semel.Request) (semel.Acceptance, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	// The name of the worker is this call's own: it tells an operation that was
	// created by a call whose answer was lost.
	worker := g.worker + "/" + rand.Text()[:10]
	req.Begun = &semel.Begun{Worker: worker, Contract: contractText, Lease: g.lease}
	acc, err := g.ledger.Accept(ctx, req)
	if e := semel.AsError("accept", err); e != nil && e.Code == semel.CodeUnavailable && e.WasRecorded() != semel.RecordedNo {
		g.pending.Go(func() { g.disown(req.Key, worker) })
	}
	return acc, err
}

// contractText is what is stored as the contract of every execution here.
const contractText = `{"name":"idempotency-key"}`

// disown looks for an operation that was created although the answer to its
// creation was lost, and says that it never began: nobody has the lease.
func (g *guard) disown(key semel.Key, worker string) {
	g.persist("accept", key, func(ctx context.Context) error {
		history, err := g.ledger.History(ctx, key)
		if err != nil || len(history.Executions) != 1 || history.Executions[0].Worker != worker {
			return err
		}
		op, err := g.ledger.Get(ctx, key)
		if err != nil || op.Token != 1 || op.State != semel.Processing {
			return err
		}
		lease := semel.Lease{Operation: op, Token: 1, Length: g.lease, Begun: true}
		_, err = g.ledger.Finish(ctx, lease, released("the store did not answer in time, so nothing was run"))
		return err
	})
}

// persist calls f until it succeeds, or fails for good. It gives up after a while:
// then the lease has ended, and the recovery has decided.
func (g *guard) persist(what string, key semel.Key, f func(context.Context) error) {
	wait := 50 * time.Millisecond
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		err := f(ctx)
		cancel()
		e := semel.AsError(what, err)
		if e == nil || e.Code != semel.CodeUnavailable || time.Since(began) > 2*g.lease+time.Minute {
			if e != nil && e.Code != semel.CodeNotFound {
				g.logger.Warn("outcome not recorded", "call", what, "account", key.Account, "kind", key.Kind, "id", key.ID, "code", e.Code)
			}
			return
		}
		time.Sleep(wait)
		wait = min(2*wait, 2*time.Second)
	}
}

// released ends an execution without effect: the key is free again.
func released(why string) semel.Ending {
	return semel.Ending{Outcome: semel.NotApplied, Again: true, Failure: &semel.Failure{Code: "not-applied", Message: why}}
}

// unknown ends an execution that may have had its effect.
func unknown(code, why string) semel.Ending {
	return semel.Ending{Outcome: semel.Unknown, Failure: &semel.Failure{Code: code, Message: why}}
}

// run executes do under the lease and records its ending. It returns when the
// outcome is recorded, or when that has to go on in the background; a panic of do
// goes on after its outcome has been recorded as unknown, or as do has left it in
// end.
func (g *guard) run(ctx context.Context, lease semel.Lease, asked time.Time, end *semel.Ending, do func(context.Context)) {
	k := g.keep(ctx, lease, asked)
	defer func() {
		k.cancel(errFinished)
		g.finish(k, *end)
	}()
	do(k.ctx)
}

// finish records an ending. If the store can't be reached, that goes on in the
// background, with the lease kept alive as far as it can be.
func (g *guard) finish(k *keeper, end semel.Ending) {
	if route := routeOf(g.ledger, k.lease.Operation.Key.Kind); end.Outcome == semel.Unknown && route != nil && route.LookUp != nil {
		end.Again = true
	}
	done := func() {
		k.stop()
		g.left(k.lease.Operation.Key)
		if end.Again {
			g.pending.Go(func() { g.sweep(k.lease.Operation.Key.Kind) })
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	op, err := g.ledger.Finish(ctx, k.lease, end)
	cancel()
	e := semel.AsError("finish", err)
	if e == nil || e.Code != semel.CodeUnavailable {
		if e == nil {
			g.recent.add(&record{op: op})
		} else {
			g.logger.Warn("outcome not recorded", "call", "finish", "account", e.Key.Account, "kind", e.Key.Kind, "id", e.Key.ID, "code", e.Code)
		}
		done()
		return
	}
	g.pending.Go(func() {
		defer done()
		g.persist("finish", k.lease.Operation.Key, func(ctx context.Context) error {
			_, err := g.ledger.Finish(ctx, k.lease, end)
			return err
		})
	})
}

// A keeper renews one lease until it is stopped. It costs nothing for an execution
// that is quick.
type keeper struct {
	g      *guard
	lease  semel.Lease
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	stopped bool
	renewal *time.Timer
	end     *time.Timer
}

// keep starts to keep a lease that was asked for at a time.
func (g *guard) keep(ctx context.Context, lease semel.Lease, asked time.Time) *keeper {
	k := &keeper{g: g, lease: lease}
	k.ctx, k.cancel = context.WithCancelCause(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renewal = time.AfterFunc(time.Until(asked.Add(lease.Length/3)), k.renew)
	k.end = time.AfterFunc(time.Until(asked.Add(lease.Length)), func() { k.cancel(ErrLeaseEnded) })
	return k
}

func (k *keeper) renew() {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), max(k.lease.Length/3, time.Second))
	held, err := k.g.ledger.Renew(ctx, []semel.Lease{k.lease}, []*semel.Progress{nil})
	cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.stopped:
	case err != nil:
		k.renewal.Reset(k.lease.Length / 10)
	case !held[0]:
		k.end.Stop()
		k.cancel(ErrLeaseLost)
	default:
		k.renewal.Reset(time.Until(asked.Add(k.lease.Length / 3)))
		k.end.Reset(time.Until(asked.Add(k.lease.Length)))
	}
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	k.renewal.Stop()
	k.end.Stop()
}

// drain waits until every outcome is recorded.
func (g *guard) drain(ctx context.Context) error {
	done := make(chan struct{})
	go func() { g.pending.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isParked reports whether an execution was claimed to keep a free key, and not to
// run anything.
func isParked(x semel.Execution) bool { return strings.HasPrefix(x.Worker, parkedBy) }
