package worker

import (
	"context"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

var (
	noon    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	nothing = doing{
		do:     func(context.Context, *effect.Call) effect.Result { panic("not called") },
		lookUp: func(context.Context, *effect.Call) effect.LookUpResult { panic("not called") },
	}
)

// facts are those of a lease claimed at noon, with these executions before.
func facts(c contract.Contract, prior ...semel.Execution) Facts {
	k, err := NewKind(Kind{Name: "order", Contract: c, Effect: nothing, Timeout: 10 * time.Second, Lease: time.Minute,
		Retry: Retry{MaxExecutions: 3}})
	if err != nil {
		panic(err)
	}
	token := int64(1)
	for _, x := range prior {
		token = max(token, x.Token+1)
	}
	lease := semel.Lease{Token: token, Length: k.Lease, Now: noon, Prior: prior, Begun: len(prior) == 0 && !c.Shape().Opaque(), Contract: stored(c),
		Operation: semel.Operation{Key: semel.Key{Account: "acme", Kind: "order", ID: "1"}, State: semel.Processing, Token: token, UpdatedAt: noon}}
	return Facts{Kind: &k, Lease: lease, CanLookUp: true, Random: 0.5}
}

func (f Facts) begun() Facts                  { f.Lease.Begun = true; return f }
func (f Facts) stopping() Facts               { f.Stopping = true; return f }
func (f Facts) blind() Facts                  { f.CanLookUp = false; return f }
func (f Facts) sawCall(r effect.Result) Facts { f.Saw = &Observation{Call: &r}; return f }
func (f Facts) sawLookUp(x contract.Found) Facts {
	f.Saw = &Observation{LookUp: &effect.LookUpResult{Found: x}}
	return f
}
func (f Facts) retry(change func(r *Retry)) Facts { change(&f.Kind.Retry); return f }
func (f Facts) after(d time.Duration) Facts       { f.Asked, f.Held = d, d; return f }

// died is an execution that began so long before noon, and never reported. Its
// lease lasted a minute.
func died(token int64, c contract.Contract, ago time.Duration) semel.Execution {
	at := noon.Add(-ago)
	return semel.Execution{Token: token, Contract: stored(c), ClaimedAt: at, BegunAt: at, LeaseEndsAt: at.Add(time.Minute)}
}

// ended is an execution that reported, at the moment it began.
func ended(token int64, c contract.Contract, ago time.Duration, o semel.Outcome, r Report) semel.Execution {
	x := died(token, c, ago)
	x.EndedAt, x.Outcome, x.Evidence = x.BegunAt, o, r.json()
	if r.Did != DidCall {
		x.BegunAt = time.Time{}
	}
	return x
}

func call(p contract.Proves, cause contract.Cause, reach contract.Reach) Report {
	return Report{Did: DidCall, Proof: &contract.Proof{Proves: p, Cause: cause, Reach: reach}}
}

func result(p contract.Proves, cause contract.Cause, reach contract.Reach) effect.Result {
	return effect.Result{Proof: contract.Proof{Proves: p, Cause: cause, Reach: reach}, Failure: &semel.Failure{Code: "why"}}
}

// These are all rows of the recovery table.
func TestStep(t *testing.T) {
	idem, query, opaque := preset(t, contract.Idempotent), preset(t, contract.Queryable), preset(t, contract.Opaque)
	both := query
	both.Retention, both.Carrier = idem.Retention, idem.Carrier
	replays := idem
	replays.Stored.ServerErrors = contract.ServerErrorReplayed
	timeout := contract.Cause(contract.FailedTimeout)
	unknown := result(contract.Unknown, timeout, contract.ReachThis)
	refused := result(contract.Refused, contract.CauseRejected, contract.ReachThis)
	unsent := result(contract.NotSent, contract.Cause(contract.FailedDial), contract.ReachThis)
	applied := result(contract.Applied, contract.CauseSuccess, contract.ReachKey)
	slow := result(contract.NotApplied, contract.CauseTurnedAway, contract.ReachThis).After(time.Hour)
	later := result(contract.NotApplied, contract.CauseTurnedAway, contract.ReachThis).After(100 * time.Hour)
	busy := result(contract.InProgressNow, contract.CauseInProgress, contract.ReachThis)

	// finish says what an ending must be: outcome, covers all, again.
	type finish struct {
		outcome     semel.Outcome
		covers, re  bool
		least, most time.Duration // of In
	}
	for _, c := range []struct {
		name string
		f    Facts
		act  Act
		end  finish
	}{
		// Nothing is in doubt.
		{"first, begun by its claim", facts(idem), ActCall, finish{}},
		{"first, opaque", facts(opaque), ActBegin, finish{}},
		{"first, opaque, begun", facts(opaque).begun(), ActCall, finish{}},
		{"a lease was lost before the begin mark", facts(opaque, semel.Execution{Token: 1, ClaimedAt: noon}), ActBegin, finish{}},
		{"stopping", facts(idem).stopping(), ActFinish, finish{outcome: semel.NotApplied, re: true}},
		{"applied", facts(idem).sawCall(applied), ActFinish, finish{outcome: semel.Applied, covers: true}},
		{"refused", facts(idem).sawCall(refused), ActFinish, finish{outcome: semel.Refused}},
		{"not sent", facts(idem).sawCall(unsent), ActFinish, finish{outcome: semel.NotApplied, re: true, least: 500 * time.Millisecond, most: 500 * time.Millisecond}},
		{"turned away for an hour", facts(idem).sawCall(slow), ActFinish, finish{outcome: semel.NotApplied, re: true, least: time.Hour, most: time.Hour}},
		{"turned away for longer than the budget", facts(idem).sawCall(later), ActFinish, finish{outcome: semel.NotApplied}},
		{"not sent, and the attempts are spent", facts(opaque,
			ended(1, opaque, 3*time.Minute, semel.NotApplied, call(contract.NotSent, "", contract.ReachThis)),
			ended(2, opaque, 2*time.Minute, semel.NotApplied, call(contract.NotSent, "", contract.ReachThis))).cleared(2).begun().sawCall(unsent),
			ActFinish, finish{outcome: semel.NotApplied}},
		{"handed back twice: nothing is spent", facts(idem,
			handedBack(1, idem, 3*time.Minute), handedBack(2, idem, 2*time.Minute)).cleared(2).begun().sawCall(unsent),
			ActFinish, finish{outcome: semel.NotApplied, re: true, most: time.Second}},
		{"spent before a verdict does not count", facts(opaque,
			ended(1, opaque, 9*time.Hour, semel.NotApplied, call(contract.NotSent, "", contract.ReachThis)),
			ended(2, opaque, 8*time.Hour, semel.Unknown, call(contract.Unknown, "", contract.ReachThis))).cleared(3).token(4).begun().sawCall(unsent),
			ActFinish, finish{outcome: semel.NotApplied, re: true, most: time.Second}},
		{"not sent, and the time is spent", facts(idem,
			ended(1, idem, 13*time.Hour, semel.NotApplied, call(contract.NotSent, "", contract.ReachThis))).cleared(1).begun().sawCall(unsent),
			ActFinish, finish{outcome: semel.NotApplied}},

		// The outcome of this call is unknown.
		{"idempotent: unknown", facts(idem).sawCall(unknown), ActFinish, finish{outcome: semel.Unknown, re: true, most: time.Second}},
		{"queryable: unknown", facts(query).sawCall(unknown), ActFinish, finish{outcome: semel.Unknown, re: true, most: time.Second}},
		{"opaque: unknown", facts(opaque).begun().sawCall(unknown), ActFinish, finish{outcome: semel.Unknown}},
		{"in progress", facts(idem).sawCall(busy), ActFinish, finish{outcome: semel.Unknown, re: true, least: time.Second, most: 3 * time.Second}},
		{"a server error that is stored", facts(replays).sawCall(result(contract.Unknown, contract.CauseServerError, contract.ReachThis)),
			ActFinish, finish{outcome: semel.Unknown, re: true, most: time.Second}},
		{"a replayed server error does not loop", facts(replays, ended(1, replays, time.Minute, semel.Unknown, call(contract.Unknown, contract.CauseServerError, ""))).
			begun().sawCall(final()), ActFinish, finish{outcome: semel.Unknown}},

		// An earlier execution is in doubt.
		{"idempotent: call again, after the mark", facts(idem, died(1, idem, 5*time.Minute)), ActBegin, finish{}},
		{"idempotent: call again", facts(idem, died(1, idem, 5*time.Minute)).begun(), ActCall, finish{}},
		{"idempotent: retention has passed", facts(idem, died(1, idem, 25*time.Hour)), ActFinish, finish{outcome: semel.Unknown}},
		{"idempotent: the margin has passed", facts(idem, died(1, idem, 23*time.Hour+40*time.Minute)).retry(func(r *Retry) { r.Budget = 24 * time.Hour }),
			ActFinish, finish{outcome: semel.Unknown}},
		{"idempotent: retention is counted from the first", facts(idem, died(1, idem, 25*time.Hour), died(2, idem, 5*time.Minute)).
			retry(func(r *Retry) { r.Budget = 100 * time.Hour }), ActFinish, finish{outcome: semel.Unknown}},
		{"idempotent: the attempts are spent", facts(idem, died(1, idem, 9*time.Minute), died(2, idem, 7*time.Minute), died(3, idem, 5*time.Minute)),
			ActFinish, finish{outcome: semel.Unknown}},
		{"idempotent: the same for the whole budget", facts(idem, died(1, idem, 13*time.Hour)), ActFinish, finish{outcome: semel.Unknown}},
		{"stopping in doubt", facts(idem, died(1, idem, 5*time.Minute)).stopping(), ActFinish, finish{outcome: semel.NotApplied, re: true}},
		{"refused after a doubt", facts(idem, died(1, idem, 5*time.Minute)).begun().sawCall(refused), ActFinish,
			finish{outcome: semel.Refused, re: true, most: 2 * time.Second}},
		{"not sent after a doubt", facts(idem, died(1, idem, 5*time.Minute)).begun().sawCall(unsent), ActFinish,
			finish{outcome: semel.NotApplied, re: true, most: 2 * time.Second}},
		{"refused for the key after a doubt", facts(idem, died(1, idem, 5*time.Minute)).begun().
			sawCall(result(contract.Refused, contract.CauseRejected, contract.ReachEarlier)), ActFinish, finish{outcome: semel.Refused, covers: true}},
		{"applied after a doubt", facts(idem, died(1, idem, 5*time.Minute)).begun().sawCall(applied), ActFinish, finish{outcome: semel.Applied, covers: true}},
		{"a mismatch after a doubt", facts(idem, died(1, idem, 5*time.Minute)).begun().
			sawCall(result(contract.Refused, contract.CauseMismatch, contract.ReachThis)), ActFinish, finish{outcome: semel.Refused}},

		{"queryable: look up", facts(query, died(1, query, 5*time.Minute)), ActLookUp, finish{}},
		{"queryable: found done", facts(query, died(1, query, 5*time.Minute)).sawLookUp(contract.FoundSucceeded), ActFinish, finish{outcome: semel.Applied, covers: true}},
		{"queryable: found failed", facts(query, died(1, query, 5*time.Minute)).sawLookUp(contract.FoundFailed), ActFinish, finish{outcome: semel.Refused, covers: true}},
		{"queryable: found pending", facts(query, died(1, query, 5*time.Minute)).sawLookUp(contract.FoundPending), ActFinish,
			finish{outcome: semel.Unknown, re: true, least: time.Second, most: 2 * time.Second}},
		{"queryable: can't tell", facts(query, died(1, query, 5*time.Minute)).sawLookUp(contract.FoundNoAnswer), ActFinish,
			finish{outcome: semel.Unknown, re: true, least: time.Second, most: 2 * time.Second}},
		// absent_after is a minute; the lease ended a minute after its begin, and the
		// call could go on for 10 s more.
		{"queryable: absent too early", facts(query, died(1, query, 129*time.Second)).sawLookUp(contract.FoundNothing), ActFinish,
			finish{outcome: semel.Unknown, re: true, least: time.Second, most: 2 * time.Second}},
		{"queryable: absent for sure", facts(query, died(1, query, 131*time.Second)).sawLookUp(contract.FoundNothing), ActFinish,
			finish{outcome: semel.NotApplied, covers: true, re: true}},
		{"queryable: absent for sure, attempts spent", facts(query, died(1, query, 9*time.Minute), died(2, query, 7*time.Minute), died(3, query, 5*time.Minute)).
			sawLookUp(contract.FoundNothing), ActFinish, finish{outcome: semel.NotApplied, covers: true}},
		{"queryable: looked up for long enough", facts(query, died(1, query, 30*time.Hour),
			ended(2, query, 29*time.Hour, semel.Unknown, lookUp(contract.FoundNoAnswer))).sawLookUp(contract.FoundNoAnswer), ActFinish,
			finish{outcome: semel.Unknown}},
		{"queryable: nobody was there for a day", facts(query, died(1, query, 30*time.Hour)).sawLookUp(contract.FoundNoAnswer), ActFinish,
			finish{outcome: semel.Unknown, re: true, least: time.Second, most: 2 * time.Second}},
		{"queryable: not configured for it", facts(query, died(1, query, 5*time.Minute)).blind(), ActFinish, finish{outcome: semel.Unknown}},
		{"both: a call is better", facts(both, died(1, both, 5*time.Minute)).begun(), ActCall, finish{}},
		{"both: retention has passed", facts(both, died(1, both, 25*time.Hour)), ActLookUp, finish{}},
		{"both: attempts are spent", facts(both, died(1, both, 9*time.Minute), died(2, both, 7*time.Minute), died(3, both, 5*time.Minute)), ActLookUp, finish{}},

		{"opaque: its call may go on", facts(opaque, died(1, opaque, 65*time.Second)), ActFinish,
			finish{outcome: semel.Unknown, re: true, least: 5 * time.Second, most: 6 * time.Second}},
		{"opaque: a person", facts(opaque, died(1, opaque, 71*time.Second)), ActFinish, finish{outcome: semel.Unknown}},

		// The contract of the doubtful execution counts.
		{"was opaque, is idempotent", facts(idem, died(1, opaque, 5*time.Minute)), ActFinish, finish{outcome: semel.Unknown}},
		{"was idempotent, is opaque", facts(opaque, died(1, idem, 5*time.Minute)), ActBegin, finish{}},
		{"the first one rules", facts(idem, died(1, query, 9*time.Minute), died(2, idem, 5*time.Minute)), ActLookUp, finish{}},
		{"a contract that can't be read", facts(idem, unreadable(1, 5*time.Minute)), ActFinish, finish{outcome: semel.Unknown}},
	} {
		a := Step(c.f)
		got := finish{a.Ending.Outcome, a.Ending.CoversAll, a.Ending.Again, 0, 0}
		want := finish{c.end.outcome, c.end.covers, c.end.re, 0, 0}
		if a.Act != c.act || c.act == ActFinish && got != want {
			t.Errorf("%s: %s %+v (%s), want %s %+v", c.name, a.Act, got, a.Report.Next, c.act, want)
		}
		if a.Ending.In < c.end.least || a.Ending.In > c.end.most {
			t.Errorf("%s: in %s, want %s to %s", c.name, a.Ending.In, c.end.least, c.end.most)
		}
		if a.Act == ActFinish && a.Report.Next == "" {
			t.Errorf("%s: nothing is said of why", c.name)
		}
	}
}

func lookUp(f contract.Found) Report {
	return Report{Did: DidLookUp, Found: f, Proof: &contract.Proof{Proves: contract.Unknown, Cause: contract.CauseLookUpNoAnswer}}
}

func (f Facts) cleared(token int64) Facts { f.Lease.Operation.ClearedToken = token; return f }
func (f Facts) token(token int64) Facts {
	f.Lease.Token, f.Lease.Operation.Token = token, token
	return f
}

func handedBack(token int64, c contract.Contract, ago time.Duration) semel.Execution {
	x := ended(token, c, ago, semel.NotApplied, Report{Did: DidHandBack})
	x.BegunAt = x.ClaimedAt // by its claim
	return x
}

func unreadable(token int64, ago time.Duration) semel.Execution {
	x := died(token, contract.Contract{}, ago)
	x.Contract = `{"from":"a newer release"}`
	return x
}

func final() effect.Result {
	r := result(contract.Unknown, contract.CauseServerError, contract.ReachThis)
	r.Proof.Final, r.Proof.Replayed = true, true
	return r
}

// The date of the first transmission is that of the first doubtful execution, and
// else of this one.
func TestFirstSent(t *testing.T) {
	idem := preset(t, contract.Idempotent)
	if a := Step(facts(idem)); !a.FirstSent.Equal(noon) || a.Repeat {
		t.Errorf("first: %+v", a)
	}
	a := Step(facts(idem, died(1, idem, time.Hour), died(2, idem, time.Minute)).begun())
	if want := noon.Add(-time.Hour); !a.FirstSent.Equal(want) || !a.Repeat {
		t.Errorf("repeat: %s %v, want %s", a.FirstSent, a.Repeat, want)
	}
	cleared := facts(idem, died(1, idem, time.Hour)).cleared(1).begun()
	if a := Step(cleared); !a.FirstSent.Equal(noon) || a.Repeat {
		t.Errorf("cleared: %+v", a)
	}
}

func TestBackoffStaysInItsBounds(t *testing.T) {
	r := Retry{Base: time.Second, Cap: 5 * time.Minute}
	for n, bound := range map[int]time.Duration{-1: time.Second, 0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 8: 256 * time.Second, 9: r.Cap, 30: r.Cap, 64: r.Cap, 1 << 30: r.Cap} {
		if got := r.backoff(n, 0); got != 0 {
			t.Errorf("%d: smallest is %s", n, got)
		}
		if got := r.backoff(n, 0.5); got != bound/2 {
			t.Errorf("%d: middle is %s, want %s", n, got, bound/2)
		}
		if got := r.backoff(n, 0.999999); got > bound || got < bound*99/100 {
			t.Errorf("%d: largest is %s, want almost %s", n, got, bound)
		}
	}
	odd := Retry{Base: 1<<62 + 1, Cap: 1 << 62}
	if got := odd.backoff(3, 1); got != odd.Cap {
		t.Errorf("overflow: %s", got)
	}
}

// The time that was spent since the claim counts: it never makes a proof of
// absence come early, nor a re-call come late.
func TestTimeSinceTheClaimCounts(t *testing.T) {
	idem, query := preset(t, contract.Idempotent), preset(t, contract.Queryable)
	f := facts(query, died(1, query, 100*time.Second)).sawLookUp(contract.FoundNothing)
	f.Asked, f.Held = 40*time.Second, 40*time.Second
	f.Saw.Sent = 20 * time.Second // sent too early, although the answer came late enough
	if a := Step(f); a.Ending.Outcome != semel.Unknown {
		t.Errorf("a look-up counts from when it was sent: %+v", a.Ending)
	}
	f.Saw.Sent = 31 * time.Second
	if a := Step(f); a.Ending.Outcome != semel.NotApplied || !a.Ending.CoversAll {
		t.Errorf("sent late enough: %+v", a.Ending)
	}
	g := facts(idem, died(1, idem, 23*time.Hour)).retry(func(r *Retry) { r.Budget = 24 * time.Hour })
	if a := Step(g); a.Act != ActBegin {
		t.Errorf("in time: %+v", a)
	}
	if a := Step(g.after(time.Hour)); a.Act != ActFinish || a.Ending.Again {
		t.Errorf("too late: %+v", a)
	}
}
