package fault

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
)

// errHidden ends a request that a transport was about to send again by itself.
var errHidden = errors.New("fault: the upstream's connection broke, and the request is not sent a second time")

// errBroken ends a body in the middle.
var errBroken = errors.New("fault: the request is cut here")

// wire is an upstream behind an http.RoundTripper.
type wire struct {
	base http.RoundTripper
	// torn sends the beginnings of requests. Their connections stay open for a
	// while, because one that is closed at once may take with it what the
	// upstream has not read yet. nil: base does.
	torn http.RoundTripper
	// once refuses the transport's hidden re-sends: a proxy must not add
	// requests of its own.
	once bool
	// old finds the rule for a request that turns out to go over a reused
	// connection; nil: nobody asks.
	old func(*exchange) *Rule
}

// passage is one roundTrip of a wire.
type passage struct {
	wire   *wire
	x      *exchange
	cancel context.CancelCauseFunc
	mu     sync.Mutex
	conns  int   // connections that the request was given to
	old    *Rule // replay-old-connection, when it applies
}

func (u *wire) roundTrip(x *exchange, req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	p := &passage{wire: u, x: x, cancel: cancel}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: p.gotConn})
	resp, err := u.base.RoundTrip(countSent(x, req.WithContext(ctx)))
	if err != nil {
		hidden := context.Cause(ctx) == errHidden
		cancel(nil)
		if hidden {
			err = errHidden
		}
		return nil, err
	}
	p.mu.Lock()
	conns, old := p.conns, p.old
	p.mu.Unlock()
	if conns == 0 { // this RoundTripper has no connections to tell of
		x.edit(func(e *Entry) { e.Sends++ })
	}
	if old != nil && old.at() == After {
		drain(resp.Body)
		cancel(nil)
		return nil, cutError(old)
	}
	own(resp, func() { cancel(nil) })
	return resp, nil
}

// gotConn runs each time the transport gives the request to a connection.
func (p *passage) gotConn(info httptrace.GotConnInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns++
	if p.conns > 1 && p.wire.once {
		p.cancel(errHidden)
		sever(info.Conn)
		return
	}
	if p.conns == 1 && info.Reused && p.wire.old != nil {
		p.old = p.wire.old(p.x)
		if p.old != nil && p.old.at() == Before {
			p.x.carriedOut()
			sever(info.Conn)
			return // nothing goes out on it
		}
	}
	p.x.edit(func(e *Entry) { e.Sends++ })
}

// partial writes the beginning of the request straight to an HTTP/1
// connection, because http.Transport would keep it in its buffer. On HTTP/2
// the body breaks, which resets the stream after the bytes that went out.
func (u *wire) partial(x *exchange, req *http.Request, body []byte, n int64) error {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	reached := false
	gotConn := func(info httptrace.GotConnInfo) {
		if reached {
			cancel()
			return
		}
		reached = true
		x.edit(func(e *Entry) { e.Sends++ })
		if u.speaksHTTP1(req, info.Conn) {
			stop := context.AfterFunc(ctx, func() { sever(info.Conn) })
			defer stop()
			info.Conn.Write(beginning(req, body, n))
			sever(info.Conn)
			cancel()
		}
	}
	trace := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: gotConn})
	resp, err := u.tearing().RoundTrip(breaking(req, trace, body, n))
	if err == nil {
		resp.Body.Close()
		return nil
	}
	if !reached && !errors.Is(err, errBroken) {
		return err
	}
	return nil
}

// tearing returns what sends the beginnings of requests.
func (u *wire) tearing() http.RoundTripper {
	if u.torn != nil {
		return u.torn
	}
	return u.base
}

// speaksHTTP1 reports whether it is certain that c carries HTTP/1.
func (u *wire) speaksHTTP1(req *http.Request, c net.Conn) bool {
	t, ok := u.tearing().(*http.Transport)
	if !ok {
		return false
	}
	if secure, ok := c.(*tls.Conn); ok {
		return secure.ConnectionState().NegotiatedProtocol != "h2"
	}
	if t.Proxy != nil {
		if via, err := t.Proxy(req); err != nil || via != nil {
			return false
		}
	}
	h2c := t.Protocols != nil && t.Protocols.UnencryptedHTTP2()
	return req.URL.Scheme == "http" && !h2c
}

// beginning returns the bytes of req up to the nth of the body; half of the
// header where there is no body.
func beginning(req *http.Request, body []byte, n int64) []byte {
	var out bytes.Buffer
	err := breaking(req, context.Background(), body, n).Write(&out)
	if len(body) == 0 || err == nil {
		return out.Bytes()[:out.Len()/2]
	}
	return out.Bytes()
}

// breaking returns a copy of req whose body breaks after n bytes.
func breaking(req *http.Request, ctx context.Context, body []byte, n int64) *http.Request {
	c := withBody(req, ctx, body)
	c.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:n]), brokenReader{}))
	if len(body) == 0 {
		c.ContentLength = -1
	}
	return c
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

// countSent counts the body of req on its way out, also of hidden re-sends.
func countSent(x *exchange, req *http.Request) *http.Request {
	if req.Body == nil || req.Body == http.NoBody {
		return req
	}
	count := func(body io.ReadCloser) io.ReadCloser {
		return &sentBody{ReadCloser: body, x: x}
	}
	req.Body = count(req.Body)
	if again := req.GetBody; again != nil {
		req.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return count(body), nil
		}
	}
	return req
}

type sentBody struct {
	io.ReadCloser
	x *exchange
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.x.edit(func(e *Entry) { e.Sent += int64(n) })
	return n, err
}
