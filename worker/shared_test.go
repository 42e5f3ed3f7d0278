package worker

import (
	"reflect"
	"testing"

	"github.com/semel-dev/semel/contract"
)

// All operations of a kind go by one contract. An operation whose budget is spent is
// decided as if there were no key; the others still have theirs.
func TestASpentBudgetIsItsOwn(t *testing.T) {
	f := facts(preset(t, contract.Idempotent)).retry(func(r *Retry) { r.MaxExecutions = 1 }).
		sawCall(result(contract.Unknown, "", contract.ReachThis))
	want := f.Kind.Contract
	if a := Step(f); a.Ending.Again {
		t.Fatalf("the budget is not spent: %+v", a)
	}
	if !reflect.DeepEqual(f.Kind.Contract, want) {
		t.Errorf("the kind's contract is now %+v", f.Kind.Contract)
	}
}
