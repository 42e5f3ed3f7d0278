package generator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// What Faults.FailNext can be.
const (
	FailUnavailable = "unavailable" // 503 before anything else
	FailRefuse      = "refuse"      // 422 "refused" in place of an execution: definite, nothing is stored
	FailLoseAnswer  = "lose_answer" // the picture is stored, then the connection is cut
)

// Faults is the body of PUT /faults, which replaces all of it. Members left out
// are zero: no fault. Faults are kept in memory and gone after a restart.
//
// A change takes effect at once, for what is waiting too: a shorter delay ends
// waits that are longer, and turning a hold off releases all that it holds.
type Faults struct {
	// DelayMS makes an execution wait before it renders, and AnswerDelayMS after
	// it has stored, in milliseconds, up to MaxDelayMS. Replays are not delayed.
	DelayMS       int `json:"delay_ms"`
	AnswerDelayMS int `json:"answer_delay_ms"`

	// HoldRequest holds executions before they render, until released. A client
	// that goes away does not release: its picture is still made.
	HoldRequest bool `json:"hold_request"`

	// HoldAnswer holds the answers of executions whose picture is stored, until
	// released or the client goes away. Replays are not held.
	HoldAnswer bool `json:"hold_answer"`

	// FailNext is FailUnavailable, FailRefuse, FailLoseAnswer or "", and Count
	// how many more requests fail so. Count defaults to 1 where FailNext is set.
	FailNext string `json:"fail_next"`
	Count    int    `json:"count"`
}

// The bounds of a fault.
const (
	MaxDelayMS    = 600_000
	MaxFaultCount = 1_000_000
)

func (f *Faults) validate() *InputError {
	delay := fmt.Sprintf("must be from 0 to %d", MaxDelayMS)
	switch {
	case f.DelayMS < 0 || f.DelayMS > MaxDelayMS:
		return &InputError{"/delay_ms", delay}
	case f.AnswerDelayMS < 0 || f.AnswerDelayMS > MaxDelayMS:
		return &InputError{"/answer_delay_ms", delay}
	case !slices.Contains([]string{"", FailUnavailable, FailRefuse, FailLoseAnswer}, f.FailNext):
		return &InputError{"/fail_next", fmt.Sprintf("must be %q, %q, %q or empty", FailUnavailable, FailRefuse, FailLoseAnswer)}
	case f.Count < 0 || f.Count > MaxFaultCount:
		return &InputError{"/count", fmt.Sprintf("must be from 0 to %d", MaxFaultCount)}
	}
	return nil
}

// The two points at which something can be held.
const (
	heldRequest = "request"
	heldAnswer  = "answer"
)

// held is one request that waits to be released.
type held struct {
	Point   string    `json:"point"` // heldRequest or heldAnswer
	Key     string    `json:"key,omitempty"`
	ImageID string    `json:"image_id,omitempty"`
	Since   time.Time `json:"since"`

	release chan struct{} // closed when released
}

// holds tells whether something at this point is to be held.
func (f *Faults) holds(point string) bool {
	return point == heldRequest && f.HoldRequest || point == heldAnswer && f.HoldAnswer
}

// faultSwitch holds the faults in force and what waits for them. Safe for
// concurrent use.
type faultSwitch struct {
	mu      sync.Mutex
	faults  Faults
	held    []*held
	changed chan struct{} // closed and replaced at every change of the two above
}

func newFaultSwitch() *faultSwitch { return &faultSwitch{changed: make(chan struct{})} }

// wake tells all who watch that something changed. The lock must be held.
func (s *faultSwitch) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// set replaces the faults. What is no longer to be held is released here, not by
// who waits: a hold that is turned off and on at once must still let go.
func (s *faultSwitch) set(f Faults) {
	if f.FailNext == "" || f.Count == 0 {
		f.FailNext, f.Count = "", 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
	s.held = slices.DeleteFunc(s.held, func(h *held) bool {
		if f.holds(h.Point) {
			return false
		}
		close(h.release)
		return true
	})
	s.wake()
}

// look returns the faults, what is held at a point ("" is both), and a channel
// that closes when either changes.
func (s *faultSwitch) look(point string) (Faults, []held, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []held{}
	for _, h := range s.held {
		if point == "" || h.Point == point {
			list = append(list, *h)
		}
	}
	return s.faults, list, s.changed
}

// take uses up one of the failures that are due, if they are of this kind.
func (s *faultSwitch) take(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.FailNext != kind {
		return false
	}
	if s.faults.Count--; s.faults.Count == 0 {
		s.faults.FailNext = ""
	}
	return true
}

// hold waits until released, if h's point is being held at all; it returns ctx's
// error if that ends first.
func (s *faultSwitch) hold(ctx context.Context, h held) error {
	s.mu.Lock()
	if !s.faults.holds(h.Point) {
		s.mu.Unlock()
		return nil
	}
	h.release = make(chan struct{})
	s.held = append(s.held, &h)
	s.wake()
	s.mu.Unlock()
	select {
	case <-h.release:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = slices.DeleteFunc(s.held, func(o *held) bool { return o == &h })
	s.wake()
	return ctx.Err()
}

// delay waits for as long as the faults say, following their changes; it returns
// ctx's error if that ends first.
func (s *faultSwitch) delay(ctx context.Context, of func(Faults) int) error {
	start := time.Now()
	for {
		f, _, changed := s.look("")
		left := time.Duration(of(f))*time.Millisecond - time.Since(start)
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
}
