package httpapi_test

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// Too many waiting: a new operation is refused, those that wait are answered, and
// once one of them is settled there is room again.
func TestTooManyWaiting(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.ledger.Limits = &semel.Limits{Pending: 2} })
	path, _ := w.create()
	w.create()
	third := note(semel.NewID())
	p := w.do("PUT", third, body(menu)).problem(429, semel.CodeTooMany)
	if p.RetryAfter < time.Second || !p.Retryable || p.Recorded != semel.RecordedNo {
		t.Errorf("%+v", p)
	}
	w.do("GET", third).problem(404, semel.CodeNotFound)
	w.do("PUT", path, body(menu)).is(200)
	w.do("PUT", note(semel.NewID()), body(menu), as(globex)).is(201) // another account's

	w.do("DELETE", path).is(200)
	for deadline := time.Now().Add(time.Minute); ; {
		a := w.do("PUT", third, body(menu))
		if a.status == 201 {
			break
		}
		if p := a.problem(429, semel.CodeTooMany); time.Now().After(deadline) {
			t.Fatalf("still refused: %+v", p)
		}
		time.Sleep(p.RetryAfter) // as the answer asks
	}
	w.do("PUT", note(semel.NewID()), body(menu)).problem(429, semel.CodeTooMany)
}
