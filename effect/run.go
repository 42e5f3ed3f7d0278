package effect

import (
	"context"
	"fmt"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// Do runs an effect for one execution and makes sure of what no effect can be
// trusted with: a panic is unknown; several sends within one call leave a proof
// about the last one without force; a result that can't be stored is replaced by
// an [Omitted]. It always returns a result whose Proof and Failure are set.
func Do(ctx context.Context, e Effect, call *Call) Result {
	r := do(context.WithValue(ctx, meterKey{}, &call.meter), e, call)
	if r.Proof.Proves == "" {
		r.Proof = contract.Proof{Proves: contract.Unknown, Cause: CauseEffect, Reason: "the effect does not say what became of it"}
	}
	if r.Proof.Reach == "" {
		r.Proof.Reach = contract.ReachThis
	}
	r.Sends = max(r.Sends, call.Sends())
	if covered := r.Proof.Reach != contract.ReachThis; r.Sends > 1 && !covered && provesNothingHappened(r.Proof) {
		r.Proof.Reason = fmt.Sprintf("%d requests went out within one call, and this covers only the last: %s", r.Sends, r.Proof.Reason)
		r.Proof.Proves, r.Proof.Cause = contract.Unknown, contract.CauseHiddenSends
	}
	if r.Proof.Proves == contract.Applied {
		r.Output, r.Failure = keepable(r.Output), nil
		return r
	}
	r.Output = nil
	if r.Failure == nil {
		r.Failure = failureFor(r.Proof)
	}
	return r
}

func do(ctx context.Context, e Effect, call *Call) (r Result) {
	defer func() {
		if recover() != nil { // its value may hold anything, so it is not kept
			r = Result{Panicked: true, Proof: contract.Proof{Proves: contract.Unknown, Cause: CausePanic, Reason: "the effect panicked"}}
		}
	}()
	return e.Do(ctx, call)
}

// LookUp runs a look-up; what [Do] makes sure of holds here too.
func LookUp(ctx context.Context, f Finder, call *Call) LookUpResult {
	r := lookUp(context.WithValue(ctx, meterKey{}, &call.meter), f, call)
	switch r.Found {
	case contract.FoundSucceeded:
		r.Output = keepable(r.Output)
		return r
	case contract.FoundFailed:
		if r.Failure == nil {
			r.Failure = &semel.Failure{Code: "found-failed", Message: "The external service says that it failed."}
		}
	case contract.FoundPending, contract.FoundNothing:
	default:
		r.Found = contract.FoundNoAnswer
	}
	r.Output = nil
	return r
}

func lookUp(ctx context.Context, f Finder, call *Call) (r LookUpResult) {
	defer func() {
		if recover() != nil {
			r = LookUpResult{Panicked: true, Found: contract.FoundNoAnswer, Note: "the look-up panicked"}
		}
	}()
	return f.LookUp(ctx, call)
}

func provesNothingHappened(p contract.Proof) bool {
	return p.Proves == contract.Refused || p.Proves == contract.NotApplied || p.Proves == contract.NotSent
}

// failureFor is the failure of a call that gives none: the proof in words.
func failureFor(p contract.Proof) *semel.Failure {
	code := "outcome-unknown"
	switch p.Proves {
	case contract.Refused:
		code = "refused"
	case contract.NotApplied, contract.NotSent:
		code = "not-applied"
	case contract.InProgressNow:
		code = "in-progress"
	}
	return &semel.Failure{Code: code, Message: p.Reason}
}
