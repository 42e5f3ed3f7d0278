package contract_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/semel-dev/semel/contract"
	"pgregory.net/rapid"
)

// proofKinds are all proofs that can differ in their effect on a fold.
var proofKinds = []contract.Proof{
	{}, // says nothing: unknown
	{Proves: contract.Unknown, Reach: this, Cause: contract.CauseIntermediary},
	{Proves: contract.Unknown, Reach: this, Cause: contract.CauseServerError},
	{Proves: contract.Unknown, Reach: this, Cause: contract.CauseServerError, Final: true, Replayed: true},
	contract.NoReport(),
	{Proves: contract.InProgressNow, Reach: this, Cause: contract.CauseInProgress},
	{Proves: contract.NotSent, Reach: this, Cause: contract.Cause(contract.FailedDial)},
	{Proves: contract.NotApplied, Reach: this, Cause: contract.CauseTurnedAway},
	{Proves: contract.Refused, Reach: this, Cause: contract.CauseRejected},
	{Proves: contract.Refused, Reach: this, Cause: contract.CauseMismatch},
	{Proves: contract.Refused, Reach: this, Cause: contract.CauseExpired},
	{Proves: contract.Refused, Reach: earlier, Cause: contract.CauseRejected},
	{Proves: contract.Refused, Reach: key, Cause: contract.CauseRejected},
	{Proves: contract.Applied, Reach: key, Cause: contract.CauseSuccess},
	{Proves: contract.Applied, Reach: key, Cause: contract.CauseFound},
	{Proves: contract.Refused, Reach: key, Cause: contract.CauseFoundFailed},
	{Proves: contract.InProgressNow, Reach: this, Cause: contract.CauseFoundPending},
	{Proves: contract.Unknown, Reach: this, Cause: contract.CauseAbsentSoFar},
	{Proves: contract.Unknown, Reach: this, Cause: contract.CauseLookUpNoAnswer},
	{Proves: contract.NotApplied, Reach: earlier, Cause: contract.CauseAbsent},
	contract.VerdictNotApplied(),
	contract.VerdictApplied(),
}

func transmission(p contract.Proof) bool {
	switch p.Cause {
	case contract.CauseFound, contract.CauseFoundFailed, contract.CauseFoundPending, contract.CauseAbsent, contract.CauseAbsentSoFar,
		contract.CauseLookUpNoAnswer, contract.CauseVerdict:
		return false
	}
	return true
}

// outcomeOf is the rule of the fold, written down a second time and over the whole list at once.
func outcomeOf(proofs []contract.Proof) contract.Outcome {
	from := 0
	refusedForKey := false
	for i, p := range proofs {
		if p.Proves == contract.Applied {
			return contract.OutcomeApplied
		}
		refusedForKey = refusedForKey || p.Proves == contract.Refused && p.Reach == key
		if p.Reach == earlier {
			from = i
		}
	}
	if refusedForKey {
		return contract.OutcomeRefused
	}
	outcome := contract.OutcomeNone
	for _, p := range proofs[from:] {
		switch p.Proves {
		case contract.Refused:
			if outcome != contract.OutcomeUnknown {
				outcome = contract.OutcomeRefused
			}
		case contract.NotSent, contract.NotApplied:
			if outcome == contract.OutcomeNone {
				outcome = contract.OutcomeNotApplied
			}
		default:
			if transmission(p) {
				outcome = contract.OutcomeUnknown
			}
		}
	}
	return outcome
}

// Every sequence of up to four proofs: 22 + 22² + 22³ + 22⁴.
func TestEverySequenceOfProofs(t *testing.T) {
	n := 0
	var walk func(contract.Evidence, []contract.Proof)
	walk = func(e contract.Evidence, list []contract.Proof) {
		n++
		if got, want := e.Outcome(), outcomeOf(list); got != want {
			t.Fatalf("%v is %q, want %q", causes(list), got, want)
		}
		if len(list) == 4 {
			return
		}
		for _, p := range proofKinds {
			next := append(list[:len(list):len(list)], p)
			walk(e.Add(p), next)
		}
	}
	walk(contract.Evidence{}, nil)
	t.Logf("%d sequences", n)
}

func causes(list []contract.Proof) []string {
	var words []string
	for _, p := range list {
		words = append(words, string(p.Proves)+"/"+string(p.Reach)+"/"+string(p.Cause))
	}
	return words
}

func drawProofs(t *rapid.T, label string) []contract.Proof {
	return rapid.SliceOfN(rapid.SampledFrom(proofKinds), 0, 12).Draw(t, label)
}

// Law 6: once a transmission is unknown, only an answer for the key, a look-up or a verdict ends it.
func TestUnknownStaysUnknown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := contract.Fold(drawProofs(t, "before")...)
		for _, p := range drawProofs(t, "after") {
			was := e.Outcome()
			e = e.Add(p)
			entitled := p.Proves == contract.Applied || p.Reach == earlier || p.Reach == key
			if was == contract.OutcomeUnknown && e.Outcome() != contract.OutcomeUnknown && !entitled {
				t.Fatalf("%s/%s/%s ended an unknown", p.Proves, p.Reach, p.Cause)
			}
			if p.Proves == contract.Unknown && transmission(p) && e.Outcome() != contract.OutcomeUnknown && !e.Done && !e.RefusedForKey {
				t.Fatalf("an unknown transmission was lost: %+v", e)
			}
			if was == contract.OutcomeApplied && e.Outcome() != contract.OutcomeApplied {
				t.Fatalf("what is done became undone by %+v", p)
			}
		}
	})
}

// Where no proof reaches back, the order of the proofs does not matter.
func TestOrderDoesNotMatter(t *testing.T) {
	var local []contract.Proof
	for _, p := range proofKinds {
		if p.Reach != earlier {
			local = append(local, p)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom(local), 0, 10).Draw(t, "proofs")
		other := rapid.Permutation(list).Draw(t, "order")
		a, b := contract.Fold(list...), contract.Fold(other...)
		a.Last, b.Last = contract.Proof{}, contract.Proof{}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%v\n%+v\n%v\n%+v", causes(list), a, causes(other), b)
		}
	})
}

// Where a proof does reach back, order is its whole point.
func TestReachingBackIsNotReachingForward(t *testing.T) {
	lost, late := proofKinds[1], proofKinds[11]
	if got := contract.Fold(lost, late).Outcome(); got != contract.OutcomeRefused {
		t.Errorf("refused after look-up, after an unknown: %s", got)
	}
	if got := contract.Fold(late, lost).Outcome(); got != contract.OutcomeUnknown {
		t.Errorf("an unknown after a refusal after look-up: %s", got)
	}
}

// The fold can be stored half-way and taken up again.
func TestEvidenceSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := drawProofs(t, "first"), drawProofs(t, "second")
		data, err := json.Marshal(contract.Fold(first...))
		if err != nil {
			t.Fatal(err)
		}
		var e contract.Evidence
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatal(err)
		}
		for _, p := range second {
			e = e.Add(p)
		}
		if want := contract.Fold(append(first, second...)...); !reflect.DeepEqual(e, want) {
			t.Fatalf("%+v\n%+v", e, want)
		}
	})
}

func TestMaybeTwice(t *testing.T) {
	opaque, _ := contract.Preset(contract.Opaque)
	stripe, _ := contract.Preset(contract.StripeV1)
	done := contract.Proof{Proves: contract.Applied, Reach: key, Cause: contract.CauseSuccess, Sends: 1}
	hidden := done
	hidden.Sends = 2
	lost := contract.NoReport()
	for _, tt := range []struct {
		name   string
		proofs []contract.Proof
		want   bool
	}{
		{"once", []contract.Proof{done}, false},
		{"twice", []contract.Proof{done, done}, true},
		{"after an unknown", []contract.Proof{lost, done}, true},
		{"sent twice by the transport", []contract.Proof{hidden}, true},
		{"found by a look-up", []contract.Proof{lost, {Proves: contract.Applied, Reach: key, Cause: contract.CauseFound}}, false},
		{"one of two found by a look-up", []contract.Proof{lost, lost, {Proves: contract.Applied, Reach: key, Cause: contract.CauseFound}}, true},
		{"unknown", []contract.Proof{lost}, false},
	} {
		e := contract.Fold(tt.proofs...)
		if got := e.MaybeTwice(opaque); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if e.MaybeTwice(stripe) {
			t.Errorf("%s: an idempotent contract protects a repeat", tt.name)
		}
	}
}

func TestContradiction(t *testing.T) {
	done, refused := proofKinds[13], proofKinds[12]
	for _, e := range []contract.Evidence{contract.Fold(done, refused), contract.Fold(refused, done)} {
		if !e.Contradicted || e.Outcome() != contract.OutcomeApplied {
			t.Errorf("%+v is %s", e, e.Outcome())
		}
	}
}
