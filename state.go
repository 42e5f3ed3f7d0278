package semel

import "fmt"

// A State is where an operation stands.
type State string

// The states. The last three that [State.Settled] names never change again.
const (
	// None is the state of a key without an operation. It is never stored.
	None State = ""
	// Accepted: recorded with its pending work; provably nothing happened outside.
	Accepted State = "accepted"
	// Processing: somebody holds a lease, or held one, and the effect may have happened.
	Processing State = "processing"
	// Succeeded: the effect happened, and the result is stored.
	Succeeded State = "succeeded"
	// Failed: provably without effect, and it will not be tried again.
	Failed State = "failed"
	// NeedsReconciliation: nobody knows, and no further call could tell.
	NeedsReconciliation State = "needs_reconciliation"
	// Abandoned: given up before it began; a late request with this key is refused.
	Abandoned State = "abandoned"
)

// Settled reports whether s is final.
func (s State) Settled() bool { return s == Succeeded || s == Failed || s == Abandoned }

// Valid reports whether s is one of the six stored states.
func (s State) Valid() bool {
	switch s {
	case Accepted, Processing, Succeeded, Failed, NeedsReconciliation, Abandoned:
		return true
	}
	return false
}

// An Event is what moves an operation from state to state.
type Event string

// The events.
const (
	EventAccept         Event = "accept"
	EventClaim          Event = "claim"
	EventApplied        Event = "applied"
	EventRefused        Event = "refused"
	EventNotApplied     Event = "not_applied"
	EventSpent          Event = "spent"
	EventUnknown        Event = "unknown"
	EventUnresolvable   Event = "unresolvable"
	EventResolveApplied Event = "resolve_applied"
	EventResolveRetry   Event = "resolve_retry"
	EventResolveFail    Event = "resolve_fail"
	EventAcknowledge    Event = "acknowledge"
	EventAbandon        Event = "abandon"
)

// A Transition is one line of the table.
type Transition struct {
	From  State
	Event Event
	To    State
	// When says in words when it happens, for docs/states.md.
	When string
}

var transitions = []Transition{
	{None, EventAccept, Accepted, "a new key: operation and pending work are one commit"},
	{None, EventAbandon, Abandoned, "given up before it arrived: a tombstone"},
	{Accepted, EventAbandon, Abandoned, "given up before it began"},
	{Accepted, EventClaim, Processing, "a worker gets the lease"},
	{Processing, EventClaim, Processing, "the lease ended, or a further look was due: a new token"},
	{Processing, EventApplied, Succeeded, "an answer, or a look-up, proves the effect"},
	{Processing, EventRefused, Failed, "a definite refusal, and nothing before it is unknown"},
	{Processing, EventNotApplied, Accepted, "provably nothing happened: it is tried again"},
	{Processing, EventSpent, Failed, "the budget is spent, and nothing is unknown"},
	{Processing, EventUnknown, Processing, "unknown, and the contract allows a re-call or a look-up"},
	{Processing, EventUnresolvable, NeedsReconciliation, "unknown, and no call could tell"},
	{NeedsReconciliation, EventResolveApplied, Succeeded, "verdict: it happened"},
	{NeedsReconciliation, EventResolveRetry, Accepted, "verdict: it did not happen; try again"},
	{NeedsReconciliation, EventResolveFail, Failed, "verdict: it did not happen; let it be"},
	{NeedsReconciliation, EventAcknowledge, NeedsReconciliation, "nobody can ever know: it stays, and leaves the queue"},
}

// Transitions returns the whole table; docs/states.md is generated from it.
// What is not in it cannot happen.
func Transitions() []Transition { return append([]Transition(nil), transitions...) }

// Next returns the state after e, or an error with [CodeInternal] when the table
// has no such line: that is a mistake in the program, never in a request.
func (s State) Next(e Event) (State, error) {
	for _, t := range transitions {
		if t.From == s && t.Event == e {
			return t.To, nil
		}
	}
	return s, &Error{Op: "transition", Code: CodeInternal, Msg: fmt.Sprintf("no transition from %q by %q", s, e)}
}
