package worker

import (
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// Facts are all that [Step] decides by. They hold no clock: times are durations
// since the claim.
type Facts struct {
	// Kind is the kind with its defaults, as [NewKind] returns it. It is only read.
	Kind *Kind
	// Lease is the lease as it is now.
	Lease semel.Lease
	// Asked is the time since the claim was asked for, Held the time since it was
	// answered. The store's clock read Lease.Now in between.
	Asked, Held time.Duration
	// CanLookUp says that the effect can look up.
	CanLookUp bool
	// Stopping says that nothing may be begun any more.
	Stopping bool
	// Saw is what this execution did and saw; nil before it acted.
	Saw *Observation
	// Random is in [0, 1).
	Random float64
}

// An Act is what a worker does next.
type Act string

// The acts.
const (
	ActBegin  Act = "begin"   // write the begin mark, then ask again
	ActCall   Act = "call"    // make the external call, then ask again
	ActLookUp Act = "look_up" // look up, then ask again
	ActFinish Act = "finish"  // finish the lease; that is the end
)

// An Action is what to do next.
type Action struct {
	Act Act
	// Contract, FirstSent and Repeat are for the call and the look-up. Contract is
	// nil where nothing was decided under one.
	Contract  *contract.Contract
	FirstSent time.Time
	Repeat    bool
	// Ending is how to finish; its Evidence is still to be made of Report.
	Ending semel.Ending
	Report Report
}

// Step decides what comes next under one lease. It is pure: equal facts give
// equal actions. A lease is worked by asking Step, doing what it says and asking
// again with what was seen, until it says [ActFinish]. There are at most three
// acts: begin, call or look up, finish.
func Step(f Facts) Action {
	s := situation{Facts: f, past: recall(f.Lease, &f.Kind.Contract, f.Kind.Timeout)}
	switch {
	case f.Saw == nil && f.Stopping:
		return s.handBack()
	case f.Saw == nil:
		return s.plan()
	case f.Saw.LookUp != nil:
		return s.afterLookUp()
	}
	return s.afterCall()
}

// A situation is what is known while one step is decided.
type situation struct {
	Facts
	past
}

// now is the store's time, and never later than it is.
func (s *situation) now() time.Time { return s.Lease.Now.Add(s.Held) }

// handBack gives the work back: this execution has sent nothing.
func (s *situation) handBack() Action {
	r := Report{Did: DidHandBack, Contract: s.rules.Name, Next: "nothing was begun: the worker is stopping, or too little was left of the lease"}
	return Action{Act: ActFinish, Report: r, Ending: semel.Ending{Outcome: semel.NotApplied, Again: true,
		Failure: s.Lease.Operation.Failure}}
}

// plan decides what this execution is to do.
func (s *situation) plan() Action {
	if len(s.doubt) == 0 {
		return s.call()
	}
	if s.evidence.Outcome() == contract.OutcomeUnknown {
		switch s.recover().Step {
		case contract.StepReCall:
			return s.call()
		case contract.StepLookUp:
			return Action{Act: ActLookUp, Contract: s.rules, FirstSent: s.firstBegun, Repeat: true}
		}
	}
	return s.conclude(Report{Did: DidDecide}, contract.Proof{Proves: contract.Unknown, Reach: contract.ReachEarlier}, nil)
}

// call begins, where that is still to be done, and calls.
func (s *situation) call() Action {
	a := Action{Act: ActCall, Contract: s.rules, FirstSent: s.firstBegun, Repeat: len(s.doubt) > 0}
	if !s.Lease.Begun {
		a.Act = ActBegin
	}
	if !a.Repeat {
		a.FirstSent = s.ownBegin()
	}
	return a
}

// ownBegin is when this execution began: the begin mark was the operation's
// latest change.
func (s *situation) ownBegin() time.Time { return s.Lease.Operation.UpdatedAt }

// afterCall decides what follows from a call.
func (s *situation) afterCall() Action {
	saw, proof, now := s.Saw.Call, s.Saw.Call.Proof, s.now()
	s.evidence = s.evidence.Add(proof)
	s.found, s.looks = "", 0
	s.learn(proof, now)
	if outcomeOf(proof) == semel.Unknown {
		if len(s.doubt) == 0 {
			s.firstBegun = s.ownBegin()
		}
		ended := semel.Execution{EndedAt: now}
		if end := lastArrival(ended, s.rules, s.Kind.Timeout); end.After(s.lastEnd) {
			s.lastEnd = end
		}
	}
	if proof.Proves != contract.InProgressNow {
		s.executions++
	}
	a := s.conclude(Report{Did: DidCall, Proof: &proof, Wire: saw.Wire, Sends: saw.Sends, Bytes: saw.Bytes,
		Panicked: saw.Panicked}, proof, saw.Failure)
	if a.Ending.Outcome == semel.Applied {
		a.Ending.Result = saw.Output
	}
	return a
}

// afterLookUp decides what follows from a look-up.
func (s *situation) afterLookUp() Action {
	saw, sent := s.Saw.LookUp, s.Lease.Now.Add(s.Saw.Sent)
	proof := s.rules.ClassifyLookUp(saw.Found, contract.Duration(sent.Sub(s.lastEnd)))
	proof.Status, proof.WaitAtLeast = saw.Status, saw.WaitAtLeast
	s.evidence = s.evidence.Add(proof)
	s.looked(saw.Found, sent)
	s.learn(proof, s.now())
	failure := saw.Failure
	if failure == nil {
		failure = s.Lease.Operation.Failure
	}
	a := s.conclude(Report{Did: DidLookUp, Proof: &proof, Found: saw.Found, Status: saw.Status, Note: saw.Note,
		Panicked: saw.Panicked}, proof, failure)
	if a.Ending.Outcome == semel.Applied {
		a.Ending.Result = saw.Output
	}
	return a
}

// outcomeOf is the outcome of an execution by itself.
func outcomeOf(p contract.Proof) semel.Outcome {
	switch p.Proves {
	case contract.Applied:
		return semel.Applied
	case contract.Refused:
		return semel.Refused
	case contract.NotApplied, contract.NotSent:
		return semel.NotApplied
	}
	return semel.Unknown
}

// conclude finishes the lease after a proof of its own. The ledger weighs it with
// what is in doubt; the ending says how far the proof goes and what is to follow.
func (s *situation) conclude(r Report, own contract.Proof, failure *semel.Failure) Action {
	e := semel.Ending{Outcome: outcomeOf(own), CoversAll: own.Reach != contract.ReachThis && own.Reach != "", Failure: failure}
	switch all := s.evidence.Outcome(); all {
	case contract.OutcomeApplied, contract.OutcomeRefused:
		e.Outcome = semel.Outcome(all)
		r.Next = "settled: " + s.evidence.Last.Reason
	case contract.OutcomeNotApplied:
		e.Outcome = semel.NotApplied
		r.Next = s.tryAnew(&e, r.Did)
	default:
		e.CoversAll = false
		r.Next = s.findOut(&e)
	}
	r.Contract = s.rules.Name
	return Action{Act: ActFinish, Contract: s.rules, Ending: e, Report: r}
}

// tryAnew follows "nothing happened": it is tried again while the budget lasts.
func (s *situation) tryAnew(e *semel.Ending, did string) string {
	if did == DidCall {
		e.In = max(s.Kind.Retry.backoff(s.executions-1, s.Random), s.askedUntil.Sub(s.now()))
	}
	if e.Again = !s.spent(e.In); e.Again {
		return "run again: certainly nothing happened"
	}
	message := "It was tried as often, or for as long, as it may be."
	if e.Failure != nil && e.Failure.Message != "" {
		message += " The last time: " + e.Failure.Message
	}
	e.In, e.Failure = 0, &semel.Failure{Code: "budget-spent", Message: message}
	return "failed: certainly nothing happened, and the budget is spent"
}

// findOut follows "it may have happened": the contract decides.
func (s *situation) findOut(e *semel.Ending) string {
	d := s.recover()
	e.Again = true
	switch d.Step {
	case contract.StepReCall:
		e.In = s.Kind.Retry.backoff(s.executions-1, s.Random)
	case contract.StepLookUp:
		e.In = s.Kind.Retry.backoff(0, s.Random)
	case contract.StepWait:
		e.In = d.Wait + s.Kind.Retry.backoff(s.asks, s.Random)
	default:
		e.Again, e.Failure = false, &semel.Failure{Code: "outcome-unknown", Message: d.Reason}
	}
	return string(d.Step) + ": " + d.Reason
}

// recover asks the contract what may be done about a doubt.
func (s *situation) recover() contract.Decision {
	rules := *s.rules // a copy: the contract is everybody's
	wait := max(s.askedUntil.Sub(s.now()), 0)
	if s.spent(wait) {
		rules.Carrier = contract.Carrier{} // calls are spent: as good as no key
	}
	sit := contract.Situation{
		Evidence:    s.evidence,
		Age:         s.Lease.Now.Add(s.Asked).Sub(s.firstBegun),
		SinceDoubt:  s.now().Sub(s.lastEnd),
		SinceLast:   s.now().Sub(s.lastProof),
		Found:       s.found,
		SinceLookUp: s.now().Sub(s.lookedUp),
		LookUps:     s.looks,
		WaitAtLeast: wait,
		Margin:      s.Kind.Timeout + s.rules.Retention.Minimum.D()/50,
	}
	d := rules.Recover(sit)
	looking := rules.LookUp.By != "" && (d.Step == contract.StepLookUp || d.Step == contract.StepWait)
	if looking && s.looks > 0 && s.now().Sub(s.firstLook) > s.Kind.Retry.LookUpFor {
		sit.Spent = true
		d = rules.Recover(sit)
	}
	if d.Step == contract.StepLookUp && !s.CanLookUp {
		return contract.Decision{Step: contract.StepReconcile, Reason: "it may have happened; its contract has a look-up, and this worker is not configured for it"}
	}
	return d
}

// spent reports whether no call may be made any more after that wait.
func (s *situation) spent(wait time.Duration) bool {
	r := s.Kind.Retry
	return s.executions >= r.MaxExecutions || s.now().Add(wait).Sub(s.began) > r.Budget
}
