package client

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// flight is one call of this client that has an intent to itself. Others wait for
// it, and share its outcome.
type flight struct {
	id   string
	done chan struct{}
	out  Outcome
	err  error

	mu      sync.Mutex
	abandon bool          // somebody wishes that it never happens
	bell    chan struct{} // closed when the wish comes
	late    *tooLate      // set when the wish came too late
	told    chan struct{} // closed then
}

// tooLate is what somebody is told who wished to abandon what has begun.
type tooLate struct {
	out Outcome
	err *semel.Error
}

// take begins a flight. Where there is one, it is that of somebody else.
func (c *Client) take(id string) (f *flight, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f = c.flights[id]; f != nil {
		return f, false
	}
	f = &flight{id: id, done: make(chan struct{}), bell: make(chan struct{}), told: make(chan struct{})}
	c.flights[id] = f
	return f, true
}

// land ends a flight.
func (c *Client) land(f *flight, out Outcome, err error) {
	c.mu.Lock()
	delete(c.flights, f.id)
	c.mu.Unlock()
	f.out, f.err = out, err
	close(f.done)
}

// join waits for the flight of somebody else, and tells it the wish to abandon, if
// there is one. again says that it left something to be done.
func (c *Client) join(ctx context.Context, f *flight, m mode) (out Outcome, err error, again bool) {
	var told <-chan struct{}
	if m == abandoning {
		f.wish()
		told = f.told
	}
	select {
	case <-told:
		return f.late.out, f.late.err, false
	case <-f.done:
		if decided(f.out) {
			return f.out, f.err, false
		}
		return nil, nil, true
	case <-ctx.Done():
	}
	r, _, err := c.read(context.WithoutCancel(ctx), f.id)
	if err != nil {
		select {
		case <-f.done: // it has ended just now, and may have been forgotten
			if decided(f.out) {
				return f.out, f.err, false
			}
		default:
		}
		return nil, err, false
	}
	out = r.outcome(nil)
	if u, ok := out.(Unconfirmed); ok {
		u.Reason = "the caller gave up; another call goes on"
		out = u
	}
	return out, nil, false
}

func (f *flight) wish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.abandon {
		f.abandon = true
		close(f.bell)
	}
}

func (f *flight) wished() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.abandon && f.late == nil
}

// refuse tells those who wished to abandon that it is too late. The flight goes on.
func (f *flight) refuse(out Outcome, err *semel.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.late == nil {
		f.late = &tooLate{out, err}
		close(f.told)
	}
}

// refused returns what refuse has told, or nil.
func (f *flight) refused() *tooLate {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.late
}

// ring returns what is closed when a wish comes; nil where it has come already and
// is being dealt with.
func (f *flight) ring() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.abandon {
		return nil
	}
	return f.bell
}

// wait waits so long, until ctx ends, or until a wish comes.
func (f *flight) wait(ctx context.Context, clock Clock, d time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer f.endAt(cancel)()
	clock.Sleep(ctx, d)
}

// ask makes one request, with a context that ends after d (zero for no limit), and
// when a wish comes.
func (f *flight) ask(ctx context.Context, d time.Duration, request func(context.Context)) {
	var cancel context.CancelFunc
	if d > 0 {
		ctx, cancel = context.WithTimeout(ctx, d)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	defer cancel()
	defer f.endAt(cancel)()
	request(ctx)
}

// endAt calls cancel when a wish comes, until stop is called.
func (f *flight) endAt(cancel context.CancelFunc) (stop func()) {
	ring := f.ring()
	if ring == nil {
		return func() {}
	}
	over := make(chan struct{})
	go func() {
		select {
		case <-ring:
			cancel()
		case <-over:
		}
	}()
	return func() { close(over) }
}

// mode is how an intent is seen through.
type mode int

const (
	submitting mode = iota
	waiting         // without ever sending
	abandoning
	resuming // what is decided stays ours, until it is handed on
)

// through sees one intent through, alone or together with a call that is at it.
func (c *Client) through(ctx context.Context, id string, m mode) (Outcome, error) {
	for {
		f, ours := c.take(id)
		if ours {
			return c.work(ctx, f, m)
		}
		if out, err, again := c.join(ctx, f, m); !again {
			return out, err
		}
	}
}

// work takes the intent from the journal, sees it through, and lands the flight.
func (c *Client) work(ctx context.Context, f *flight, m mode) (out Outcome, err error) {
	defer func() { c.land(f, out, err) }()
	return c.seeThrough(ctx, f, m)
}

func (c *Client) seeThrough(ctx context.Context, f *flight, m mode) (out Outcome, err error) {
	if m == abandoning {
		f.wish()
	}
	r, body, err := c.claim(ctx, f, m)
	if err != nil {
		return nil, err
	}
	if r.Ended != "" {
		return r.outcome(nil), nil
	}
	out, err = c.newWork(f, r, body, m).run(ctx)
	if late := f.refused(); late != nil && m == abandoning && err == nil {
		err = late.err
	}
	return out, err
}

// claim makes the intent ours in the journal. One that has ended is only read, unless
// it is to be handed on.
func (c *Client) claim(ctx context.Context, f *flight, m mode) (r *record, body []byte, err error) {
	step("claim")
	err = c.update(context.WithoutCancel(ctx), f.id, func(old *record, rec *Record) (*record, error) {
		if old == nil {
			return nil, &semel.Error{Op: "submit", Code: semel.CodeNotFound, Msg: "the journal has no intent " + f.id}
		}
		if err := c.mayTake(old); err != nil {
			return nil, err
		}
		r, body = old, rec.Body
		if r.Ended == "" {
			r.adopt()
			r.Seen = r.now().UTC()
			r.Abandon = r.Abandon || f.wished()
		}
		if r.Ended == "" || m == resuming {
			r.Owner = c.owner
		}
		return r, nil
	})
	step("claimed")
	return r, body, err
}

// mayTake reports why the intent can't be worked on by this client, or nil.
func (c *Client) mayTake(r *record) error {
	if r.API != c.api.Name {
		e := invalid("this intent was begun for the API %q", r.API)
		e.Key = r.key()
		return e
	}
	if c.api.semel != nil && r.Ended == "" {
		if err := c.api.semel.mine(r); err != nil {
			return err
		}
	}
	if r.Owner != "" && r.Owner != c.owner && c.journal.Alive(sessionOf(r.Owner)) {
		return busy(r.ID)
	}
	return nil
}

func busy(id string) error {
	return &semel.Error{Op: "submit", Code: semel.CodeInProgress, Msg: "another client is working on " + id, Recorded: semel.RecordedUnknown,
		Hint: "its outcome will be in the journal"}
}

// Owners are sessions of the journal, with a part that tells the clients of one
// session apart.
func ownerName(session string) string { return session + "/" + semel.NewID() }

func sessionOf(owner string) string {
	session, _, _ := strings.Cut(owner, "/")
	return session
}
