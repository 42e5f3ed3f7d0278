package worker

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// A retry is a call after another one that may have gone out. A look-up, a lease
// that was handed back, or one that was lost before the begin mark is none.
func TestWhyItIsCalledAgain(t *testing.T) {
	idem, opaque := preset(t, contract.Idempotent), preset(t, contract.Opaque)
	lost := died(1, idem, time.Minute)
	unknown := ended(1, idem, time.Minute, semel.Unknown, call(contract.Unknown, contract.CauseServerError, contract.ReachThis))
	turnedAway := ended(1, idem, time.Minute, semel.NotApplied, call(contract.NotApplied, contract.CauseTurnedAway, contract.ReachThis))
	back := ended(1, idem, time.Minute, semel.NotApplied, Report{Did: DidHandBack})
	begunAndBack := back
	begunAndBack.BegunAt = begunAndBack.ClaimedAt
	unmarked := died(1, opaque, time.Minute)
	unmarked.BegunAt = time.Time{}
	second := func(x semel.Execution) semel.Execution { x.Token = 2; return x }
	for _, c := range []struct {
		name    string
		prior   []semel.Execution
		cleared int64
		want    string
	}{
		{"the first call", nil, 0, ""},
		{"handed back", []semel.Execution{back}, 0, ""},
		{"handed back after the mark", []semel.Execution{begunAndBack}, 0, ""},
		{"died before the mark", []semel.Execution{unmarked}, 0, ""},
		{"died", []semel.Execution{lost}, 0, "lease_lost"},
		{"no answer", []semel.Execution{unknown}, 0, "unknown"},
		{"turned away", []semel.Execution{turnedAway}, 1, "not_applied"},
		{"no answer, then died", []semel.Execution{unknown, second(lost)}, 0, "lease_lost"},
		{"died, then no answer", []semel.Execution{lost, second(unknown)}, 0, "unknown"},
		{"no answer, and turned away after it", []semel.Execution{unknown, second(turnedAway)}, 0, "unknown"},
		{"no answer, and a verdict that nothing happened", []semel.Execution{unknown}, 1, "not_applied"},
	} {
		lease := facts(idem, c.prior...).Lease
		lease.Operation.ClearedToken = c.cleared
		if got := retryReason(lease); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
