package retryhttp

import (
	"math"
	"math/rand/v2"
	"time"
)

// A Backoff says how long to wait between two transmissions of one request.
// Its zero value is ready.
type Backoff struct {
	// Base is the longest first wait; each further one may be twice as long.
	// Defaults to 100 ms.
	Base time.Duration
	// Max is the longest wait, unless more was asked for. Defaults to 5 s.
	Max time.Duration
}

func (b Backoff) withDefaults() Backoff {
	if b.Base <= 0 {
		b.Base = 100 * time.Millisecond
	}
	if b.Max <= 0 {
		b.Max = 5 * time.Second
	}
	b.Base = min(b.Base, b.Max)
	return b
}

// Wait returns how long to wait after the n-th transmission, counted from 1. The
// wait is spread evenly between zero and its bound (full jitter), so that clients
// which failed together do not come back together. atLeast is what the other
// side asked for; the jitter is added to it, and the sum never overflows.
func (b Backoff) Wait(n int, atLeast time.Duration) time.Duration {
	b = b.withDefaults()
	bound := b.Max
	if n = max(n-1, 0); n < 62 && b.Base <= b.Max>>n {
		bound = b.Base << n
	}
	jitter := rand.N(bound) + 1
	atLeast = max(atLeast, 0)
	if atLeast > math.MaxInt64-jitter {
		return math.MaxInt64
	}
	return atLeast + jitter
}
