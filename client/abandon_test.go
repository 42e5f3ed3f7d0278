package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

// Abandoning ends with a proof that it will never happen, or with the one that was
// faster.
func TestAbandon(t *testing.T) {
	t.Run("never sent", func(t *testing.T) {
		w := newWorld(t)
		j := NewMemoryJournal()
		c := w.client(j, nil)
		in := intent("export")
		if _, err := c.Begin(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		out, err := c.Abandon(t.Context(), in.ID)
		if s := is[Settled](t, out, err); s.Operation.State != semel.Abandoned || s.Operation.Key.ID != in.ID {
			t.Errorf("%+v", s)
		}
		out, err = c.Submit(t.Context(), in.ID)
		if s := is[Settled](t, out, err); s.Operation.State != semel.Abandoned {
			t.Errorf("%+v", s)
		}
		if got := w.asked(); len(got) != 0 {
			t.Errorf("asked %v", got)
		}
	})
	t.Run("turned away", func(t *testing.T) {
		w := newWorld(t)
		j := NewMemoryJournal()
		in := intent("export")
		if _, err := w.client(j, nil).Begin(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		turn := w.api(nil)
		send := turn.Submit
		turn.Submit = func(ctx context.Context, in Intent) Sent { // a server whose store was away for a moment
			s := send(ctx, in)
			s.operation, s.Proof = nil, contract.Proof{Proves: contract.NotApplied, Reach: contract.ReachThis, Status: 503}
			return s
		}
		o := w.quick()
		o.MaxAttempts = 1
		c, err := New(turn, j, o)
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Submit(t.Context(), in.ID)
		is[Unconfirmed](t, out, err)
		// A copy of it was taken, by whoever repeats requests on the way. What is told
		// of it is what is so.
		out, err = w.client(j, nil).Abandon(t.Context(), in.ID)
		if s, ok := out.(Settled); ok && err == nil && s.Operation.State != w.state("export", in.ID) {
			t.Errorf("told %s, and it is %s", s.Operation.State, w.state("export", in.ID))
		}
	})
	t.Run("may be on its way", func(t *testing.T) {
		w := newWorld(t)
		j := NewMemoryJournal()
		in := intent("export")
		w.rules("hold method=PUT at=before count=1", "status-before method=GET code=502", "cut-before method=DELETE count=1")
		ctx, giveUp := context.WithCancel(t.Context())
		go func() { // once it has gone out
			w.faults.WaitHeld(t.Context(), 1)
			giveUp()
		}()
		out, err := w.client(j, nil).Do(ctx, in)
		is[Unconfirmed](t, out, err)
		out, err = w.client(j, nil).Abandon(t.Context(), in.ID)
		if s := is[Settled](t, out, err); s.Operation.State != semel.Abandoned {
			t.Fatalf("%+v", s)
		}
		// The first request arrives now, and finds the tombstone.
		w.faults.Release()
		if err := w.faults.WaitDone(t.Context(), w.faults.Progress().Started); err != nil {
			t.Fatal(err)
		}
		if w.state("export", in.ID) != semel.Abandoned || w.ran(in.ID) != 0 {
			t.Errorf("state %s, %d effects", w.state("export", in.ID), w.ran(in.ID))
		}
	})
	t.Run("the wish outlives the process", func(t *testing.T) {
		w := newWorld(t)
		j := NewMemoryJournal()
		in := intent("export")
		o := w.quick()
		o.MaxAttempts, o.Budget = 1, 100*time.Millisecond
		w.rules("cut-before method=PUT", "status-before method=GET code=502", "cut-before method=DELETE")
		out, err := w.client(j, o).Do(t.Context(), in)
		is[Unconfirmed](t, out, err)
		out, err = w.client(j, o).Abandon(t.Context(), in.ID)
		is[Unconfirmed](t, out, err)
		w.rules()
		j = reborn(j)
		c := w.client(j, nil)
		if list, err := c.Pending(t.Context()); err != nil || len(list) != 1 || !list[0].Abandoned {
			t.Fatalf("pending %+v, %v", list, err)
		}
		err = c.Resume(t.Context(), func(_ Entry, out Outcome) error {
			if s := is[Settled](t, out, nil); s.Operation.State != semel.Abandoned {
				t.Errorf("%+v", s)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		empty(t, j)
		if w.ran(in.ID) != 0 {
			t.Error("it ran")
		}
	})
	t.Run("too late", func(t *testing.T) {
		w := newWorld(t)
		release := make(chan struct{})
		running := make(chan struct{})
		w.effect = func(string) effect.Result {
			close(running)
			<-release
			return effect.Applied(nil)
		}
		c := w.client(nil, nil)
		in := intent("export")
		var together sync.WaitGroup
		together.Go(func() {
			out, err := c.Do(t.Context(), in)
			if s, ok := out.(Settled); !ok || err != nil || s.Operation.State != semel.Succeeded {
				t.Errorf("%+v, %v", out, err)
			}
		})
		<-running
		// It is told at once, while Do goes on.
		out, err := c.Abandon(t.Context(), in.ID)
		if u, ok := out.(Unconfirmed); !ok || u.Next != NextWait || !errors.Is(err, semel.ErrAlreadyStarted) {
			t.Errorf("%+v, %v", out, err)
		}
		close(release)
		together.Wait()
		if n := w.ran(in.ID); n != 1 {
			t.Errorf("%d effects", n)
		}
	})
	t.Run("while it is seen through", func(t *testing.T) {
		w := newWorld(t)
		c := w.client(nil, nil)
		in := intent("idle") // nobody works on it
		done := make(chan struct{})
		go func() {
			defer close(done)
			out, err := c.Do(t.Context(), in)
			if s, ok := out.(Settled); !ok || err != nil || s.Operation.State != semel.Abandoned {
				t.Errorf("%+v, %v", out, err)
			}
		}()
		if err := w.faults.WaitStarted(t.Context(), 2); err != nil { // the event stream
			t.Fatal(err)
		}
		out, err := c.Abandon(t.Context(), in.ID)
		if s := is[Settled](t, out, err); s.Operation.State != semel.Abandoned {
			t.Errorf("%+v", s)
		}
		<-done
	})
}
