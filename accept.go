package semel

import (
	"context"
	"fmt"
	"time"
)

// A Request asks for an operation.
type Request struct {
	Key Key
	// Params are the parameters as they came.
	Params []byte
	// AttemptID names this transmission; it is recorded and decides nothing.
	AttemptID string
	// AcceptUntil refuses an unknown key after that time of the store's clock.
	// Zero means no deadline.
	AcceptUntil time.Time
	// Due delays the work.
	Due time.Duration
	// Fingerprint replaces the digests of the kind's Canon, for callers whose
	// request is more than its parameters (such as an HTTP middleware).
	Fingerprint string
	// Begun makes the caller the first worker: the operation is created as
	// Processing, with the effect begun, in the same commit.
	Begun *Begun
}

// An Acceptance answers a [Request].
type Acceptance struct {
	Operation Operation
	// Replayed: the key was known, and this is its record.
	Replayed bool
	// Lease is set when the request asked for it and the operation is new.
	Lease *Lease
}

// Accept records an operation and its pending work in one commit, or answers
// from the record if the key is known. It may be called any number of times with
// the same request: one operation results.
//
// Errors by code: [CodeInvalid], [CodeUnknownKind], [CodeTooLarge] (nothing is
// recorded); [CodeMismatch] with Fields, [CodeAbandoned] (the stored operation is
// untouched); [CodeExpired], [CodeDeadlinePassed], [CodeTooMany] (nothing is
// recorded); [CodeInProgress] (the same key is being written by a transaction
// that has not committed yet); [CodeUnavailable] (see Recorded: ask again with
// the same key).
func (l *Ledger) Accept(ctx context.Context, req Request) (Acceptance, error) {
	acc, err := l.accept(ctx, req)
	switch e := AsError("accept", err); {
	case e == nil && acc.Replayed:
		l.opts.Observe(Observation{"replay", req.Key.Kind, string(acc.Operation.State)})
	case e == nil:
		l.opts.Observe(Observation{"accept", req.Key.Kind, ""})
	default:
		l.opts.Observe(Observation{"reject", req.Key.Kind, string(e.Code)})
		return acc, e.at("accept", req.Key)
	}
	return acc, nil
}

func (l *Ledger) accept(ctx context.Context, req Request) (Acceptance, error) {
	if err := req.Key.Validate(); err != nil {
		return Acceptance{}, err
	}
	kind, err := l.Kind(req.Key.Kind)
	if err != nil {
		return Acceptance{}, err
	}
	if len(req.Params) > l.opts.MaxParams {
		return Acceptance{}, &Error{Code: CodeTooLarge, Msg: fmt.Sprintf("the parameters have %d bytes; %d are allowed", len(req.Params), l.opts.MaxParams)}
	}
	in, invalid, err := prepare(kind, req)
	if err != nil {
		return Acceptance{}, err
	}

	// A repeat is one read. Whether a key is a repeat is only guessed here; the
	// insertion decides.
	known := l.seen.has(req.Key)
	var limited *Error
	var generation uint64
	if !known && invalid == nil {
		generation, limited = l.limiter.admit(req.Key.Account)
	}
	if known || invalid != nil || limited != nil {
		if acc, err := l.answerKnown(ctx, req, in); err != nil || acc != nil {
			return orZero(acc), err
		}
		if invalid != nil {
			return Acceptance{}, invalid
		}
		if limited != nil {
			return Acceptance{}, limited
		}
	}
	out, err := l.insert(ctx, in)
	if err != nil {
		return Acceptance{}, err
	}
	if !known && out.Verdict != Created {
		l.limiter.giveBack(req.Key.Account, generation, out.Verdict == Exists)
	}
	switch out.Verdict {
	case Created:
		l.seen.add(req.Key)
		acc := Acceptance{Operation: *out.Operation}
		if req.Begun != nil {
			acc.Lease = firstLease(*out.Operation, *req.Begun)
		}
		return acc, nil
	case Exists:
		l.seen.add(req.Key)
		return l.replay(ctx, req, in, *out.Operation)
	case PastHorizon:
		return Acceptance{}, l.expired(req.Key)
	case PastDeadline:
		return Acceptance{}, &Error{Code: CodeDeadlinePassed, Msg: "the operation was not known at its accept deadline",
			Hint: "it will never run; ask for it again as a new operation if it is still wanted"}
	}
	return Acceptance{}, &Error{Code: CodeInternal, Msg: "the store answered nothing"}
}

// prepare makes the insertion. A request that today's definition refuses comes
// back as invalid, with the digest as sent: an operation that was accepted
// earlier is still answered.
func prepare(kind Kind, req Request) (in Insertion, invalid, err error) {
	in = Insertion{
		Key: req.Key, State: Accepted, Params: req.Params, AcceptUntil: req.AcceptUntil,
		Due: req.Due, Owner: newOwner(), AttemptID: req.AttemptID, Begun: req.Begun,
		SchemaVersion: kind.Canon.Version(),
	}
	in.IDTime, _ = IDTime(req.Key.ID)
	if req.Begun != nil {
		in.State, in.Due = Processing, req.Begun.Lease
	}
	if req.Fingerprint != "" {
		in.AsSent, in.Fingerprint = req.Fingerprint, req.Fingerprint
		return in, nil, nil
	}
	if in.AsSent, err = kind.Canon.AsSent(req.Params); err != nil {
		return in, nil, &Error{Code: CodeInvalid, Msg: err.Error(), Err: err}
	}
	if in.Params, in.Fingerprint, err = kind.Canon.Normalize(req.Params); err != nil {
		return in, &Error{Code: CodeInvalid, Msg: err.Error(), Err: err}, nil
	}
	if kind.Request != nil {
		if in.Request, err = kind.Request(in.Params); err != nil {
			return in, &Error{Code: CodeInvalid, Msg: "no request can be built from these parameters", Err: err}, nil
		}
	}
	return in, nil, nil
}

// answerKnown answers from the record if there is one; nil, nil if not.
func (l *Ledger) answerKnown(ctx context.Context, req Request, in Insertion) (*Acceptance, error) {
	if err := l.limiter.look(req.Key.Account); err != nil {
		return nil, err
	}
	found, err := l.find(ctx, req.Key)
	if err != nil || found.Operation == nil {
		return nil, err
	}
	acc, err := l.replay(ctx, req, in, *found.Operation)
	return &acc, err
}

// replay answers a request whose key is known. The mismatch is told before
// anything about the state.
func (l *Ledger) replay(ctx context.Context, req Request, in Insertion, op Operation) (Acceptance, error) {
	if op.Expired && op.State != Abandoned {
		return Acceptance{}, l.expired(req.Key)
	}
	if op.State == Abandoned && op.AsSent == "" {
		return Acceptance{}, abandoned(op)
	}
	if op.AsSent != in.AsSent {
		if err := l.compare(ctx, req, in, op); err != nil {
			return Acceptance{}, err
		}
	}
	if op.State == Abandoned {
		return Acceptance{}, abandoned(op)
	}
	if req.AttemptID != "" {
		l.attempts.add(Attempt{Key: req.Key, ID: req.AttemptID})
	}
	return Acceptance{Operation: op, Replayed: true}, nil
}

// compare decides whether a request that was sent differently means the same,
// under the definition that the stored operation was accepted under.
func (l *Ledger) compare(ctx context.Context, req Request, in Insertion, op Operation) error {
	mismatch := &Error{Code: CodeMismatch, Operation: &op,
		Msg:  "this operation ID was used for a different request; the recorded operation is unchanged",
		Hint: "a changed request is a new operation: give it a new ID"}
	if req.Fingerprint != "" {
		if op.Fingerprint == req.Fingerprint {
			return nil
		}
		return mismatch
	}
	canon, err := l.versions.get(ctx, req.Key.Kind, op.SchemaVersion)
	if err != nil || canon == nil {
		if err == nil {
			err = mismatch
		}
		return err
	}
	if _, fingerprint, err := canon.Normalize(req.Params); err == nil && fingerprint == op.Fingerprint {
		return nil
	}
	mismatch.Fields = canon.Differ(op.Params, req.Params)
	return mismatch
}

func (l *Ledger) expired(key Key) *Error {
	return &Error{Code: CodeExpired, Key: key, Retention: l.retention(key.Kind),
		Msg:  "an operation of this age is no longer remembered, so nobody can say whether it ran; it is not run again",
		Hint: "find out at the external service before asking for it as a new operation"}
}

func abandoned(op Operation) *Error {
	return &Error{Code: CodeAbandoned, Operation: &op, Msg: "this operation was abandoned; it never ran and never will",
		Hint: "ask for it as a new operation if it is wanted after all"}
}

func orZero(acc *Acceptance) Acceptance {
	if acc == nil {
		return Acceptance{}
	}
	return *acc
}

// at names the method and the operation where the error does not yet.
func (e *Error) at(op string, key Key) *Error {
	named := *e
	named.Op = op
	if named.Key == (Key{}) {
		named.Key = key
	}
	return &named
}

// wrap is at for any error; nil stays nil.
func wrap(op string, key Key, err error) error {
	if err == nil {
		return nil
	}
	return AsError(op, err).at(op, key)
}

// Abandon makes sure that an operation never happens: a key that is not known
// gets a tombstone, and an accepted operation that has not begun is given up.
// Abandoning twice is no error.
//
// Errors by code: [CodeAlreadyStarted] with the operation, once it began or
// settled; [CodeExpired]; [CodeUnknownKind]; [CodeUnavailable].
func (l *Ledger) Abandon(ctx context.Context, key Key) (Operation, error) {
	op, err := l.abandon(ctx, key)
	if err == nil {
		l.opts.Observe(Observation{"abandon", key.Kind, ""})
	}
	return op, wrap("abandon", key, err)
}

func (l *Ledger) abandon(ctx context.Context, key Key) (Operation, error) {
	if err := key.Validate(); err != nil {
		return Operation{}, err
	}
	if _, err := l.Kind(key.Kind); err != nil {
		return Operation{}, err
	}
	idTime, _ := IDTime(key.ID)
	for {
		found, err := l.find(ctx, key)
		if err != nil {
			return Operation{}, err
		}
		op := found.Operation
		if op == nil {
			out, err := l.insert(ctx, Insertion{Key: key, State: Abandoned, IDTime: idTime, Owner: newOwner(), Retain: l.retention(key.Kind)})
			switch {
			case err != nil:
				return Operation{}, err
			case out.Verdict == Created:
				l.watchers.tell(out.Operation)
				return *out.Operation, nil
			case out.Verdict == PastHorizon:
				return Operation{}, l.expired(key)
			}
			op = out.Operation
		}
		switch {
		case op.State == Abandoned:
			return *op, nil
		case op.Expired:
			return Operation{}, l.expired(key)
		case op.State != Accepted:
			return Operation{}, &Error{Code: CodeAlreadyStarted, Operation: op, Msg: "the operation has begun or is settled, so it can't be abandoned",
				Hint: "look it up until it is settled"}
		}
		state, err := op.State.Next(EventAbandon)
		if err != nil {
			return Operation{}, err
		}
		done, err := l.apply(ctx, Change{Key: key, Revision: op.Revision, Token: op.Token, State: state,
			NextToken: op.Token + 1, Owner: newOwner(), Work: WorkDone, Retain: l.retention(key.Kind)})
		if err != nil {
			return Operation{}, err
		}
		if done.Applied {
			return *done.Operation, nil
		}
		// Somebody was faster; look again.
	}
}
