package explore

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/client"
	"github.com/semel-dev/semel/lab/history"
	"github.com/semel-dev/semel/retryhttp"
)

// A user has a program with a durable client and a journal file, and starts it
// again when it has died. What the user was told, the user knows.
type user struct {
	w       *world
	name    string
	content string
	api     func(http.RoundTripper) (*client.API, error)
	file    string
	url     string // where the request goes, if not to our server

	// The program that runs now; nil where none does.
	client  *client.Client
	journal client.Journal
	dead    bool               // it has crashed
	leave   context.CancelFunc // called when the first answer comes, or fails to

	memory  client.Journal // what outlives programs where the journal is no file
	starts  int
	back    time.Duration // how far the machine's clock was set back
	decided bool          // the user was told how it ends
	stuck   bool          // the user was told that somebody has to find out
}

func (w *world) newUser(name, content string) *user {
	u := &user{w: w, name: name, content: content, file: filepath.Join(w.base.dir, fmt.Sprintf("journal-%d-%d", w.base.runs, len(w.users)))}
	u.api = func(wire http.RoundTripper) (*client.API, error) {
		return client.Semel(serverURL, &client.SemelOptions{Transport: wire})
	}
	w.users = append(w.users, u)
	return u
}

// start starts the program.
func (u *user) start() error {
	journal, err := u.openJournal()
	if err != nil {
		return err
	}
	u.journal = journal
	api, err := u.api(userWire{u})
	if err != nil {
		return err
	}
	// Waits are spread at random, and a run must be the same each time: the clock
	// rounds them up, and nothing else waits.
	u.client, err = client.New(api, faultyJournal{journal, u}, &client.Options{Budget: time.Hour, Parallel: 1, Clock: userClock{u},
		Backoff: retryhttp.Backoff{Base: time.Second, Max: time.Second}, Quota: &retryhttp.Quota{Reserve: 1e9}})
	return err
}

// openJournal opens the journal as a new program does. With one fault at most it is
// the file; what is explored in pairs, a hundred thousand times, stays in memory.
func (u *user) openJournal() (client.Journal, error) {
	if len(u.w.schedule.Faults) < 2 {
		return client.OpenJournal(u.file, nil)
	}
	if u.memory == nil {
		u.memory = client.NewMemoryJournal()
	}
	u.starts++
	return session{u.memory, fmt.Sprint(u.starts)}, nil
}

// session is a journal in memory as one program has it open: one at a time does.
type session struct {
	client.Journal
	name string
}

func (s session) Session() string        { return s.name }
func (s session) Alive(name string) bool { return name == s.name }

// die ends the program, if it runs; its session in the journal ends with it.
func (u *user) die() {
	if u.journal != nil {
		u.journal.Close()
	}
	u.client, u.journal, u.dead = nil, nil, false
}

// run lets the program do something. It reports false where it has died of it.
func (u *user) run(do func(*client.Client) error) (lived bool) {
	if u.w.err != nil {
		return false
	}
	if u.client == nil {
		if u.w.err = u.start(); u.w.err != nil {
			return false
		}
	}
	over := make(chan struct{})
	go func() { // which ends in the middle of something, as a crashed program does
		defer close(over)
		do(u.client) // an error is one of the journal: the user tries again
	}()
	<-over
	u.leave = nil
	if u.dead {
		u.die()
		return false
	}
	return true
}

// crash ends the program where it is. Other parts of it end as soon as they do
// something.
func (u *user) crash() {
	u.dead = true
	runtime.Goexit()
}

// meet is a boundary that the program meets.
func (u *user) meet(b boundary) Kind {
	if u.dead {
		runtime.Goexit()
	}
	return u.w.meet(b)
}

// told notes what the user is told.
func (u *user) told(e client.Entry, out client.Outcome) {
	if out == nil || u.dead {
		return
	}
	event := history.Event{What: history.Told, By: u.name, Key: semel.Key{Account: account, Kind: kindName, ID: e.ID}}
	switch o := out.(type) {
	case client.Settled:
		op := o.Operation
		event.Outcome = history.Settled
		event.Operation = &op
		u.decided = true
	case client.Rejected:
		event.Outcome, event.Code = history.Rejected, o.Problem.Code
		u.decided = !o.Problem.Retryable
	case client.Unconfirmed:
		event.Outcome = history.Unconfirmed
		if o.Since.IsZero() || o.Next == client.NextSubmit {
			event.Outcome = history.Unsent
		}
		if o.Next == client.NextPerson {
			u.stuck = true
		}
	}
	u.w.add(event)
}

// intent is what the user wants.
func (u *user) intent(id string) client.Intent {
	return client.Intent{ID: id, Kind: kindName, URL: u.url, Body: []byte(bodyOf(u.content))}
}

// userWire is the network of one user.
type userWire struct{ u *user }

func (t userWire) RoundTrip(req *http.Request) (*http.Response, error) {
	if leave := t.u.leave; leave != nil {
		defer leave()
	}
	m, err := newLetter(req, t.u.name)
	if err != nil {
		return nil, err
	}
	w := t.u.w
	if m.die = t.u.crash; t.u.dead {
		m.die()
	}
	if m.where == toEvents {
		w.passUntilNews(req.Context(), m.event.Key)
	}
	answer, err := w.exchange(req.Context(), m, w.deliver)
	if err == nil {
		answer.Request = req
	}
	return answer, err
}

// passUntilNews lets time pass while somebody listens to events.
func (w *world) passUntilNews(ctx context.Context, key semel.Key) {
	for range 24 {
		found, err := w.base.store.Get(ctx, []semel.Key{key})
		if err != nil {
			w.err = err
			return
		}
		if op := found[0].Operation; op == nil || op.State.Settled() || op.State == semel.NeedsReconciliation {
			return
		}
		w.turn(ctx)
		w.advance(5 * time.Second)
	}
}

// userClock is the clock of a user's machine.
type userClock struct{ u *user }

func (c userClock) Now() time.Time { return c.u.w.base.time().Add(-c.u.back) }

// pause is what every wait is a multiple of. It is longer than what the client adds
// at random.
const pause = 16 * time.Second

func (c userClock) Sleep(_ context.Context, d time.Duration) {
	w := c.u.w
	d = (d + pause - 1) / pause * pause
	switch c.u.meet(toClock) {
	case CrashBefore:
		c.u.crash()
	case Asleep: // nobody else does
		w.work(context.Background())
		d += 48 * time.Hour
	case SetBack:
		c.u.back += time.Hour
	}
	w.turnIfOpen(context.Background())
	w.advance(d)
}

// faultyJournal is a journal with the faults of the run.
type faultyJournal struct {
	client.Journal
	u *user
}

func (j faultyJournal) Update(ctx context.Context, id string, change func(*client.Record) (*client.Record, error)) error {
	switch j.u.meet(toJournal) {
	case ErrorBefore:
		return os.ErrPermission
	case ErrorAfter:
		if err := j.Journal.Update(ctx, id, change); err != nil {
			return err
		}
		return os.ErrDeadlineExceeded
	case CrashBefore:
		j.u.crash()
	case CrashAfter:
		j.Journal.Update(ctx, id, change)
		j.u.crash()
	}
	return j.Journal.Update(ctx, id, change)
}
