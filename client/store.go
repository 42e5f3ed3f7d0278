package client

import (
	"bytes"
	"context"
	"time"

	"github.com/semel-dev/semel"
)

// update changes one record of the journal. change gets the record, nil where there
// is none, and what holds its body, which it may set or clear; it returns the record
// to write, or nil to remove it.
func (c *Client) update(ctx context.Context, id string, change func(old *record, rec *Record) (*record, error)) error {
	err := c.journal.Update(ctx, id, func(stored *Record) (*Record, error) {
		var old *record
		rec := &Record{}
		if stored != nil {
			var err error
			if old, err = decodeRecord(id, stored.State); err != nil {
				return nil, err
			}
			old.clock = c.opts.Clock
			rec.Body = stored.Body
		}
		next, err := change(old, rec)
		if err != nil || next == nil {
			return nil, err
		}
		if rec.State, err = next.encode(); err != nil {
			return nil, err
		}
		rec.Body = bytes.Clone(rec.Body)
		return rec, nil
	})
	if ctx.Err() != nil && err == ctx.Err() {
		return semel.AsError("journal", err)
	}
	return journalError(err)
}

// read reads one record and its body.
func (c *Client) read(ctx context.Context, id string) (r *record, body []byte, err error) {
	err = c.update(ctx, id, func(old *record, rec *Record) (*record, error) {
		if old == nil {
			return nil, &semel.Error{Op: "submit", Code: semel.CodeNotFound, Msg: "the journal has no intent " + id}
		}
		r, body = old, rec.Body
		return old, nil
	})
	return r, body, err
}

// write writes a record that is ours. It does not matter who gave up meanwhile: what
// was found out has to be kept.
func (c *Client) write(r *record, body []byte) error {
	return c.update(context.Background(), r.ID, func(old *record, rec *Record) (*record, error) {
		switch {
		case old == nil:
			return nil, &semel.Error{Op: "journal", Code: semel.CodeNotFound, Msg: "the intent was taken out of the journal while it was worked on"}
		case old.Owner != c.owner:
			return nil, busy(r.ID)
		}
		if r.Ended != "" {
			rec.Body = nil
		}
		return r, nil
	})
}

// log tells of one request: identity, attempt, times, state and category, and
// nothing else.
func (c *Client) log(r *record, did, attempt string, start time.Time, state, category string) {
	if c.opts.Logger == nil {
		return
	}
	c.opts.Logger.Info("client: "+did, "account", r.Account, "kind", r.Kind, "operation_id", r.ID,
		"attempt_id", attempt, "attempt", r.Attempts, "start", start.UTC(), "duration", c.since(start),
		"state", state, "category", category)
}

// since is how long ago that was, by the client's clock.
func (c *Client) since(at time.Time) time.Duration { return c.opts.Clock.Now().Sub(at) }
