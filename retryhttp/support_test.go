package retryhttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// preset returns a contract that is built in.
func preset(t testing.TB, name string) *contract.Contract {
	t.Helper()
	c, err := contract.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// quick are options that do not wait for long.
func quick(c *contract.Contract) *retryhttp.Options {
	return &retryhttp.Options{Contract: c, Backoff: retryhttp.Backoff{Base: time.Millisecond, Max: 2 * time.Millisecond},
		AttemptTimeout: 10 * time.Second}
}

// request makes a request with a body that can be had again; "" is none.
func request(t testing.TB, ctx context.Context, method, url, body string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// asError returns err as the transport's own.
func asError(t testing.TB, err error) *retryhttp.Error {
	t.Helper()
	var e *retryhttp.Error
	if !errors.As(err, &e) {
		t.Fatalf("not an *Error: %v", err)
	}
	return e
}

// text reads and closes a body.
func text(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("reading the answer: %v", err)
	}
	resp.Body.Close()
	return string(b)
}

// protocol is one way to speak HTTP.
type protocol struct {
	name  string
	h2    bool
	tls   bool
	fresh bool
}

var protocols = []protocol{
	{name: "HTTP1-fresh", fresh: true},
	{name: "HTTP1-reused"},
	{name: "HTTP2-TLS", h2: true, tls: true},
	{name: "HTTP2-clear", h2: true},
}

// serve starts a real server for the protocol, and returns its URL and a transport
// that speaks to it.
func (p protocol) serve(t testing.TB, h http.Handler) (string, *http.Transport) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = quiet
	tr := &http.Transport{DisableKeepAlives: p.fresh, Protocols: new(http.Protocols)}
	switch {
	case p.tls:
		server.EnableHTTP2 = true
		server.StartTLS()
		tr.Protocols.SetHTTP2(true)
		tr.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		tr.TLSClientConfig.NextProtos = nil
	case p.h2:
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
		tr.Protocols.SetUnencryptedHTTP2(true)
	default:
		server.Start()
		tr.Protocols.SetHTTP1(true)
	}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, tr
}

// everyProtocol runs a test over each of them.
func everyProtocol(t *testing.T, test func(t *testing.T, p protocol)) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) { test(t, p) })
	}
}

// seen is what a server has seen of one request.
type seen struct {
	method, key, id, body, query string
	length                       int64
}

// recorder is a handler that notes what arrives in full, and answers by a script:
// the n-th entry for the n-th request, the last one for all further ones.
type recorder struct {
	mu     sync.Mutex
	seen   []seen
	script []func(w http.ResponseWriter, r *http.Request)
}

func (h *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it did not arrive in full
	}
	h.mu.Lock()
	h.seen = append(h.seen, seen{r.Method, r.Header.Get("Idempotency-Key"), r.Header.Get("Attempt-Id"), string(body), r.URL.RawQuery, r.ContentLength})
	n, script := len(h.seen), h.script
	h.mu.Unlock()
	if len(script) > 0 {
		script[min(n, len(script))-1](w, r)
	}
}

func (h *recorder) all() []seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]seen(nil), h.seen...)
}

// status answers with a status, and a body that says so.
func status(code int, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, http.StatusText(code))
	}
}

// lose answers nothing: the connection or the stream breaks.
func lose(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// roundTripper is a base without a network, for tests of time.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer makes an answer.
func answer(code int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

// errReset is what a lost connection looks like.
var errReset = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
