package fault

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// Handler is middleware that breaks what goes through it: the handler inside
// runs to its end, and its answer does not arrive; and all the other faults.
// Put it outermost: other middleware would see the cut as a panic with
// [http.ErrAbortHandler], or as a hijacked connection.
//
// A request that no rule applies to goes straight to the handler inside. For
// one that a rule applies to, the handler inside runs in a goroutine of its
// own, with the body in memory, a context that the client cannot cancel, and a
// ResponseWriter without Hijack.
//
// replay-old-connection needs to know the connections: set
// [http.Server.ConnContext] to [ConnContext]. A request that such a rule could
// mean is answered with 500 where that is missing. HTTP/2 resets are
// INTERNAL_ERROR whatever the rule says; [Proxy] can choose.
type Handler struct {
	*Injector
	next http.Handler
}

// NewHandler returns middleware around next. It panics where a rule is not
// valid; those from [ParseRule] are, except for contains=.
func NewHandler(next http.Handler, rules ...Rule) *Handler {
	return &Handler{Injector: newInjector(httpForm, rules), next: next}
}

type connKey struct{}

// clientConn is what is known of the connection that a request came on.
type clientConn struct {
	net.Conn
	requests atomic.Int64
	frames   *frameConn // nil: not ours, or not HTTP/2
}

// ConnContext makes connections known to [Handler]; it is for
// [http.Server.ConnContext].
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	cc := &clientConn{Conn: c}
	cc.frames, _ = c.(*frameConn)
	return context.WithValue(ctx, connKey{}, cc)
}

// reused counts a request of r's connection, and reports whether it is not
// the first. known is false where nobody has set ConnContext.
func reused(r *http.Request) (reused, known bool) {
	c, ok := r.Context().Value(connKey{}).(*clientConn)
	return ok && c.requests.Add(1) > 1, ok
}

// onConnection returns the rules that apply to a request on its connection.
func onConnection(reused bool) func(*Rule) bool {
	return func(r *Rule) bool { return r.Fault != ReplayOldConnection || reused }
}

// ServeHTTP gives r to the handler inside, as the rules have it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reused, known := reused(r)
	if !known && h.has(ReplayOldConnection) {
		http.Error(w, "fault: replay-old-connection needs http.Server.ConnContext = fault.ConnContext", http.StatusInternalServerError)
		return
	}
	x, err := h.begin(r, &inside{next: h.next}, onConnection(reused))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer x.done()
	if x.rule == nil {
		x.pass(w, r, h.next)
		return
	}
	resp, err := x.run(keepBody(r))
	reply(w, r, resp, err)
}

// pass gives r to next and notes what it does.
func (x *exchange) pass(w http.ResponseWriter, r *http.Request, next http.Handler) {
	t := &tally{ResponseWriter: w, status: http.StatusOK}
	returned := false
	defer func() {
		x.edit(func(e *Entry) {
			e.Sends, e.Sent = 1, max(0, r.ContentLength)
			e.Status, e.Received = t.status, t.bytes
			e.Upstream = []int{t.status}
		})
		if !returned {
			x.ended(Failed, errors.New("the handler panicked"))
		}
	}()
	next.ServeHTTP(t, r)
	returned = true
}

// keepBody returns r with a body that Close does not touch: the server closes
// it, and would wait for the rest of it where a rule means to cut.
func keepBody(r *http.Request) *http.Request {
	kept := new(http.Request)
	*kept = *r
	kept.Body = io.NopCloser(r.Body)
	if r.ContentLength == 0 {
		kept.Body = http.NoBody
	}
	return kept
}

// Close ends what is held or delayed, cancels the contexts of the handlers
// that still run for clients which have left, and waits for them.
func (h *Handler) Close() error {
	h.shut()
	h.wg.Wait()
	return nil
}
