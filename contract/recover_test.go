package contract_test

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
)

var (
	lost        = contract.Proof{Proves: contract.Unknown, Reach: this, Cause: contract.Cause(contract.FailedTimeout), Reason: "no answer"}
	serverError = contract.Proof{Proves: contract.Unknown, Reach: this, Cause: contract.CauseServerError, Reason: "500"}
	stored500   = contract.Proof{Proves: contract.Unknown, Reach: this, Cause: contract.CauseServerError, Final: true, Replayed: true, Reason: "stored 500"}
	running     = contract.Proof{Proves: contract.InProgressNow, Reach: this, Cause: contract.CauseInProgress, Reason: "409"}
	unsent      = contract.Proof{Proves: contract.NotSent, Reach: this, Cause: contract.Cause(contract.FailedDial), Reason: "refused connection"}
	rejected    = contract.Proof{Proves: contract.Refused, Reach: this, Cause: contract.CauseRejected, Reason: "401"}
	turnedAway  = contract.Proof{Proves: contract.NotApplied, Reach: this, Cause: contract.CauseTurnedAway, Reason: "429"}
	done        = contract.Proof{Proves: contract.Applied, Reach: key, Cause: contract.CauseSuccess, Reason: "201"}
	mismatch    = contract.Proof{Proves: contract.Refused, Reach: this, Cause: contract.CauseMismatch, Reason: "422"}
	expired     = contract.Proof{Proves: contract.Refused, Reach: this, Cause: contract.CauseExpired, Reason: "410"}
	leaveAlone  = contract.Proof{Proves: contract.Unknown, Reach: this, Cause: contract.CauseIntermediary, Again: contract.AgainNo, Reason: "503"}
)

func preset(t *testing.T, name string) contract.Contract {
	t.Helper()
	c, err := contract.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRecover(t *testing.T) {
	var (
		stripe, ietf, azure, increase, query, opaque = preset(t, contract.StripeV1), preset(t, contract.IETF), preset(t, contract.Azure),
			preset(t, contract.Increase), preset(t, contract.Queryable), preset(t, contract.Opaque)
		quiet = checkout() // says nothing of a look-up and frees the key after a 5xx
		mute  = payPal()   // does not say what a second request meets
	)
	quiet.Stored.ServerErrors = ""
	unguarded := preset(t, contract.StripeV1) // keys are kept, and yet a second request runs beside the first
	unguarded.InProgress = contract.InProgress{Do: contract.ConcurrentRuns}
	fold := contract.Fold
	tests := []struct {
		name string
		c    contract.Contract
		s    contract.Situation
		step contract.Step
		wait time.Duration
		why  string
	}{
		{"certainly not begun", opaque, contract.Situation{NotBegun: true}, contract.StepRunAfresh, 0, "no execution has begun"},
		{"begun, and no word of it", opaque, contract.Situation{}, contract.StepReconcile, 0, "cannot be looked up"},
		{"begun, and no word of it", stripe, contract.Situation{Age: time.Hour}, contract.StepReCall, 0, "kept for at least 24h"},
		{"done", opaque, contract.Situation{Evidence: fold(lost, done)}, contract.StepSettle, 0, "201"},
		{"refused", stripe, contract.Situation{Evidence: fold(rejected)}, contract.StepSettle, 0, "401"},
		{"not sent", opaque, contract.Situation{Evidence: fold(unsent)}, contract.StepRunAfresh, 0, "certainly nothing happened"},
		{"turned away, and told to wait", opaque, contract.Situation{Evidence: fold(turnedAway), WaitAtLeast: time.Minute}, contract.StepWait, time.Minute, "asked us to wait"},
		{"turned away, and has waited", opaque, contract.Situation{Evidence: fold(turnedAway)}, contract.StepRunAfresh, 0, "429"},
		{"not sent, after an unknown", opaque, contract.Situation{Evidence: fold(lost, unsent)}, contract.StepReconcile, 0, "may have happened"},
		{"refused, after an unknown", stripe, contract.Situation{Evidence: fold(lost, rejected)}, contract.StepReCall, 0, "may have happened"},

		{"idempotent, inside the retention", stripe, contract.Situation{Evidence: fold(lost), Age: 23 * time.Hour, Margin: time.Minute}, contract.StepReCall, 0, "no second effect"},
		{"idempotent, in the margin", stripe, contract.Situation{Evidence: fold(lost), Age: 24*time.Hour - time.Minute, Margin: time.Minute}, contract.StepReconcile, 0, "keep the key no longer"},
		{"idempotent, a moment before the margin", stripe, contract.Situation{Evidence: fold(lost), Age: 24*time.Hour - time.Minute - 1, Margin: time.Minute}, contract.StepReCall, 0, ""},
		{"idempotent, past the retention", stripe, contract.Situation{Evidence: fold(lost), Age: 25 * time.Hour}, contract.StepReconcile, 0, "keep the key no longer"},
		{"kept, and no protection", unguarded, contract.Situation{Evidence: fold(lost)}, contract.StepReconcile, 0, "does not protect"},
		{"kept for ever", increase, contract.Situation{Evidence: fold(lost), Age: 10000 * time.Hour}, contract.StepReCall, 0, "kept for ever"},
		{"told to wait", stripe, contract.Situation{Evidence: fold(lost), WaitAtLeast: 5 * time.Second}, contract.StepWait, 5 * time.Second, ""},
		{"in progress, just asked", stripe, contract.Situation{Evidence: fold(running), SinceLast: 200 * time.Millisecond}, contract.StepWait, 800 * time.Millisecond, "still at work"},
		{"in progress, some time ago", stripe, contract.Situation{Evidence: fold(running), SinceLast: time.Second}, contract.StepReCall, 0, "how it ended"},
		{"in progress until the key expires", stripe, contract.Situation{Evidence: fold(running), SinceLast: time.Hour, Age: 25 * time.Hour}, contract.StepReconcile, 0, ""},
		{"concurrency unspecified, still on its way", mute, contract.Situation{Evidence: fold(lost), SinceDoubt: -7 * time.Second}, contract.StepWait, 7 * time.Second, "on its way"},
		{"concurrency unspecified, over", mute, contract.Situation{Evidence: fold(lost)}, contract.StepReCall, 0, ""},

		{"a stored 500 does not loop", stripe, contract.Situation{Evidence: fold(lost, stored500)}, contract.StepReconcile, 0, "stored an error"},
		{"a stored 500, with a look-up", increase, contract.Situation{Evidence: fold(stored500)}, contract.StepLookUp, 0, "stored an error"},
		{"a first 500, stored and marked", stripe, contract.Situation{Evidence: fold(serverError)}, contract.StepReCall, 0, ""},
		{"a first 500, stored without a mark", ietf, contract.Situation{Evidence: fold(serverError)}, contract.StepReCall, 0, ""},
		{"a second 500, stored without a mark", ietf, contract.Situation{Evidence: fold(serverError, serverError)}, contract.StepReconcile, 0, "twice"},
		{"a 500 that frees the key", azure, contract.Situation{Evidence: fold(serverError)}, contract.StepReconcile, 0, "frees the key"},
		{"a 500 of which nothing is said", quiet, contract.Situation{Evidence: fold(serverError)}, contract.StepReconcile, 0, "stored.server_errors"},
		{"a 500 that is resumed", increase, contract.Situation{Evidence: fold(serverError)}, contract.StepReCall, 0, ""},
		{"a mismatch after an unknown", stripe, contract.Situation{Evidence: fold(lost, mismatch)}, contract.StepReconcile, 0, "another request"},
		{"a mismatch at once", stripe, contract.Situation{Evidence: fold(mismatch)}, contract.StepSettle, 0, "422"},
		{"expired after an unknown", azure, contract.Situation{Evidence: fold(lost, expired)}, contract.StepReconcile, 0, "no longer keeps"},
		{"asked not to call again", stripe, contract.Situation{Evidence: fold(leaveAlone)}, contract.StepReconcile, 0, "not to be called again"},
		{"the budget is used up", stripe, contract.Situation{Evidence: fold(lost), Spent: true}, contract.StepReconcile, 0, "used up"},
		{"the budget is used up, nothing happened", stripe, contract.Situation{Evidence: fold(unsent), Spent: true}, contract.StepRunAfresh, 0, ""},

		{"no more calls, with a look-up", increase, contract.Situation{Evidence: fold(lost), CallsSpent: true}, contract.StepLookUp, 0, "budget for calls"},
		{"no more calls, without one", stripe, contract.Situation{Evidence: fold(lost), CallsSpent: true}, contract.StepReconcile, 0, "budget for calls"},
		{"no more calls, nothing happened", stripe, contract.Situation{Evidence: fold(unsent), CallsSpent: true}, contract.StepRunAfresh, 0, ""},
		{"queryable", query, contract.Situation{Evidence: fold(lost)}, contract.StepLookUp, 0, "can be looked up"},
		{"pending, just asked", query, contract.Situation{Evidence: fold(lost), Found: contract.FoundPending, LookUps: 3, SinceLookUp: time.Second}, contract.StepWait, 3 * time.Second, "still running"},
		{"pending, some time ago", query, contract.Situation{Evidence: fold(lost), Found: contract.FoundPending, LookUps: 3, SinceLookUp: 4 * time.Second}, contract.StepLookUp, 0, ""},
		{"could not tell", query, contract.Situation{Evidence: fold(lost), Found: contract.FoundNoAnswer, LookUps: 99, SinceLookUp: time.Second}, contract.StepWait, 5*time.Minute - time.Second, "impossible to tell"},
		{"absent so far", query, contract.Situation{Evidence: fold(lost), Found: contract.FoundNothing, LookUps: 9, SinceDoubt: 50 * time.Second, SinceLookUp: time.Second}, contract.StepWait, 10 * time.Second, "1m after"},
		{"absent so far, next look-up due", query, contract.Situation{Evidence: fold(lost), Found: contract.FoundNothing, LookUps: 1, SinceDoubt: 50 * time.Second, SinceLookUp: time.Second}, contract.StepLookUp, 0, ""},
		{"absent when it was too early, now due", query, contract.Situation{Evidence: fold(lost), Found: contract.FoundNothing, LookUps: 9, SinceDoubt: time.Minute, SinceLookUp: time.Second}, contract.StepLookUp, 0, ""},
		{"absent for sure", query, contract.Situation{Evidence: fold(lost, query.ClassifyLookUp(contract.FoundNothing, contract.Duration(time.Minute)))}, contract.StepRunAfresh, 0, "did not find it"},
		{"found", query, contract.Situation{Evidence: fold(lost, query.ClassifyLookUp(contract.FoundSucceeded, 0))}, contract.StepSettle, 0, "found it done"},
		{"absent, and it never proves", ec2(), contract.Situation{Evidence: fold(lost), Found: contract.FoundNothing, LookUps: 1, SinceDoubt: 6 * time.Minute, SinceLookUp: time.Minute}, contract.StepReconcile, 0, "proves nothing"},
		{"absent, may still become visible", ec2(), contract.Situation{Evidence: fold(lost), Found: contract.FoundNothing, LookUps: 1, SinceDoubt: 2 * time.Minute, SinceLookUp: time.Minute}, contract.StepWait, 3 * time.Minute, "invisible"},
		{"absent when it was too early, visible by now", ec2(), contract.Situation{Evidence: fold(lost), Found: contract.FoundNothing, LookUps: 1, SinceDoubt: 5 * time.Minute, SinceLookUp: time.Minute}, contract.StepLookUp, 0, ""},
		{"past the retention, with a look-up", preset(t, contract.Semel), contract.Situation{Evidence: fold(lost), Age: 31 * 24 * time.Hour}, contract.StepLookUp, 0, "keep the key no longer"},

		{"opaque, still on its way", opaque, contract.Situation{Evidence: fold(lost), SinceDoubt: -3 * time.Second}, contract.StepWait, 3 * time.Second, "would settle it"},
		{"opaque, over", opaque, contract.Situation{Evidence: fold(lost), SinceDoubt: 1}, contract.StepReconcile, 0, "cannot be looked up"},
		{"opaque, told to wait", opaque, contract.Situation{Evidence: fold(lost), WaitAtLeast: time.Hour}, contract.StepReconcile, 0, ""},
	}
	for _, tt := range tests {
		d := tt.c.Recover(tt.s)
		if d.Step != tt.step || d.Wait != tt.wait {
			t.Errorf("%s, %s: %s %s (%s), want %s %s", tt.c.Name, tt.name, d.Step, d.Wait, d.Reason, tt.step, tt.wait)
		}
		if !strings.Contains(d.Reason, tt.why) || d.Reason == "" {
			t.Errorf("%s, %s: the reason is %q, want something with %q", tt.c.Name, tt.name, d.Reason, tt.why)
		}
	}
}

func TestMaySendAgain(t *testing.T) {
	stripe, opaque, semel := preset(t, contract.StripeV1), preset(t, contract.Opaque), preset(t, contract.Semel)
	tests := []struct {
		c    contract.Contract
		r    contract.Request
		want bool
	}{
		{stripe, contract.Request{Method: "POST", Keyed: true, Replayable: true}, true},
		{stripe, contract.Request{Method: "post", Keyed: true, Replayable: true}, true},
		{stripe, contract.Request{Method: "POST", Keyed: true}, false},
		{stripe, contract.Request{Method: "POST", Replayable: true}, false},
		{stripe, contract.Request{Method: "PATCH", Keyed: true, Replayable: true}, false},
		{stripe, contract.Request{Method: "PUT", Replayable: true}, false},
		{stripe, contract.Request{Method: "DELETE", Replayable: true}, true},
		{stripe, contract.Request{Method: "GET", Replayable: true}, true},
		{stripe, contract.Request{Method: "", Replayable: true}, true},
		{stripe, contract.Request{Method: "GET"}, false},
		{opaque, contract.Request{Method: "POST", Keyed: true, Replayable: true}, false},
		{opaque, contract.Request{Method: "PUT", Keyed: true, Replayable: true}, false},
		{opaque, contract.Request{Method: "HEAD", Replayable: true}, true},
		{contract.Contract{}, contract.Request{Method: "OPTIONS", Replayable: true}, true},
		{semel, contract.Request{Method: "PUT", Replayable: true}, true},
	}
	for _, tt := range tests {
		got, why := tt.c.MaySendAgain(tt.r)
		if got != tt.want || why == "" {
			t.Errorf("%s %+v: %v (%s), want %v", tt.c.Name, tt.r, got, why, tt.want)
		}
	}
}

func TestAgain(t *testing.T) {
	stripe, opaque := preset(t, contract.StripeV1), preset(t, contract.Opaque)
	keyed := contract.Request{Method: "POST", Keyed: true, Replayable: true}
	bare := contract.Request{Method: "POST", Replayable: true}
	get := contract.Request{Method: "GET", Replayable: true}
	fold := contract.Fold
	tests := []struct {
		name string
		c    contract.Contract
		r    contract.Request
		e    contract.Evidence
		want bool
	}{
		{"nothing yet", opaque, bare, contract.Evidence{}, true},
		{"not sent", opaque, bare, fold(unsent), true},
		{"not sent, the body is gone", opaque, contract.Request{Method: "POST"}, fold(unsent), false},
		{"turned away", stripe, keyed, fold(turnedAway), true},
		{"done", stripe, keyed, fold(done), false},
		{"refused", stripe, keyed, fold(rejected), false},
		{"unknown, with a key", stripe, keyed, fold(lost), true},
		{"unknown, without a key", stripe, bare, fold(lost), false},
		{"unknown, opaque", opaque, keyed, fold(lost), false},
		{"not sent after an unknown, opaque", opaque, keyed, fold(lost, unsent), false},
		{"refused after an unknown", stripe, keyed, fold(lost, rejected), true},
		{"in progress", stripe, keyed, fold(running), true},
		{"a stored 500", stripe, keyed, fold(stored500), false},
		{"a stored 500 for a GET", stripe, get, fold(stored500), true},
		{"a mismatch after an unknown", stripe, keyed, fold(lost, mismatch), false},
		{"asked not to", stripe, keyed, fold(leaveAlone), false},
	}
	for _, tt := range tests {
		got, why := tt.c.Again(tt.r, tt.e)
		if got != tt.want || why == "" {
			t.Errorf("%s: %v (%s), want %v", tt.name, got, why, tt.want)
		}
	}
}
