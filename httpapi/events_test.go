package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
)

// An event as a client reads it.
type event struct {
	name, id string
	op       semel.Operation
}

// A stream is an open event stream.
type stream struct {
	w    *world
	resp *http.Response
	r    *bufio.Reader
	stop context.CancelFunc
	// comments counts heartbeats.
	comments int
}

func (w *world) follow(path string, options ...with) *stream {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	r, _ := http.NewRequestWithContext(ctx, "GET", w.url+path+"/events", nil)
	as(acme)(r)
	for _, o := range options {
		o(r)
	}
	resp, err := w.http.Client().Do(r)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { cancel(); resp.Body.Close() })
	a := reply{resp.StatusCode, resp.Header, nil, w}
	if err := description.check("GET", r.URL.Path, a); err != nil {
		w.Error(err)
	}
	if resp.StatusCode == 200 {
		a.has("Content-Type", "text/event-stream").has("Cache-Control", "no-store")
	}
	return &stream{w: w, resp: resp, r: bufio.NewReader(resp.Body), stop: cancel}
}

// read returns the next event, or false at the end.
func (s *stream) read() (e event, ok bool) {
	s.w.Helper()
	for {
		line, err := s.r.ReadString('\n')
		if err == io.EOF && line == "" {
			return e, false
		}
		if err != nil {
			s.w.Fatalf("%v after %q", err, line)
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.op); err != nil {
				s.w.Fatal(err)
			}
			if err := description.fitsSchema("Operation", []byte(value)); err != nil {
				s.w.Error(err)
			}
		case "":
			if value != "" {
				s.comments++
			} else if e.name != "" {
				return e, true
			}
		}
	}
}

func (s *stream) next() event {
	s.w.Helper()
	e, ok := s.read()
	if !ok {
		s.w.Fatal("the stream has ended")
	}
	return e
}

func (s *stream) ends() {
	s.w.Helper()
	if e, ok := s.read(); ok {
		s.w.Fatalf("another event: %+v", e)
	}
}

func TestEvents(t *testing.T) {
	w := newWorld(t, func(s *setup) {
		// A server's time-outs must not cut a stream.
		s.http = func(h *http.Server) { h.ReadTimeout, h.WriteTimeout = time.Second, time.Second }
		s.server.Heartbeat = 600 * time.Millisecond
	})
	// It is made past the server, whose time-outs a slow disk would reach.
	key := semel.Key{Account: "acme", Kind: "note", ID: semel.NewID()}
	if _, err := w.ledger.Accept(t.Context(), semel.Request{Key: key, Params: []byte(menu)}); err != nil {
		t.Fatal(err)
	}
	path := note(key.ID)
	s := w.follow(path)
	if e := s.next(); e.name != "state" || e.id != "1" || e.op.State != semel.Accepted || string(e.op.Params) != menu {
		t.Errorf("%+v", e)
	}
	for s.comments < 2 { // heartbeats, past both time-outs
		line, err := s.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == ": alive\n" {
			s.comments++
		}
	}
	lease := w.claim(time.Minute)
	if e := s.next(); e.name != "state" || e.id != "2" || e.op.State != semel.Processing {
		t.Errorf("%+v", e)
	}
	// Progress is told outside of the revision, and without parameters.
	if _, err := w.ledger.Renew(t.Context(), []semel.Lease{lease}, []*semel.Progress{{Fraction: 0.5, Note: "half"}}); err != nil {
		t.Fatal(err)
	}
	if e := s.next(); e.name != "progress" || e.id != "" || e.op.Revision != 2 || e.op.Progress.Note != "half" || e.op.Params != nil {
		t.Errorf("%+v", e)
	}
	w.finish(lease, semel.Ending{Outcome: semel.Applied, Result: []byte(`{"a":[1,2]}`)})
	if e := s.next(); e.name != "state" || e.id != "3" || e.op.State != semel.Succeeded || string(e.op.Result) != `{"a":[1,2]}` {
		t.Errorf("%+v", e)
	}
	s.ends()
}

func TestLastEventID(t *testing.T) {
	w := newWorld(t, nil)
	path, _ := w.create()
	lease := w.claim(time.Minute)
	for id, tells := range map[string]bool{"1": true, "2": false, "99": true, "x": true, "": true, "-4": true} {
		s := w.follow(path, header("Last-Event-ID", id))
		if tells {
			if e := s.next(); e.id != "2" {
				t.Errorf("after %q: %+v", id, e)
			}
		} else {
			// What was seen is not told again: the first event is the progress.
			if _, err := w.ledger.Renew(t.Context(), []semel.Lease{lease}, []*semel.Progress{{Fraction: 0.1}}); err != nil {
				t.Fatal(err)
			}
			if e := s.next(); e.name != "progress" {
				t.Errorf("after %q: %+v", id, e)
			}
		}
		s.stop()
	}
	w.finish(lease, semel.Ending{Outcome: semel.Refused})
	w.do("GET", path+"/events", header("Last-Event-ID", "3")).is(204) // nothing can follow: an EventSource stops
	s := w.follow(path, header("Last-Event-ID", "2"))
	if e := s.next(); e.op.State != semel.Failed {
		t.Errorf("%+v", e)
	}
	s.ends()
	w.do("HEAD", path+"/events").is(200)
	w.do("GET", note(semel.NewID())+"/events").problem(404, semel.CodeNotFound)
	w.do("GET", note("..")+"/events").problem(400, semel.CodeInvalid)
}

// When the client goes, nothing of its stream stays behind.
func TestStreamGoesWithItsClient(t *testing.T) {
	w := newWorld(t, nil)
	path, _ := w.create()
	var streams []*stream
	for range 20 {
		s := w.follow(path)
		s.next()
		streams = append(streams, s)
	}
	if watching() < 20 {
		t.Fatalf("%d goroutines watch", watching())
	}
	for _, s := range streams {
		s.stop()
	}
	w.active.Wait()
	w.until(func() bool { w.do("GET", "/healthz"); return watching() == 0 })
}

// watching counts the goroutines of event streams.
func watching() int {
	var b strings.Builder
	pprof.Lookup("goroutine").WriteTo(&b, 2)
	return strings.Count(b.String(), "Ledger).Watch.func")
}

// Law 10: a stream must not outlive its credential.
func TestStreamEndsWithItsCredential(t *testing.T) {
	var revoked atomic.Bool
	w := newWorld(t, func(s *setup) {
		s.server.Heartbeat = 10 * time.Millisecond
		s.server.Authenticate = func(*http.Request) (httpapi.Identity, error) {
			if revoked.Load() {
				return httpapi.Identity{}, semel.ErrUnauthenticated
			}
			return httpapi.Identity{Account: "acme"}, nil
		}
	})
	path, _ := w.create()
	s := w.follow(path)
	s.next()
	revoked.Store(true)
	s.ends()
}
