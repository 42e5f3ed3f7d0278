package semel

import (
	"bytes"
	"context"
	"encoding/json"
	"time"
)

// A Resolution is a person's verdict on an operation in [NeedsReconciliation].
type Resolution struct {
	// Verdict is "applied" (it happened), "not_applied" (it did not) or
	// "acknowledged" (nobody can ever know).
	Verdict string `json:"verdict"`
	// Then follows "not_applied": "retry" or "fail".
	Then string `json:"then,omitempty"`
	// Result is stored with "applied"; JSON, may be absent.
	Result json.RawMessage `json:"result,omitempty"`
	// Evidence says how they know. It must not be empty.
	Evidence string `json:"evidence"`
	// By is who says so. It comes from the credential.
	By string `json:"-"`
	// Revision is the revision that the person has seen.
	Revision int64 `json:"-"`
	// Wait is how long a retry waits, in case the first request is still on its
	// way: the contract's absent_after.
	Wait time.Duration `json:"-"`
}

// MaxEvidence is the longest evidence of a verdict, in bytes.
const MaxEvidence = 64 << 10

// Resolve records a verdict. It raises the fencing token, so an execution that
// is still running somewhere can no longer write. An identical repeat answers
// with the operation and changes nothing.
//
// Errors by code: [CodeInvalid]; [CodeNotFound]; [CodeStaleRevision] with the
// operation; [CodeNotReconcilable] with the operation; [CodeUnavailable].
func (l *Ledger) Resolve(ctx context.Context, key Key, r Resolution) (Operation, error) {
	op, err := l.resolve(ctx, key, r)
	if err == nil {
		l.opts.Observe(Observation{"resolve", key.Kind, r.Verdict})
	}
	return op, wrap("resolve", key, err)
}

func (l *Ledger) resolve(ctx context.Context, key Key, r Resolution) (Operation, error) {
	event, err := r.event()
	if err != nil {
		return Operation{}, err
	}
	op, err := l.Get(ctx, key)
	if err != nil {
		return Operation{}, err
	}
	if op.Revision != r.Revision {
		return l.repeated(ctx, op, r)
	}
	if op.State != NeedsReconciliation {
		return Operation{}, &Error{Code: CodeNotReconcilable, Operation: &op, Msg: "its state is " + string(op.State)}
	}
	c := Change{Key: key, Revision: op.Revision, Token: op.Token, Owner: newOwner(), NextToken: op.Token + 1,
		Verdict: &Verdict{Verdict: r.Verdict, Then: r.Then, Evidence: r.Evidence, By: r.By, Result: r.Result, Token: op.Token + 1}}
	if c.State, err = op.State.Next(event); err != nil {
		return Operation{}, err
	}
	switch event {
	case EventResolveApplied:
		c.Result, c.ClearedToken, c.Retain = r.Result, op.Token, l.retention(key.Kind)
	case EventResolveRetry:
		c.ClearedToken, c.Work, c.Due = op.Token, WorkDue, r.Wait
	case EventResolveFail:
		c.ClearedToken, c.Retain = op.Token, l.retention(key.Kind)
		c.Failure = &Failure{Code: "resolved-not-applied", Message: "It did not happen; it was resolved by a person."}
	case EventAcknowledge:
		c.Acknowledged = true
	}
	done, err := l.apply(ctx, c)
	if err != nil {
		return Operation{}, err
	}
	if done.Applied {
		return *done.Operation, nil
	}
	if op, err = l.Get(ctx, key); err != nil {
		return Operation{}, err
	}
	return l.repeated(ctx, op, r)
}

// repeated answers a resolution whose revision is not the current one: with the
// operation if the last verdict is this very one, else as stale.
func (l *Ledger) repeated(ctx context.Context, op Operation, r Resolution) (Operation, error) {
	h, err := l.store.History(ctx, op.Key)
	if err != nil {
		return Operation{}, err
	}
	if n := len(h.Verdicts); n > 0 {
		v := h.Verdicts[n-1]
		same := v.Verdict == r.Verdict && v.Then == r.Then && v.Evidence == r.Evidence && v.By == r.By && sameJSON(v.Result, r.Result)
		if same && op.Revision > r.Revision {
			return op, nil
		}
	}
	return Operation{}, &Error{Code: CodeStaleRevision, Operation: &op, Msg: "it was changed since you looked",
		Hint: "look at it again, then decide"}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

func (r Resolution) event() (Event, error) {
	invalid := func(msg string) (Event, error) {
		return "", &Error{Code: CodeInvalid, Msg: msg, Recorded: RecordedYes, Hint: "the operation is unchanged"}
	}
	switch {
	case r.Evidence == "":
		return invalid("evidence is missing: say how you know")
	case len(r.Evidence) > MaxEvidence:
		return invalid("the evidence is longer than 65536 bytes")
	case r.Verdict != "not_applied" && r.Then != "":
		return invalid(`"then" goes with the verdict "not_applied" only`)
	case r.Verdict != "applied" && len(r.Result) > 0:
		return invalid(`"result" goes with the verdict "applied" only`)
	case len(r.Result) > 0 && !json.Valid(r.Result):
		return invalid("the result is not JSON")
	}
	switch {
	case r.Verdict == "applied":
		return EventResolveApplied, nil
	case r.Verdict == "not_applied" && r.Then == "retry":
		return EventResolveRetry, nil
	case r.Verdict == "not_applied" && r.Then == "fail":
		return EventResolveFail, nil
	case r.Verdict == "not_applied":
		return invalid(`"not_applied" needs "then": "retry" or "fail"`)
	case r.Verdict == "acknowledged":
		return EventAcknowledge, nil
	}
	return invalid(`the verdict is "applied", "not_applied" or "acknowledged"`)
}
