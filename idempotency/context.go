package idempotency

import (
	"context"
	"sync/atomic"

	"github.com/semel-dev/semel"
)

type contextKey struct{}

// call is what a running handler or function can be asked about.
type call struct {
	key        semel.Key
	tx         any
	notApplied atomic.Bool
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(contextKey{}).(*call)
	return c
}

// KeyOf returns the operation that a handler, or the function of [Do], is running
// for; ok is false outside of both, and for a request without a key. Its text is
// a good key for a service that is called from there.
func KeyOf(ctx context.Context) (key semel.Key, ok bool) {
	c := callOf(ctx)
	if c == nil || c.key == (semel.Key{}) {
		return semel.Key{}, false
	}
	return c.key, true
}

// Tx returns the transaction that the handler runs in: the Value of its
// [Transaction]. ok is false outside of one, or if it is of another type.
func Tx[T any](ctx context.Context) (tx T, ok bool) {
	if c := callOf(ctx); c != nil {
		tx, ok = c.tx.(T)
	}
	return tx, ok
}

// NotApplied says that nothing has happened: the key is not used up, and a repeat
// runs the handler again, whatever is answered now. Call it only if that is
// certain, such as before the first effect, or when an external service has
// refused. It reports whether anybody listens. A handler in another process says
// the same by the header that the contract names in Stored.Transient.
func NotApplied(ctx context.Context) bool {
	c := callOf(ctx)
	if c == nil {
		return false
	}
	c.notApplied.Store(true)
	return true
}

// detached keeps the values and the deadline of a request's context, and not that
// it ends when the client leaves: what has begun is worth finishing.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	free := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(free, deadline)
	}
	return context.WithCancel(free)
}
