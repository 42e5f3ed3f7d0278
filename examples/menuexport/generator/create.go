package generator

import (
	"context"
	"net/http"
	"time"
)

// Answers that always are the same.
var (
	errClosing = &failure{Status: http.StatusServiceUnavailable, RetryAfter: "1", Code: "unavailable",
		Message: "the service is stopping; nothing was done"}
	errUnavailable = &failure{Status: http.StatusServiceUnavailable, RetryAfter: "1", Code: "unavailable",
		Message: "the service is overloaded; nothing was done"}
	errRefused = &failure{Status: http.StatusUnprocessableEntity, Code: "refused",
		Message: "the service refuses this menu; nothing was done"}
	errMismatch = &failure{Status: http.StatusUnprocessableEntity, Code: "mismatch",
		Message: "this key was used with another menu", Field: "Idempotency-Key"}
	errInProgress = &failure{Status: http.StatusConflict, RetryAfter: "1", Code: "in-progress",
		Message: "the image of this key is being made", Field: "Idempotency-Key"}
	errStorage = &failure{Status: http.StatusInternalServerError, Code: "storage",
		Message: "the storage failed"}
)

// serveCreate makes an image, or answers from the record of one.
func (s *Server) serveCreate(w http.ResponseWriter, r *http.Request) {
	if s.faults.take(FailUnavailable) {
		errUnavailable.write(w)
		return
	}
	menu, key, fail := s.readCreate(w, r)
	if fail != nil {
		fail.write(w)
		return
	}
	rec := &record{Key: key, Menu: digest(menu)}
	stored, fail := s.begin(rec)
	switch {
	case fail != nil:
		fail.write(w)
		return
	case stored != nil:
		w.Header().Set("Idempotency-Replayed", "true")
		writeCreated(w, stored)
		return
	}
	defer s.active.Done()
	if fail := s.execute(menu, rec); fail != nil {
		fail.write(w)
		return
	}
	s.answer(w, r, rec)
}

// readCreate reads and checks a request, in the order in which a caller can mend
// it.
func (s *Server) readCreate(w http.ResponseWriter, r *http.Request) (Menu, string, *failure) {
	body, fail := readJSON(w, r)
	if fail != nil {
		return Menu{}, "", fail
	}
	var key string
	if s.options.Contract != Opaque {
		var err error
		if key, err = parseKey(r.Header.Values("Idempotency-Key")); err != nil {
			return Menu{}, "", &failure{Status: http.StatusBadRequest, Code: "invalid-key", Message: err.Error(), Field: "Idempotency-Key"}
		}
	}
	menu, err := ParseMenu(body)
	if err != nil {
		return Menu{}, "", badInput("invalid-menu", err)
	}
	return menu, key, nil
}

// begin decides whether a request executes: it returns the record that answers
// it, or why it can't, or neither. With neither, the key is taken, the execution
// is counted in active, and execute must follow.
func (s *Server) begin(rec *record) (*record, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosing
	}
	if s.options.Contract == Idempotent {
		// A mismatch is told before "in progress": waiting would not mend it.
		// A key leaves running only after its record can be found, so that a
		// repeat meets one or the other.
		if menu, ok := s.running[rec.Key]; ok {
			if menu != rec.Menu {
				return nil, errMismatch
			}
			return nil, errInProgress
		}
		if found := s.store.find(rec.Key, s.horizon()); len(found) > 0 {
			last := found[len(found)-1]
			if last.Menu != rec.Menu {
				return nil, errMismatch
			}
			return last, nil
		}
	}
	if s.faults.take(FailRefuse) {
		return nil, errRefused
	}
	if s.options.Contract == Idempotent {
		s.running[rec.Key] = rec.Menu
	}
	s.active.Add(1)
	return nil, nil
}

// execute renders and stores. It goes on when the client goes away, as most
// services do; only Close stops one that has not begun to render, and then the
// connection is cut, since there is nothing to say.
func (s *Server) execute(menu Menu, rec *record) *failure {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, rec.Key)
	}()
	start := time.Now()
	s.orAbort(s.faults.hold(s.closing, held{Point: heldRequest, Key: rec.Key, Since: start}))
	s.orAbort(s.faults.delay(s.closing, func(f Faults) int { return f.DelayMS }))
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-s.closing.Done():
		s.orAbort(s.closing.Err())
	}
	picture, err := Render(menu)
	if err != nil {
		return badInput("invalid-menu", err)
	}
	rec.Width, rec.Height, rec.CreatedAt = picture.Width, picture.Height, s.options.Now().UTC()
	if err := s.store.save(rec, picture.PNG); err != nil {
		s.options.Logger.Error("store", "key", rec.Key, "error", err)
		return errStorage
	}
	s.options.Logger.Info("executed", "image_id", rec.ImageID, "key", rec.Key, "duration", time.Since(start))
	return nil
}

// orAbort cuts the connection without an answer if err is not nil.
func (s *Server) orAbort(err error) {
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// answer tells of an execution, later or never where the faults say so.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, rec *record) {
	if s.faults.take(FailLoseAnswer) {
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	wait := held{Point: heldAnswer, Key: rec.Key, ImageID: rec.ImageID, Since: time.Now()}
	if s.faults.hold(ctx, wait) == nil {
		_ = s.faults.delay(ctx, func(f Faults) int { return f.AnswerDelayMS })
	}
	s.orAbort(r.Context().Err()) // the client has gone
	writeCreated(w, rec)
}

func writeCreated(w http.ResponseWriter, rec *record) {
	a := rec.answer()
	w.Header().Set("Location", a.ImageURL)
	writeJSON(w, http.StatusCreated, a)
}
