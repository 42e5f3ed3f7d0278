package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi/problem"
)

func TestDo(t *testing.T) {
	w := newWorld(t)
	j := NewMemoryJournal()
	c := w.client(j, nil)
	in := intent("export")
	out, err := c.Do(t.Context(), in)
	s := is[Settled](t, out, err)
	if s.Operation.State != semel.Succeeded || !strings.Contains(string(s.Operation.Result), secret) || s.Operation.Params != nil {
		t.Errorf("operation %+v", s.Operation)
	}
	if w.ran(in.ID) != 1 {
		t.Errorf("%d effects", w.ran(in.ID))
	}
	empty(t, j)
	if got := w.asked(); len(got) != 2 || got[0] != "PUT 201" || !strings.HasPrefix(got[1], "EVENTS") {
		t.Errorf("asked %v", got)
	}
}

// What happens to the transmissions decides what is asked; the outcome, the one
// operation and the one effect are always the same.
func TestLostAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules []string
		asked string // the beginning
	}{
		{"the answer is lost", []string{"lose-answer method=PUT count=1"}, "PUT lost, GET 200"},
		{"the request never arrives", []string{"cut-before method=PUT count=1"}, "PUT lost, GET 404, PUT 201"},
		{"the request is cut", []string{"cut-during method=PUT count=1"}, "PUT lost, GET 404, PUT 201"},
		{"the answer is cut", []string{"cut-after method=PUT count=1"}, "PUT 201, GET 200"},
		{"both the answer and the look-up are lost", []string{"lose-answer method=PUT count=1", "lose-answer method=GET nth=1"}, "PUT lost, GET lost, PUT 200"},
		{"somebody on the way answers 503", []string{"status method=PUT count=1 code=503"}, "PUT 503, GET 200"},
		{"somebody on the way answers 404", []string{"status-before method=PUT count=1 code=404"}, "PUT 404, GET 404, PUT 201"},
		{"somebody on the way answers 400", []string{"status method=PUT count=1 code=400"}, "PUT 400, GET 200"},
		{"the request arrives twice", []string{"duplicate method=PUT count=1 parallel=true"}, "PUT 20"},
		{"three answers are lost", []string{"cut-before method=PUT count=2", "lose-answer method=PUT nth=3"}, "PUT lost, GET 404, PUT lost, GET 404, PUT lost, GET 200"},
		{"events do not come through", []string{"status-before path=**/events code=404"}, "PUT 201, EVENTS 404, GET "},
		{"events are cut", []string{"cut-after path=**/events bytes=0 count=2"}, "PUT 201, EVENTS 200, GET "},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.rules(c.rules...)
			j := NewMemoryJournal()
			in := intent("export")
			out, err := w.client(j, nil).Do(t.Context(), in)
			if s := is[Settled](t, out, err); s.Operation.State != semel.Succeeded {
				t.Errorf("state %s", s.Operation.State)
			}
			if n := w.ran(in.ID); n != 1 {
				t.Errorf("%d effects", n)
			}
			empty(t, j)
			if got := strings.Join(w.asked(), ", "); !strings.HasPrefix(got, c.asked) {
				t.Errorf("asked %s; want %s…", got, c.asked)
			}
		})
	}
}

// A proof covers one transmission: after one that may have arrived, whatever refuses
// the next one does not make the intent rejected, in this run or in a later one.
func TestLaterRefusalsProveNothing(t *testing.T) {
	for _, later := range []struct {
		name string
		make func(*world, *SemelOptions)
		next Next
	}{
		{"401", func(_ *world, o *SemelOptions) { o.Authorize = Bearer("expired") }, NextSignIn},
		{"no connection", func(_ *world, o *SemelOptions) { o.Transport = nowhere{} }, NextAsk},
		{"no credentials", func(_ *world, o *SemelOptions) { o.Authorize = noCredentials }, NextAsk},
		{"403", func(w *world, o *SemelOptions) { o.Transport = answers{status: 403, code: semel.CodeForbidden} }, NextAsk},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(later.name+map[bool]string{true: " after a restart"}[restart], func(t *testing.T) {
				w := newWorld(t)
				w.rules("lose-answer method=PUT count=1", "status-before code=502 method=GET")
				j := NewMemoryJournal()
				in := intent("export")
				o := w.quick()
				o.MaxAttempts, o.Budget = 1, 300*time.Millisecond
				out, err := w.client(j, o).Do(t.Context(), in)
				first := is[Unconfirmed](t, out, err)
				if first.Attempts != 1 || first.Since.IsZero() || first.Next != NextAsk {
					t.Fatalf("%+v", first)
				}
				journal := Journal(j)
				if restart {
					journal = reborn(j)
				}
				options := &SemelOptions{}
				later.make(w, options)
				c, err := New(w.api(options), journal, o)
				if err != nil {
					t.Fatal(err)
				}
				out, err = c.Submit(t.Context(), in.ID)
				u := is[Unconfirmed](t, out, err)
				if u.Next != later.next || !u.Since.Equal(first.Since) || u.Evidence.Open == 0 {
					t.Errorf("%+v", u)
				}
				// With everything in order again, it is found.
				w.rules()
				out, err = w.client(journal, nil).Submit(t.Context(), in.ID)
				is[Settled](t, out, err)
				if n := w.ran(in.ID); n != 1 {
					t.Errorf("%d effects", n)
				}
			})
		}
	}
}

// nowhere is a network in which nothing can be reached.
type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// answers is a network in which everything is answered in the same way.
type answers struct {
	status int
	code   semel.Code
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	p := problem.Of(&semel.Error{Code: a.code})
	p.Status = a.status
	problem.Write(rec, p)
	return rec.Result(), nil
}

func noCredentials(context.Context, *http.Request) error { return errors.New("the vault is closed") }

// reborn is a memory journal as the next process finds it: the session that wrote it
// is dead.
func reborn(j Journal) Journal {
	old := j.(*memoryJournal)
	old.mu.Lock()
	defer old.mu.Unlock()
	next := NewMemoryJournal().(*memoryJournal)
	for id, r := range old.records {
		next.records[id] = r.clone()
	}
	return next
}
