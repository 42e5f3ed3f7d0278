package client

import (
	"context"
	"errors"
	"sync"

	"github.com/semel-dev/semel"
)

// Resume takes up every intent of this client's API that is in the journal, the
// oldest first, a few at a time, and calls take with what came of each, one call at
// a time. When take returns nil for a decided outcome, the intent is forgotten;
// otherwise it stays, and the next Resume brings it again. So no outcome is lost, and
// one may come twice. take must not call the client about the same intent. It may be
// nil, to forget whatever is decided.
//
// Intents that another call or client works on are left to it. Resume returns when all are
// done, or ctx ends. Its error joins those of the journal and of take; an intent that
// stays unconfirmed is none.
func (c *Client) Resume(ctx context.Context, take func(Entry, Outcome) error) error {
	records, err := c.records(ctx)
	todo := make(chan *record)
	var together sync.WaitGroup
	var mu sync.Mutex // guards errs, and take
	errs := []error{err}
	for range min(c.opts.Parallel, len(records)) {
		together.Go(func() {
			for r := range todo {
				if err := c.resume(ctx, r, &mu, take); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, r := range records {
		if ctx.Err() != nil {
			break
		}
		todo <- r
	}
	close(todo)
	together.Wait()
	return errors.Join(errs...)
}

// resume sees one intent through, and hands on what came of it. It stays ours until
// then, so that nobody else hands it on, too.
func (c *Client) resume(ctx context.Context, r *record, mu *sync.Mutex, take func(Entry, Outcome) error) error {
	f, ours := c.take(r.ID)
	if !ours {
		return nil // a call of this client is at it
	}
	out, err := c.seeThrough(ctx, f, resuming)
	defer func() { c.land(f, out, err) }()
	switch {
	case errors.Is(err, semel.ErrInProgress), errors.Is(err, semel.ErrNotFound):
		return nil // somebody else has it, or had it
	case err != nil:
		return err
	}
	var failed error
	if take != nil {
		e := r.entry()
		e.Outcome = out
		mu.Lock()
		failed = take(e, out)
		mu.Unlock()
	}
	if !decided(out) {
		return failed
	}
	ctx = context.WithoutCancel(ctx)
	if failed != nil { // it stays, for whoever comes next
		return errors.Join(failed, c.update(ctx, r.ID, func(old *record, _ *Record) (*record, error) {
			if old != nil && old.Owner == c.owner {
				old.Owner = ""
			}
			return old, nil
		}))
	}
	return c.remove(ctx, r.ID)
}
