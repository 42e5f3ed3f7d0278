package contract

import "time"

// A Proof is what one observation proves: one transmission with its answer, one look-up, or one verdict. The zero
// Proof proves nothing, and counts as unknown.
type Proof struct {
	// Proves is what is proven.
	Proves Proves `json:"proves,omitempty"`
	// Reach is how far the proof goes. A proof of "unknown" or "in progress" never reaches beyond its transmission.
	Reach Reach `json:"reach,omitempty"`
	// Cause is why, as a word for programs and metrics.
	Cause Cause `json:"cause,omitempty"`
	// Status is the status of the answer, zero where there was none.
	Status int `json:"status,omitempty"`
	// Code is the machine code that decided, empty where none was needed.
	Code string `json:"code,omitempty"`
	// Sends is how often the request began to go out within the call, zero where nobody counted.
	Sends int `json:"sends,omitempty"`
	// Replayed says that the answer bore the contract's replay marker.
	Replayed bool `json:"replayed,omitempty"`
	// Final says that this answer is stored under the key and will come back unchanged: an unknown outcome that no
	// further call can clear up.
	Final bool `json:"final,omitempty"`
	// Again is what the API itself says about sending the same request once more: "yes", "no", or nothing.
	Again string `json:"again,omitempty"`
	// WaitAtLeast is how long the other side asks us to wait (Retry-After). Classify leaves it zero; the caller, who
	// parses headers with a clock at hand, sets it.
	WaitAtLeast time.Duration `json:"wait_at_least,omitempty"`
	// Reason says in words what was seen and what follows from it. It holds no parameters, results or secrets.
	Reason string `json:"reason,omitempty"`
}

// What an API itself says about sending the same request once more; see [Proof.Again].
const (
	AgainYes = "yes"
	AgainNo  = "no"
)

// Proves is what can be proven of a transmission.
type Proves string

// What can be proven of a transmission. The empty value counts as [Unknown].
const (
	NotSent       Proves = "not_sent"    // nothing went out: nothing happened
	NotApplied    Proves = "not_applied" // it arrived, or may have, but nothing happened; the key is not used up
	Refused       Proves = "refused"     // definitely rejected: nothing happened, and a repeat is pointless
	Applied       Proves = "applied"     // it is done
	InProgressNow Proves = "in_progress" // the other side knows the key and is still at work: wait, never a verdict
	Unknown       Proves = "unknown"     // it may have happened
)

// Reach is how far a proof goes. The empty value is [ReachThis].
type Reach string

// How far a proof goes.
const (
	ReachThis    Reach = "this"    // this transmission alone
	ReachEarlier Reach = "earlier" // this one and every one before it
	ReachKey     Reach = "key"     // the key: every transmission under it, before and after
)

// Cause is why a proof says what it says.
type Cause string

// The causes of proofs. Failures of the wire are causes under their own names; see [Failure].
const (
	CauseSuccess        Cause = "success"           // a 2xx, or what the contract calls a success
	CauseRejected       Cause = "rejected"          // a definite rejection
	CauseMismatch       Cause = "mismatch"          // the key belongs to another request
	CauseExpired        Cause = "expired"           // the key is no longer kept, and was refused for that
	CauseInProgress     Cause = "in_progress"       // the first request is still running
	CauseInDoubt        Cause = "in_doubt"          // the other side does not know either
	CauseTurnedAway     Cause = "turned_away"       // a rate limit, a maintenance window
	CauseTransient      Cause = "transient"         // the API marked its answer as transient
	CauseServerError    Cause = "server_error"      // a 5xx of the API itself
	CauseIntermediary   Cause = "intermediary"      // a 502, 503 or 504 that anybody on the way may have given
	CauseUnlisted       Cause = "unlisted"          // an answer about which the contract says nothing
	CauseCutAnswer      Cause = "cut_answer"        // an answer began, and broke off
	CauseHiddenSends    Cause = "hidden_sends"      // the answer covers the last of several sends only
	CauseFound          Cause = "found"             // a look-up found it done
	CauseFoundFailed    Cause = "found_failed"      // a look-up found it failed
	CauseFoundPending   Cause = "found_pending"     // a look-up found it still running
	CauseAbsent         Cause = "absent"            // a look-up did not find it, long enough after the last doubt
	CauseAbsentSoFar    Cause = "absent_so_far"     // a look-up did not find it, too early to mean anything
	CauseLookUpNoAnswer Cause = "look_up_no_answer" // a look-up could not tell
	CauseVerdict        Cause = "verdict"           // a person decided
	CauseNoRecord       Cause = "no_record"         // an execution had begun, and left no word
)

// ofTransmission reports whether the proof is about a transmission, and not about a look-up or a verdict.
func (p Proof) ofTransmission() bool {
	switch p.Cause {
	case CauseFound, CauseFoundFailed, CauseFoundPending, CauseAbsent, CauseAbsentSoFar, CauseLookUpNoAnswer, CauseVerdict:
		return false
	}
	return true
}

// NoReport is the proof of an execution that had begun and never reported: its worker died or lost its lease.
func NoReport() Proof {
	return Proof{Proves: Unknown, Reach: ReachThis, Cause: CauseNoRecord,
		Reason: "the execution had begun and never reported: the request may have gone out"}
}

// VerdictNotApplied is the proof of a person's verdict that nothing happened. It covers everything before it.
func VerdictNotApplied() Proof {
	return Proof{Proves: NotApplied, Reach: ReachEarlier, Cause: CauseVerdict,
		Reason: "a person has found out that nothing happened"}
}

// VerdictApplied is the proof of a person's verdict that it is done.
func VerdictApplied() Proof {
	return Proof{Proves: Applied, Reach: ReachKey, Cause: CauseVerdict,
		Reason: "a person has found out that it is done"}
}
