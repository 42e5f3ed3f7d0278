package semel

import (
	"context"
	"encoding/json"
	"time"
)

// A Lease is the time-limited right to execute one operation. It is a value;
// only the ledger makes one. The holder must stop when the lease ends, or when
// [Ledger.Renew] says that it is lost.
type Lease struct {
	// Operation is the record at the claim, with parameters and request.
	Operation Operation
	// Token is the fencing token: a write under an older one is refused.
	Token int64
	// Length is how long the lease lasts from the claim or the last renewal. The
	// holder counts it by its own monotonic clock, from before it asked.
	Length time.Duration
	// Begun reports whether this execution is marked as begun.
	Begun bool
	// Contract is what this execution was claimed under.
	Contract string
	// Prior are the earlier executions, oldest first.
	Prior []Execution
	// Now is the store's time of the claim.
	Now time.Time
}

// Doubt returns the earlier executions which may have had an effect that is not
// accounted for, oldest first. If there is none, nothing has happened yet.
func (l Lease) Doubt() []Execution {
	var doubt []Execution
	for _, x := range l.Prior {
		if x.Token > l.Operation.ClearedToken && x.InDoubt() {
			doubt = append(doubt, x)
		}
	}
	return doubt
}

// Request returns the bytes for the external service: the same ones at every try.
func (l Lease) Request() []byte {
	if l.Operation.Request != nil {
		return l.Operation.Request
	}
	return l.Operation.Params
}

func firstLease(op Operation, b Begun) *Lease {
	return &Lease{Operation: op, Token: op.Token, Length: b.Lease, Begun: true, Contract: b.Contract, Now: op.CreatedAt}
}

// Claim leases due work; see [Store].Claim for what is guaranteed. The answer
// may be empty.
func (l *Ledger) Claim(ctx context.Context, req ClaimRequest) ([]Lease, error) {
	claimed, err := l.store.Claim(ctx, req)
	if err != nil {
		return nil, wrap("claim", Key{}, err)
	}
	kinds := map[string]ClaimKind{}
	for _, k := range req.Kinds {
		kinds[k.Kind] = k
	}
	leases := make([]Lease, len(claimed))
	for i, c := range claimed {
		k := kinds[c.Operation.Key.Kind]
		leases[i] = Lease{Operation: c.Operation, Token: c.Operation.Token, Length: k.Lease,
			Begun: c.Begun, Contract: k.Contract, Prior: c.Prior, Now: c.Now}
		l.watchers.tell(&leases[i].Operation)
		l.opts.Observe(Observation{"claim", k.Kind, ""})
		if n := len(c.Prior); n > 0 && c.Prior[n-1].EndedAt.IsZero() {
			l.opts.Observe(Observation{"lease_lost", k.Kind, ""})
		}
	}
	return leases, nil
}

// Begin writes the begin mark of an execution whose claim was not one: from here
// on the effect may have happened. It returns the lease to go on with.
//
// Errors by code: [CodeLeaseLost]: stop, and do not begin; [CodeUnavailable]: it
// is not known whether the mark was written, so do not begin under this lease.
func (l *Ledger) Begin(ctx context.Context, lease Lease) (Lease, error) {
	if lease.Begun {
		return lease, nil
	}
	op := lease.Operation
	done, err := l.apply(ctx, Change{Key: op.Key, Revision: op.Revision, Token: lease.Token, Owner: newOwner(),
		State: Processing, Begun: true, Execution: &ExecutionChange{Token: lease.Token, Begin: true}})
	if err == nil && !done.Applied {
		err = lostLease(op.Key)
	}
	if err != nil {
		return lease, wrap("begin", op.Key, err)
	}
	lease.Begun, lease.Operation = true, *done.Operation
	return lease, nil
}

// Renew prolongs leases by their length and stores progress (nil leaves it). It
// reports, for each, whether the lease is still held: whoever reads false stops.
func (l *Ledger) Renew(ctx context.Context, leases []Lease, progress []*Progress) ([]bool, error) {
	batch := make([]Renewal, len(leases))
	for i, lease := range leases {
		batch[i] = Renewal{Key: lease.Operation.Key, Token: lease.Token, Lease: lease.Length, Progress: progress[i]}
	}
	held, err := l.store.Renew(ctx, batch)
	return held, wrap("renew", Key{}, err)
}

// An Ending says how an execution ended and what is to follow.
type Ending struct {
	Outcome Outcome
	// CoversAll: the proof is not about this execution alone but about the
	// operation: an answer for its key after a look-up, or a look-up. Without it,
	// Refused and NotApplied do not end an earlier doubt. Applied always covers all.
	CoversAll bool
	// Result is stored with Applied, and with Refused, if the refusal is worth
	// keeping as it was; it must be JSON.
	Result json.RawMessage
	// Failure is the reason for everything but Applied.
	Failure *Failure
	// Evidence is what was seen, as JSON.
	Evidence json.RawMessage
	// Again tries again after In (NotApplied), or looks or calls again after In
	// (Unknown, where the contract allows it). Without Again, NotApplied is Failed
	// and Unknown is NeedsReconciliation.
	Again bool
	In    time.Duration
}

// Finish writes how an execution ended, if the lease is still the current one.
// What the ending proves for this execution is weighed with what is in doubt from
// earlier ones: after a doubt, "refused" and "not applied" stay unknown unless
// they cover all.
//
// Errors by code: [CodeLeaseLost] with the operation: nothing was changed, and
// the result is kept as late evidence; [CodeUnavailable]: call Finish again with
// the same arguments, which is safe.
func (l *Ledger) Finish(ctx context.Context, lease Lease, end Ending) (Operation, error) {
	op, err := l.finish(ctx, lease, end)
	label := string(end.Outcome)
	if err != nil {
		label = string(AsError("finish", err).Code)
	}
	l.opts.Observe(Observation{"finish", lease.Operation.Key.Kind, label})
	return op, wrap("finish", lease.Operation.Key, err)
}

// FinishLast is [Ledger.Finish] inside a transaction (see [Ledger.In]) as the last
// thing there: where the Tx is a [Deferrer], the write goes out with the commit. The
// function returns the operation; call it after the commit. If the lease is no
// longer the current one, the commit fails.
func (l *Ledger) FinishLast(ctx context.Context, lease Lease, end Ending) (func() Operation, error) {
	if d, ok := l.tx.(Deferrer); ok {
		c, err := l.checkedEnding(lease, end)
		if err != nil {
			return nil, wrap("finish", lease.Operation.Key, err)
		}
		if answer, ok := d.Defer(c); ok {
			l.opts.Observe(Observation{"finish", lease.Operation.Key.Kind, string(end.Outcome)})
			return answer, nil
		}
	}
	op, err := l.Finish(ctx, lease, end)
	return func() Operation { return op }, err
}

func (l *Ledger) finish(ctx context.Context, lease Lease, end Ending) (Operation, error) {
	c, err := l.checkedEnding(lease, end)
	if err != nil {
		return Operation{}, err
	}
	done, err := l.apply(ctx, c)
	if err != nil {
		return Operation{}, err
	}
	if done.Applied {
		if done.Operation.State == NeedsReconciliation {
			l.opts.Observe(Observation{"needs_reconciliation", c.Key.Kind, ""})
		}
		return *done.Operation, nil
	}
	return l.tooLate(ctx, lease, end)
}

// weigh returns what the ending means for the operation: one unknown
// transmission is not ended by a proof about another.
func weigh(lease Lease, end Ending) Outcome {
	narrow := (end.Outcome == Refused || end.Outcome == NotApplied) && !end.CoversAll
	if narrow && len(lease.Doubt()) > 0 {
		return Unknown
	}
	return end.Outcome
}

func (l *Ledger) checkedEnding(lease Lease, end Ending) (Change, error) {
	if len(end.Result) > 0 && !json.Valid(end.Result) {
		return Change{}, &Error{Code: CodeInvalid, Msg: "the result is not JSON"}
	}
	return l.ending(lease, end)
}

func (l *Ledger) ending(lease Lease, end Ending) (Change, error) {
	op := lease.Operation
	c := Change{Key: op.Key, Revision: op.Revision, Token: lease.Token, Owner: newOwner(), Failure: end.Failure,
		Execution: &ExecutionChange{Token: lease.Token, End: true, Outcome: end.Outcome, Evidence: end.Evidence}}
	var event Event
	switch weigh(lease, end) {
	case Applied:
		event, c.Result, c.Failure, c.ClearedToken = EventApplied, end.Result, nil, lease.Token
	case Refused:
		event, c.Result, c.ClearedToken = EventRefused, end.Result, lease.Token
	case NotApplied:
		event, c.ClearedToken = EventSpent, lease.Token
		if end.Again {
			event = EventNotApplied
		}
	case Unknown:
		event = EventUnresolvable
		if end.Again {
			event = EventUnknown
		}
	default:
		return c, &Error{Code: CodeInternal, Msg: "there is no outcome " + string(end.Outcome)}
	}
	var err error
	c.State, err = Processing.Next(event)
	switch {
	case c.State.Settled():
		c.Work, c.Retain = WorkDone, l.retention(op.Key.Kind)
	case c.State == NeedsReconciliation:
		c.Work = WorkDone
	default:
		c.Work, c.Due = WorkDue, end.In
	}
	return c, err
}

// tooLate keeps a result whose lease was lost, and flags the operation if the
// result contradicts what is recorded.
func (l *Ledger) tooLate(ctx context.Context, lease Lease, end Ending) (Operation, error) {
	key := lease.Operation.Key
	if l.inserts == nil {
		// The caller's transaction may hold the lock that the write below needs, and
		// will be rolled back: the effect was in it, so there is no evidence to keep.
		return Operation{}, lostLease(key)
	}
	err := l.store.KeepLate(ctx, Late{Key: key, Token: lease.Token, Outcome: end.Outcome, Evidence: end.Evidence})
	if err != nil {
		return Operation{}, err
	}
	l.opts.Observe(Observation{"late", key.Kind, string(end.Outcome)})
	for {
		found, err := l.find(ctx, key)
		if err != nil {
			return Operation{}, err
		}
		lost := lostLease(key)
		lost.Operation = found.Operation
		if found.Operation == nil || found.Operation.Contradicted || !contradicts(*found.Operation, lease, end) {
			return Operation{}, lost
		}
		op := *found.Operation
		done, err := l.apply(ctx, Change{Key: key, Revision: op.Revision, Token: op.Token, Owner: newOwner(),
			State: op.State, Contradicted: true})
		if err != nil {
			return Operation{}, err
		}
		if done.Applied {
			l.opts.Observe(Observation{"contradicted", key.Kind, ""})
			lost.Operation = done.Operation
			return Operation{}, lost
		}
	}
}

// contradicts reports whether a late result says otherwise than the record: it
// happened, although the execution was cleared as "did not happen"; or it was
// refused for good, although the record says that it happened.
func contradicts(op Operation, lease Lease, end Ending) bool {
	switch end.Outcome {
	case Applied:
		return op.State != Succeeded && lease.Token <= op.ClearedToken
	case Refused, NotApplied:
		return op.State == Succeeded && end.CoversAll
	}
	return false
}

func lostLease(key Key) *Error {
	return &Error{Code: CodeLeaseLost, Key: key, Msg: "another execution has taken over, or the operation was resolved",
		Hint: "stop; the result, if there was one, is kept as evidence"}
}
