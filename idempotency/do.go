package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fingerprint"
)

// Do runs fn once for a key, for callers that are no HTTP handlers: a queue
// consumer, a cron job. The kind of the key must be made by [Kinds]; request is
// JSON, and the same key with another request is refused.
//
// fn returns the result, as JSON, which every repeat gets. Its error means that
// nobody knows whether it happened, and the operation needs the route's look-up or
// a person, unless fn has called [NotApplied] (then a repeat runs fn again) or
// returns what [Refused] made (then every repeat gets that). A panic is such an
// error too, and goes on. The lease is renewed while fn runs; fn's context ends
// with ctx, and when the lease is lost.
//
// Errors by code, as *[semel.Error]: [semel.CodeInProgress] with RetryAfter, when it
// is running elsewhere; [semel.CodeMismatch] with Fields; [semel.CodeOutcomeUnknown];
// [semel.CodeAbandoned], when it is certain that it did not happen and never will;
// [semel.CodeExpired]; [semel.CodeUnavailable], before anything was run;
// [semel.CodeUnknownKind] and [semel.CodeInvalid], for a mistake of the caller's. An
// error of fn is returned as it is, wrapped in CodeOutcomeUnknown if it is that.
func Do(ctx context.Context, ledger *semel.Ledger, key semel.Key, request []byte, fn func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	req, value, err := jobRequest(ledger, key, request)
	if err != nil {
		return nil, err
	}
	g := newGuard(ledger, defaultLease, 0, slog.Default())
	began := time.Now()
	e, err := g.enter(ctx, req, func() (semel.Acceptance, error) { return g.accept(req) })
	if err != nil {
		return nil, jobError(err, value)
	}
	if e.lease == nil {
		return recorded(e.op)
	}
	c := &call{key: key}
	end := unknown("no-answer", "The function ended without a result.")
	var result json.RawMessage
	g.run(ctx, *e.lease, began, &end, func(ctx context.Context) {
		defer func() { // also when it panics
			if c.notApplied.Load() {
				end = released("The function said that nothing happened.")
			}
		}()
		result, err = fn(context.WithValue(ctx, contextKey{}, c))
		end, err = jobEnding(key, result, err, c)
	})
	return result, err
}

// DoIn is [Do] in a transaction of the caller's: what fn writes with [Tx], the
// operation and its result commit together. Any error of fn rolls all of it back,
// so that a repeat runs fn again, except for one made by [Refused], which is not
// recorded either. The error is then that of fn. If the commit fails, call DoIn again
// with the same key. The error is [semel.CodeRetryTransaction] or
// [semel.CodeInProgress] when somebody else was faster and all of it is rolled back,
// and else [semel.CodeUnavailable]; its Recorded says whether it may be recorded.
func DoIn(ctx context.Context, ledger *semel.Ledger, begin func(context.Context) (*Transaction, error), key semel.Key, request []byte, fn func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	req, value, err := jobRequest(ledger, key, request)
	if err != nil {
		return nil, err
	}
	t, err := begin(ctx)
	if err != nil {
		return nil, &semel.Error{Op: "do", Code: semel.CodeUnavailable, Key: key, Recorded: semel.RecordedNo, Msg: "no transaction could be begun", Err: err}
	}
	committed := false
	defer func() {
		if !committed {
			t.Rollback()
		}
	}()
	in := ledger.In(t.Tx)
	req.Begun = &semel.Begun{Worker: "idempotency", Contract: contractText, Lease: defaultLease}
	acc, err := in.Accept(ctx, req)
	if err != nil {
		return nil, jobError(err, value)
	}
	if acc.Lease == nil {
		return recorded(acc.Operation)
	}
	result, err := fn(context.WithValue(ctx, contextKey{}, &call{key: key, tx: t.Value}))
	if err != nil {
		return nil, err
	}
	if _, err = in.FinishLast(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied, Result: orNull(result)}); err != nil {
		return nil, err
	}
	if err = t.Commit(); err != nil {
		e := uncommitted(key, err)
		e.Op = "do"
		return nil, e
	}
	committed = true
	return result, nil
}

// A refusal is a definite failure, which is recorded.
type refusal struct{ failure semel.Failure }

func (r *refusal) Error() string { return r.failure.Code + ": " + r.failure.Message }

// Refused makes an error for [Do]: it was refused for good, certainly nothing
// happened, and trying again is pointless. The code is one word, and neither holds
// secrets. Every repeat gets an equal error.
func Refused(code, message string) error {
	return &refusal{semel.Failure{Code: code, Message: message}}
}

// IsRefused reports whether an error of [Do] was made by [Refused], now or when it
// was recorded, and returns its code.
func IsRefused(err error) (code string, ok bool) {
	var r *refusal
	if errors.As(err, &r) {
		return r.failure.Code, true
	}
	return "", false
}

// jobRequest makes the request for a key; its fingerprint is that of the JSON.
func jobRequest(ledger *semel.Ledger, key semel.Key, request []byte) (semel.Request, fingerprint.Value, error) {
	if err := key.Validate(); err != nil {
		return semel.Request{}, fingerprint.Value{}, err
	}
	if routeOf(ledger, key.Kind) == nil {
		return semel.Request{}, fingerprint.Value{}, &semel.Error{Op: "do", Code: semel.CodeUnknownKind, Key: key, Recorded: semel.RecordedNo,
			Msg: "the ledger has no such kind made by this package", Hint: "add idempotency.Kinds(idempotency.Route{Pattern: …}) to the ledger's kinds"}
	}
	if len(request) == 0 {
		request = []byte("null")
	}
	v, err := fingerprint.Parse(request)
	if err != nil {
		return semel.Request{}, v, &semel.Error{Op: "do", Code: semel.CodeInvalid, Key: key, Msg: "the request is not JSON", Err: err}
	}
	b := fingerprint.NewBuilder("job")
	b.JSON("request", v)
	return semel.Request{Key: key, Params: request, Fingerprint: b.Sum()}, v, nil
}

// jobError names the fields of a mismatch.
func jobError(err error, value fingerprint.Value) error {
	e := *semel.AsError("do", err)
	if e.Code == semel.CodeMismatch && e.Operation != nil {
		if before, err := fingerprint.Parse(e.Operation.Params); err == nil {
			e.Fields = fingerprint.Differ(before, value)
		}
	}
	return &e
}

// jobEnding says what fn's result means for the operation, and for the caller.
func jobEnding(key semel.Key, result json.RawMessage, err error, c *call) (semel.Ending, error) {
	var r *refusal
	switch {
	case err == nil && !c.notApplied.Load() && !json.Valid(orNull(result)):
		// It is done all the same.
		return semel.Ending{Outcome: semel.Applied, Result: json.RawMessage("null")},
			&semel.Error{Op: "do", Code: semel.CodeInvalid, Key: key, Recorded: semel.RecordedYes, Msg: "it is done, but its result is not JSON and was not kept"}
	case err == nil:
		return semel.Ending{Outcome: semel.Applied, Result: orNull(result)}, nil
	case c.notApplied.Load():
		return released("The function said that nothing happened."), err
	case errors.As(err, &r):
		return semel.Ending{Outcome: semel.Refused, Failure: &r.failure}, err
	}
	return unknown("outcome-unknown", "The function ended with an error. Nobody knows whether it happened."),
		&semel.Error{Op: "do", Code: semel.CodeOutcomeUnknown, Key: key, Msg: "nobody knows whether it happened", Err: err}
}

// recorded is what a repeat gets.
func recorded(op semel.Operation) (json.RawMessage, error) {
	switch op.State {
	case semel.Succeeded:
		return op.Result, nil
	case semel.NeedsReconciliation:
		return nil, &semel.Error{Op: "do", Code: semel.CodeOutcomeUnknown, Key: op.Key, Operation: &op, Msg: "nobody knows whether it happened; it is not run again"}
	case semel.Failed:
		if f := op.Failure; f != nil && f.Code != "not-applied" && f.Code != "resolved-not-applied" {
			return nil, &refusal{*f}
		}
		return nil, abandoned(op)
	}
	return nil, &semel.Error{Op: "do", Code: semel.CodeInProgress, Key: op.Key, Operation: &op, Recorded: semel.RecordedYes, RetryAfter: time.Second,
		Msg: "it is running elsewhere", Hint: "ask again with the same key"}
}

func orNull(result json.RawMessage) json.RawMessage {
	if len(result) == 0 {
		return json.RawMessage("null")
	}
	return result
}
