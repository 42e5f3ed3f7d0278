package contract_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
	"pgregory.net/rapid"
)

// The whole reasoning at once: a service that keeps its contract and fails in every way the contract allows, and a
// worker that does nothing but follow Classify, Evidence and Recover. Time is a number; nothing sleeps.

const (
	callTimeout = 10 * time.Second
	lateArrival = 20 * time.Second // a lost request arrives at most so long after its call has ended
)

// service is a service outside, under a contract.
type service struct {
	t       *rapid.T
	c       contract.Contract
	now     time.Duration
	effects int
	shown   time.Duration // when the effect becomes visible
	refuses bool          // it refuses this request, always
	record  *contract.Answer
	expires time.Duration
	late    []time.Duration // lost requests that are still on their way
}

func (s *service) flip(label string) bool { return rapid.Bool().Draw(s.t, label) }

// tick lets time pass; late requests arrive, and nobody hears their answers.
func (s *service) tick(d time.Duration) {
	s.now += d
	var rest []time.Duration
	for _, at := range s.late {
		if at <= s.now {
			s.arrive(false)
		} else {
			rest = append(rest, at)
		}
	}
	s.late = rest
}

// arrive is one request that reaches the service. heard says that its answer will be heard.
func (s *service) arrive(heard bool) *contract.Answer {
	idempotent := s.c.Shape().Idempotent
	if idempotent && s.record != nil && (s.c.Retention.After == contract.AfterKeptForEver || s.now < s.expires) {
		a := *s.record
		if m := s.c.Replay.Marker; m.Header != "" {
			a.Header = http.Header{http.CanonicalHeaderKey(m.Header): {m.Value}}
		}
		return &a
	}
	if s.refuses {
		return &contract.Answer{Status: 400}
	}
	// An API that frees the key after a server error promises nothing about such an error once the effect is there. It
	// is believed that a lost answer, and a request that overtakes another one, are not of that kind: see
	// [contract.ServerErrorReleased].
	after := s.c.Stored.ServerErrors
	switch failure := rapid.IntRange(0, 5).Draw(s.t, "failure"); {
	case failure == 0: // 500 before the effect
		if idempotent && after == contract.ServerErrorReplayed && s.flip("begun") {
			s.keep(&contract.Answer{Status: 500})
		}
		return &contract.Answer{Status: 500}
	case failure == 1 && (after != contract.ServerErrorReleased || heard && len(s.late) == 0): // 500 after the effect
		s.effect()
		switch after {
		case contract.ServerErrorReplayed:
			s.keep(&contract.Answer{Status: 500})
		case contract.ServerErrorResumed:
			s.keep(&contract.Answer{Status: 201})
		}
		return &contract.Answer{Status: 500}
	case failure == 2 && !idempotent || failure == 2 && heard:
		return &contract.Answer{Status: 503} // somebody on the way, before the service
	}
	s.effect()
	s.keep(&contract.Answer{Status: 201})
	return &contract.Answer{Status: 201}
}

func (s *service) effect() {
	s.effects++
	s.shown = s.now + s.c.LookUp.ConsistentAfter.D()
}

func (s *service) keep(a *contract.Answer) {
	s.record, s.expires = a, s.now+s.c.Retention.Minimum.D()
}

// call is one call as its sender sees it. It takes up to callTimeout.
func (s *service) call() contract.Proof {
	r := contract.Request{Method: "POST", Keyed: true, Replayable: true}
	wire := func(going contract.Going, f contract.Failure) contract.Proof {
		return s.c.Classify(r, contract.Wire{Going: going, Sends: 1, Failure: f}, nil)
	}
	switch rapid.IntRange(0, 7).Draw(s.t, "fate") {
	case 0:
		return wire(contract.NotBegun, contract.FailedDial)
	case 1: // lost, for ever or for a while
		if s.flip("late") {
			s.late = append(s.late, s.now+callTimeout+time.Duration(rapid.Int64Range(0, int64(lateArrival)).Draw(s.t, "how late")))
		}
		s.tick(callTimeout)
		return wire(contract.Begun, contract.FailedTimeout)
	case 2: // the answer is lost
		s.arrive(false)
		return wire(contract.Begun, contract.FailedReset)
	case 3: // the sender dies before it can report, begun or not
		if s.flip("sent") {
			s.arrive(false)
		}
		s.tick(callTimeout)
		return contract.NoReport()
	case 4: // somebody on the way refuses, whatever the service would say
		return s.c.Classify(r, complete, &contract.Answer{Status: 401})
	case 5: // somebody on the way replaces the answer
		s.arrive(false)
		return s.c.Classify(r, complete, &contract.Answer{Status: 502})
	}
	a := s.arrive(true)
	return s.c.Classify(r, complete, a)
}

func (s *service) lookUp() contract.Found {
	switch {
	case s.flip("no answer"):
		return contract.FoundNoAnswer
	case s.effects > 0 && s.now >= s.shown:
		return contract.FoundSucceeded
	}
	return contract.FoundNothing
}

// work drives one operation to its end and returns the last decision.
func (s *service) work() (contract.Decision, contract.Evidence) {
	var (
		sit              = contract.Situation{NotBegun: true, Margin: callTimeout}
		began            time.Duration
		doubt, last, ask time.Duration // when the latest call could last be on its way, the latest proof, the latest look-up
	)
	for step := range 400 {
		if !sit.NotBegun {
			sit.Age, sit.SinceDoubt, sit.SinceLast, sit.SinceLookUp = s.now-began, s.now-doubt, s.now-last, s.now-ask
		}
		sit.Spent = step > 300
		d := s.c.Recover(sit)
		switch d.Step {
		case contract.StepSettle, contract.StepReconcile:
			return d, sit.Evidence
		case contract.StepWait:
			if d.Wait <= 0 {
				s.t.Fatalf("a wait of %s: %s", d.Wait, d.Reason)
			}
			s.tick(d.Wait)
		case contract.StepLookUp:
			found := s.lookUp()
			sit.Evidence = sit.Evidence.Add(s.c.ClassifyLookUp(found, contract.Duration(s.now-doubt)))
			sit.Found, sit.LookUps, ask, last = found, sit.LookUps+1, s.now, s.now
		case contract.StepReCall, contract.StepRunAfresh:
			if sit.Spent && sit.Evidence.Outcome() == contract.OutcomeNotApplied {
				return d, sit.Evidence // a worker gives up here: nothing happened
			}
			if sit.NotBegun {
				began, sit.NotBegun = s.now, false
			}
			doubt = s.now + callTimeout
			sit.Evidence = sit.Evidence.Add(s.call())
			sit.Found, sit.LookUps, last = "", 0, s.now
			s.tick(time.Duration(rapid.IntRange(1, 5000).Draw(s.t, "backoff")) * time.Millisecond)
		default:
			s.t.Fatalf("step %q", d.Step)
		}
	}
	s.t.Fatalf("it never ends")
	return contract.Decision{}, contract.Evidence{}
}

func TestTheTruthComesOut(t *testing.T) {
	for _, c := range contract.Presets() {
		t.Run(c.Name, func(t *testing.T) {
			settled := 0
			rapid.Check(t, func(t *rapid.T) {
				s := &service{t: t, c: c, refuses: rapid.IntRange(0, 9).Draw(t, "refuses") == 0}
				d, e := s.work()
				s.tick(callTimeout + 2*lateArrival) // whatever is still on its way arrives
				if s.effects > 1 {
					t.Fatalf("%d effects; ended with %s: %s", s.effects, d.Step, d.Reason)
				}
				switch {
				case d.Step == contract.StepSettle && e.Outcome() == contract.OutcomeApplied && s.effects != 1:
					t.Fatalf("told as applied, with %d effects: %s", s.effects, d.Reason)
				case d.Step == contract.StepSettle && e.Outcome() == contract.OutcomeRefused && s.effects != 0:
					t.Fatalf("told as refused, with %d effects: %s", s.effects, d.Reason)
				case d.Step == contract.StepRunAfresh && s.effects != 0:
					t.Fatalf("told as never happened, with %d effects: %s", s.effects, d.Reason)
				}
				if d.Step == contract.StepSettle {
					settled++
				}
			})
			if settled == 0 {
				t.Error("nothing was ever settled")
			}
		})
	}
}
