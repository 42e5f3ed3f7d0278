package stops

import "testing"

// From the act that leads to a point until the stop nothing can be written back,
// however soon an answer comes; and only the first act leads there.
func TestNothingIsWrittenBackBeforeTheStop(t *testing.T) {
	s := &Stopper{At: SocketAfter, Pause: true}
	locked := func(when string) {
		if s.calls.TryRLock() {
			s.calls.RUnlock()
			t.Errorf("a write-back can begin %s", when)
		}
	}
	acts, stopped := 0, 0
	s.stop = func() { stopped++; locked("while the process is stopped") }
	s.passing(SocketAfter, func() { acts++; locked("before the stop") })
	s.passing(SocketAfter, func() { acts++ })
	s.passing(SendBefore, func() { acts++ })
	if acts != 3 || stopped != 1 {
		t.Errorf("%d acts, stopped %d times", acts, stopped)
	}
	if !s.calls.TryRLock() {
		t.Error("nothing can be written back when the process goes on")
	}
}
