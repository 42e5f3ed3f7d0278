package fault

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/http2"
)

// proxied starts a proxy to srv, in front of clients of the given kind, and
// returns it, its URL and such a client.
func proxied(t testing.TB, kind, upstream string, srv *httptest.Server, rules ...Rule) (*Proxy, string, *http.Transport) {
	t.Helper()
	target, err := url.Parse(srv.URL)
	must(t, err)
	opts := &ProxyOptions{Rules: rules, H2C: upstream == "h2c"}
	if srv.Certificate() != nil {
		opts.UpstreamTLS = &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	}
	var certs *httptest.Server
	if strings.HasPrefix(kind, "tls") {
		certs = httptest.NewTLSServer(nil)
		t.Cleanup(certs.Close)
		opts.TLS = &tls.Config{Certificates: certs.TLS.Certificates}
	}
	p, err := NewProxy(target, opts)
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	addr, err := p.Listen("127.0.0.1:0")
	must(t, err)
	return p, addr, transport(t, kind, certs)
}

func TestProxy(t *testing.T) {
	for _, kind := range kinds {
		for _, upstream := range []string{"http1", "tls-h2", "h2c"} {
			t.Run(kind+" to "+upstream, func(t *testing.T) {
				noLeaks(t)
				for _, r := range rows {
					t.Run(r.rule, func(t *testing.T) {
						s := newShop()
						srv := serve(t, upstream, s)
						p, url, client := proxied(t, kind, upstream, srv, MustRule(r.rule+" path=/notes count=1"))
						got := send(client, "POST", url+"/notes", title)
						r.check(t, got, s)
						must(t, p.WaitDone(ctxFor(t), 1))
						e := p.Log()[0]
						if e.Outcome != Faulted || e.Faults != 1 || e.Status != r.status || e.Received != int64(len(got.body)) || e.Remote == "" || e.Path != "/notes" {
							t.Errorf("log: %+v", e)
						}
						if want := r.completed + len(s.partial()); e.Sends != want || len(e.Upstream) != r.completed {
							t.Errorf("sends %d, want %d; upstream said %v", e.Sends, want, e.Upstream)
						}
						if after := send(client, "POST", url+"/notes", title); after.status != 201 || after.err != nil {
							t.Errorf("the next request: %+v", after)
						}
						want := map[string]string{"http1": "HTTP/1.1", "tls-http1": "HTTP/1.1", "tls-h2": "HTTP/2.0", "h2c": "HTTP/2.0"}
						if e := p.Log()[1]; e.Proto != want[kind] || s.proto != want[upstream] || e.Outcome != Passed && e.Outcome != StillRunning {
							t.Errorf("the client spoke %s, the upstream %s: %+v", e.Proto, s.proto, e)
						}
					})
				}
			})
		}
	}
}

// The code of a reset is the one that was asked for, on the wire.
func TestProxyStreamCodes(t *testing.T) {
	s := newShop()
	srv := serve(t, "http1", s)
	for _, kind := range []string{"h2c", "tls-h2"} {
		for code := http2.ErrCodeNo; code <= http2.ErrCodeHTTP11Required; code++ {
			p, url, client := proxied(t, kind, "http1", srv, MustRule("reset-stream count=1 code="+code.String()))
			// Without GetBody, so that http.Transport has to report it.
			req, err := http.NewRequest("POST", url, io.MultiReader(strings.NewReader(title)))
			must(t, err)
			_, err = client.RoundTrip(req)
			var reset http2.StreamError
			switch code {
			case http2.ErrCodeRefusedStream, http2.ErrCodeProtocol:
				// It wants to send these again by itself, and says what kept it.
				if err == nil || !strings.Contains(err.Error(), code.String()) {
					t.Errorf("%s: %v", code, err)
				}
			case http2.ErrCodeNo:
				// Means: stop sending the body. There is no answer all the same.
				if err == nil {
					t.Error("NO_ERROR: an answer")
				}
			default:
				if !errors.As(err, &reset) || reset.Code != code {
					t.Errorf("%s: %v", code, err)
				}
			}
			// The connection lives on.
			if got := send(client, "POST", url, title); got.status != 201 {
				t.Errorf("after %s: %+v", code, got)
			}
			must(t, p.WaitDone(ctxFor(t), 2))
			// (Go's own client leaves a connection after PROTOCOL_ERROR.)
			if log := p.Log(); log[0].Remote != log[1].Remote && code != http2.ErrCodeProtocol {
				t.Errorf("%s cost the connection", code)
			}
		}
	}
}

// http.Transport sends a POST with a key again when a reused connection
// breaks. The proxy makes that happen, and counts two.
func TestProxyProvokesHiddenSends(t *testing.T) {
	for at, want := range map[string]int{"before": 2, "after": 3} {
		t.Run(at, func(t *testing.T) {
			s := newShop()
			srv := serve(t, "http1", s)
			p, url, client := proxied(t, "http1", "http1", srv, MustRule("replay-old-connection count=1 at="+at))
			for range 2 {
				resp, err := client.RoundTrip(keyed(t, url))
				must(t, err)
				drain(resp.Body)
			}
			must(t, p.WaitDone(ctxFor(t), 3))
			if s.completed() != want {
				t.Errorf("completed %d, want %d", s.completed(), want)
			}
			if log := p.Log(); log[1].Faults != 1 || log[2].Key != "k1" {
				t.Errorf("log: %+v", log)
			}
		})
	}
}

// The proxy itself sends nothing a second time, whatever its upstream does.
func TestProxySendsOnce(t *testing.T) {
	for _, upstream := range []string{"http1", "tls-h2", "h2c"} {
		t.Run(upstream, func(t *testing.T) {
			s := newShop()
			breaker := NewHandler(s, MustRule("lose-answer"))
			defer breaker.Close()
			srv := serve(t, upstream, breaker)
			p, url, client := proxied(t, "http1", upstream, srv)
			for _, body := range []string{title, ""} {
				req, err := http.NewRequest("POST", url, strings.NewReader(body))
				must(t, err)
				req.Header.Set("Idempotency-Key", "k1")
				resp, err := client.RoundTrip(req)
				must(t, err)
				drain(resp.Body)
				if resp.StatusCode != 502 {
					t.Errorf("status %d", resp.StatusCode)
				}
			}
			must(t, p.WaitDone(ctxFor(t), 2))
			if s.completed() != 2 {
				t.Errorf("completed %d, want 2", s.completed())
			}
			for _, e := range p.Log() {
				if e.Sends != 1 || e.Outcome != Failed || e.Err == "" || e.Status != 502 {
					t.Errorf("log: %+v", e)
				}
			}
		})
	}
}

// A stream that the upstream refuses is something that a transport sends again.
func TestProxySendsOnceRefused(t *testing.T) {
	s := newShop()
	srv := serve(t, "http1", s)
	// The upstream is another proxy, which can refuse streams.
	inner, innerURL, _ := proxied(t, "h2c", "http1", srv, MustRule("reset-stream code=REFUSED_STREAM"))
	target, err := url.Parse(innerURL)
	must(t, err)
	outer, err := NewProxy(target, &ProxyOptions{H2C: true})
	must(t, err)
	defer outer.Close()
	addr, err := outer.Listen("127.0.0.1:0")
	must(t, err)
	if got := send(transport(t, "http1", nil), "POST", addr, ""); got.status != 502 {
		t.Errorf("got %+v", got)
	}
	must(t, inner.WaitDone(ctxFor(t), 1))
	if n := inner.Progress().Started; n != 1 {
		t.Errorf("the refusing upstream was asked %d times", n)
	}
}

func TestProxyIsTransparent(t *testing.T) {
	var seen *http.Request
	srv := serve(t, "http1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Clone(context.Background())
		w.Header().Set("Trailer", "X-Sum")
		w.Header()["X-Two"] = []string{"a", "b"}
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "1")
	}))
	for _, kind := range kinds {
		p, url, client := proxied(t, kind, "http1", srv)
		req, err := http.NewRequest("GET", url+"/a%2Fb/c?x=1;y&%zz", nil)
		must(t, err)
		req.Header.Set("X-Forwarded-For", "10.0.0.1")
		req.Header.Set("Fault-Stream-Id", "99")
		req.Header.Set("X-Long", strings.Repeat("x", 20_000)) // CONTINUATION frames
		resp, err := client.RoundTrip(req)
		must(t, err)
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "body" || len(resp.Header["X-Two"]) != 2 || resp.Trailer.Get("X-Sum") != "1" {
			t.Errorf("%s: %q, %v, %v", kind, body, resp.Header, resp.Trailer)
		}
		if seen.RequestURI != "/a%2Fb/c?x=1;y&%zz" || seen.Header.Get("X-Forwarded-For") != "10.0.0.1" {
			t.Errorf("%s: %s, %v", kind, seen.RequestURI, seen.Header)
		}
		if seen.Header.Get("Fault-Stream-Id") != "" || seen.Header.Get("Accept-Encoding") != "gzip" || len(seen.Header.Get("X-Long")) != 20_000 {
			t.Errorf("%s: header %v", kind, seen.Header)
		}
		if "http://"+seen.Host != srv.URL {
			t.Errorf("%s: host %s", kind, seen.Host)
		}
		must(t, p.WaitDone(ctxFor(t), 1))
	}
}

func TestProxyPreserveHostAndPath(t *testing.T) {
	var host, uri string
	srv := serve(t, "http1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { host, uri = r.Host, r.RequestURI }))
	target, err := url.Parse(srv.URL + "/base?k=v")
	must(t, err)
	p, err := NewProxy(target, &ProxyOptions{PreserveHost: true})
	must(t, err)
	defer p.Close()
	addr, err := p.Listen("127.0.0.1:0")
	must(t, err)
	send(transport(t, "http1", nil), "GET", addr+"/x?a=b", "")
	if "http://"+host != addr || uri != "/base/x?k=v&a=b" {
		t.Errorf("host %s, uri %s", host, uri)
	}
}

// Answers that stream arrive while the upstream still writes.
func TestProxyStreams(t *testing.T) {
	more := make(chan struct{})
	srv := serve(t, "http1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "one\n")
		http.NewResponseController(w).Flush()
		<-more
		io.WriteString(w, "two\n")
	}))
	for _, rule := range []string{"hold nth=9", "delay for=1ms", "cut-after bytes=6"} {
		for _, kind := range kinds {
			_, url, client := proxied(t, kind, "http1", srv, MustRule(rule))
			resp, err := (&http.Client{Transport: client}).Get(url)
			must(t, err)
			r := bufio.NewReader(resp.Body)
			if line, err := r.ReadString('\n'); line != "one\n" {
				t.Fatalf("%s: %q, %v", rule, line, err)
			}
			more <- struct{}{}
			rest, err := io.ReadAll(r)
			cut := strings.HasPrefix(rule, "cut")
			if want := map[bool]string{false: "two\n", true: "tw"}[cut]; string(rest) != want || (err != nil) != cut {
				t.Errorf("%s: %q, %v", rule, rest, err)
			}
			resp.Body.Close()
		}
	}
}

// A connection that changes its protocol goes through.
func TestProxyUpgrade(t *testing.T) {
	srv := serve(t, "http1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		io.WriteString(conn, strings.ToUpper(line))
	}))
	for _, rule := range []string{"hold nth=9", "delay for=1ms"} {
		_, url, _ := proxied(t, "http1", "http1", srv, MustRule(rule))
		conn := dial(t, strings.TrimPrefix(url, "http://"))
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		must(t, err)
		if resp.StatusCode != 101 {
			t.Fatalf("%s: %s", rule, resp.Status)
		}
		fmt.Fprint(conn, "hello\n")
		if line, err := r.ReadString('\n'); line != "HELLO\n" {
			t.Errorf("%s: %q, %v", rule, line, err)
		}
	}
}

func TestProxyUpstreamGone(t *testing.T) {
	srv := serve(t, "http1", newShop())
	srv.Close()
	p, url, client := proxied(t, "http1", "http1", srv, MustRule("lose-answer count=1"))
	for range 2 {
		if got := send(client, "POST", url, title); got.status != 502 || !strings.Contains(got.body, "refused") {
			t.Errorf("got %+v", got)
		}
	}
	must(t, p.WaitDone(ctxFor(t), 2))
	if e := p.Log()[0]; e.Outcome != Failed || e.Faults != 0 {
		t.Errorf("log: %+v", e)
	}
}

// Close ends requests that are held, and clients that are connected.
func TestProxyClose(t *testing.T) {
	noLeaks(t)
	s := newShop()
	srv := serve(t, "http1", s)
	p, url, client := proxied(t, "http1", "http1", srv, MustRule("hold at=before"))
	results := make(chan result)
	go func() { results <- send(client, "POST", url, title) }()
	must(t, p.WaitHeld(ctxFor(t), 1))
	must(t, p.Close())
	if got := <-results; got.err == nil {
		t.Errorf("got %+v", got)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after Close: %v", err)
	}
	if s.completed() != 0 {
		t.Error("a held request was delivered by Close")
	}
}

func TestProxyServe(t *testing.T) {
	srv := serve(t, "http1", newShop())
	target, err := url.Parse(srv.URL)
	must(t, err)
	p, err := NewProxy(target, nil)
	must(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ln) }()
	if got := send(transport(t, "http1", nil), "POST", "http://"+ln.Addr().String(), title); got.status != 201 {
		t.Errorf("got %+v", got)
	}
	must(t, p.Close())
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := p.Listen("127.0.0.1:0"); err != ErrClosed {
		t.Errorf("Listen after Close: %v", err)
	}
}

func TestNewProxyErrors(t *testing.T) {
	for _, target := range []string{"ftp://x", "/x", "http:"} {
		u, err := url.Parse(target)
		must(t, err)
		if _, err := NewProxy(u, nil); err == nil {
			t.Errorf("%q was accepted", target)
		}
	}
	if _, err := NewProxy(nil, nil); err == nil {
		t.Error("no target was accepted")
	}
	u, _ := url.Parse("http://x")
	if _, err := NewProxy(u, &ProxyOptions{Rules: []Rule{{Fault: Delay}}}); err == nil {
		t.Error("an invalid rule was accepted")
	}
}
