package worker

import (
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// A past is what the earlier executions of an operation come down to.
type past struct {
	// doubt are the executions that may have had the effect.
	doubt []semel.Execution
	// rules is the contract to go by: that of the first doubtful execution, or
	// today's where nothing is in doubt.
	rules *contract.Contract
	// evidence folds all proofs since nothing was in doubt.
	evidence contract.Evidence
	// firstBegun is when the first doubtful execution began, and lastEnd when the
	// last one could have arrived at the latest.
	firstBegun, lastEnd time.Time
	// lastProof is the time of the latest proof, askedUntil until when the other
	// side asked us to wait.
	lastProof, askedUntil time.Time
	// found is the latest look-up since the latest call, at lookedUp; looks counts
	// them, and firstLook is the time of the first.
	found               contract.Found
	lookedUp, firstLook time.Time
	looks               int
	// asks counts the latest answers in a row that said "in progress".
	asks int
	// executions counts calls that use up the budget, since began.
	executions int
	began      time.Time
}

// recall reads the lease's history.
func recall(lease semel.Lease, today *contract.Contract, timeout time.Duration) past {
	p := past{doubt: lease.Doubt(), rules: today}
	p.countBudget(lease)
	if len(p.doubt) == 0 {
		return p
	}
	// The first doubtful execution rules all that came after it, since they went by
	// its contract too. One that can't be read promises nothing.
	p.rules, p.firstBegun = &contract.Contract{}, p.doubt[0].BegunAt
	if c, err := contract.Parse([]byte(p.doubt[0].Contract)); err == nil {
		p.rules = &c
	}
	for _, x := range p.doubt {
		if end := lastArrival(x, p.rules, timeout); end.After(p.lastEnd) {
			p.lastEnd = end
		}
	}
	for _, x := range lease.Prior {
		if x.Token > lease.Operation.ClearedToken {
			p.add(x)
		}
	}
	return p
}

// lastArrival is when a doubtful call could have arrived at the latest: a
// timeout after its lease, which ends early when the execution is finished. Once
// it is finished nobody listens for its answer any more, so where neither a
// look-up nor a second call could be misled, the end of the execution will do.
func lastArrival(x semel.Execution, rules *contract.Contract, timeout time.Duration) time.Time {
	if x.EndedAt.IsZero() {
		return x.LeaseEndsAt.Add(timeout)
	}
	if rules.LookUp.By != "" || rules.InProgress.Do == contract.ConcurrentUnspecified {
		return x.EndedAt.Add(timeout)
	}
	return x.EndedAt
}

// add takes in one execution.
func (p *past) add(x semel.Execution) {
	r := reportOf(x)
	if r.Proof == nil {
		return
	}
	p.evidence = p.evidence.Add(*r.Proof)
	at := x.EndedAt
	if at.IsZero() {
		at = x.LeaseEndsAt
	}
	p.learn(*r.Proof, at)
	switch r.Did {
	case DidLookUp:
		p.looked(r.Found, x.ClaimedAt)
	case DidCall:
		p.found, p.looks = "", 0
	}
}

// learn notes when a proof came, and what it asks for.
func (p *past) learn(proof contract.Proof, at time.Time) {
	p.lastProof = at
	if until := at.Add(proof.WaitAtLeast); proof.WaitAtLeast > 0 && until.After(p.askedUntil) {
		p.askedUntil = until
	}
	p.asks++
	if proof.Proves != contract.InProgressNow {
		p.asks = 0
	}
}

// looked takes in a look-up.
func (p *past) looked(found contract.Found, at time.Time) {
	if p.looks == 0 {
		p.firstLook = at
	}
	p.found, p.lookedUp, p.looks = found, at, p.looks+1
}

// countBudget counts since the operation began, or since a person's verdict: a
// verdict raises the token without an execution, which leaves a gap.
func (p *past) countBudget(lease semel.Lease) {
	p.began = lease.Now
	next := lease.Token
	for i := len(lease.Prior) - 1; i >= 0 && lease.Prior[i].Token == next-1; i-- {
		x := lease.Prior[i]
		next, p.began = x.Token, x.ClaimedAt
		if usesBudget(x) {
			p.executions++
		}
	}
}

func usesBudget(x semel.Execution) bool {
	if x.BegunAt.IsZero() {
		return false
	}
	r := reportOf(x)
	return r.Did != DidHandBack && (r.Proof == nil || r.Proof.Proves != contract.InProgressNow)
}

// Why an operation is called again.
const (
	retryNotApplied = "not_applied" // certainly nothing has happened so far
	retryUnknown    = "unknown"     // an earlier call may have done it, and the contract allows another
	retryLeaseLost  = "lease_lost"  // the same, where the worker never came back to say what it saw
)

// retryReason says why a call under this lease is not the operation's first; of the
// first one, nothing.
func retryReason(lease semel.Lease) string {
	if doubt := lease.Doubt(); len(doubt) > 0 {
		if doubt[len(doubt)-1].EndedAt.IsZero() {
			return retryLeaseLost
		}
		return retryUnknown
	}
	for _, x := range lease.Prior {
		if !x.BegunAt.IsZero() && reportOf(x).Did == DidCall {
			return retryNotApplied
		}
	}
	return ""
}
