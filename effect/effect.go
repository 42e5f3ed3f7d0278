package effect

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// An Effect makes the external call of an execution. Do is called at most once
// for each execution, and concurrently for different operations. It must return
// soon after ctx ends: the lease ends shortly afterwards, and then somebody else
// may be at work on the same operation.
//
// It may implement [Finder], [Checker] and [Hoster] too.
type Effect interface {
	Do(ctx context.Context, call *Call) Result
}

// A Finder is an [Effect] that can find out whether an earlier execution had its
// effect. LookUp changes nothing outside. A contract with a look-up needs one.
type Finder interface {
	Effect
	LookUp(ctx context.Context, call *Call) LookUpResult
}

// A Checker is an [Effect] that can tell at start-up whether it can work under a
// contract.
type Checker interface {
	Check(c contract.Contract) error
}

// A Hoster is an [Effect] that names the external service behind it. Effects of
// the same host share its limits.
type Hoster interface {
	Host() string
}

// A Func is an [Effect] made of a function.
type Func func(ctx context.Context, call *Call) Result

// Do calls f.
func (f Func) Do(ctx context.Context, call *Call) Result { return f(ctx, call) }

// A Call is what an effect gets to know of the execution that it is called for.
// It is used by one execution only. The fields are the worker's to set, and to be
// left alone by the effect; a test of an effect makes one as a literal.
type Call struct {
	// Key is the operation's identity.
	Key semel.Key
	// Token names the execution.
	Token int64
	// Params are the parameters with defaults applied.
	Params json.RawMessage
	// Request is what goes to the external service: the same bytes at every try.
	Request []byte
	// Contract is the contract to go by. After a doubt it is the one that the
	// doubtful execution began under, and may be older than today's.
	Contract contract.Contract
	// FirstSent is the time of the first transmission that may have arrived, by
	// the store's clock; that of this execution where there was none before.
	FirstSent time.Time
	// Repeat says that an earlier execution may have had the effect: this call
	// repeats it under the same key.
	Repeat bool
	// Report is told of progress; may be nil.
	Report func(semel.Progress)

	meter meter
}

// Progress reports how far the effect has come: a fraction from 0 to 1 and a word
// that the account may read. It is safe for concurrent use, and cheap: reports
// are passed on at most about once a second, the latest one always.
func (c *Call) Progress(fraction float64, note string) {
	if c.Report != nil {
		c.Report(semel.Progress{Fraction: min(max(fraction, 0), 1), Note: note})
	}
}

// DownstreamKey returns the key of this operation at the external service,
// without quotes: a stable function of the identity and the contract's grammar.
// It fails only where the grammar has no room for a safe key.
func (c *Call) DownstreamKey() (string, error) {
	_, bare, err := downstreamKey(c.Contract, c.Key)
	return bare, err
}

// Client returns an HTTP client that counts what it sends for this call. Nothing
// is sent twice behind its back, and redirects are followed only for requests
// that change nothing.
func (c *Call) Client() *http.Client {
	return &http.Client{Transport: countingTransport{base: sharedTransport, meter: &c.meter}, CheckRedirect: followReadsOnly}
}

// Sends returns how often a request that may change something has gone out
// through counting clients.
func (c *Call) Sends() int { return c.meter.count() }
