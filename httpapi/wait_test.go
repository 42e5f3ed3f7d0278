package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

func TestWait(t *testing.T) {
	w := newWorld(t, func(s *setup) {
		// Shorter than the wait: neither may cut it.
		s.http = func(h *http.Server) {
			h.ReadTimeout, h.WriteTimeout = 900*time.Millisecond, 900*time.Millisecond
			h.IdleTimeout = time.Minute // a PUT must not meet a connection that is just being closed
		}
	})
	path := note(semel.NewID())
	answered := make(chan reply)
	go func() {
		a, err := w.try(t.Context(), "PUT", path, body(menu), header("Prefer", "respond-async, wait=30"))
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	// While it waits, it is there for everybody else, who waits in vain.
	w.until(func() bool { return w.do("GET", path, header("Prefer", "wait=0")).status == 200 })
	begin := time.Now()
	w.do("GET", path, header("Prefer", "wait=1")).is(200).has("Preference-Applied", "wait=1").has("Retry-After", "1")
	if took := time.Since(begin); took < time.Second {
		t.Errorf("waited %v instead of 1s", took)
	}
	lease := w.claim(time.Minute)
	w.finish(lease, semel.Ending{Outcome: semel.Applied, Result: []byte(`"done"`)})
	a := <-answered
	a.is(201).has("Preference-Applied", "wait=30").has("ETag", `"3"`).has("Retry-After", "").has("Idempotency-Replayed", "")
	if a.op().State != semel.Succeeded {
		t.Errorf("%s", a.body)
	}
	w.do("PUT", path, body(menu), header("Prefer", "wait=60")).is(200).has("Preference-Applied", "wait=60").has("Idempotency-Replayed", "true")
	w.do("PUT", path, body(menu), header("Prefer", "wait=99999999999999999999")).is(200).has("Preference-Applied", "wait=60")
	w.do("PUT", path, body(menu), header("Prefer", "wait=soon")).is(200).has("Preference-Applied", "")
}

// until asks again until it is so. Every round is a request, so it does not spin.
func (w *world) until(ok func() bool) {
	w.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			w.Fatal("it never came to be")
		}
	}
}

// A person's decision may take days: whoever waits is told at once that it needs one.
func TestWaitEndsWhenAPersonIsNeeded(t *testing.T) {
	w := newWorld(t, nil)
	path, _ := w.doubtful()
	begin := time.Now()
	w.do("GET", path, header("Prefer", "wait=60")).is(200).has("Retry-After", "30")
	if time.Since(begin) > 20*time.Second {
		t.Error("it waited")
	}
}

func TestDrainEndsWaiting(t *testing.T) {
	w := newWorld(t, nil)
	path, _ := w.create()
	w.do("GET", "/readyz", nobody).is(200)
	answered := make(chan reply)
	go func() {
		a, err := w.try(t.Context(), "GET", path, header("Prefer", "wait=60"))
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	stream := w.follow(path)
	stream.next()
	w.server.Drain()
	(<-answered).is(200)
	stream.ends()
	w.do("GET", "/readyz", nobody).problem(503, semel.CodeUnavailable)
	w.do("GET", "/healthz", nobody).is(200)
	w.do("GET", path+"/events").problem(503, semel.CodeUnavailable)
	w.do("PUT", path, body(menu)).is(200) // what comes in still is answered
}
