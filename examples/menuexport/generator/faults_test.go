package generator

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestFaultsSetAndGet(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	want := func(text string) {
		t.Helper()
		var got struct {
			Faults
			Held int `json:"held"`
		}
		r := s.do("GET", "/faults", "")
		if err := json.Unmarshal(r.body, &got); err != nil {
			t.Fatal(err)
		}
		var wanted Faults
		if err := json.Unmarshal([]byte(text), &wanted); err != nil {
			t.Fatal(err)
		}
		if got.Faults != wanted || got.Held != 0 {
			t.Errorf("faults are %s, want %s", r.body, text)
		}
	}
	want(`{}`)
	s.faults(`{"delay_ms":5,"answer_delay_ms":6,"hold_request":true,"hold_answer":true,"fail_next":"refuse","count":3}`)
	want(`{"delay_ms":5,"answer_delay_ms":6,"hold_request":true,"hold_answer":true,"fail_next":"refuse","count":3}`)
	s.faults(`{"fail_next":"unavailable"}`) // one where no count is said
	want(`{"fail_next":"unavailable","count":1}`)
	s.faults(`{"fail_next":"unavailable","count":0}`)
	want(`{}`)
	s.faults(`{"delay_ms":7}`)
	for body, field := range map[string]string{
		`{"delay_ms":-1}`:                    "/delay_ms",
		`{"delay_ms":"1"}`:                   "/delay_ms",
		`{"delay_ms":600001}`:                "/delay_ms",
		`{"answer_delay_ms":-1}`:             "/answer_delay_ms",
		`{"fail_next":"explode"}`:            "/fail_next",
		`{"fail_next":"refuse","count":-1}`:  "/count",
		`{"fail_next":"refuse","count":1e9}`: "/count",
		`{"dealy_ms":1}`:                     "/dealy_ms",
		`nonsense`:                           "",
	} {
		r := s.do("PUT", "/faults", body)
		r.want(t, http.StatusBadRequest, "invalid-faults")
		if r.fail.Field != field {
			t.Errorf("%s: field %q, want %q", body, r.fail.Field, field)
		}
	}
	want(`{"delay_ms":7}`) // a bad request changes nothing
	for _, query := range []string{"wait=61", "wait=x", "wait=-1", "point=middle", "until=noon"} {
		s.do("GET", "/faults/held?"+query, "").want(t, http.StatusBadRequest, "invalid-query")
	}
}

func TestFailUnavailable(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	s.post("stored", weekJSON)
	s.faults(`{"fail_next":"unavailable","count":3}`)
	r := s.post("k", weekJSON)
	r.want(t, http.StatusServiceUnavailable, "unavailable")
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	s.post("stored", weekJSON).want(t, http.StatusServiceUnavailable, "unavailable") // before any look at the key
	s.do("POST", "/images", "not even read").want(t, http.StatusServiceUnavailable, "unavailable")
	s.wantStats(1)
	s.post("k", weekJSON).want(t, http.StatusCreated, "")
	s.wantStats(2)
}

func TestFailRefuse(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	s.post("stored", weekJSON)
	s.faults(`{"fail_next":"refuse","count":2}`)
	s.post("stored", weekJSON).want(t, http.StatusCreated, "") // a replay is no execution
	s.post("k", weekJSON).want(t, http.StatusUnprocessableEntity, "refused")
	s.post("k", weekJSON).want(t, http.StatusUnprocessableEntity, "refused")
	s.wantStats(1)
	s.post("k", weekJSON).want(t, http.StatusCreated, "")
	s.wantStats(2)
}

func TestLoseAnswer(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	s.faults(`{"fail_next":"lose_answer"}`)
	if r, err := s.send(t.Context(), "POST", "/images", weekJSON, "Idempotency-Key", "k"); err == nil {
		t.Fatalf("an answer came: %d", r.status)
	}
	s.wantStats(1)
	if r := s.post("k", weekJSON); r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the repeat is no replay: %s", r.body)
	}
	s.wantStats(1)
}

func TestHoldAnswerReleased(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	s.faults(`{"hold_answer":true}`)
	done := s.postLater(t.Context(), "k", weekJSON)
	list := s.held("point=answer")
	if len(list) != 1 || list[0].Key != "k" || list[0].ImageID == "" {
		t.Fatalf("held %+v", list)
	}
	s.wantStats(1) // stored, though not answered
	if got := s.held("point=request&until=none"); len(got) != 0 {
		t.Errorf("requests held: %+v", got)
	}
	if r := s.post("k", weekJSON); r.image.ImageID != list[0].ImageID { // replays are not held
		t.Errorf("replay %s", r.body)
	}
	select {
	case err := <-done:
		t.Fatalf("answered while held: %v", err)
	default:
	}
	// Off and on again at once still releases.
	s.faults(`{}`)
	s.faults(`{"hold_answer":true}`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.wantStats(1)
}

func TestHoldAnswerClientGone(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	s.faults(`{"hold_answer":true}`)
	ctx, cancel := context.WithCancel(t.Context())
	done := s.postLater(ctx, "k", weekJSON)
	s.held("point=answer")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if list := s.held("until=none"); len(list) != 0 {
		t.Fatalf("still held: %+v", list)
	}
	if r := s.post("k", weekJSON); r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("no replay: %s", r.body)
	}
	s.wantStats(1)
}

// A client that goes away before its picture is made does not stop it.
func TestExecutesWithoutClient(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	s.faults(`{"hold_request":true}`)
	ctx, cancel := context.WithCancel(t.Context())
	done := s.postLater(ctx, "k", weekJSON)
	s.held("point=request")
	cancel()
	<-done
	s.wantStats(0)
	s.post("k", weekJSON).want(t, http.StatusConflict, "in-progress")
	s.faults(`{}`)
	r := s.post("k", weekJSON)
	for r.status == http.StatusConflict {
		r = s.post("k", weekJSON)
	}
	if r.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("it was made anew: %s", r.body)
	}
	s.wantStats(1)
}

func TestCloseWhileHeld(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, nil)
	s.faults(`{"hold_answer":true}`)
	stored := s.postLater(t.Context(), "stored", weekJSON)
	s.held("point=answer")
	s.faults(`{"hold_answer":true,"hold_request":true}`)
	waiting := s.postLater(t.Context(), "waiting", weekJSON)
	s.held("point=request")
	if err := s.srv.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-stored; err != nil {
		t.Errorf("the answer that was held is lost: %v", err)
	}
	if err := <-waiting; err == nil {
		t.Error("the request that was held is answered")
	}
	s.post("late", weekJSON).want(t, http.StatusServiceUnavailable, "unavailable")
	s.do("GET", "/healthz", "").want(t, http.StatusServiceUnavailable, "unavailable")
	if err := s.srv.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	start(t, dir, nil).wantStats(1)
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaultSwitch()
		took := func() time.Duration {
			start := time.Now()
			if err := s.delay(t.Context(), func(f Faults) int { return f.DelayMS }); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		if d := took(); d != 0 {
			t.Errorf("no fault: %v", d)
		}
		s.set(Faults{DelayMS: 5000})
		if d := took(); d != 5*time.Second {
			t.Errorf("5 s: %v", d)
		}
		// A change during the wait counts from the wait's beginning.
		time.AfterFunc(time.Second, func() { s.set(Faults{DelayMS: 3000}) })
		if d := took(); d != 3*time.Second {
			t.Errorf("5 s, after 1 s changed to 3 s: %v", d)
		}
		time.AfterFunc(2*time.Second, func() { s.set(Faults{DelayMS: 1000}) })
		if d := took(); d != 2*time.Second {
			t.Errorf("3 s, after 2 s changed to 1 s: %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := s.delay(ctx, func(f Faults) int { return f.DelayMS }); err == nil {
			t.Error("it outlived its context")
		}
	})
}

func TestAnswerDelay(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	s.faults(`{"answer_delay_ms":60}`)
	begun := time.Now()
	s.post("k", weekJSON).want(t, http.StatusCreated, "")
	if d := time.Since(begun); d < 60*time.Millisecond {
		t.Errorf("answered after %v", d)
	}
	s.faults(`{"delay_ms":60}`)
	begun = time.Now()
	s.post("k2", weekJSON).want(t, http.StatusCreated, "")
	if d := time.Since(begun); d < 60*time.Millisecond {
		t.Errorf("answered after %v", d)
	}
}

// With wait=0 the list comes at once, empty or not.
func TestHeldDoesNotWait(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	if r := s.do("GET", "/faults/held?wait=0", ""); string(r.body) != "{\"held\":[]}\n" {
		t.Errorf("got %s", r.body)
	}
}
