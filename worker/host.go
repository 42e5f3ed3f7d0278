package worker

import (
	"math"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

// A host limits what goes to one external service, and lets it recover. It has no
// clock and no lock: its owner gives it the time, and guards it.
//
// It starts wide open. Each trouble halves the window; [pauseAfter] troubles in a
// row close it for a while, then one call at a time probes, and each success
// opens it by one. The pause doubles while the probes fail.
type host struct {
	limit   int
	window  float64
	running int

	troubles int       // in a row
	pauses   int       // in a row
	closed   time.Time // nothing may go before
	judged   time.Time // calls that began earlier say nothing new
}

const (
	pauseAfter = 5
	pauseBase  = 500 * time.Millisecond
	pauseCap   = time.Minute
)

func newHost(limit int) *host { return &host{limit: limit, window: float64(limit)} }

// room returns how many calls may begin now.
func (h *host) room(now time.Time) int {
	if now.Before(h.closed) {
		return 0
	}
	return max(int(h.window)-h.running, 0)
}

// A health is what a call says about the external service.
type health int

const (
	noSign health = iota
	fine
	trouble
)

// ended takes in a call that began at a time.
func (h *host) ended(began, now time.Time, sign health, wait time.Duration, random float64) {
	switch {
	case sign == noSign:
	case sign == fine:
		h.troubles, h.pauses = 0, 0
		h.window = math.Min(float64(h.limit), h.window+1)
	case began.Before(h.judged): // it met the same outage as those before it
	default:
		h.troubles++
		h.window = math.Max(1, h.window/2)
		if h.troubles >= pauseAfter || h.pauses > 0 {
			bound := min(pauseBase<<min(h.pauses, 10), pauseCap)
			h.pauses++
			h.troubles, h.window, h.judged = 0, 1, now
			h.close(now.Add(bound/2 + time.Duration(random*float64(bound)/2)))
		}
	}
	if wait > 0 && sign == trouble {
		wait = min(wait, pauseCap)
		h.close(now.Add(wait + time.Duration(random*float64(wait)/10)))
	}
}

func (h *host) close(until time.Time) {
	if until.After(h.closed) {
		h.closed = until
	}
}

// healthOf reads a call's result. An answer of whatever kind is a sign of life,
// as long as it is not the answer of an overloaded or broken service.
func healthOf(p contract.Proof) health {
	if p.Replayed {
		return fine // a stored answer tells of the past, and its replay of life
	}
	switch p.Cause {
	case contract.CauseServerError, contract.CauseIntermediary, contract.CauseTurnedAway, contract.CauseTransient, contract.CauseCutAnswer,
		contract.Cause(contract.FailedDial), contract.Cause(contract.FailedDNS), contract.Cause(contract.FailedTLS),
		contract.Cause(contract.FailedNoConn), contract.Cause(contract.FailedTimeout), contract.Cause(contract.FailedReset),
		contract.Cause(contract.FailedEOF), contract.Cause(contract.FailedRefused), contract.Cause(contract.FailedGoAway),
		contract.Cause(contract.FailedUnwritten):
		return trouble
	case effect.CauseEffect:
		if p.Proves == contract.Unknown || p.Proves == contract.NotApplied {
			return trouble
		}
		return fine
	case effect.CausePanic, contract.Cause(contract.FailedCancelled), contract.Cause(contract.FailedOtherwise):
		return noSign
	}
	if p.Proves == contract.NotSent || p.Status == 0 && p.Proves == contract.Refused {
		return noSign // it never got there
	}
	return fine
}

func healthOfLookUp(r effect.LookUpResult) health {
	switch {
	case r.Panicked:
		return noSign
	case r.Found == contract.FoundNoAnswer && (r.Status == 0 || r.Status >= 500 || r.Status == 429):
		return trouble
	}
	return fine
}
