package explore

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/lab/history"
)

// service is the external service of one run, as its contract says: an idempotent
// one knows keys, a queryable one can be asked, an opaque one neither.
type service struct {
	w       *world
	effects map[string]int       // by its key
	since   map[string]time.Time // when each key was seen first
}

// arrive carries a request out, unless the service knows its key, which it does as
// long as its contract says.
func (s *service) arrive(about semel.Key, key string) {
	now := s.w.base.time()
	if s.effects[key] == 0 {
		s.since[key] = now
	} else if s.w.contract.Shape().Idempotent && now.Sub(s.since[key]) <= s.w.forgets() {
		return
	}
	s.effects[key]++
	s.w.add(history.Event{What: history.Effect, Key: about, By: key})
}

// total is how often it happened, for whatever key.
func (s *service) total() (n int) {
	for _, times := range s.effects {
		n += times
	}
	return n
}

// caller is the effect of a worker's process: the service behind a wire.
type caller struct{ p *process }

// Do sends one request.
func (c caller) Do(_ context.Context, call *effect.Call) effect.Result {
	w := c.p.w
	key, err := call.DownstreamKey()
	if err != nil {
		return effect.NotApplied("no-key", err.Error())
	}
	classify := func(wire contract.Wire, answer *contract.Answer) effect.Result {
		request := contract.Request{Method: http.MethodPost, Keyed: call.Contract.Carrier.In != "", Replayable: true}
		wire.Sends = 1
		return effect.Result{Proof: call.Contract.Classify(request, wire, answer), Wire: &wire, Sends: 1, Output: []byte(done)}
	}
	lost := contract.Wire{Going: contract.Begun, Failure: contract.FailedReset}
	done := func() effect.Result {
		w.service.arrive(call.Key, key)
		return classify(contract.Wire{Going: contract.Begun, Arrival: contract.ArrivedComplete}, &contract.Answer{Status: http.StatusCreated, Header: http.Header{}})
	}
	switch w.meet(toService) {
	case ErrorBefore:
		return classify(contract.Wire{Going: contract.NotBegun, Failure: contract.FailedDial}, nil)
	case ErrorAfter:
		w.service.arrive(call.Key, key)
		return classify(lost, nil)
	case CrashBefore:
		c.p.dead = true
		return classify(lost, nil)
	case CrashAfter:
		w.service.arrive(call.Key, key)
		c.p.dead = true
		return classify(lost, nil)
	case Duplicate:
		if w.contract.Shape().Idempotent {
			w.service.arrive(call.Key, key) // the network delivers a second copy
		}
		return done()
	case Late:
		w.later(10*time.Second, func() { w.service.arrive(call.Key, key) })
		return classify(contract.Wire{Going: contract.Begun, Failure: contract.FailedTimeout}, nil)
	case LostLease:
		result := done()
		w.loseLease()
		return result
	}
	return done()
}

// LookUp asks the service.
func (c caller) LookUp(_ context.Context, call *effect.Call) effect.LookUpResult {
	w := c.p.w
	key, err := call.DownstreamKey()
	if err != nil {
		return effect.LookUpResult{Note: err.Error()}
	}
	ask := func() effect.LookUpResult {
		if w.service.effects[key] > 0 {
			return effect.LookUpResult{Found: contract.FoundSucceeded, Output: []byte(done), Status: http.StatusOK}
		}
		return effect.LookUpResult{Found: contract.FoundNothing, Status: http.StatusNotFound}
	}
	switch w.meet(toLookUp) {
	case ErrorBefore:
		return effect.LookUpResult{Note: "no answer"}
	case CrashBefore, CrashAfter:
		c.p.dead = true
	case LostLease:
		result := ask()
		w.loseLease()
		return result
	}
	return ask()
}

// contractOf returns the contract of a shape, as the lab's service keeps it.
func contractOf(shape string) (contract.Contract, error) {
	c, err := contract.Preset(shape)
	if err != nil {
		return c, fmt.Errorf("shape %q: %w", shape, err)
	}
	return c, nil
}
