package worker

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

// Whatever the history and whatever was seen: the laws hold for every step.
func TestEveryStepKeepsTheLaws(t *testing.T) {
	all := []contract.Contract{preset(t, contract.Idempotent), preset(t, contract.Queryable), preset(t, contract.Opaque),
		preset(t, contract.AIP155), preset(t, contract.StripeV1), {}}
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t, all)
		a := Step(f)
		doubt := f.Lease.Doubt()
		rules := f.Kind.Contract
		if len(doubt) > 0 {
			rules = contract.Contract{}
			if c, err := contract.Parse([]byte(doubt[0].Contract)); err == nil {
				rules = c
			}
		}
		evidence := recall(f.Lease, &f.Kind.Contract, f.Kind.Timeout).evidence
		open := len(doubt) > 0 && evidence.Outcome() == contract.OutcomeUnknown
		switch a.Act {
		case ActBegin, ActCall:
			if f.Saw != nil || f.Stopping {
				t.Fatalf("%s after it acted, or while stopping", a.Act)
			}
			if (a.Act == ActBegin) == f.Lease.Begun {
				t.Fatalf("%s with begun = %v", a.Act, f.Lease.Begun)
			}
			if open && !rules.Shape().Idempotent {
				t.Fatalf("law 5: a call again under %q", rules.Name)
			}
			age := f.Lease.Now.Add(f.Asked).Sub(firstOf(doubt, f.Lease.Now))
			if keeps := rules.Retention; open && keeps.After != contract.AfterKeptForEver && age+f.Kind.Timeout > keeps.Minimum.D() {
				t.Fatalf("law 5: a call again %s after the first, and keys are kept for %s", age, keeps.Minimum)
			}
		case ActLookUp:
			if f.Saw != nil || f.Stopping || len(doubt) == 0 || rules.LookUp.By == "" || !f.CanLookUp {
				t.Fatalf("a look-up out of place")
			}
		case ActFinish:
			checkEnding(t, f, a, rules, doubt)
		default:
			t.Fatalf("no act %q", a.Act)
		}
	})
}

func checkEnding(t *rapid.T, f Facts, a Action, rules contract.Contract, doubt []semel.Execution) {
	e := a.Ending
	if e.In < 0 || e.In > 0 && !e.Again {
		t.Fatalf("in %s, again %v", e.In, e.Again)
	}
	if f.Saw == nil {
		if e.Outcome == semel.Applied {
			t.Fatalf("applied, and nothing was seen")
		}
		return
	}
	var proof contract.Proof
	if f.Saw.Call != nil {
		proof = f.Saw.Call.Proof
	} else if a.Report.Proof != nil {
		proof = *a.Report.Proof
	}
	if e.Outcome == semel.Applied != (proof.Proves == contract.Applied) {
		t.Fatalf("outcome %s of a proof of %s", e.Outcome, proof.Proves)
	}
	if narrow := proof.Reach == contract.ReachThis || proof.Reach == ""; len(doubt) > 0 && narrow && e.CoversAll {
		t.Fatalf("law 6: a narrow proof covers %d doubts", len(doubt))
	}
	if f.Saw.LookUp != nil && f.Saw.LookUp.Found == contract.FoundNothing && e.Outcome == semel.NotApplied {
		end := time.Time{}
		for _, x := range doubt {
			last := x.LeaseEndsAt
			if !x.EndedAt.IsZero() {
				last = x.EndedAt
			}
			if last = last.Add(f.Kind.Timeout); last.After(end) {
				end = last
			}
		}
		if after := rules.LookUp.AbsentAfter.D(); after == 0 || f.Lease.Now.Add(f.Saw.Sent).Sub(end) < after {
			t.Fatalf("law 7: absent is taken for proof too early")
		}
	}
	if !e.Again && e.Outcome == semel.NotApplied && e.Failure == nil {
		t.Fatalf("a failure without a reason")
	}
}

func firstOf(doubt []semel.Execution, none time.Time) time.Time {
	if len(doubt) == 0 {
		return none
	}
	return doubt[0].BegunAt
}

func drawFacts(t *rapid.T, all []contract.Contract) Facts {
	c := all[rapid.IntRange(0, len(all)-1).Draw(t, "contract")]
	n := rapid.IntRange(0, 5).Draw(t, "prior")
	ago := rapid.SampledFrom([]time.Duration{time.Minute, 10 * time.Minute, time.Hour, 23 * time.Hour, 30 * time.Hour})
	proves := rapid.SampledFrom([]contract.Proves{contract.Unknown, contract.NotApplied, contract.NotSent, contract.Refused, contract.InProgressNow, ""})
	reach := rapid.SampledFrom([]contract.Reach{contract.ReachThis, contract.ReachEarlier, ""})
	cause := rapid.SampledFrom([]contract.Cause{contract.CauseServerError, contract.CauseRejected, contract.Cause(contract.FailedReset), contract.CauseMismatch})
	found := rapid.SampledFrom([]contract.Found{contract.FoundSucceeded, contract.FoundFailed, contract.FoundPending, contract.FoundNothing, contract.FoundNoAnswer})
	var prior []semel.Execution
	start := ago.Draw(t, "ago")
	for i := range n {
		under := all[rapid.IntRange(0, len(all)-1).Draw(t, "under")]
		at := start - time.Duration(i)*start/time.Duration(n+1)
		x := died(int64(i+1), under, at)
		switch rapid.IntRange(0, 3).Draw(t, "end") {
		case 0: // it died
		case 1:
			x.BegunAt = time.Time{} // before it began
		case 2:
			// A proof with a longer reach would have cleared all before it.
			p := contract.Proof{Proves: proves.Draw(t, "proves"), Reach: contract.ReachThis, Cause: cause.Draw(t, "cause")}
			x = ended(x.Token, under, at, outcomeOf(p), Report{Did: DidCall, Proof: &p})
		case 3:
			x = ended(x.Token, under, at, semel.Unknown, lookUp(found.Draw(t, "found")))
		}
		prior = append(prior, x)
	}
	f := facts(c, prior...)
	f.Lease.Begun = rapid.Bool().Draw(t, "begun")
	f.Stopping = rapid.IntRange(0, 9).Draw(t, "stopping") == 0
	f.CanLookUp = rapid.IntRange(0, 9).Draw(t, "can") > 0
	f.Lease.Operation.ClearedToken = int64(rapid.IntRange(0, n).Draw(t, "cleared"))
	f.Random = rapid.Float64Range(0, 0.999).Draw(t, "random")
	f.Held = rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "held")
	f.Asked = f.Held + time.Second
	switch rapid.IntRange(0, 2).Draw(t, "saw") {
	case 1:
		p := contract.Proof{Proves: proves.Draw(t, "saw proves"), Reach: reach.Draw(t, "saw reach"), Cause: cause.Draw(t, "saw cause")}
		if rapid.Bool().Draw(t, "applied") {
			p = contract.Proof{Proves: contract.Applied, Reach: contract.ReachKey, Cause: contract.CauseSuccess}
		}
		f.Saw = &Observation{Call: &effect.Result{Proof: p, Failure: &semel.Failure{Code: "why"}}}
	case 2:
		if len(f.Lease.Doubt()) > 0 {
			f.Saw = &Observation{LookUp: &effect.LookUpResult{Found: found.Draw(t, "saw found")}, Sent: f.Held / 2}
		}
	}
	return f
}
