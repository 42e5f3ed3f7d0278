package contract

// Evidence is what all the observations of one operation prove together. It is a value: Add returns a new one, and
// the old one stays as it was. It can be stored as JSON and taken up again. The zero Evidence is that of an operation
// of which no transmission is recorded.
//
// The rule it keeps: a proof covers one transmission. Once any is unknown, a later "not sent" or "refused" leaves the
// operation unknown, unless that proof reaches back ([ReachEarlier]) or speaks for the key ([ReachKey]).
type Evidence struct {
	// Transmissions counts the proofs of transmissions that were added.
	Transmissions int `json:"transmissions,omitempty"`
	// Open counts the unknown transmissions which nothing has covered since.
	Open int `json:"open,omitempty"`
	// Done says that some proof says applied; Successes counts the transmissions that were answered so.
	Done      bool `json:"done,omitempty"`
	Successes int  `json:"successes,omitempty"`
	// HiddenSends counts what the transport sent beyond one for each transmission.
	HiddenSends int `json:"hidden_sends,omitempty"`
	// RefusedForKey says that a refusal was given for the key as such.
	RefusedForKey bool `json:"refused_for_key,omitempty"`
	// Refusals, TurnedAway and Unsent count the transmissions that provably did nothing, by their kind.
	Refusals   int `json:"refusals,omitempty"`
	TurnedAway int `json:"turned_away,omitempty"`
	Unsent     int `json:"unsent,omitempty"`
	// ServerErrors counts server errors of the API itself among the open ones.
	ServerErrors int `json:"server_errors,omitempty"`
	// Final says that the answer to the key is stored and says nothing: asking again brings the same one.
	Final bool `json:"final,omitempty"`
	// Expired says that the API no longer keeps the key, Mismatch that it knows it for another request.
	Expired  bool `json:"expired,omitempty"`
	Mismatch bool `json:"mismatch,omitempty"`
	// Contradicted says that one proof says applied and another one, for the same key, refused.
	Contradicted bool `json:"contradicted,omitempty"`
	// Last is the latest proof.
	Last Proof `json:"last,omitzero"`
}

// Outcome is the outcome of an operation as far as it is proven. Its words are those of an execution's outcome.
type Outcome string

// The outcomes. The empty one means that no transmission is recorded.
const (
	OutcomeNone       Outcome = ""
	OutcomeApplied    Outcome = "applied"
	OutcomeRefused    Outcome = "refused"     // definite
	OutcomeNotApplied Outcome = "not_applied" // provably nothing happened
	OutcomeUnknown    Outcome = "unknown"
)

// Fold returns the evidence of the given proofs, in the order in which they came about.
func Fold(proofs ...Proof) Evidence {
	var e Evidence
	for _, p := range proofs {
		e = e.Add(p)
	}
	return e
}

// Add returns the evidence with one more proof. Proofs are added in the order in which their transmissions ended.
func (e Evidence) Add(p Proof) Evidence {
	e.Last = p
	if p.ofTransmission() {
		e.Transmissions++
		e.HiddenSends += max(0, p.Sends-1)
	}
	switch p.Cause {
	case CauseExpired:
		e.Expired = true
	case CauseMismatch:
		e.Mismatch = true
	}
	switch p.Proves {
	case Applied:
		e.Done = true
		if p.ofTransmission() {
			e.Successes++
		}
	case Refused, NotApplied, NotSent:
		e = e.addNothing(p)
	default: // Unknown, InProgressNow, and a proof that says nothing
		e = e.addUnknown(p)
	}
	e.Contradicted = e.Contradicted || e.Done && e.RefusedForKey
	return e
}

// addNothing adds a proof that one transmission, or all of them so far, did nothing.
func (e Evidence) addNothing(p Proof) Evidence {
	if p.Reach == ReachKey && p.Proves == Refused {
		e.RefusedForKey = true
		return e
	}
	if p.Reach == ReachEarlier || p.Reach == ReachKey {
		e.Open, e.ServerErrors, e.Final = 0, 0, false
		e.Refusals, e.TurnedAway, e.Unsent = 0, 0, 0
	}
	switch p.Proves {
	case Refused:
		e.Refusals++
	case NotApplied:
		e.TurnedAway++
	case NotSent:
		e.Unsent++
	}
	return e
}

// addUnknown adds a proof that leaves its transmission open. A look-up without a finding opens nothing: it was no
// transmission.
func (e Evidence) addUnknown(p Proof) Evidence {
	if !p.ofTransmission() {
		return e
	}
	e.Open++
	if p.Cause == CauseServerError {
		e.ServerErrors++
	}
	if p.Final {
		e.Final = true
	}
	return e
}

// Outcome returns what is proven of the operation as a whole.
func (e Evidence) Outcome() Outcome {
	switch {
	case e.Done:
		return OutcomeApplied
	case e.RefusedForKey:
		return OutcomeRefused
	case e.Open > 0:
		return OutcomeUnknown
	case e.Refusals > 0:
		return OutcomeRefused
	case e.TurnedAway > 0 || e.Unsent > 0:
		return OutcomeNotApplied
	}
	return OutcomeNone
}

// Waiting reports whether the latest word was that the first request is still running.
func (e Evidence) Waiting() bool {
	return e.Last.Proves == InProgressNow
}

// MaybeTwice reports whether an operation that is done may have been done more than once: under a contract that does
// not protect a repeat, some other transmission may have had its effect too. It is for the person who looks at the
// history; the outcome stays applied.
func (e Evidence) MaybeTwice(c Contract) bool {
	return e.Done && !c.Shape().Idempotent && (e.Open+e.Successes > 1 || e.HiddenSends > 0)
}
