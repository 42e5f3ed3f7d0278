package fault

import "net/http"

// Transport is an [http.RoundTripper] that breaks what goes through it. Put it
// where the client's own transport was: between the code that retries and the
// network.
//
// Of a request that no rule applies to, nothing is changed; in particular
// its GetBody stays, so that re-sends that the base transport makes by itself
// still happen, and are counted in [Entry.Sends].
//
// replay-old-connection closes the reused connection that the base transport
// has just chosen, and the base transport then does what it does. With
// at=after the answer is read, thrown away, and the caller gets an [*Error].
//
// It is safe for concurrent use as far as the base is.
type Transport struct {
	*Injector
	base http.RoundTripper
}

// NewTransport returns a transport that sends through base, or through
// [http.DefaultTransport] where base is nil. It panics where a rule is not
// valid; those from [ParseRule] are, except for contains=.
func NewTransport(base http.RoundTripper, rules ...Rule) *Transport {
	if base == nil {
		base = http.DefaultTransport
	}
	return &Transport{Injector: newInjector(httpForm, rules), base: base}
}

// RoundTrip sends req as the rules have it. A connection that a rule has cut
// is an [*Error]; after Close it is [ErrClosed].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	up := &wire{base: t.base}
	if t.has(ReplayOldConnection) {
		f := factsOf(req)
		up.old = func(x *exchange) *Rule {
			if x.rule != nil {
				return nil
			}
			x.rule = t.pick(func(r *Rule) bool { return r.Fault == ReplayOldConnection && r.selects(f) })
			return x.rule
		}
	}
	x, err := t.begin(req, up, func(r *Rule) bool { return r.Fault != ReplayOldConnection })
	if err != nil {
		closeBody(req)
		return nil, err
	}
	defer x.done()
	return x.run(req)
}

// CloseIdleConnections does so for the base transport.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Close ends what is held or delayed, cancels what still runs at the upstream,
// and waits for it. The base transport stays open.
func (t *Transport) Close() error {
	t.shut()
	t.wg.Wait()
	return nil
}
