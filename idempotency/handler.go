package idempotency

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/fingerprint"
)

// A Handler runs another handler once for each key, and answers repeats from the
// ledger's record. It is safe for concurrent use.
type Handler struct {
	next       http.Handler
	mux        muxer // next, if it can tell a request's pattern
	ledger     *semel.Ledger
	opts       Options
	offer      contract.Contract
	places     []string // the headers that may carry a key
	replayed   []string // the headers that are replayed
	projection *fingerprint.Projection
	guard      *guard
	known      *recentKeys
	kinds      sync.Map // by pattern
}

// muxer is what [http.ServeMux] can do.
type muxer interface {
	Handler(*http.Request) (http.Handler, string)
}

// NewHandler makes next safe to repeat. Its operations are kept in the ledger, which
// must have the kinds of the routes; see [Kinds].
//
// Like [http.ServeMux.Handle] it panics on a mistake in the program: without
// [Options.Account], or with a contract that can't be offered. [Options.Validate]
// tells beforehand.
func NewHandler(next http.Handler, ledger *semel.Ledger, options *Options) *Handler {
	if err := options.Validate(); err != nil {
		panic(err)
	}
	h := &Handler{next: next, ledger: ledger, opts: *options, known: newRecentKeys(1 << 14)}
	h.mux, _ = next.(muxer)
	h.opts.setDefaults()
	h.offer = *h.opts.Contract
	for _, p := range append([]contract.Place{h.offer.Carrier.Place}, h.offer.Carrier.Or...) {
		if p.In == contract.InHeader {
			h.places = append(h.places, p.Name)
		}
	}
	names := h.offer.Replay.Headers
	if len(names) == 0 {
		names = keptHeaders
	}
	for _, name := range names {
		h.replayed = append(h.replayed, http.CanonicalHeaderKey(name))
	}
	if h.compares(contract.ComparePaths) && len(h.offer.Compare.Paths) > 0 {
		h.projection, _ = fingerprint.NewProjection(h.offer.Compare.Paths, nil)
	}
	h.guard = newGuard(ledger, h.opts.Lease, h.opts.Remember, h.opts.Logger)
	return h
}

// Drain waits until every outcome is recorded, or ctx ends. Call it after
// [http.Server.Shutdown]: when the store could not be reached, recording goes on
// after the answer.
func (h *Handler) Drain(ctx context.Context) error { return h.guard.drain(ctx) }

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, keyed, keyErr := h.key(r)
	if !h.offer.Honours(r.Method) {
		if keyed && h.offer.Use.Elsewhere == contract.ElsewhereRefused {
			h.refuse(w, r, &semel.Error{Code: codeUnsupported, Msg: "a key is not supported on " + r.Method}, nil)
			return
		}
		h.next.ServeHTTP(w, r)
		return
	}
	if !keyed && h.offer.Use.Required != contract.Required && h.offer.Use.Required != contract.Sometimes {
		h.unkeyed(w, r)
		return
	}
	pattern, routed := h.pattern(r)
	if !routed {
		h.next.ServeHTTP(w, r) // there is no such route, and so no effect
		return
	}
	account, err := h.account(r)
	switch {
	case err != nil:
	case !keyed:
		err = missingKey(h.places[0])
	case keyErr != nil:
		err = keyErr
	}
	kind := h.kind(pattern)
	if err == nil && routeOf(h.ledger, kind) == nil {
		h.opts.Logger.Error("this route is not declared: add it to the kinds of the ledger", "pattern", pattern,
			"add", fmt.Sprintf("idempotency.Kinds(idempotency.Route{Pattern: %q})", pattern))
		err = &semel.Error{Code: semel.CodeInternal, Recorded: semel.RecordedNo, Msg: "this route is not set up for keys; nothing was run"}
	}
	var body []byte
	if err == nil {
		body, err = h.body(w, r)
	}
	if err != nil {
		h.refuse(w, r, err, nil)
		return
	}
	a := h.takeApart(r, body)
	h.serve(w, r, a, semel.Request{
		Key:         semel.Key{Account: accountName(account), Kind: kind, ID: operationID(key)},
		Fingerprint: h.fingerprint(r, a),
		AttemptID:   attemptID(r),
	})
}

// kind is [KindName], which is the same for every request of a route.
func (h *Handler) kind(pattern string) string {
	if kind, ok := h.kinds.Load(pattern); ok {
		return kind.(string)
	}
	kind := KindName(pattern)
	if routeOf(h.ledger, kind) != nil { // there are not many of those
		h.kinds.Store(pattern, kind)
	}
	return kind
}

// pattern returns the route of a request, with its method if the scope has it.
// routed is false where a mux in front of us knows no route.
func (h *Handler) pattern(r *http.Request) (pattern string, routed bool) {
	if !h.scopedBy(contract.ByEndpoint) && !h.scopedBy(contract.ByMethod) {
		return AllRoutes, true
	}
	var path string
	switch {
	case h.opts.Route != nil:
		path = h.opts.Route(r)
	case h.mux != nil:
		if _, path = h.mux.Handler(r); path == "" {
			return "", false
		}
	default:
		path = r.Pattern
	}
	if _, rest, found := strings.Cut(path, " "); found {
		path = strings.TrimLeft(rest, " \t")
	}
	if !h.scopedBy(contract.ByEndpoint) {
		path = "/{path...}"
	}
	if h.scopedBy(contract.ByMethod) {
		path = r.Method + " " + path
	}
	return path, true
}

func (h *Handler) account(r *http.Request) (string, error) {
	account, err := h.opts.Account(r)
	if e := semel.AsError("account", err); e != nil && e.Code != semel.CodeInternal {
		return "", e
	}
	if err != nil || account == "" {
		return "", &semel.Error{Code: semel.CodeUnauthenticated, Msg: "who is asking?"}
	}
	return account, nil
}

// attemptID reads the name of this transmission; one that is malformed is as good
// as none.
func attemptID(r *http.Request) string {
	if lines := r.Header.Values("Attempt-Id"); len(lines) == 1 && semel.ValidID(lines[0]) {
		return lines[0]
	}
	return ""
}

// serve runs the handler for a request, or answers from the record. A repeat that
// wants to wait does so here.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, a *asked, req semel.Request) {
	wait, preferred := preferredWait(r, h.opts.MaxWait)
	if !preferred && h.offer.InProgress.Do == contract.ConcurrentWaits {
		wait = h.opts.MaxWait
	}
	asked := time.Now()
	for {
		began := time.Now()
		var t *Transaction
		free, release := detached(r.Context())
		e, err := h.guard.enter(r.Context(), req, func() (acc semel.Acceptance, err error) {
			req := req
			req.Params = marshalAsked(a.Asked)
			if h.opts.Begin == nil {
				return h.guard.accept(req)
			}
			acc, t, err = h.acceptIn(free, req)
			return acc, err
		})
		if err == nil && e.lease != nil {
			defer release()
			x := &execution{h: h, lease: *e.lease, began: began, asked: a, call: &call{key: req.Key}, rec: newRecorder(w, r, &h.opts), tx: t}
			x.run(free, r)
			return
		}
		release()
		switch {
		case err != nil:
			h.refuse(w, r, err, a)
			return
		case e.running == nil && e.op.State != semel.Accepted && e.op.State != semel.Processing:
			if preferred {
				w.Header().Set("Preference-Applied", fmt.Sprintf("wait=%d", int(wait/time.Second)))
			}
			h.answer(w, r, e.record)
			return
		case time.Since(asked) >= wait || r.Context().Err() != nil:
			h.refuse(w, r, &semel.Error{Code: semel.CodeInProgress, Recorded: semel.RecordedYes, RetryAfter: h.offer.InProgress.AskAgainAfter.D(),
				Msg: "the first request with this key is still running", Hint: "ask again with the same key, or wait with Prefer: wait=10"}, a)
			return
		}
		h.await(r.Context(), e, wait-time.Since(asked))
	}
}

// await waits for a change, but no longer than wait. It also returns now and then,
// since nobody tells when a lease ends.
func (h *Handler) await(ctx context.Context, e entry, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if e.running != nil {
		select {
		case <-e.running.done:
		case <-ctx.Done():
		}
		return
	}
	ctx, cancel = context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	changes, err := h.ledger.Watch(ctx, e.op.Key)
	if err != nil {
		<-ctx.Done()
		return
	}
	for op := range changes {
		if op.Revision != e.op.Revision {
			return
		}
	}
}

// answer answers a repeat from a record that is not in progress.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, known *record) {
	switch op := &known.op; {
	case op.State == semel.Succeeded, op.State == semel.Failed && len(op.Result) > 0:
		h.replay(w, r, known.answer())
	case op.State == semel.NeedsReconciliation:
		h.refuse(w, r, &semel.Error{Code: semel.CodeOutcomeUnknown, Operation: op,
			Msg:  "the first request with this key ended without a word that counts, so nobody knows whether it happened; it is not run again",
			Hint: "find out at the resource itself; do not send it with a new key before that"}, nil)
	default: // failed: provably without effect, and not tried again
		h.refuse(w, r, &semel.Error{Code: semel.CodeAbandoned, Operation: op, Msg: "it is certain that this did not happen, and it is not tried again under this key",
			Hint: "send it with a new key if it is still wanted"}, nil)
	}
}

// An execution is one run of the handler.
type execution struct {
	h     *Handler
	lease semel.Lease
	began time.Time // when the lease was asked for
	asked *asked
	call  *call
	rec   *recorder
	tx    *Transaction // nil: guarded, or the operation was there before
}

func (x *execution) run(ctx context.Context, r *http.Request) {
	if mark := x.h.offer.Stored.Transient; mark.Header != "" {
		x.rec.mark = func(header http.Header) {
			if x.call.notApplied.Load() {
				header.Set(mark.Header, mark.Value)
			}
		}
	}
	if x.h.opts.Begin != nil {
		x.transact(ctx, r)
		return
	}
	end := unknown("no-answer", "The handler ended without an answer.")
	x.h.guard.run(ctx, x.lease, x.began, &end, func(ctx context.Context) {
		defer func() { // also when it panics
			if x.call.notApplied.Load() {
				end = released("The handler said that nothing happened.")
			}
		}()
		x.h.next.ServeHTTP(x.rec, x.request(ctx, r))
		end = x.ending(x.rec.answer())
	})
	x.rec.finish()
}

// request is what the handler gets: the body again, and only those encodings of
// the answer that every repeat can be given.
func (x *execution) request(ctx context.Context, r *http.Request) *http.Request {
	inner := r.WithContext(context.WithValue(ctx, contextKey{}, x.call))
	inner.Body = io.NopCloser(bytes.NewReader(x.asked.body))
	inner.GetBody = nil
	if _, there := r.Header["Accept-Encoding"]; there {
		inner.Header = r.Header.Clone()
		if acceptsGzip(r) {
			inner.Header.Set("Accept-Encoding", "gzip")
		} else {
			inner.Header.Del("Accept-Encoding")
		}
	}
	return inner
}

// ending says what an answer means for the operation, where no transaction makes
// it certain.
func (x *execution) ending(a *Answer) semel.Ending {
	switch {
	case x.notApplied(a):
		return released("The handler said that nothing happened.")
	case a.Status < 200: // switching protocols
		a.NotKept = "hijacked"
	case a.Status >= 500:
		end := unknown(fmt.Sprintf("http-%d", a.Status), "The handler answered with a server error. Nobody knows whether it happened.")
		end.Evidence = []byte(fmt.Sprintf(`{"status":%d}`, a.Status))
		return end
	case !x.h.final(a.Status):
		return released(fmt.Sprintf("The handler answered %d, which does not use the key up.", a.Status))
	}
	return definite(a.Status, x.h.keep(a, x.asked.Method).marshal())
}

// definite ends an execution whose answer is final: what is refused has failed, and
// a repeat is refused in the same words.
func definite(status int, kept []byte) semel.Ending {
	end := semel.Ending{Outcome: semel.Applied, Result: kept, Evidence: []byte(fmt.Sprintf(`{"status":%d}`, status))}
	if status >= 400 {
		end.Outcome = semel.Refused
		end.Failure = &semel.Failure{Code: fmt.Sprintf("http-%d", status), Message: "The handler refused."}
	}
	return end
}

// notApplied reports whether the handler said so, here or by the contract's mark.
func (x *execution) notApplied(a *Answer) bool {
	if x.call.notApplied.Load() {
		return true
	}
	mark := x.h.offer.Stored.Transient
	if mark.Header == "" {
		return false
	}
	lines := a.Header[http.CanonicalHeaderKey(mark.Header)]
	return slices.ContainsFunc(lines, func(v string) bool { return mark.Value == "" || strings.EqualFold(strings.TrimSpace(v), mark.Value) })
}
