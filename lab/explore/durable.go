package explore

import (
	"context"
	"errors"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/client"
)

// durable are the scripts of programs with a durable client.
func (w *world) durable(ctx context.Context) {
	u := w.newUser("one", "one")
	switch w.schedule.Script {
	case "journal":
		u.insist(ctx, u.submitFresh)
		return
	}
	key := w.newKey()
	switch w.schedule.Script {
	case "do":
		u.insist(ctx, u.doAgain(key))
	case "resume":
		u.insist(ctx, u.onlyResume(key))
	case "give-up":
		u.leaveEarly(ctx, key)
		u.insist(ctx, u.abandon(key))
	case "rival":
		u.leaveEarly(ctx, key)
		w.turn(ctx)
		two := w.newUser("two", "one")
		w.server = nil // at another node
		two.insist(ctx, two.doAgain(key))
		u.insist(ctx, u.resume)
	case "clash":
		u.insist(ctx, u.doAgain(key))
		two := w.newUser("two", "two")
		two.insist(ctx, two.doAgain(key))
	case "outlive":
		u.leaveEarly(ctx, key)
		u.die()
		w.work(ctx)
		w.forgetAll(ctx, 2)
		u.insist(ctx, u.resume)
	}
	w.work(ctx)
	if w.schedule.Script != "give-up" { // what was never sent was given up in the journal alone
		w.put(ctx, key, "late", u.content) // somebody without a journal
	}
}

// insist repeats a part of the program until the user was told how it ends. Where
// nobody but a person can find out, one does, at the external service.
func (u *user) insist(ctx context.Context, part func(context.Context, *client.Client) error) {
	hopeless := 0
	for range 20 {
		if u.decided || hopeless >= 2 || u.w.err != nil {
			return
		}
		u.stuck = false
		u.run(func(c *client.Client) error { return part(ctx, c) })
		if u.stuck && !u.w.resolve(ctx) {
			hopeless++
		}
		if !u.decided {
			u.w.turnIfOpen(ctx)
			u.w.advance(10 * time.Second)
		}
	}
}

// submitFresh submits what the journal holds; where it holds nothing, nothing was
// sent, and a new intent is begun, with an ID of its own.
func (u *user) submitFresh(ctx context.Context, c *client.Client) error {
	list, err := c.Pending(ctx)
	if err != nil {
		return err
	}
	var e client.Entry
	if len(list) > 0 {
		e = list[0]
	} else if e, err = c.Begin(ctx, u.intent(u.w.newKey().ID)); err != nil {
		return err
	}
	return u.submit(ctx, c, e)
}

func (u *user) submit(ctx context.Context, c *client.Client, e client.Entry) error {
	out, err := c.Submit(ctx, e.ID)
	u.told(e, out)
	if u.decided {
		err = errors.Join(err, c.Forget(ctx, e.ID))
	}
	return err
}

// doAgain takes up what is left, and then does what is not done, under an ID of
// the user's own.
func (u *user) doAgain(key semel.Key) func(context.Context, *client.Client) error {
	return func(ctx context.Context, c *client.Client) error {
		if err := u.resume(ctx, c); err != nil || u.decided {
			return err
		}
		out, err := c.Do(ctx, u.intent(key.ID))
		u.told(client.Entry{Intent: client.Intent{ID: key.ID}}, out)
		return err
	}
}

// resume takes up what is left.
func (u *user) resume(ctx context.Context, c *client.Client) error {
	return c.Resume(ctx, func(e client.Entry, out client.Outcome) error {
		u.told(e, out)
		return nil
	})
}

// onlyResume begins, and leaves the rest to resume. The first decided outcome is not
// taken, and has to come again.
func (u *user) onlyResume(key semel.Key) func(context.Context, *client.Client) error {
	refused := false
	return func(ctx context.Context, c *client.Client) error {
		if _, err := c.Begin(ctx, u.intent(key.ID)); err != nil {
			return err
		}
		return c.Resume(ctx, func(e client.Entry, out client.Outcome) error {
			u.told(e, out)
			if u.decided && !refused {
				refused, u.decided = true, false
				return errors.New("not taken")
			}
			return nil
		})
	}
}

// leaveEarly submits, and gives up waiting with the first answer, or none.
func (u *user) leaveEarly(ctx context.Context, key semel.Key) {
	begun := false
	for range 3 {
		u.run(func(c *client.Client) error {
			e, err := c.Begin(ctx, u.intent(key.ID))
			if err != nil {
				return err
			}
			begun = true
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			u.leave = cancel
			out, err := c.Submit(ctx, e.ID)
			u.told(e, out)
			return err
		})
		if begun {
			return
		}
	}
}

// abandon makes sure that it never happens, or sees it through where it is too late.
func (u *user) abandon(key semel.Key) func(context.Context, *client.Client) error {
	return func(ctx context.Context, c *client.Client) error {
		out, err := c.Abandon(ctx, key.ID)
		if errors.Is(err, semel.ErrNotFound) {
			// The journal has never heard of it, so it was never sent.
			_, err := c.Begin(ctx, u.intent(key.ID))
			return err
		}
		u.told(client.Entry{Intent: client.Intent{ID: key.ID}}, out)
		if errors.Is(err, semel.ErrAlreadyStarted) {
			return u.submit(ctx, c, client.Entry{Intent: client.Intent{ID: key.ID}})
		}
		return err
	}
}
