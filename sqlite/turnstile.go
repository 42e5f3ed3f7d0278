package sqlite

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"
)

// A turnstile makes writers of one file take turns, also those of other
// processes. SQLite's own lock is not fair: whoever has just committed begins
// again before anybody else looks, so a busy process starves the others for
// seconds. Here the next writer stands in the turnstile, a lock on a file beside
// the database, until it has SQLite's lock; who has just committed finds the
// turnstile taken, and comes after it.
//
// It is for fairness only. SQLite's lock is what keeps writers apart, so nothing
// is wrong where there is no such file, or with writers that do not use it.
type turnstile struct {
	file   *os.File      // nil: there is none
	inside chan struct{} // one at a time within this process's handle
}

func newTurnstile(path string) *turnstile {
	t := &turnstile{inside: make(chan struct{}, 1)}
	if canLock {
		t.file, _ = os.OpenFile(path+"-turn", os.O_CREATE|os.O_RDWR, 0o600)
	}
	return t
}

var errTurn = errors.New("it was not our turn in time")

// enter waits for the turnstile until the deadline; the function that it returns
// leaves it again.
func (t *turnstile) enter(ctx context.Context, deadline time.Time, closing <-chan struct{}) (leave func(), err error) {
	select {
	case t.inside <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-closing:
		return nil, errClosed
	}
	if t.file == nil {
		return func() { <-t.inside }, nil
	}
	err = poll(ctx, deadline, closing, func() (bool, error) {
		got, err := tryLock(t.file)
		return got, err
	})
	if err != nil {
		<-t.inside
		return nil, err
	}
	return func() { unlock(t.file); <-t.inside }, nil
}

func (t *turnstile) close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// poll tries until try is done, or fails, or the deadline has passed. It asks
// often and at irregular times: what is waited for takes about a millisecond.
func poll(ctx context.Context, deadline time.Time, closing <-chan struct{}, try func() (bool, error)) error {
	wait := 50 * time.Microsecond
	for {
		done, err := try()
		if done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errTurn
		}
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-closing:
			return errClosed
		case <-ctx.Done():
			return ctx.Err()
		}
		wait = min(wait*2, 2*time.Millisecond)
	}
}
