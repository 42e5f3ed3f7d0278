package client

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/effect"
)

// A first transmission that is refused is rejected, and that is final.
func TestRejected(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Intent)
		code   semel.Code
	}{
		{"not JSON", func(in *Intent) { in.Body = []byte(`{"a":`) }, semel.CodeInvalid},
		{"unknown kind", func(in *Intent) { in.Kind = "nothing" }, semel.CodeUnknownKind},
		{"accept deadline", func(in *Intent) { in.AcceptUntil = time.Now().Add(-time.Minute) }, semel.CodeDeadlinePassed},
		{"the ID is another request's", func(in *Intent) { in.ID = "taken" }, semel.CodeMismatch},
		{"older than what is remembered", func(in *Intent) { in.ID = "01000000-0000-7000-8000-000000000000"; in.Kind = "idle" }, semel.CodeExpired},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.advance(2 * time.Hour)
			if _, err := w.ledger.Purge(t.Context()); err != nil { // raises the horizon
				t.Fatal(err)
			}
			w.advance(-2 * time.Hour)
			if _, err := w.ledger.Accept(t.Context(), semel.Request{Key: semel.Key{Account: "acme", Kind: "export", ID: "taken"}, Params: []byte(`{}`)}); err != nil {
				t.Fatal(err)
			}
			j := NewMemoryJournal()
			cl := w.client(j, nil)
			in := intent("export")
			c.change(&in)
			e, err := cl.Begin(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second answer is from the journal
				out, err := cl.Submit(t.Context(), e.ID)
				r := is[Rejected](t, out, err)
				if r.Problem.Code != c.code || r.Problem.Retryable || r.Problem.Operation != nil {
					t.Errorf("problem %+v", r.Problem)
				}
			}
			if got := strings.Join(w.asked(), ", "); strings.Count(got, "PUT") != 1 {
				t.Errorf("asked %s", got)
			}
			if r, body, err := cl.read(t.Context(), e.ID); err != nil || body != nil || r.Ended != endedRejected {
				t.Errorf("record %+v, body %q, error %v", r, body, err)
			}
			if err := cl.Forget(t.Context(), e.ID); err != nil {
				t.Error(err)
			}
			empty(t, j)
		})
	}
}

// Refused credentials reject a first transmission, but the intent stays, and others
// may send it.
func TestCredentialsRefused(t *testing.T) {
	w := newWorld(t)
	j := NewMemoryJournal()
	c, err := New(w.api(&SemelOptions{Authorize: Bearer("expired")}), j, w.quick())
	if err != nil {
		t.Fatal(err)
	}
	in := intent("export")
	out, err := c.Do(t.Context(), in)
	r := is[Rejected](t, out, err)
	if r.Problem.Code != semel.CodeUnauthenticated || !r.Problem.Retryable {
		t.Fatalf("%+v", r.Problem)
	}
	list, err := c.Pending(t.Context())
	if err != nil || len(list) != 1 || is[Unconfirmed](t, list[0].Outcome, nil).Next != NextSubmit {
		t.Fatalf("pending %+v, %v", list, err)
	}
	out, err = w.client(reborn(j), nil).Submit(t.Context(), in.ID)
	is[Settled](t, out, err)
}

// What the server no longer remembers is explained. Whether it is rejected depends on
// what happened before.
func TestExpired(t *testing.T) {
	w := newWorld(t)
	j := NewMemoryJournal()
	in := intent("idle")
	w.rules("lose-answer method=PUT count=1", "status-before method=GET code=502")
	o := w.quick()
	o.MaxAttempts, o.Budget = 1, 200*time.Millisecond
	out, err := w.client(j, o).Do(t.Context(), in)
	is[Unconfirmed](t, out, err)

	// Meanwhile the operation ends, and is forgotten.
	key := semel.Key{Account: "acme", Kind: "idle", ID: in.ID}
	if _, err := w.ledger.Abandon(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	w.advance(3 * time.Hour)
	for range 3 {
		if _, err := w.ledger.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.rules()
	out, err = w.client(j, nil).Submit(t.Context(), in.ID)
	u := is[Unconfirmed](t, out, err)
	if u.Next != NextPerson || u.Problem == nil || u.Problem.Code != semel.CodeExpired || !strings.Contains(u.Reason, "no longer remembers") {
		t.Errorf("%+v", u)
	}
}

func TestNeedsReconciliation(t *testing.T) {
	w := newWorld(t)
	w.effect = func(string) effect.Result { return effect.Unknown("no-answer", "") }
	j := NewMemoryJournal()
	c := w.client(j, nil)
	in := intent("doubtful")
	out, err := c.Do(t.Context(), in)
	u := is[Unconfirmed](t, out, err)
	if u.Next != NextPerson || u.Operation.State != semel.NeedsReconciliation {
		t.Fatalf("%+v", u)
	}
	// It stays so at the next call, too, and that asks the server.
	out, err = w.client(reborn(j), nil).Submit(t.Context(), in.ID)
	if u := is[Unconfirmed](t, out, err); u.Next != NextPerson {
		t.Fatalf("%+v", u)
	}
	op := u.Operation
	if _, err := w.ledger.Resolve(t.Context(), op.Key, semel.Resolution{Verdict: "applied", Evidence: "seen", By: "root", Revision: op.Revision}); err != nil {
		t.Fatal(err)
	}
	out, err = c.Submit(t.Context(), in.ID)
	if s := is[Settled](t, out, err); s.Operation.State != semel.Succeeded {
		t.Errorf("%+v", s)
	}
}

// The same intent in many goroutines is one operation, and all have its outcome.
func TestManyCallsOneIntent(t *testing.T) {
	w := newWorld(t)
	w.rules("lose-answer method=PUT count=1")
	c := w.client(nil, nil)
	in := intent("export")
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() {
			out, err := c.Do(t.Context(), in)
			if s, ok := out.(Settled); !ok || err != nil || s.Operation.State != semel.Succeeded {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
	together.Wait()
	if n := w.ran(in.ID); n != 1 {
		t.Errorf("%d effects", n)
	}
	changed := in
	changed.Body = []byte(`{}`)
	if _, err := c.Begin(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(t.Context(), changed); !errors.Is(err, semel.ErrMismatch) {
		t.Errorf("another request under the same ID: %v", err)
	}
}

// The one of two calls that has it ends and forgets it, while the other has only just
// found it in the journal.
func TestOutcomeOfACallThatForgets(t *testing.T) {
	w := newWorld(t)
	c := w.client(nil, nil)
	in := intent("export")
	running, ended, held := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w.effect = func(string) effect.Result {
		close(running)
		<-held
		return effect.Applied(nil)
	}
	var begun atomic.Int32
	step = func(name string) {
		if name == "begun" && begun.Add(1) == 2 {
			close(held)
			<-ended
		}
	}
	defer func() { step = func(string) {} }()
	go func() {
		defer close(ended)
		if out, err := c.Do(t.Context(), in); err != nil {
			t.Errorf("the first: %+v, %v", out, err)
		}
	}()
	<-running
	out, err := c.Do(t.Context(), in)
	if s, ok := out.(Settled); !ok || err != nil || s.Operation.State != semel.Succeeded {
		t.Errorf("the second: %+v, %v", out, err)
	}
	if n := w.ran(in.ID); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// Both callers give up, the second one when it has found that the first has left the
// intent open: it may have happened, and neither is told an error.
func TestBothCallersGiveUp(t *testing.T) {
	w := newWorld(t)
	w.rules("hold method=PUT at=before count=1")
	c := w.client(nil, nil)
	in := intent("export")
	first, giveUpFirst := context.WithCancel(t.Context())
	second, giveUpSecond := context.WithCancel(t.Context())
	defer giveUpFirst()
	var begins, begun atomic.Int32
	step = func(name string) {
		switch {
		case name == "begun" && begun.Add(1) == 2:
			giveUpFirst()
		case name == "begin" && begins.Add(1) == 3:
			giveUpSecond()
		}
	}
	defer func() { step = func(string) {} }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if out, err := c.Do(first, in); err != nil {
			t.Errorf("the first: %+v, %v", out, err)
		}
	}()
	if err := w.faults.WaitHeld(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	out, err := c.Do(second, in)
	is[Unconfirmed](t, out, err)
	<-ended
	if begins.Load() != 3 {
		t.Errorf("it was begun %d times", begins.Load())
	}
}

// A caller gives up just when the other call has ended and has been forgotten.
func TestGivingUpOnWhatIsForgotten(t *testing.T) {
	c := newWorld(t).client(nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f, _ := c.take("gone")
	c.land(f, Settled{}, nil)
	for range 100 { // whichever of the two is noticed first
		if out, err, again := c.join(ctx, f, submitting); out == nil || err != nil || again {
			t.Fatalf("%+v, %v, %v", out, err, again)
		}
	}
}

func TestNobodyElsesIntent(t *testing.T) {
	w := newWorld(t)
	j := NewMemoryJournal()
	in := intent("export")
	first := w.client(j, nil)
	if _, err := first.Begin(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	t.Run("another server", func(t *testing.T) {
		api, err := Semel("http://127.0.0.1:1", nil)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := New(api, j, w.quick())
		if out, err := c.Submit(t.Context(), in.ID); !errors.Is(err, semel.ErrInvalid) || out != nil {
			t.Errorf("%v, %v", out, err)
		}
	})
	t.Run("another client", func(t *testing.T) {
		// One that is alive has it.
		err := first.update(t.Context(), in.ID, func(r *record, _ *Record) (*record, error) {
			r.Owner = ownerName(j.Session())
			return r, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, call := range map[string]func(context.Context, string) (Outcome, error){"submit": first.Submit, "wait": first.Wait, "abandon": first.Abandon} {
			if out, err := call(t.Context(), in.ID); !errors.Is(err, semel.ErrInProgress) || out != nil {
				t.Errorf("%s: %v, %v", name, out, err)
			}
		}
		if err := first.Forget(t.Context(), in.ID); !errors.Is(err, semel.ErrInProgress) {
			t.Errorf("forget: %v", err)
		}
		if err := first.Resume(t.Context(), func(Entry, Outcome) error { t.Error("taken"); return nil }); err != nil {
			t.Errorf("resume: %v", err)
		}
		if got := w.asked(); len(got) != 0 {
			t.Errorf("asked %v", got)
		}
	})
	t.Run("another account", func(t *testing.T) {
		journal := reborn(j) // its owner is dead
		c, err := New(w.api(&SemelOptions{Account: "acme"}), journal, w.quick())
		if err != nil {
			t.Fatal(err)
		}
		mine := intent("export")
		c.opts.MaxAttempts, c.opts.Budget = 1, 50*time.Millisecond
		w.rules("lose-answer method=PUT count=1", "status-before method=GET code=502")
		out, err := c.Do(t.Context(), mine)
		is[Unconfirmed](t, out, err)
		w.rules()
		globex, err := New(w.api(&SemelOptions{Account: "globex", Authorize: Bearer(w.other)}), journal, w.quick())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := globex.Submit(t.Context(), mine.ID); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("%v", err)
		}
		// A token of another account, in a client that believes it to be acme's.
		wrong, err := New(w.api(&SemelOptions{Account: "acme", Authorize: Bearer(w.other)}), journal, w.quick())
		if err != nil {
			t.Fatal(err)
		}
		out, err = wrong.Submit(t.Context(), mine.ID)
		if u := is[Unconfirmed](t, out, err); u.Next != NextSignIn || u.Operation != nil {
			t.Errorf("%+v", u)
		}
	})
}

// Wait never sends.
func TestWait(t *testing.T) {
	w := newWorld(t)
	c := w.client(nil, nil)
	in := intent("export")
	if _, err := c.Begin(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	out, err := c.Wait(t.Context(), in.ID)
	if u := is[Unconfirmed](t, out, err); u.Next != NextSubmit || u.Attempts != 0 || !u.Since.IsZero() {
		t.Errorf("%+v", u)
	}
	c.opts.MaxAttempts, c.opts.Budget = 1, 50*time.Millisecond
	w.rules("lose-answer method=PUT count=1", "status-before method=GET code=502")
	out, err = c.Submit(t.Context(), in.ID)
	is[Unconfirmed](t, out, err)
	out, err = c.Wait(t.Context(), in.ID)
	if u := is[Unconfirmed](t, out, err); u.Next != NextAsk || u.Attempts != 1 {
		t.Errorf("%+v", u)
	}
	w.rules()
	out, err = c.Wait(t.Context(), in.ID)
	is[Settled](t, out, err)
	if _, err := c.Wait(t.Context(), "unheard-of"); !errors.Is(err, semel.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// A caller that gives up gets what is known, at once.
func TestGivingUp(t *testing.T) {
	w := newWorld(t)
	c := w.client(nil, nil)
	in := intent("idle")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err := c.Do(ctx, in)
		u, ok := out.(Unconfirmed)
		if !ok || err != nil || u.Next != NextWait || u.Operation == nil || u.Operation.State != semel.Accepted {
			t.Errorf("%+v, %v", out, err)
		}
	}()
	if err := w.faults.WaitStarted(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	if out, err := c.Do(ctx, in); out != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", out, err)
	}
}

// The journal never sees credentials, and the server sees the same bytes each time.
func TestNoCredentialsInTheJournal(t *testing.T) {
	w := newWorld(t)
	j := NewMemoryJournal()
	w.rules("lose-answer method=PUT count=1", "status-before method=GET code=502")
	o := w.quick()
	o.MaxAttempts, o.Budget = 1, 50*time.Millisecond
	out, err := w.client(j, o).Do(t.Context(), intent("export"))
	is[Unconfirmed](t, out, err)
	for id, r := range j.(*memoryJournal).records {
		if text := string(r.State) + string(r.Body); strings.Contains(text, w.token) || strings.Contains(text, "Bearer") {
			t.Errorf("%s: %s", id, text)
		}
	}
	for _, url := range []string{"http://user:pass@host/x", "ftp://host/x", "/x", "http://host/x#y", "http://"} {
		api := HTTP(plain(), nil)
		c, err := New(api, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Begin(t.Context(), Intent{Kind: "order", URL: url}); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := Semel("https://u:p@host", nil); err == nil {
		t.Error("credentials in the base URL are taken")
	}
}
