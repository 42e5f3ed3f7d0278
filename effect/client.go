package effect

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"

	"github.com/semel-dev/semel/contract"
)

// meter counts the requests of one call that may change something.
type meter struct {
	mu    sync.Mutex
	sends int
}

func (m *meter) add(n int) {
	m.mu.Lock()
	m.sends += n
	m.mu.Unlock()
}

func (m *meter) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sends
}

type meterKey struct{}

// Counting returns a transport that counts what it sends for the call whose
// context a request carries, and that sends nothing twice by itself. It is for
// clients that are made once, such as an SDK's. Base defaults to a transport of
// this package's.
func Counting(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = sharedTransport
	}
	return countingTransport{base: base}
}

// sharedTransport is shared by all effects that bring none.
var sharedTransport = newTransport(false)

// newTransport returns a transport of net/http's; fresh ones keep no connection.
func newTransport(fresh bool) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	t.DisableKeepAlives = fresh
	return t
}

type countingTransport struct {
	base  http.RoundTripper
	meter *meter // nil: the one in the request's context
}

// RoundTrip sends the request once.
func (t countingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	m := t.meter
	if m == nil {
		m, _ = req.Context().Value(meterKey{}).(*meter)
	}
	var tracer contract.Tracer
	resp, err := t.base.RoundTrip(once(req, &tracer))
	if m != nil && !readsOnly(req.Method) {
		m.add(sent(tracer.Facts(), err))
	}
	return resp, err
}

// once returns the request in a form that net/http's transport will not send
// again by itself, and that tells the tracer of every send. The transport repeats
// a request on its own if it can have the body again, and takes a missing body
// for one that it can have again.
func once(req *http.Request, tracer *contract.Tracer) *http.Request {
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), tracer.ClientTrace()))
	if readsOnly(req.Method) {
		return req
	}
	req.GetBody = nil
	if req.Body == nil || req.Body == http.NoBody {
		req.Body, req.ContentLength = emptyBody{}, 0
	}
	return req
}

// sent returns how often a request went out. A transport that does not report is
// taken to have sent once.
func sent(f contract.TraceFacts, err error) int {
	if f.Got == 0 && (f.Asked == 0 || err == nil) {
		return 1
	}
	return f.Got
}

// emptyBody is a body without bytes that is not http.NoBody.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (emptyBody) Close() error             { return nil }

func readsOnly(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// followReadsOnly follows redirects of requests that change nothing.
func followReadsOnly(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 || !readsOnly(via[0].Method) {
		return http.ErrUseLastResponse
	}
	return nil
}
