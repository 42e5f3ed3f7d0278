package client

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/retryhttp"
)

// Options configure a [Client].
type Options struct {
	// Budget is how long a call goes on without news of the intent; while the other
	// side is seen to be at work, only the caller's context ends it. Where the next
	// wait does not fit into what is left, the call ends at once. Negative means no
	// limit. Defaults to 2 minutes.
	Budget time.Duration
	// MaxAttempts is how often one call transmits the request at most. Defaults to no
	// limit but the budget.
	MaxAttempts int
	// AttemptTimeout is how long one transmission or look-up may take, with its whole
	// answer. Defaults to 30 seconds.
	AttemptTimeout time.Duration
	// Backoff spreads what is asked again. Defaults to 100 ms, doubled up to 5 s.
	Backoff retryhttp.Backoff
	// Quota bounds what repeats add to the load of each host; where it is used up, all
	// intents together ask once in 5 seconds whether the host is back. One may be
	// shared with other clients and transports. Defaults to one of the client's own.
	Quota *retryhttp.Quota
	// Parallel is how many intents [Client.Resume] works on at a time. Defaults to 4.
	Parallel int
	// Clock is what ages and waits are counted by. Defaults to this machine's.
	Clock Clock
	// Logger gets one record per request; see the package comment. Defaults to none.
	Logger *slog.Logger
}

// A Client sees intents through. It is safe for concurrent use; make one with [New].
type Client struct {
	api     *API
	journal Journal
	opts    Options
	owner   string

	mu      sync.Mutex
	flights map[string]*flight
	probed  map[string]time.Time // when hosts were last asked beyond their quota
}

// New makes a client that speaks to api and keeps its intents in journal, which may
// be shared with other clients; nil is [NewMemoryJournal]. The journal stays the
// caller's to close. Errors are [semel.CodeInvalid]: the API can't be used.
func New(api *API, journal Journal, options *Options) (*Client, error) {
	own := *api
	if err := own.check(); err != nil {
		return nil, err
	}
	c := &Client{api: &own, journal: journal, flights: map[string]*flight{}, probed: map[string]time.Time{}}
	if journal == nil {
		c.journal = NewMemoryJournal()
	}
	if options != nil {
		c.opts = *options
	}
	if c.opts.Budget == 0 {
		c.opts.Budget = 2 * time.Minute
	}
	if c.opts.AttemptTimeout <= 0 {
		c.opts.AttemptTimeout = 30 * time.Second
	}
	if c.opts.Quota == nil {
		c.opts.Quota = new(retryhttp.Quota)
	}
	if c.opts.Parallel <= 0 {
		c.opts.Parallel = 4
	}
	if c.opts.Clock == nil {
		c.opts.Clock = machineClock{}
	}
	c.owner = ownerName(c.journal.Session())
	return c, nil
}

// Begin writes an intent down. When it returns, the intent survives a crash; nothing
// has been sent. Beginning the same intent again is no error, and answers with what
// is known of it.
//
// Errors by code: [semel.CodeInvalid]; [semel.CodeMismatch], where the ID is in the
// journal with another request; [semel.CodeUnavailable], where the journal can't be
// written.
func (c *Client) Begin(ctx context.Context, in Intent) (Entry, error) {
	in, err := c.api.complete(in)
	if err != nil {
		return Entry{}, err
	}
	r, _, err := c.begin(ctx, in, false)
	if err != nil {
		return Entry{}, err
	}
	return r.entry(), nil
}

// begin writes a completed intent down, where marked together with the mark of its
// first transmission, as ours. fresh says that it was not known before.
func (c *Client) begin(ctx context.Context, in Intent, marked bool) (r *record, fresh bool, err error) {
	step("begin")
	err = c.update(ctx, in.ID, func(old *record, rec *Record) (*record, error) {
		if fresh = old == nil; !fresh {
			r = old
			if !old.same(in) {
				return nil, &semel.Error{Op: "begin", Code: semel.CodeMismatch, Key: old.key(),
					Msg: "this operation ID is in the journal with another request", Hint: "a changed request is a new operation: give it a new ID"}
			}
			return old, nil
		}
		r = newRecord(in, c.api, c.opts.Clock.Now().UTC())
		r.clock = c.opts.Clock
		if marked {
			r.mark(r.now(), c.opts.AttemptTimeout)
			r.Owner = c.owner
		}
		rec.Body = in.Body
		return r, nil
	})
	step("begun")
	return r, fresh, err
}

// Submit sends an intent of the journal and sees it through: to its end, until the
// budget is used up, or until ctx ends. It never sends what need not be sent: one
// that has ended already is answered from the journal, and one that the other side
// has is only followed. Where another call of this client is at it, Submit waits for
// that one.
//
// Errors by code: [semel.CodeNotFound], where the journal has no such intent;
// [semel.CodeInProgress], where another client works on it; [semel.CodeInvalid], where
// it was begun for another API, server or account; [semel.CodeUnavailable], where the
// journal can't be written. An outcome that comes with an error is true; the journal
// does not know of it. When ctx ends there is an outcome and no error.
func (c *Client) Submit(ctx context.Context, id string) (Outcome, error) {
	return c.through(ctx, id, submitting)
}

// Wait is Submit without ever sending the request: it looks the intent up, and
// follows it where the other side has it. Errors as Submit.
func (c *Client) Wait(ctx context.Context, id string) (Outcome, error) {
	return c.through(ctx, id, waiting)
}

// Do is Begin, Submit and, where the outcome is decided, Forget. What is
// [Unconfirmed] stays in the journal, as does what is Rejected and may be sent
// again. Where the outcome itself must survive a crash, call the three. Errors as
// these.
func (c *Client) Do(ctx context.Context, in Intent) (Outcome, error) {
	in, err := c.api.complete(in)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, semel.AsError("do", err)
	}
	out, err := c.beginAndSubmit(ctx, in)
	if err == nil && decided(out) {
		err = c.Forget(context.WithoutCancel(ctx), in.ID)
		if errors.Is(err, semel.ErrInProgress) {
			err = nil // another call had the same intent, and forgets it
		}
	}
	return out, err
}

// beginAndSubmit writes beginning and first mark in one. Where another call is at it,
// it shares the outcome of that call, which may forget the intent at once.
func (c *Client) beginAndSubmit(ctx context.Context, in Intent) (Outcome, error) {
	for beginning := ctx; ; beginning = context.WithoutCancel(ctx) { // once begun, there is an outcome
		f, ours := c.take(in.ID)
		r, fresh, err := c.begin(beginning, in, ours)
		switch {
		case err != nil && ours:
			c.land(f, nil, err)
			return nil, err
		case err != nil:
			return nil, err
		case ours && fresh:
			w := c.newWork(f, r, in.Body, submitting)
			w.marked = true
			out, err := w.run(ctx)
			c.land(f, out, err)
			return out, err
		case ours:
			return c.work(ctx, f, submitting)
		case fresh: // it has ended and was forgotten: this is a new beginning
			continue
		}
		if out, err, again := c.join(ctx, f, submitting); !again {
			return out, err
		}
	}
}

// Abandon makes sure that an intent never happens. A call that is seeing it through
// is told, and both have the outcome:
//
//   - [Settled] with an operation in state Abandoned: it has not happened, and will
//     not. A late request is refused.
//   - Any other Settled: it had ended before.
//   - [Unconfirmed]: it is not known yet. The wish is in the journal; the intent is
//     not sent any more, and Submit and Resume go on with abandoning it.
//
// An API without a way to cancel is looked up until absence is proven, if its
// contract has such a proof.
//
// Errors as Submit, and [semel.CodeAlreadyStarted] beside the outcome: it has begun,
// and can't be abandoned any more. A call that was seeing it through goes on.
func (c *Client) Abandon(ctx context.Context, id string) (Outcome, error) {
	return c.through(ctx, id, abandoning)
}

// Forget removes an intent from the journal. What is forgotten while it is
// unconfirmed can't be found out from here any more, and its ID should not be used
// again. Forgetting what is not there is no error.
//
// Errors by code: [semel.CodeInProgress], where it is worked on;
// [semel.CodeUnavailable].
func (c *Client) Forget(ctx context.Context, id string) error {
	f, ours := c.take(id)
	if !ours {
		return busy(id)
	}
	defer c.land(f, nil, nil)
	return c.remove(ctx, id)
}

// remove takes an intent out of the journal, if it may be taken.
func (c *Client) remove(ctx context.Context, id string) error {
	step("forget")
	err := c.update(ctx, id, func(old *record, _ *Record) (*record, error) {
		if old == nil {
			return nil, nil
		}
		return nil, c.mayTake(old)
	})
	step("forgotten")
	return err
}

// Pending lists the intents of this client's API that are in the journal, oldest
// first: what is not decided, and what is decided and not forgotten. Beside an error
// it lists what can be read.
func (c *Client) Pending(ctx context.Context) ([]Entry, error) {
	records, err := c.records(ctx)
	list := make([]Entry, 0, len(records))
	for _, r := range records {
		list = append(list, r.entry())
	}
	return list, err
}

// records returns what the journal holds of this API, oldest first. Beside an error it
// returns what can be read.
func (c *Client) records(ctx context.Context) ([]*record, error) {
	states, err := c.journal.List(ctx)
	if err != nil {
		return nil, journalError(err)
	}
	var list []*record
	var errs []error
	for id, state := range states {
		r, err := decodeRecord(id, state)
		switch {
		case err != nil:
			errs = append(errs, err)
		case r.API == c.api.Name:
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *record) int { return cmp.Or(a.Begun.Compare(b.Begun), cmp.Compare(a.ID, b.ID)) })
	return list, errors.Join(errs...)
}
