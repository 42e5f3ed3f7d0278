package client

import (
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// view is what the next step depends on besides record and contract.
type view struct {
	now     time.Time
	request contract.Request
	margin  time.Duration // safety distance to the end of the API's retention

	canLookUp, canAbandon, canFollow bool
	silent                           bool // never send
	spent                            bool // it has been sent often enough in this call
	signIn                           bool // credentials were refused in this call
	turnedDown                       bool // the other side refuses to abandon it
	news                             bool // the other side has told of the operation in this call
	deaf                             bool // events do not come through: look the operation up

	found     contract.Found // of the latest look-up since the latest transmission
	lookUps   int            // … of which there were so many
	lookedAt  time.Time
	lastAt    time.Time // when the latest proof came
	notBefore time.Time // nothing is asked earlier
}

// what is what to do next.
type what int

const (
	doStop what = iota // tell what is known; decision.next says what remains to be done
	doEnd              // close the record
	doSend
	doLookUp
	doFollow  // events
	doAbandon // ask the other side to make sure that it never happens
	doGiveUp  // nothing has arrived anywhere, and nothing will
	doWait
)

// decision is the next step.
type decision struct {
	what   what
	ended  ended         // with doEnd
	wait   time.Duration // with doWait
	next   Next          // with doStop
	reason string
}

func stop(next Next, reason string) decision {
	return decision{what: doStop, next: next, reason: reason}
}

// decide says what to do next with an intent. It is a pure function.
func decide(r *record, c *contract.Contract, v *view) decision {
	if r.Ended != "" {
		return decision{what: doEnd, ended: r.Ended}
	}
	if r.Operation != nil && r.Operation.State.Settled() {
		return decision{what: doEnd, ended: endedSettled}
	}
	if v.signIn {
		return stop(NextSignIn, "the credentials were refused")
	}
	d := decideOpen(r, c, v)
	switch d.what {
	case doSend, doLookUp, doFollow, doAbandon:
		if rest := v.notBefore.Sub(v.now); rest > 0 {
			return decision{what: doWait, wait: rest, reason: d.reason}
		}
	}
	return d
}

// decideOpen decides about an intent that has no end yet.
func decideOpen(r *record, c *contract.Contract, v *view) decision {
	outcome := r.Evidence.Outcome()
	if r.Abandon {
		switch {
		case outcome == contract.OutcomeNone, outcome == contract.OutcomeNotApplied && (r.Evidence.TurnedAway == 0 || !v.canAbandon):
			// What the other side has turned away may come to it a second time, since
			// proxies repeat a PUT by themselves: only a record over there stops that one.
			return decision{what: doGiveUp}
		case r.Evidence.Expired:
			return expired()
		case v.turnedDown:
			return stop(NextAsk, "the other side refuses to abandon it")
		case v.canAbandon:
			return decision{what: doAbandon, reason: "it shall never happen"}
		}
	}
	if r.Operation != nil {
		return decideRecorded(r, v)
	}
	switch outcome {
	case contract.OutcomeRefused:
		return decision{what: doEnd, ended: endedRejected}
	case contract.OutcomeNone, contract.OutcomeNotApplied:
		return decideAfresh(r, c, v)
	}
	return decideUnknown(r, c, v)
}

// decideRecorded decides about an operation that the other side has and has not
// settled. It is never sent again.
func decideRecorded(r *record, v *view) decision {
	switch {
	case r.Evidence.Expired || v.found == contract.FoundNothing:
		return stop(NextPerson, "the other side had recorded it, and does not find it any more")
	case r.Operation.State == semel.NeedsReconciliation && v.news:
		return stop(NextPerson, "the other side does not know itself whether it happened; somebody has to find out there")
	case r.Operation.State != semel.NeedsReconciliation && v.canFollow && !v.deaf:
		return decision{what: doFollow, reason: "the other side is at work"}
	}
	return decision{what: doLookUp, reason: "the other side is at work"}
}

// decideAfresh decides about an intent of which certainly nothing has happened.
func decideAfresh(r *record, c *contract.Contract, v *view) decision {
	switch ok, why := c.Again(v.request, r.Evidence); {
	case v.silent:
		return stop(NextSubmit, "nothing of it has arrived")
	case v.spent:
		return stop(NextSubmit, "nothing of it has arrived, and it was sent as often as it may be in one call")
	case !ok:
		return stop(NextSubmit, why)
	}
	return decision{what: doSend, reason: "nothing has happened so far"}
}

// decideUnknown decides about an intent that may have happened: look first, and send
// the same again only where the contract makes that safe.
func decideUnknown(r *record, c *contract.Contract, v *view) decision {
	if r.Evidence.Expired {
		return expired()
	}
	if v.canLookUp && v.lookUps == 0 {
		return decision{what: doLookUp, reason: "it may have happened, and can be looked up"}
	}
	if v.canLookUp && v.found == contract.FoundPending {
		return decision{what: doLookUp, reason: "a look-up found it still running"} // notBefore has the pace
	}
	s := v.situation(r)
	d := c.Recover(s)
	if d.Step == contract.StepReCall && !s.CallsSpent {
		ok, why := c.Again(v.request, r.Evidence)
		if ok {
			return decision{what: doSend, reason: d.Reason}
		}
		s.CallsSpent = true
		d = c.Recover(s)
		if d.Step == contract.StepReconcile {
			return stop(NextPerson, why)
		}
	}
	switch d.Step {
	case contract.StepWait:
		return decision{what: doWait, wait: d.Wait, reason: d.Reason}
	case contract.StepLookUp:
		return decision{what: doLookUp, reason: d.Reason}
	}
	if s.CallsSpent && !r.Abandon { // with a new budget there may be more to do
		s.CallsSpent = false
		if further := c.Recover(s); further.Step != contract.StepReconcile {
			return stop(NextAsk, d.Reason)
		}
	}
	return stop(NextPerson, d.Reason)
}

// situation is what the contract has to go by.
func (v *view) situation(r *record) contract.Situation {
	return contract.Situation{
		Evidence: r.Evidence, NotBegun: r.Attempts == 0,
		Age: v.now.Sub(r.FirstSent), Margin: v.margin,
		SinceDoubt: v.now.Sub(r.DoubtUntil), SinceLast: v.now.Sub(v.lastAt),
		Found: v.found, LookUps: v.lookUps, SinceLookUp: v.now.Sub(v.lookedAt),
		WaitAtLeast: v.notBefore.Sub(v.now),
		CallsSpent:  v.spent || v.silent || r.Abandon,
	}
}

// expired explains an answer that says that the ID is no longer remembered.
func expired() decision {
	return stop(NextPerson, "the server no longer remembers operations as old as this one, and an earlier transmission of it may have arrived: "+
		"whether it happened has to be found out another way")
}
