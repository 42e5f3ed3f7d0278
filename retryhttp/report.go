package retryhttp

import (
	"time"

	"github.com/semel-dev/semel/contract"
)

// A Report is what is known of a call.
type Report struct {
	// Attempts counts the transmissions that were begun.
	Attempts int
	// Sends counts how often the request began to go out, hidden re-sends of the
	// base included. Attempts that got no connection are not among them. It is a
	// bound from above: the server never sees more.
	Sends int
	// Since is when the first transmission that may have gone out began; zero
	// where none did.
	Since time.Time
	// Evidence is what all transmissions together prove. Its Last is the last proof.
	Evidence contract.Evidence
	// Stopped says why there was no further attempt.
	Stopped Stop
}

// State returns what is known of the outcome in one word.
func (r Report) State() State {
	switch r.Evidence.Outcome() {
	case contract.OutcomeApplied:
		return Applied
	case contract.OutcomeRefused:
		return Refused
	case contract.OutcomeUnknown:
		return Unconfirmed
	case contract.OutcomeNotApplied:
		if r.Evidence.TurnedAway > 0 {
			return NotApplied
		}
	}
	return NotSent
}

// State is what is known of the outcome of a call.
type State string

// The states.
const (
	Applied     State = "applied"     // it is done
	Refused     State = "refused"     // definitely rejected: nothing happened
	NotApplied  State = "not applied" // turned away: nothing happened, and it may be tried later
	NotSent     State = "not sent"    // nothing went out: nothing happened
	Unconfirmed State = "unconfirmed" // nobody knows whether it happened
)

// Stop is why a call ended.
type Stop string

// Why a call ended.
const (
	StopSettled   Stop = "settled"        // the contract says that there is nothing to repeat
	StopOnce      Stop = "not replayable" // it passed through once
	StopAttempts  Stop = "attempts"       // Options.MaxAttempts
	StopBudget    Stop = "budget"         // the next wait does not fit into Options.Budget
	StopWait      Stop = "wait"           // the other side asked for more than Options.MaxWait
	StopDeadline  Stop = "deadline"       // the next wait does not fit before the caller's deadline
	StopQuota     Stop = "quota"          // the host's retry quota is used up
	StopRetention Stop = "retention"      // the API may forget the key
	StopCancelled Stop = "cancelled"      // the caller gave up
	StopRequest   Stop = "request"        // the request can't be sent as it is
)

// exhausted reports whether a budget was used up.
func (s Stop) exhausted() bool {
	switch s {
	case StopAttempts, StopBudget, StopWait, StopDeadline, StopQuota, StopRetention:
		return true
	}
	return false
}
