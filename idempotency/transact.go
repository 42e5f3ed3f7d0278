package idempotency

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/semel-dev/semel"
)

// acceptIn creates the operation in a transaction of its own, which the handler
// then gets. A key that this process has met lately is read first, without one.
func (h *Handler) acceptIn(ctx context.Context, req semel.Request) (semel.Acceptance, *Transaction, error) {
	if h.known.has(req.Key) {
		bounded, cancel := context.WithTimeout(ctx, storeTimeout)
		op, err := h.ledger.Get(bounded, req.Key)
		cancel()
		switch e := semel.AsError("accept", err); {
		case e == nil:
			if refused := judge(op, req.Fingerprint); refused != nil {
				return semel.Acceptance{}, nil, h.guard.told(req.Key, refused)
			}
			h.ledger.Observe(semel.Observation{Name: "replay", Kind: req.Key.Kind, Label: string(op.State)})
			return semel.Acceptance{Operation: op, Replayed: true}, nil, nil
		case e.Code != semel.CodeNotFound:
			return semel.Acceptance{}, nil, e
		}
	}
	req.Begun = &semel.Begun{Worker: h.guard.worker, Contract: contractText, Lease: h.opts.Lease}
	for try := 0; ; try++ {
		t, err := h.begin(ctx)
		if err != nil {
			return semel.Acceptance{}, nil, err
		}
		acc, err := h.ledger.In(t.Tx).Accept(ctx, req)
		if err == nil && acc.Lease != nil {
			return acc, t, nil
		}
		t.Rollback()
		if err == nil || errors.Is(err, semel.ErrMismatch) {
			h.known.add(req.Key)
		}
		if !errors.Is(err, semel.ErrRetryTransaction) || try == 2 {
			return acc, nil, err
		}
	}
}

func (h *Handler) begin(ctx context.Context) (*Transaction, error) {
	t, err := h.opts.Begin(ctx)
	if err != nil {
		e := *semel.AsError("begin", err)
		if e.Code == semel.CodeInternal {
			e.Code, e.Msg = semel.CodeUnavailable, "no transaction could be begun"
		}
		e.Recorded = semel.RecordedNo
		return nil, &e
	}
	return t, nil
}

// transact runs the handler in a transaction. What it wrote, the operation and its
// answer commit together; anything but a success rolls all of it back, so nothing
// has happened. The connection gets its answer after that.
func (x *execution) transact(ctx context.Context, r *http.Request) {
	h, key := x.h, x.lease.Operation.Key
	t, outside := x.tx, (*keeper)(nil)
	end := released("The transaction was rolled back.")
	if t == nil { // the operation was there before: its key was free again
		outside = h.guard.keep(ctx, x.lease, x.began)
		ctx = outside.ctx
	}
	settled := false // the operation has an outcome in the store, or no row
	leave := sync.OnceFunc(func() {
		switch {
		case outside != nil && !settled:
			outside.cancel(errFinished)
			h.guard.finish(outside, end)
		case outside != nil:
			outside.stop()
			outside.cancel(errFinished)
			h.guard.left(key)
		default:
			h.guard.left(key)
		}
	})
	defer leave()
	if t == nil {
		var err error
		if t, err = h.begin(ctx); err != nil {
			h.refuse(x.rec.w, r, err, x.asked)
			return
		}
	}
	over := false
	defer func() {
		if !over { // a panic
			t.Rollback()
		}
	}()
	x.call.tx = t.Value
	h.next.ServeHTTP(x.rec, x.request(ctx, r))
	over = true

	a := x.rec.answer()
	kept := h.keep(a, x.asked.Method).marshal()
	switch {
	case x.rec.overflow:
		t.Rollback()
		h.refuse(x.rec.w, r, &semel.Error{Code: semel.CodeInternal, Recorded: semel.RecordedNo, Msg: errTooMuch.Error()}, x.asked)
		return
	case x.notApplied(a) || !h.final(a.Status):
		t.Rollback()
	case a.Status < 400:
		done, err := h.ledger.In(t.Tx).FinishLast(ctx, x.lease, definite(a.Status, kept))
		if err == nil {
			err = t.Commit()
		}
		if err != nil {
			t.Rollback()
			settled = x.afterFailedCommit(r, kept, err, func() {
				outside = h.guard.keep(context.WithoutCancel(ctx), x.lease, x.began)
				end = unknown("own-commit", "The handler committed its transaction itself, and not with its answer.")
				leave()
			})
			return
		}
		h.known.add(key)
		h.guard.recent.add(&record{op: done()})
		settled = true
	default:
		t.Rollback()
		if outside != nil {
			end = definite(a.Status, kept)
		} else if other := x.recordRefusal(ctx, attemptID(r), definite(a.Status, kept)); other != nil {
			h.answer(x.rec.w, r, &record{op: *other})
			return
		}
	}
	x.rec.finish()
}

// afterFailedCommit finds out whether the commit took place, and answers. It
// reports whether there is an outcome on record. If the handler has committed by
// itself, inDoubt records that its execution ended; nil: that was done.
func (x *execution) afterFailedCommit(r *http.Request, kept []byte, cause error, inDoubt func()) bool {
	h, key := x.h, x.lease.Operation.Key
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	op, err := h.ledger.Get(ctx, key)
	switch refused := judge(op, x.lease.Operation.AsSent); {
	case err == nil && refused != nil: // a rival was faster, with another request
		h.refuse(x.rec.w, r, h.guard.told(key, refused), x.asked)
	case err == nil && op.State.Settled() && bytes.Equal(op.Result, kept):
		x.rec.finish()
	case err == nil && (op.State.Settled() || op.State == semel.NeedsReconciliation):
		h.answer(x.rec.w, r, &record{op: op})
	case err == nil && inDoubt != nil && x.tx != nil && op.Owner == x.lease.Operation.Owner: // as it began: only a commit without us leaves it so
		inDoubt()
		return x.afterFailedCommit(r, kept, cause, nil)
	case err == nil && x.tx != nil: // it would have begun in the transaction: this is a rival's
		h.refuse(x.rec.w, r, &semel.Error{Code: semel.CodeInProgress, Recorded: semel.RecordedYes, RetryAfter: h.offer.InProgress.AskAgainAfter.D(),
			Msg: "another request with this key is running", Hint: "ask again with the same key"}, x.asked)
	default:
		e := uncommitted(key, cause)
		if e.Code == semel.CodeInProgress {
			e.RetryAfter = h.offer.InProgress.AskAgainAfter.D()
		}
		h.opts.Logger.Warn("not committed", "account", key.Account, "kind", key.Kind, "id", key.ID, "code", semel.AsError("commit", cause).Code)
		h.refuse(x.rec.w, r, e, x.asked)
		return false
	}
	h.known.add(key)
	return true
}

// uncommitted says what a transaction that could not be committed has left: nothing,
// where the store knows. Else it may be committed yet; a repeat waits for whatever is
// left of it, and then either finds the record or runs.
func uncommitted(key semel.Key, cause error) *semel.Error {
	e := &semel.Error{Op: "commit", Code: semel.CodeUnavailable, Key: key, Recorded: semel.RecordedUnknown,
		Msg: "the transaction could not be committed, as far as is known", Hint: "ask again with the same key", Err: cause}
	switch was := semel.AsError("commit", cause); {
	case was.Code == semel.CodeInProgress:
		e.Code, e.Recorded, e.Msg = was.Code, semel.RecordedNo, "a transaction that has not ended yet is recording the same request; this one was rolled back"
	case was.Code == semel.CodeRetryTransaction, was.Code == semel.CodeLeaseLost:
		e.Code, e.Recorded, e.Msg = semel.CodeRetryTransaction, semel.RecordedNo, "the transaction lost a race, and was rolled back"
	case was.WasRecorded() == semel.RecordedNo:
		e.Recorded, e.Msg = semel.RecordedNo, "the transaction could not be committed, and was rolled back"
	}
	return e
}

// recordRefusal keeps the answer of a handler that refused: what the handler wrote
// is rolled back already. It returns the record of somebody who was faster.
func (x *execution) recordRefusal(ctx context.Context, attempt string, end semel.Ending) (other *semel.Operation) {
	h, op := x.h, x.lease.Operation
	t, err := h.begin(ctx)
	if err == nil {
		in := h.ledger.In(t.Tx)
		var acc semel.Acceptance
		acc, err = in.Accept(ctx, semel.Request{Key: op.Key, Params: op.Params, Fingerprint: op.AsSent, AttemptID: attempt,
			Begun: &semel.Begun{Worker: h.guard.worker, Contract: contractText, Lease: h.opts.Lease}})
		if err == nil && acc.Lease == nil {
			other = &acc.Operation
		}
		if err == nil && acc.Lease != nil {
			if _, err = in.FinishLast(ctx, *acc.Lease, end); err == nil {
				err = t.Commit()
			}
		}
		if err != nil || other != nil {
			t.Rollback()
		}
	}
	if err != nil { // nothing happened, so a repeat may run again, and the answer says so
		x.call.notApplied.Store(true)
		h.opts.Logger.Warn("refusal not recorded", "account", op.Key.Account, "kind", op.Key.Kind, "id", op.Key.ID, "code", semel.AsError("accept", err).Code)
		return nil
	}
	h.known.add(op.Key)
	if other != nil && (other.State == semel.Accepted || other.State == semel.Processing) {
		x.call.notApplied.Store(true)
		return nil
	}
	return other
}

// unkeyed runs the handler for a request without a key, where none is required.
func (h *Handler) unkeyed(w http.ResponseWriter, r *http.Request) {
	if h.opts.Begin == nil {
		h.next.ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	t, err := h.begin(ctx)
	if err != nil {
		h.refuse(w, r, err, nil)
		return
	}
	over := false
	defer func() {
		if !over {
			t.Rollback()
		}
	}()
	rec := newRecorder(w, r, &h.opts)
	h.next.ServeHTTP(rec, r.WithContext(context.WithValue(ctx, contextKey{}, &call{tx: t.Value})))
	over = true
	switch a := rec.answer(); {
	case rec.overflow:
		t.Rollback()
		h.refuse(w, r, &semel.Error{Code: semel.CodeInternal, Recorded: semel.RecordedNo, Msg: errTooMuch.Error()}, nil)
		return
	case a.Status >= 400:
		t.Rollback()
	default:
		if err := t.Commit(); err != nil {
			t.Rollback()
			h.refuse(w, r, &semel.Error{Code: semel.CodeUnavailable, Recorded: semel.RecordedUnknown, Msg: "the transaction could not be committed, as far as is known", Err: err}, nil)
			return
		}
	}
	rec.finish()
}

// recentKeys remembers keys that have a record. It is a guess that saves a
// transaction; nothing depends on it.
type recentKeys struct {
	mu         sync.Mutex
	max        int
	young, old map[semel.Key]struct{}
}

func newRecentKeys(max int) *recentKeys {
	return &recentKeys{max: max, young: map[semel.Key]struct{}{}, old: map[semel.Key]struct{}{}}
}

func (s *recentKeys) has(k semel.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.young[k]; ok {
		return true
	}
	_, ok := s.old[k]
	return ok
}

func (s *recentKeys) add(k semel.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.young) >= s.max {
		s.old, s.young = s.young, make(map[semel.Key]struct{}, s.max)
	}
	s.young[k] = struct{}{}
}
