package semel

import (
	"context"
	"time"
)

// Get looks an operation up.
//
// Errors by code: [CodeNotFound], which is no proof of absence (a request may be
// on its way); [CodeExpired]; [CodeTooMany]; [CodeUnavailable].
func (l *Ledger) Get(ctx context.Context, key Key) (Operation, error) {
	if err := key.Validate(); err != nil {
		return Operation{}, wrap("get", key, err)
	}
	if err := l.limiter.look(key.Account); err != nil {
		return Operation{}, err.at("get", key)
	}
	found, err := l.find(ctx, key)
	switch {
	case err != nil:
		return Operation{}, wrap("get", key, err)
	case found.Operation == nil && found.PastHorizon:
		return Operation{}, l.expired(key).at("get", key)
	case found.Operation == nil:
		return Operation{}, &Error{Op: "get", Code: CodeNotFound, Key: key, Msg: "nothing is recorded under this key",
			Hint: "that is no proof that it never will be: a request may still be on its way; send the same one again, or abandon it"}
	case found.Operation.Expired && found.Operation.State != Abandoned:
		return Operation{}, l.expired(key).at("get", key)
	}
	return *found.Operation, nil
}

// List returns operations, newest first; see [Query]. The size defaults to 50.
func (l *Ledger) List(ctx context.Context, q Query) (Page, error) {
	if q.Size <= 0 {
		q.Size = 50
	}
	q.Size = min(q.Size, 1000)
	page, err := l.store.List(ctx, q)
	return page, wrap("list", Key{}, err)
}

// History returns what happened to an operation; errors as [Ledger.Get].
func (l *Ledger) History(ctx context.Context, key Key) (History, error) {
	if _, err := l.Get(ctx, key); err != nil {
		return History{}, wrap("history", key, err)
	}
	h, err := l.store.History(ctx, key)
	return h, wrap("history", key, err)
}

// Stats counts over all accounts.
func (l *Ledger) Stats(ctx context.Context) (Stats, error) {
	s, err := l.store.Stats(ctx)
	return s, wrap("stats", Key{}, err)
}

// Purge does one bounded step of forgetting for every kind of this ledger; call
// it again soon while it reports work done. See [Store].Purge for what stays.
func (l *Ledger) Purge(ctx context.Context) (Purged, error) {
	var reqs []PurgeRequest
	for _, k := range l.Kinds() {
		reqs = append(reqs, PurgeRequest{Kind: k.Name, Retention: k.Retention, Max: 1000})
	}
	p, err := l.store.Purge(ctx, reqs)
	return p, wrap("purge", Key{}, err)
}

// PurgeEvery purges until ctx ends: again at once while there is work, else
// after the interval. Errors are logged and tried again.
func (l *Ledger) PurgeEvery(ctx context.Context, interval time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		p, err := l.Purge(ctx)
		if err != nil && ctx.Err() == nil {
			l.opts.Logger.Warn("purge failed", "code", AsError("purge", err).Code)
		}
		if p.Stripped+p.Deleted > 0 {
			timer.Reset(time.Millisecond)
		} else {
			timer.Reset(interval)
		}
	}
}
