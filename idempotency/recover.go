package idempotency

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// A key that is free again is "parked": its operation is leased to nobody in
// particular, by an execution that has not begun. The next repeat takes that
// lease by its begin mark, which only one can write. A parked lease that nobody
// takes is parked again for twice the time, and given up in the end; so a key
// stays free for about 34 hours.
const (
	parkedBy  = "idempotency: nobody yet"
	firstPark = time.Minute
	maxParks  = 11
	maxLooks  = 20
)

// RecoverOptions configure [Recover].
type RecoverOptions struct {
	// LookUpTimeout bounds each call of a [Route]'s LookUp. Defaults to 30 s.
	LookUpTimeout time.Duration
	// Logger gets keys and error codes. Defaults to [slog.Default].
	Logger *slog.Logger
}

func (o *RecoverOptions) orDefaults() RecoverOptions {
	var all RecoverOptions
	if o != nil {
		all = *o
	}
	if all.LookUpTimeout <= 0 {
		all.LookUpTimeout = 30 * time.Second
	}
	if all.Logger == nil {
		all.Logger = slog.Default()
	}
	return all
}

// Recover does one pass over all operations of the kinds made by [Kinds] whose
// lease has ended: nobody is working on them. What may have happened is looked up
// where the route has a look-up, and else given to a person (it then "needs
// reconciliation"); what certainly did not happen waits for its client. It
// returns how many it decided on.
//
// A [Handler] does the same for its own kind whenever a repeat meets a lease that
// has ended. Recover is for those that nobody repeats. Any number of nodes may
// run it.
func Recover(ctx context.Context, ledger *semel.Ledger, options *RecoverOptions) (int, error) {
	var kinds []string
	for _, k := range ledger.Kinds() {
		if _, ours := k.Canon.(*route); ours {
			kinds = append(kinds, k.Name)
		}
	}
	return recoverKinds(ctx, ledger, options.orDefaults(), kinds...)
}

// RecoverEvery recovers until ctx ends: again after the interval. Errors are
// logged and tried again. Run it once in each process, beside
// [semel.Ledger.PurgeEvery].
func RecoverEvery(ctx context.Context, ledger *semel.Ledger, interval time.Duration, options *RecoverOptions) {
	o := options.orDefaults()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if _, err := Recover(ctx, ledger, &o); err != nil && ctx.Err() == nil {
			o.Logger.Warn("recovery failed", "code", semel.AsError("recover", err).Code)
		}
		timer.Reset(interval)
	}
}

const recoverBatch = 32

func recoverKinds(ctx context.Context, ledger *semel.Ledger, o RecoverOptions, kinds ...string) (n int, err error) {
	req := semel.ClaimRequest{Worker: parkedBy, Max: recoverBatch}
	for _, kind := range kinds {
		req.Kinds = append(req.Kinds, semel.ClaimKind{Kind: kind, Lease: o.LookUpTimeout + time.Minute, Contract: contractText})
	}
	for len(kinds) > 0 {
		leases, err := ledger.Claim(ctx, req)
		if err != nil {
			return n, err
		}
		var all sync.WaitGroup
		for _, lease := range leases {
			all.Go(func() { settle(ctx, ledger, o, lease) })
		}
		all.Wait()
		n += len(leases)
		if len(leases) < recoverBatch {
			return n, nil
		}
	}
	return n, nil
}

// settle decides on one operation that nobody works on. An error leaves it to the
// next pass, after the lease of this one.
func settle(ctx context.Context, ledger *semel.Ledger, o RecoverOptions, lease semel.Lease) {
	key := lease.Operation.Key
	doubt := lease.Doubt()
	route := routeOf(ledger, key.Kind)
	var err error
	switch {
	case len(doubt) == 0:
		err = park(ctx, ledger, lease)
	case route != nil && route.LookUp != nil:
		err = look(ctx, ledger, o, route, lease, doubt)
	default:
		end := unknown("outcome-unknown", "It had begun, and ended without a word. Nobody knows whether it happened.")
		if was := lease.Operation.Failure; was != nil && was.Code != "not-applied" {
			end.Failure = was
		}
		_, err = ledger.Finish(ctx, lease, end)
	}
	if e := semel.AsError("recover", err); e != nil && e.Code != semel.CodeLeaseLost {
		o.Logger.Warn("not recovered", "account", key.Account, "kind", key.Kind, "id", key.ID, "code", e.Code)
	}
}

// idle counts the executions at the end that never began.
func idle(xs []semel.Execution) (n int) {
	for i := len(xs) - 1; i >= 0 && xs[i].BegunAt.IsZero(); i-- {
		n++
	}
	return n
}

// park keeps an operation that certainly did not happen for its client, or gives
// it up when none has come for long enough.
func park(ctx context.Context, ledger *semel.Ledger, lease semel.Lease) error {
	n := idle(lease.Prior)
	if n >= maxParks {
		_, err := ledger.Finish(ctx, lease, semel.Ending{Outcome: semel.NotApplied,
			Failure: &semel.Failure{Code: "not-applied", Message: "It did not happen, and nobody asked for it again."}})
		return err
	}
	lease.Length = firstPark << n
	_, err := ledger.Renew(ctx, []semel.Lease{lease}, []*semel.Progress{nil})
	return err
}

func look(ctx context.Context, ledger *semel.Ledger, o RecoverOptions, route *route, lease semel.Lease, doubt []semel.Execution) error {
	last := doubt[len(doubt)-1]
	since := last.LeaseEndsAt
	if !last.EndedAt.IsZero() {
		since = last.EndedAt
	}
	bounded, cancel := context.WithTimeout(ctx, o.LookUpTimeout)
	found, err := ask(bounded, route, Doubt{Operation: lease.Operation, Executions: doubt, Since: max(0, lease.Now.Sub(since))})
	cancel()
	if ctx.Err() != nil {
		return ctx.Err() // we are stopping; another node will ask
	}
	n := idle(lease.Prior)
	end := semel.Ending{Outcome: found.Outcome}
	if found.Evidence != "" {
		end.Evidence, _ = json.Marshal(map[string]string{"look_up": found.Evidence})
	}
	switch {
	case err == nil && found.Outcome == semel.Applied && len(found.Result) > 0:
		end.Result = found.Result
	case err == nil && found.Outcome == semel.Applied:
		a := found.Answer
		if a == nil {
			a = &Answer{Status: 200, NotKept: "found-out"}
		}
		end.Result = a.marshal()
	case err == nil && found.Outcome == semel.NotApplied:
		end = released("A look-up has found that it did not happen.")
		end.CoversAll = true
	default:
		again := found.Again
		if err != nil {
			again = min(5*time.Second<<n, 5*time.Minute)
		}
		end.Outcome, end.Again, end.In = semel.Unknown, again > 0 && n < maxLooks, again
		end.Failure = &semel.Failure{Code: "outcome-unknown", Message: "It had begun, and a look-up could not tell whether it happened."}
	}
	_, err = ledger.Finish(ctx, lease, end)
	return err
}

// ask calls the look-up; one that panics has not told anything.
func ask(ctx context.Context, route *route, d Doubt) (f Finding, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = Finding{}, &semel.Error{Code: semel.CodeInternal, Msg: "the look-up panicked"}
		}
	}()
	return route.LookUp(ctx, d)
}

// sweep recovers a kind; what has just been released is parked by it, so that a
// repeat can take it at once.
func (g *guard) sweep(kind string) {
	o := RecoverOptions{Logger: g.logger}
	if _, err := recoverKinds(context.Background(), g.ledger, o.orDefaults(), kind); err != nil {
		g.logger.Debug("not recovered yet", "kind", kind, "code", semel.AsError("claim", err).Code)
	}
}

// sweepInterval is how often a repeat that meets somebody's lease asks whether any
// lease of the kind has ended.
const (
	sweepInterval = time.Second
	sweepPatience = 2 * time.Second
)

// takeOver gets the lease of an operation that is known and not settled, if nobody
// has it: its key is free, or its process has died and a look-up says that nothing
// happened. Else it brings op up to date.
func (g *guard) takeOver(op *semel.Operation) (*semel.Lease, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if g.mayBeOver(*op) {
		// Look-ups may take their time; the asker has a little of it.
		swept, kind := make(chan struct{}), op.Key.Kind
		g.pending.Go(func() { defer close(swept); g.sweep(kind) })
		select {
		case <-swept:
		case <-time.After(sweepPatience):
		}
		var err error
		if *op, err = g.ledger.Get(ctx, op.Key); err != nil {
			return nil, err
		}
	}
	// Every token that was begun is counted, so an equal count means that the
	// current one is.
	if op.State != semel.Processing || op.Token <= int64(op.Executions) {
		return nil, nil
	}
	return g.takeParked(ctx, op)
}

// mayBeOver limits how often it is worth asking for leases that have ended.
func (g *guard) mayBeOver(op semel.Operation) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if op.State != semel.Accepted && now.Sub(g.swept[op.Key.Kind]) < sweepInterval {
		return false
	}
	g.swept[op.Key.Kind] = now
	return true
}

func (g *guard) takeParked(ctx context.Context, op *semel.Operation) (*semel.Lease, error) {
	history, err := g.ledger.History(ctx, op.Key)
	if err != nil || len(history.Executions) == 0 {
		return nil, err
	}
	n := len(history.Executions) - 1
	last := history.Executions[n]
	lease := semel.Lease{Operation: *op, Token: op.Token, Length: g.lease, Contract: contractText, Prior: history.Executions[:n]}
	if last.Token != op.Token || !isParked(last) || !last.BegunAt.IsZero() || !last.EndedAt.IsZero() || len(lease.Doubt()) > 0 {
		return nil, nil
	}
	// First the length of the lease, then the begin mark: only one can write that,
	// and whoever dies in between has not begun.
	held, err := g.ledger.Renew(ctx, []semel.Lease{lease}, []*semel.Progress{nil})
	if err != nil || !held[0] {
		return nil, err
	}
	lease, err = g.ledger.Begin(ctx, lease)
	switch e := semel.AsError("begin", err); {
	case e == nil:
		return &lease, nil
	case e.Code == semel.CodeLeaseLost: // another repeat was faster
		return nil, nil
	}
	return nil, err
}
