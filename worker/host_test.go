package worker

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

func TestHostClosesProbesAndOpensSlowly(t *testing.T) {
	now := noon
	h := newHost(8)
	if h.room(now) != 8 {
		t.Fatalf("room %d at first", h.room(now))
	}
	fail := func() { h.ended(now, now, trouble, 0, 0) }
	for range 4 {
		fail()
	}
	if h.room(now) != 1 {
		t.Errorf("after four troubles: room %d, want 1 (halved each time)", h.room(now))
	}
	fail()
	if h.room(now) != 0 || h.closed.Sub(now) != pauseBase/2 {
		t.Errorf("after five: room %d, closed for %s", h.room(now), h.closed.Sub(now))
	}
	for range 20 { // calls that began before do not close it for longer
		h.ended(now.Add(-time.Second), now, trouble, 0, 0.99)
	}
	if h.closed.Sub(now) != pauseBase/2 {
		t.Errorf("one outage was counted several times: closed for %s", h.closed.Sub(now))
	}
	var last time.Duration
	for i := range 12 { // the probes fail: the pauses grow to their cap
		now = h.closed
		if h.room(now) != 1 {
			t.Fatalf("probe %d: room %d", i, h.room(now))
		}
		h.ended(now, now, trouble, 0, 0.5)
		pause := h.closed.Sub(now)
		if pause < last || pause > pauseCap {
			t.Errorf("probe %d: pause %s after %s", i, pause, last)
		}
		last = pause
	}
	if last != pauseCap*3/4 {
		t.Errorf("the longest pause in the middle of its bounds is %s", last)
	}
	now = h.closed
	for want := 2; want <= 8; want++ { // each success lets one more in
		h.ended(now, now, fine, 0, 0)
		if h.room(now) != want {
			t.Errorf("room %d, want %d", h.room(now), want)
		}
	}
	h.ended(now, now, fine, 0, 0)
	if h.room(now) != 8 {
		t.Errorf("room %d beyond the limit", h.room(now))
	}
	h.ended(now, now, trouble, 3*time.Second, 0)
	if h.closed.Sub(now) != 3*time.Second {
		t.Errorf("Retry-After closed it for %s", h.closed.Sub(now))
	}
	h.ended(now, now, trouble, time.Hour, 0)
	if h.closed.Sub(now) != pauseCap {
		t.Errorf("an hour's Retry-After closed the whole host for %s", h.closed.Sub(now))
	}
}

// An outage of an hour costs a handful of probes, not the budgets of what waits;
// afterwards everything runs, and not all at once: the first success is alone, and
// each one lets one more in.
func TestAnOutageIsSatOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		up := func() bool { return time.Since(began) > time.Hour }
		calls, running, done, most := 0, 0, 0, 0
		lock := make(chan struct{}, 1)
		k := long(preset(t, contract.Idempotent), effect.Func(func(context.Context, *effect.Call) effect.Result {
			if !up() {
				lock <- struct{}{}
				calls++
				<-lock
				return effect.NotApplied("down", "")
			}
			lock <- struct{}{}
			running++
			if running > 1+done {
				t.Errorf("%d run at once after %d successes", running, done)
			}
			most = max(most, running)
			<-lock
			time.Sleep(100 * time.Millisecond)
			lock <- struct{}{}
			running--
			done++
			<-lock
			return effect.Applied(1)
		}))
		k.Concurrency = 16
		var keys []semel.Key
		for i := range 100 {
			keys = append(keys, w.accept("acme", "order", fmt.Sprint(i)))
		}
		stop := w.start([]Kind{k}, nil)
		time.Sleep(time.Hour)
		lock <- struct{}{}
		probes := calls
		<-lock
		if probes > 200 {
			t.Errorf("%d calls during an outage of an hour", probes)
		}
		for _, key := range keys {
			if op := w.settled(key); op.State != semel.Succeeded {
				t.Errorf("%s: %s %+v", key, op.State, op.Failure)
			}
		}
		if took := time.Since(began) - time.Hour; took > 10*time.Minute {
			t.Errorf("it took %s to catch up", took)
		}
		if most < 2 || most > k.Concurrency {
			t.Errorf("at most %d ran at once, where %d may", most, k.Concurrency)
		}
		t.Logf("%d calls in an hour of outage; then at most %d at once", probes, most)
		stop()
	})
}

func TestWhatAnswersSayOfTheHost(t *testing.T) {
	for _, c := range []struct {
		p    contract.Proof
		want health
	}{
		{contract.Proof{Proves: contract.Applied, Cause: contract.CauseSuccess, Status: 200}, fine},
		{contract.Proof{Proves: contract.Refused, Cause: contract.CauseRejected, Status: 403}, fine},
		{contract.Proof{Proves: contract.InProgressNow, Cause: contract.CauseInProgress, Status: 409}, fine},
		{contract.Proof{Proves: contract.Unknown, Cause: contract.CauseServerError, Status: 500}, trouble},
		{contract.Proof{Proves: contract.Unknown, Cause: contract.CauseIntermediary, Status: 502}, trouble},
		{contract.Proof{Proves: contract.NotApplied, Cause: contract.CauseTurnedAway, Status: 429}, trouble},
		{contract.Proof{Proves: contract.NotSent, Cause: contract.Cause(contract.FailedDial)}, trouble},
		{contract.Proof{Proves: contract.Unknown, Cause: contract.Cause(contract.FailedTimeout)}, trouble},
		{contract.Proof{Proves: contract.Unknown, Cause: contract.Cause(contract.FailedCancelled)}, noSign},
		{contract.Proof{Proves: contract.Refused, Cause: "not_built"}, noSign},
		{contract.Proof{Proves: contract.NotSent, Cause: "no_credentials"}, noSign},
		{effect.Unknown("x", "").Proof, trouble},
		{effect.NotApplied("x", "").Proof, trouble},
		{effect.Refused("x", "").Proof, fine},
		{effect.Applied(nil).Proof, fine},
		{contract.Proof{Proves: contract.Unknown, Cause: effect.CausePanic}, noSign},
	} {
		if got := healthOf(c.p); got != c.want {
			t.Errorf("%s by %s: %d, want %d", c.p.Proves, c.p.Cause, got, c.want)
		}
	}
	if healthOfLookUp(effect.LookUpResult{Found: contract.FoundNoAnswer}) != trouble ||
		healthOfLookUp(effect.LookUpResult{Found: contract.FoundNoAnswer, Status: 401}) != fine ||
		healthOfLookUp(effect.LookUpResult{Found: contract.FoundNothing, Status: 404}) != fine ||
		healthOfLookUp(effect.LookUpResult{Panicked: true}) != noSign {
		t.Error("look-ups")
	}
}
