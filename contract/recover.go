package contract

import "time"

// Situation is what [Contract.Recover] has to go by besides the contract.
type Situation struct {
	// Evidence is the fold of everything observed.
	Evidence Evidence
	// NotBegun says that certainly no execution has begun: there is no begin mark. It only counts while Evidence is
	// empty. Without it, empty evidence means that something may have gone out.
	NotBegun bool
	// Age is the time since the first execution began (or the first transmission, where that is known). The
	// downstream's retention is counted from it; leaving it out says that it has only just begun.
	Age time.Duration
	// SinceDoubt is the time since the last possible end of the latest doubtful transmission: the end of its lease
	// plus its call's timeout. Negative means that it may still be on its way.
	SinceDoubt time.Duration
	// SinceLast is the time since the latest proof.
	SinceLast time.Duration
	// Found is the latest look-up since the latest transmission. Empty means that there was none.
	Found Found
	// SinceLookUp is the time since that look-up was sent.
	SinceLookUp time.Duration
	// LookUps counts look-ups since the latest transmission.
	LookUps int
	// WaitAtLeast is what remains of the time that the other side asked us to wait.
	WaitAtLeast time.Duration
	// Margin is the safety distance to the end of the downstream's retention. It should cover one call's timeout.
	Margin time.Duration
	// CallsSpent says that the budget for calls is used up; look-ups may go on.
	CallsSpent bool
	// Spent says that the budget for calls and look-ups is used up.
	Spent bool
}

// Found is the result of a look-up as the API gave it, before the contract has said what it proves.
type Found string

// The results of a look-up.
const (
	FoundSucceeded Found = "succeeded"
	FoundFailed    Found = "failed"
	FoundPending   Found = "pending"
	FoundNothing   Found = "absent"
	FoundNoAnswer  Found = "cannot_tell"
)

// Step is what to do next.
type Step string

// The steps.
const (
	StepSettle    Step = "settle"     // the evidence decides: record its outcome
	StepRunAfresh Step = "run"        // certainly nothing happened: run as if for the first time
	StepReCall    Step = "call_again" // the same key and the same bytes
	StepLookUp    Step = "look_up"
	StepWait      Step = "wait"      // for at least Decision.Wait, then ask Recover again
	StepReconcile Step = "reconcile" // nothing here can tell: a person has to find out
)

// Decision is what to do next, and why.
type Decision struct {
	Step Step `json:"step"`
	// Wait is how long to wait at the least, when Step is [StepWait].
	Wait time.Duration `json:"wait,omitempty"`
	// Reason says why, in words for an operator.
	Reason string `json:"reason"`
}

// Recover says what to do next with an operation, given its contract, everything observed, and how much time has
// passed. It is a pure function, the same for a worker that finds an expired lease and for a client that resumes.
//
//   - What is decided is settled. What certainly did not happen runs as if for the first time.
//   - An unknown outcome is called again only under an idempotent contract, with the same key and the same bytes, inside
//     the retention less the margin, and only while the answers so far do not say that it is useless or unsafe.
//   - Otherwise it is looked up, where the contract has a look-up, until that says something.
//   - Otherwise a person decides. Nothing is ever assumed to have failed.
func (c Contract) Recover(s Situation) Decision {
	switch s.outcome() {
	case OutcomeApplied, OutcomeRefused:
		return Decision{Step: StepSettle, Reason: "the outcome is known: " + s.Evidence.deciding()}
	case OutcomeNotApplied:
		return s.patiently(Decision{Step: StepRunAfresh, Reason: "certainly nothing happened: " + s.Evidence.deciding()})
	case OutcomeNone:
		return s.patiently(Decision{Step: StepRunAfresh, Reason: "no execution has begun"})
	}
	if s.Spent {
		return Decision{Step: StepReconcile, Reason: "it may have happened, and the budget for finding out is used up"}
	}
	if !c.Shape().Opaque() && s.WaitAtLeast > 0 {
		return wait(s.WaitAtLeast, "the other side asked us to wait")
	}
	again := c.reCall(s)
	if again.Step != "" {
		return again
	}
	if c.LookUp.By != "" {
		return c.lookUp(s, again.Reason)
	}
	if s.SinceDoubt < 0 {
		return wait(-s.SinceDoubt, "the call may still be on its way; its answer would settle it")
	}
	return Decision{Step: StepReconcile, Reason: "it may have happened; " + again.Reason + ", and it cannot be looked up"}
}

// outcome is the proven outcome, where an operation without any record counts as begun unless the caller says not.
func (s Situation) outcome() Outcome {
	o := s.Evidence.Outcome()
	if o == OutcomeNone && !s.NotBegun {
		return OutcomeUnknown
	}
	return o
}

// patiently puts the wait that the other side asked for before a decision.
func (s Situation) patiently(d Decision) Decision {
	if s.WaitAtLeast > 0 {
		return wait(s.WaitAtLeast, "the other side asked us to wait")
	}
	return d
}

func wait(d time.Duration, reason string) Decision {
	return Decision{Step: StepWait, Wait: d, Reason: reason}
}

// reCall decides whether to call again. A decision without a step means no, and its reason says why.
func (c Contract) reCall(s Situation) Decision {
	if why := c.whyNotAgain(s.Evidence); why != "" {
		return Decision{Reason: why}
	}
	if s.CallsSpent {
		return Decision{Reason: "the budget for calls is used up"}
	}
	if left, ends := c.Retention.left(s.Age, s.Margin); ends && left <= 0 {
		return Decision{Reason: "the downstream may keep the key no longer (" + c.Retention.words() + "), so a call could have a second effect"}
	}
	if c.InProgress.Do == ConcurrentUnspecified && s.SinceDoubt < 0 {
		return wait(-s.SinceDoubt, "the call may still be on its way, and the contract does not say what a second one meets meanwhile")
	}
	if s.Evidence.Waiting() {
		if rest := c.InProgress.askAgainAfter() - s.SinceLast; rest > 0 {
			return wait(rest, "the other side is still at work")
		}
		return Decision{Step: StepReCall, Reason: "the other side was still at work; the same key asks how it ended"}
	}
	return Decision{Step: StepReCall, Reason: "it may have happened; under the same key a repeat has no second effect (" + c.Retention.words() + ")"}
}

// whyNotAgain says why a request with an unknown outcome must not be called again, or "".
func (c Contract) whyNotAgain(e Evidence) string {
	switch {
	case !c.Shape().Idempotent:
		return "the contract does not protect a repeat"
	case e.Mismatch:
		return "the downstream knows the key for another request"
	case e.Expired:
		return "the downstream has said that it no longer keeps the key"
	case e.Final:
		return "the downstream has stored an error under the key, and a repeat would bring the same"
	case e.Last.Again == AgainNo:
		return "the downstream has asked not to be called again"
	case e.ServerErrors > 0 && c.Stored.ServerErrors == ServerErrorReleased:
		return "after a server error the downstream frees the key, so a repeat could have a second effect"
	case e.ServerErrors > 0 && c.Stored.ServerErrors == "":
		return "the contract does not say what a repeat after a server error does (stored.server_errors)"
	case e.ServerErrors > 1 && c.Stored.ServerErrors == ServerErrorReplayed && c.Replay.Marker.Header == "":
		return "the downstream has answered with a server error twice; it stores them, and has no mark to tell"
	}
	return ""
}

// left returns how much of the retention is left for a repeat. It reports false where a key is kept for ever.
func (r Retention) left(age, margin time.Duration) (time.Duration, bool) {
	if r.After == AfterKeptForEver {
		return 0, false
	}
	return r.Minimum.D() - age - margin, true
}

func (p InProgress) askAgainAfter() time.Duration {
	if p.AskAgainAfter > 0 {
		return p.AskAgainAfter.D()
	}
	return time.Second
}

// lookUp decides between looking up, waiting for the next look-up, and giving up.
func (c Contract) lookUp(s Situation, whyNotAgain string) Decision {
	look := Decision{Step: StepLookUp, Reason: "it may have happened; " + whyNotAgain + ", but it can be looked up"}
	if s.Found == "" {
		return look
	}
	rest := lookUpPause(s.LookUps) - s.SinceLookUp
	if s.Found != FoundNothing {
		if rest > 0 {
			return wait(rest, "the latest look-up found it "+s.Found.words()+"; the next one comes later")
		}
		return look
	}
	return c.afterAbsent(s, look, rest)
}

// afterAbsent decides what follows a look-up that did not find it, and that came too early to prove anything, or never
// can. rest is what remains of the pause between two look-ups.
func (c Contract) afterAbsent(s Situation, look Decision, rest time.Duration) Decision {
	if after := c.LookUp.AbsentAfter.D(); after > 0 {
		rest = min(rest, after-s.SinceDoubt)
		if rest > 0 {
			return wait(rest, "not found so far; that is proof only "+c.LookUp.AbsentAfter.String()+" after the last possible arrival")
		}
		return look
	}
	visible := c.LookUp.ConsistentAfter.D()
	if s.SinceDoubt-s.SinceLookUp >= visible {
		return Decision{Step: StepReconcile, Reason: "not found, and under this contract that proves nothing"}
	}
	if rest = visible - s.SinceDoubt; rest > 0 {
		return wait(rest, "not found so far; it may have arrived late, or stay invisible for a while")
	}
	return look
}

// lookUpPause is the pause after the n-th look-up: 1 s, doubled each time, at most 5 min.
func lookUpPause(n int) time.Duration {
	if n < 1 {
		return 0
	}
	return min(time.Second<<min(n-1, 9), 5*time.Minute)
}

func (f Found) words() string {
	if f == FoundPending {
		return "still running"
	}
	return "impossible to tell"
}

// deciding says what the outcome rests on.
func (e Evidence) deciding() string {
	if e.Last.Reason != "" {
		return e.Last.Reason
	}
	return "by the proofs so far"
}

func (r Retention) words() string {
	if r.After == AfterKeptForEver {
		return "kept for ever"
	}
	return "kept for at least " + r.Minimum.String()
}
