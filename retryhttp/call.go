package retryhttp

import (
	"context"
	"time"

	"github.com/semel-dev/semel/contract"
)

// A Call is what a [Transport] should know of one request beyond the request
// itself. It travels in the request's context; see [With].
type Call struct {
	// Key is the request's identity, made before the first send and never changed.
	// Where the contract carries keys in a header or in the query, the transport
	// puts it there, in quotes where the contract has them. Where they travel in
	// the path or the body, the request must hold it already, and giving it here
	// vouches for that. On methods for which the contract has no keys it is left out.
	// Defaults to the key that stands in the request.
	Key string
	// Contract is the contract of the API. Defaults to the transport's.
	Contract *contract.Contract
	// FirstSent is when the first transmission with this key began, in an earlier
	// call or process. Repeats end when the API may forget the key, counted from
	// then. Defaults to the time of this call.
	FirstSent time.Time
	// Report is filled when the call returns. Not to be shared between calls that
	// run at once. Defaults to none.
	Report *Report
}

type callKey struct{}

// With returns a context for one call. A later With replaces the earlier one.
func With(ctx context.Context, call Call) context.Context {
	return context.WithValue(ctx, callKey{}, &call)
}

// WithKey returns a context for one call with this key. What an earlier [With] has
// set otherwise stays.
func WithKey(ctx context.Context, key string) context.Context {
	call := callOf(ctx)
	call.Key = key
	return With(ctx, call)
}

func callOf(ctx context.Context) Call {
	if call, ok := ctx.Value(callKey{}).(*Call); ok {
		return *call
	}
	return Call{}
}

// layer is the place of a retry layer above.
type layer int

const (
	noLayer  layer = iota
	ownLayer       // a Transport, which has prepared the request
	otherLayer
)

type layerKey struct{}

// StandDown returns a context in which every [Transport] sends a request once,
// because the caller repeats it himself. Nested layers of retries multiply.
func StandDown(ctx context.Context) context.Context {
	return context.WithValue(ctx, layerKey{}, otherLayer)
}

func layerAbove(ctx context.Context) layer {
	above, _ := ctx.Value(layerKey{}).(layer)
	return above
}
