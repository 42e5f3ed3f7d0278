package client

import (
	"context"
	"time"
)

// A Clock tells the time by which a client counts, and waits between its requests.
// Whoever explores what a client does over hours and days gives one of their own;
// tests in a [testing/synctest] bubble need none. What a context ends, it ends by
// the machine's clock. Methods are safe for concurrent use.
type Clock interface {
	// Now is the time, or something that is in step with it.
	Now() time.Time
	// Sleep returns when d has passed, or ctx has ended.
	Sleep(ctx context.Context, d time.Duration)
}

// machineClock is the clock of this machine.
type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }

func (machineClock) Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
