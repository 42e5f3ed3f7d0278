package contract_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
)

// call sends one POST as our transports do: a body without GetBody, so that net/http does not send it again by
// itself. It returns the facts of the wire.
func call(t *testing.T, rt http.RoundTripper, url string, change func(*http.Request) *http.Request) contract.Wire {
	t.Helper()
	var tracer contract.Tracer
	ctx := httptrace.WithClientTrace(t.Context(), tracer.ClientTrace())
	req, err := http.NewRequestWithContext(ctx, "POST", url, io.NopCloser(strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = 2
	if change != nil {
		req = change(req)
	}
	client := &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	arrival := contract.ArrivedNothing
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		arrival = contract.ArrivedComplete
		if err != nil {
			arrival = contract.ArrivedCut
		}
	}
	w := contract.WireFrom(err, tracer.Facts())
	w.Arrival = arrival
	t.Logf("%+v from %T: %v", w, errors.Unwrap(err), err)
	return w
}

// hungUp stands for EOF or reset: which of them a peer's close becomes depends on what it had left unread.
const hungUp contract.Failure = "eof or reset"

func want(t *testing.T, got contract.Wire, failure contract.Failure, proves contract.Proves) {
	t.Helper()
	if got.Failure != failure && !(failure == hungUp && (got.Failure == contract.FailedEOF || got.Failure == contract.FailedReset)) {
		t.Errorf("failure %q, want %q", got.Failure, failure)
	}
	if p := (contract.Contract{}).Classify(contract.Request{Method: "POST"}, got, nil); p.Proves != proves {
		t.Errorf("proves %q, want %q", p.Proves, proves)
	}
}

// listen starts a server that hands every connection to do.
func listen(t *testing.T, do func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go do(c)
		}
	}()
	return l.Addr().String()
}

// readRequest reads one whole request.
func readRequest(c net.Conn) bool {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

func deadline(d time.Duration) func(*http.Request) *http.Request {
	return func(r *http.Request) *http.Request {
		ctx, cancel := context.WithTimeout(r.Context(), d)
		context.AfterFunc(ctx, cancel)
		return r.WithContext(ctx)
	}
}

func TestWireBeforeAnyConnection(t *testing.T) {
	t.Run("dial refused", func(t *testing.T) {
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		addr := l.Addr().String()
		l.Close()
		want(t, call(t, &http.Transport{}, "http://"+addr, nil), contract.FailedDial, contract.NotSent)
	})
	t.Run("name not resolved", func(t *testing.T) {
		r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no name server")
		}}
		tr := &http.Transport{DialContext: (&net.Dialer{Resolver: r}).DialContext}
		want(t, call(t, tr, "http://nowhere.example", nil), contract.FailedDNS, contract.NotSent)
	})
	t.Run("TLS: unknown authority", func(t *testing.T) {
		s := httptest.NewTLSServer(http.NotFoundHandler())
		defer s.Close()
		s.Config.ErrorLog = quiet
		want(t, call(t, &http.Transport{}, s.URL, nil), contract.FailedTLS, contract.NotSent)
	})
	t.Run("TLS: the server speaks none", func(t *testing.T) {
		addr := listen(t, func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n"); c.Close() })
		want(t, call(t, &http.Transport{}, "https://"+addr, nil), contract.FailedTLS, contract.NotSent)
	})
	t.Run("TLS: the server shakes no hands", func(t *testing.T) {
		addr := listen(t, func(c net.Conn) { io.Copy(io.Discard, c) })
		tr := &http.Transport{TLSHandshakeTimeout: 20 * time.Millisecond}
		want(t, call(t, tr, "https://"+addr, nil), contract.FailedTLS, contract.NotSent)
	})
	t.Run("TLS: the server hangs up in the middle", func(t *testing.T) {
		addr := listen(t, func(c net.Conn) { c.Close() })
		want(t, call(t, &http.Transport{}, "https://"+addr, nil), hungUp, contract.NotSent)
	})
	t.Run("the proxy does not connect", func(t *testing.T) {
		// The proxy's words are its own; nothing is concluded from them.
		addr := listen(t, func(c net.Conn) {
			readRequest(c)
			io.WriteString(c, "HTTP/1.1 502 stream error: stream ID 1; REFUSED_STREAM\r\nContent-Length: 0\r\n\r\n")
			c.Close()
		})
		tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr})}
		want(t, call(t, tr, "https://service.example", nil), contract.FailedNoConn, contract.NotSent)
	})
	t.Run("no connection became free", func(t *testing.T) {
		release := make(chan struct{})
		held := make(chan struct{}, 1)
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { held <- struct{}{}; <-release }))
		defer s.Close()
		defer close(release)
		tr := &http.Transport{MaxConnsPerHost: 1}
		go func() {
			if resp, err := (&http.Client{Transport: tr}).Get(s.URL); err == nil {
				resp.Body.Close()
			}
		}()
		<-held
		want(t, call(t, tr, s.URL, deadline(20*time.Millisecond)), contract.FailedTimeout, contract.NotSent)
	})
}

// In TLS 1.3 a server turns down our certificate after the client believes to be done.
func TestWireClientCertificateTurnedDown(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request arrived") }))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
	s.Config.ErrorLog = quiet
	s.StartTLS()
	defer s.Close()
	want(t, call(t, s.Client().Transport, s.URL, nil), contract.FailedTLS, contract.NotSent)
}

func TestWireAfterTheRequestBegan(t *testing.T) {
	tests := []struct {
		name    string
		do      func(net.Conn)
		change  func(*http.Request) *http.Request
		failure contract.Failure
	}{
		{"reset", func(c net.Conn) { readRequest(c); c.(*net.TCPConn).SetLinger(0); c.Close() }, nil, contract.FailedReset},
		{"closed", func(c net.Conn) { readRequest(c); c.Close() }, nil, hungUp},
		{"closed inside the header", func(c net.Conn) { readRequest(c); io.WriteString(c, "HTTP/1.1 200 OK\r\n"); c.Close() }, nil, hungUp},
		{"no answer", func(c net.Conn) { io.Copy(io.Discard, c) }, deadline(time.Second), contract.FailedTimeout},
		{"given up", func(c net.Conn) { io.Copy(io.Discard, c) }, func(r *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(r.Context())
			// The caller gives up as soon as the request is out.
			return r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { cancel() }}))
		}, contract.FailedCancelled},
		{"no HTTP", func(c net.Conn) { readRequest(c); io.WriteString(c, "SSH-2.0-x\r\n\r\n"); c.Close() }, nil, contract.FailedMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr := listen(t, tt.do)
			want(t, call(t, &http.Transport{}, "http://"+addr, tt.change), tt.failure, contract.Unknown)
		})
	}
}

func TestWireHTTP2(t *testing.T) {
	tests := []struct {
		name    string
		do      func(*rudeH2, uint32)
		failure contract.Failure
		proves  contract.Proves
	}{
		{"REFUSED_STREAM", func(s *rudeH2, id uint32) { s.reset(id, codeRefused) }, contract.FailedRefused, contract.NotSent},
		{"PROTOCOL_ERROR", func(s *rudeH2, id uint32) { s.reset(id, codeProtocol) }, contract.FailedReset, contract.Unknown},
		{"INTERNAL_ERROR", func(s *rudeH2, id uint32) { s.reset(id, codeInternal) }, contract.FailedReset, contract.Unknown},
		{"GOAWAY below ours", func(s *rudeH2, id uint32) { s.goAway(0, codeNo, "") }, contract.FailedGoAway, contract.NotSent},
		{"GOAWAY below ours, with an error", func(s *rudeH2, id uint32) { s.goAway(0, codeEnhance, "") }, contract.FailedGoAway, contract.NotSent},
		{"GOAWAY that covers ours, then the end", func(s *rudeH2, id uint32) { s.goAway(id, codeNo, ""); s.conn.Close() }, hungUp, contract.Unknown},
		{"GOAWAY with somebody else's words", func(s *rudeH2, id uint32) {
			s.goAway(id, codeNo, "stream error: stream ID 1; REFUSED_STREAM; received from peer")
			s.conn.Close()
		}, hungUp, contract.Unknown},
		{"the connection ends", func(s *rudeH2, id uint32) { s.conn.Close() }, hungUp, contract.Unknown},
		{"REFUSED_STREAM after an answer began", func(s *rudeH2, id uint32) {
			s.frame(frameHeaders, flagEndHeaders, id, []byte{0x88})
			s.reset(id, codeRefused)
		}, contract.FailedReset, contract.Unknown},
		{"a complete answer, then the end", func(s *rudeH2, id uint32) { s.ok(id); s.goAway(id, codeNo, ""); s.conn.Close() }, "", contract.Unknown},
	}
	for _, encrypted := range []bool{true, false} {
		for _, tt := range tests {
			name := "clear/" + tt.name
			if encrypted {
				name = "TLS/" + tt.name
			}
			t.Run(name, func(t *testing.T) {
				u, tr := startH2(t, encrypted, tt.do)
				w := call(t, tr, u, nil)
				want(t, w, tt.failure, tt.proves)
				if w.Sends != 1 {
					t.Errorf("%d sends, want 1", w.Sends)
				}
			})
		}
	}
}

// A later stream on the same connection: a GOAWAY may cover the first and not the second.
func TestWireGoAwayBetweenStreams(t *testing.T) {
	u, tr := startH2(t, true, func(s *rudeH2, id uint32) {
		if id == 1 {
			s.ok(id)
			return
		}
		s.goAway(1, codeNo, "")
	})
	want(t, call(t, tr, u, nil), "", contract.Unknown)
	want(t, call(t, tr, u, nil), contract.FailedGoAway, contract.NotSent)
}

// Hidden re-sends of the transport are counted, and take every proof away that covers the last one only.
func TestWireHiddenSends(t *testing.T) {
	withGetBody := func(r *http.Request) *http.Request {
		r.Header.Set("Idempotency-Key", "k")
		r.Body, r.GetBody = io.NopCloser(strings.NewReader("{}")), func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("{}")), nil
		}
		return r
	}
	// serveOnce answers the first request on a connection and hangs up on the second.
	serveOnce := func(c net.Conn) {
		r := bufio.NewReader(c)
		for range 2 {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			if req.Header.Get("First") != "" {
				io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
				continue
			}
			c.Close()
			return
		}
	}
	first := func(r *http.Request) *http.Request { r.Header.Set("First", "yes"); return r }

	t.Run("a re-send on a new connection", func(t *testing.T) {
		tr := &http.Transport{}
		addr := listen(t, serveOnce)
		want(t, call(t, tr, "http://"+addr, first), "", contract.Unknown)
		w := call(t, tr, "http://"+addr, withGetBody)
		if w.Sends != 2 {
			t.Fatalf("%d sends, want 2: net/http has changed its ways", w.Sends)
		}
		want(t, w, hungUp, contract.Unknown)
	})
	t.Run("a re-send that finds nobody", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			l.Close()
			serveOnce(c)
		}()
		tr := &http.Transport{}
		want(t, call(t, tr, "http://"+l.Addr().String(), first), "", contract.Unknown)
		// The first send arrived; that the second found nobody says nothing of it.
		want(t, call(t, tr, "http://"+l.Addr().String(), withGetBody), contract.FailedDial, contract.Unknown)
	})
	t.Run("without GetBody there is none", func(t *testing.T) {
		tr := &http.Transport{}
		addr := listen(t, serveOnce)
		want(t, call(t, tr, "http://"+addr, first), "", contract.Unknown)
		w := call(t, tr, "http://"+addr, nil)
		if w.Sends != 1 {
			t.Errorf("%d sends, want 1", w.Sends)
		}
		want(t, w, hungUp, contract.Unknown)
	})
	t.Run("HTTP/2: a re-send after PROTOCOL_ERROR", func(t *testing.T) {
		var requests atomic.Int32
		u, tr := startH2(t, true, func(s *rudeH2, id uint32) {
			if requests.Add(1) == 1 {
				s.reset(id, codeProtocol)
				return
			}
			s.reset(id, codeInternal)
		})
		w := call(t, tr, u, withGetBody)
		if w.Sends != 2 {
			t.Fatalf("%d sends, want 2: net/http has changed its ways", w.Sends)
		}
		want(t, w, contract.FailedReset, contract.Unknown)
	})
	t.Run("a refusal of the last one", func(t *testing.T) {
		err := errors.New("stream error: stream ID 3; REFUSED_STREAM; received from peer")
		want(t, contract.WireFrom(err, contract.TraceFacts{Traced: true, Asked: 1, Got: 2}), contract.FailedRefused, contract.Unknown)
	})
}

// A connection of the caller's own that counts what went out can prove more than net/http tells.
func TestWireNothingWritten(t *testing.T) {
	err := &url.Error{Op: "Post", URL: "http://x", Err: errors.New("http: server closed idle connection")}
	facts := contract.TraceFacts{Traced: true, Asked: 1, Got: 1, Reused: true}
	want(t, contract.WireFrom(err, facts), hungUp, contract.Unknown)
	facts.NothingWritten = true
	want(t, contract.WireFrom(err, facts), contract.FailedUnwritten, contract.NotSent)
	facts.Got = 2
	want(t, contract.WireFrom(err, facts), hungUp, contract.Unknown)
}

// What nobody watched proves nothing, and what a transport without hooks says is believed only where its error comes
// from before the connection.
func TestWireWithoutHooks(t *testing.T) {
	dial := &url.Error{Op: "Post", URL: "http://x", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}
	want(t, contract.WireFrom(dial, contract.TraceFacts{}), contract.FailedDial, contract.Unknown)
	want(t, contract.WireFrom(dial, contract.TraceFacts{Traced: true}), contract.FailedDial, contract.NotSent)
	want(t, contract.WireFrom(errors.New("boom"), contract.TraceFacts{Traced: true}), contract.FailedOtherwise, contract.Unknown)
	want(t, contract.WireFrom(context.DeadlineExceeded, contract.TraceFacts{Traced: true}), contract.FailedTimeout, contract.Unknown)
	want(t, contract.WireFrom(nil, contract.TraceFacts{Traced: true}), "", contract.Unknown)
	want(t, contract.WireFrom(nil, contract.TraceFacts{}), "", contract.Unknown)
}

// The HTTP/2 transport of golang.org/x/net has other types with the same words.
func TestWireByWords(t *testing.T) {
	facts := contract.TraceFacts{Traced: true, Asked: 1, Got: 1}
	for text, proves := range map[string]contract.Proves{
		"stream error: stream ID 3; REFUSED_STREAM; received from peer":       contract.NotSent,
		"stream error: stream ID 3; REFUSED_STREAM":                           contract.NotSent,
		"http2: Transport received Server's graceful shutdown GOAWAY":         contract.NotSent,
		"http2: client conn not usable":                                       contract.NotSent,
		"http2: client conn could not be established":                         contract.NotSent,
		"stream error: stream ID 3; INTERNAL_ERROR; received from peer":       contract.Unknown,
		"x stream error: stream ID 3; REFUSED_STREAM; received from peer":     contract.Unknown,
		"stream error: stream ID 3; INTERNAL_ERROR; REFUSED_STREAM":           contract.Unknown,
		`http2: server sent GOAWAY and closed the connection; debug="GOAWAY"`: contract.Unknown,
		"http2: Transport: cannot retry err [stream error: stream ID 1; PROTOCOL_ERROR; received from peer] after Request.Body was written; define Request.GetBody to avoid this error": contract.Unknown,
		"http2: Transport: cannot retry err [stream error: stream ID 1; REFUSED_STREAM; received from peer] after Request.Body was written; define Request.GetBody to avoid this error": contract.NotSent,
	} {
		w := contract.WireFrom(&url.Error{Op: "Post", URL: "http://x", Err: errors.New(text)}, facts)
		if p := (contract.Contract{}).Classify(contract.Request{}, w, nil); p.Proves != proves {
			t.Errorf("%s: proves %q, want %q", text, p.Proves, proves)
		}
	}
}
