package retryhttp

import (
	"log/slog"
	"net/http"
	"net/textproto"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/semel-dev/semel/contract"
)

// A Transport is an [http.RoundTripper] that repeats what may be repeated. Make
// one with [New]; it is safe for concurrent use.
type Transport struct {
	base     http.RoundTripper
	contract *contract.Contract
	reads    bodyNeeds // where the contract needs bodies
	opts     Options
	tell     telemetry
}

// Options configure a [Transport].
type Options struct {
	// Contract is what the API promises about repeats. A [Call] may bring another
	// one. Defaults to the preset [contract.Opaque], under which only requests that
	// read are repeated.
	Contract *contract.Contract
	// MaxAttempts is how often a request is transmitted at most, asking again after
	// "in progress" included. Defaults to 4.
	MaxAttempts int
	// Budget is how long a call may take in all, from its beginning to the header
	// of the answer. It applies to replayable requests. Negative means no limit.
	// Defaults to 90 s.
	Budget time.Duration
	// AttemptTimeout is how long one attempt of a replayable request may take, from
	// its beginning to the header of the answer: upload included, the answer's body
	// not. Negative means no limit. Defaults to 30 s.
	AttemptTimeout time.Duration
	// MaxWait is the longest wait that an answer may ask for (Retry-After). A longer
	// one ends the call; it is never shortened. Defaults to 30 s.
	MaxWait time.Duration
	// Backoff spreads the attempts. Defaults to 100 ms, doubled up to 5 s.
	Backoff Backoff
	// Quota bounds what repeats add to the load of each host. Defaults to one of the
	// transport's own.
	Quota *Quota
	// DrainLimit is how many bytes of an answer are read so that its connection can
	// be used again, before the request is repeated. Defaults to 64 KiB.
	DrainLimit int64
	// AttemptIDHeader is the header that names the transmission. "-" sends none.
	// Defaults to "Attempt-Id".
	AttemptIDHeader string
	// Logger gets one record per transmission: at level Debug where it settled the
	// call, at Info otherwise. Defaults to none.
	Logger *slog.Logger
	// TracerProvider makes a span "semel.call" for each call and, where that is
	// recorded, one for each transmission, named by its method. Defaults to the
	// global one, from the moment at which it is set.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the counters semel.retryhttp.calls (by state),
	// semel.retryhttp.attempts (by first or repeat), semel.retryhttp.sends,
	// semel.retryhttp.unconfirmed and semel.retryhttp.exhausted (by what was used
	// up). Defaults to the global one.
	MeterProvider metric.MeterProvider
}

// New returns a transport that sends through base, or through
// [http.DefaultTransport] where base is nil. Options that are nil have their
// defaults.
func New(base http.RoundTripper, options *Options) *Transport {
	t := &Transport{base: base}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	if options != nil {
		t.opts = *options
	}
	t.opts.setDefaults()
	t.contract = t.opts.Contract
	t.reads = needsOf(t.contract)
	t.tell = newTelemetry(&t.opts)
	return t
}

func (o *Options) setDefaults() {
	if o.Contract == nil {
		opaque, err := contract.Preset(contract.Opaque)
		if err != nil {
			panic(err) // a preset of our own
		}
		o.Contract = &opaque
	} else {
		own := *o.Contract
		o.Contract = &own
	}
	if o.MaxAttempts <= 0 {
		o.MaxAttempts = 4
	}
	if o.Budget == 0 {
		o.Budget = 90 * time.Second
	}
	if o.AttemptTimeout == 0 {
		o.AttemptTimeout = 30 * time.Second
	}
	if o.MaxWait <= 0 {
		o.MaxWait = 30 * time.Second
	}
	if o.Quota == nil {
		o.Quota = new(Quota)
	}
	if o.DrainLimit <= 0 {
		o.DrainLimit = 64 << 10
	}
	switch o.AttemptIDHeader {
	case "":
		o.AttemptIDHeader = "Attempt-Id"
	case "-":
		o.AttemptIDHeader = ""
	default:
		o.AttemptIDHeader = textproto.CanonicalMIMEHeaderKey(o.AttemptIDHeader)
	}
}

// Client returns a client over t. It follows redirects of requests that only
// read, and returns the redirect to the caller for all others.
func (t *Transport) Client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: followReads}
}

// followReads follows what reads, as far as [http.Client] does by itself.
func followReads(_ *http.Request, via []*http.Request) error {
	if len(via) >= 10 || !readsOnly(via[0].Method) {
		return http.ErrUseLastResponse
	}
	return nil
}

// CloseIdleConnections does so for the base.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
