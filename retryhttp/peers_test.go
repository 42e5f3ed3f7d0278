package retryhttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/retryhttp"
)

// These are failures that other retry layers are known for, each as a case of ours.

func keyed(t testing.TB) context.Context {
	return retryhttp.WithKey(t.Context(), "once")
}

// The body is there on the second attempt, also where that has a connection of its own.
func TestSecondAttemptHasItsBody(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p protocol) {
		body := strings.Repeat("body ", 10_000)
		for _, first := range []func(http.ResponseWriter, *http.Request){lose, status(503), status(503, "Connection", "close")} {
			h := &recorder{script: []func(http.ResponseWriter, *http.Request){first, status(200)}}
			url, base := p.serve(t, h)
			resp, err := retryhttp.New(base, quick(preset(t, contract.Idempotent))).RoundTrip(request(t, keyed(t), "POST", url, body))
			if err != nil {
				t.Fatal(err)
			}
			text(t, resp)
			if all := h.all(); len(all) != 2 || all[1].body != body || all[1].length != int64(len(body)) {
				t.Errorf("%d arrived, the last with %d bytes", len(all), len(all[len(all)-1].body))
			}
		}
	})
}

// A server answers 503 while 8 MiB are still on their way, and then takes them: the
// first upload is still being read when the second one begins.
func TestEarlyAnswerDuringUpload(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	everyProtocol(t, func(t *testing.T, p protocol) {
		body := bytes.Repeat([]byte("0123456789abcdef"), 8<<20/16)
		var arrivals atomic.Int64
		url, base := p.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if arrivals.Add(1)%2 == 1 {
				io.CopyN(io.Discard, r.Body, 1000)
				w.WriteHeader(503)
				return
			}
			got, err := io.ReadAll(r.Body)
			if err != nil || !bytes.Equal(got, body) {
				w.WriteHeader(400)
			}
		}))
		o := quick(preset(t, contract.Idempotent))
		o.Quota = &retryhttp.Quota{Reserve: 1000}
		tr := retryhttp.New(base, o)
		for i := range rounds / len(protocols) {
			var report retryhttp.Report
			ctx := retryhttp.With(t.Context(), retryhttp.Call{Key: "once", Report: &report})
			req, err := http.NewRequestWithContext(ctx, "PUT", url, bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
			text(t, resp)
			if resp.StatusCode != 200 || report.Attempts%2 != 0 || int64(report.Sends) > arrivals.Load() {
				t.Fatalf("round %d: %d, %+v", i, resp.StatusCode, report)
			}
			arrivals.Store(0)
		}
	})
}

// One connection is enough: the answer that is not returned gives its connection back.
func TestOneConnectionIsEnough(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p protocol) {
		for _, size := range []int{0, 10, 1 << 20} {
			big := strings.Repeat("x", size)
			h := &recorder{script: []func(http.ResponseWriter, *http.Request){
				func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503); io.WriteString(w, big) },
				func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503); io.WriteString(w, big) },
				status(200),
			}}
			url, base := p.serve(t, h)
			base.MaxConnsPerHost = 1
			ctx, cancel := context.WithTimeout(keyed(t), time.Minute)
			resp, err := retryhttp.New(base, quick(preset(t, contract.Idempotent))).RoundTrip(request(t, ctx, "POST", url, "a=1"))
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("%d bytes: %v", size, err)
			}
			text(t, resp)
			cancel()
		}
	})
}

// A small answer is drained, so that its connection is used again; a large one is cut
// off, and so is one that trickles.
func TestDrainingHasALimit(t *testing.T) {
	for name, c := range map[string]struct {
		write func(w http.ResponseWriter, gone <-chan struct{})
		conns int64
	}{
		"small":    {func(w http.ResponseWriter, _ <-chan struct{}) { io.WriteString(w, strings.Repeat("x", 1000)) }, 1},
		"large":    {func(w http.ResponseWriter, _ <-chan struct{}) { io.WriteString(w, strings.Repeat("x", 4<<20)) }, 2},
		"trickles": {func(w http.ResponseWriter, gone <-chan struct{}) { http.NewResponseController(w).Flush(); <-gone }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var n, conns atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n.Add(1) == 1 {
					w.WriteHeader(503)
					c.write(w, r.Context().Done())
				}
			}))
			server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					conns.Add(1)
				}
			}
			server.Start()
			defer server.Close()
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			start := time.Now()
			o := quick(nil)
			o.AttemptTimeout = 2 * time.Minute
			resp, err := retryhttp.New(base, o).RoundTrip(request(t, t.Context(), "GET", server.URL, ""))
			if err != nil || resp.StatusCode != 200 {
				t.Fatal(err)
			}
			text(t, resp)
			if conns.Load() != c.conns || time.Since(start) > time.Minute { // it is cut off by nothing else before
				t.Errorf("%d connections, %s", conns.Load(), time.Since(start))
			}
		})
	}
}

// A server may close its connection after each answer, or go away in the middle.
func TestConnectionClose(t *testing.T) {
	for _, set := range []func(*http.Request){func(*http.Request) {}, func(r *http.Request) { r.Close = true }, func(r *http.Request) { r.Header.Set("Connection", "close") }} {
		h := &recorder{script: []func(http.ResponseWriter, *http.Request){status(503, "Connection", "close"), status(200, "Connection", "close")}}
		url, base := protocols[1].serve(t, h)
		req := request(t, keyed(t), "POST", url, "a=1")
		set(req)
		resp, err := retryhttp.New(base, quick(preset(t, contract.Idempotent))).RoundTrip(req)
		if err != nil || resp.StatusCode != 200 || len(h.all()) != 2 {
			t.Fatalf("%d arrived; %v", len(h.all()), err)
		}
		text(t, resp)
	}
}

// GOAWAY that leaves our stream out proves that it was not looked at; one that covers it
// lets it end.
func TestGoAway(t *testing.T) {
	for _, encrypted := range []bool{true, false} {
		s := startRude(t, encrypted, func(fr *http2.Framer, stream uint32, n int) bool {
			switch n {
			case 1:
				fr.WriteGoAway(stream, http2.ErrCodeNo, nil)
				say(fr, stream, "200")
			case 2:
				fr.WriteGoAway(0, http2.ErrCodeNo, nil)
			default:
				say(fr, stream, "200")
			}
			return n == 1
		})
		tr := retryhttp.New(s.transport, quick(preset(t, contract.Idempotent)))
		for _, attempts := range []int{1, 2} {
			var report retryhttp.Report
			ctx := retryhttp.With(t.Context(), retryhttp.Call{Key: "once", Report: &report})
			resp, err := tr.RoundTrip(request(t, ctx, "POST", s.url, "a=1"))
			if err != nil {
				t.Fatal(err)
			}
			text(t, resp)
			if report.Attempts != attempts || report.Sends != attempts {
				t.Errorf("%+v", report)
			}
			if attempts == 2 && report.Evidence.Unsent != 1 {
				t.Errorf("%+v", report.Evidence)
			}
		}
		if n := len(s.deliveries()); n != 3 {
			t.Errorf("%d arrived", n)
		}
	}
}

// The caller gives up between the header and the body: reading ends at once, with his
// own reason.
func TestCancelledBeforeTheBodyIsRead(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p protocol) {
		url, base := p.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := retryhttp.New(base, quick(nil)).RoundTrip(request(t, ctx, "GET", url, ""))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		resp.Body.Close()
	})
}

// No body and an empty body are the same, and stay so on every attempt.
func TestNilBodyAndEmptyBody(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p protocol) {
		for name, body := range map[string]io.Reader{"nil": nil, "NoBody": http.NoBody, "empty": strings.NewReader(""), "empty bytes": bytes.NewReader(nil)} {
			h := &recorder{script: []func(http.ResponseWriter, *http.Request){status(503), lose, status(200)}}
			url, base := p.serve(t, h)
			req, err := http.NewRequestWithContext(keyed(t), "POST", url, body)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := retryhttp.New(base, quick(preset(t, contract.Idempotent))).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			text(t, resp)
			for _, s := range h.all() {
				if s.body != "" || s.length > 0 || !p.h2 && s.length != 0 {
					t.Errorf("%s: %+v", name, s)
				}
			}
			if len(h.all()) != 3 || req.Body != nil && req.Body != http.NoBody {
				t.Errorf("%s: %d arrived; the request's own body is %v", name, len(h.all()), req.Body)
			}
		}
	})
}

// Four layers of four attempts each are four attempts.
func TestNestedLayersDoNotMultiply(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p protocol) {
		for _, kind := range []string{"transports", "clients", "own loop"} {
			h := &recorder{script: []func(http.ResponseWriter, *http.Request){status(503)}}
			url, base := p.serve(t, h)
			var rt http.RoundTripper = base
			for range 4 {
				inner := retryhttp.New(rt, quick(preset(t, contract.Idempotent)))
				rt = inner
				if kind == "clients" {
					client := inner.Client()
					rt = roundTripper(func(r *http.Request) (*http.Response, error) {
						r = r.Clone(r.Context())
						r.RequestURI = ""
						return client.Do(r)
					})
				}
			}
			ctx, times := keyed(t), 1
			if kind == "own loop" {
				ctx, times = retryhttp.StandDown(ctx), 4
			}
			for range times {
				resp, err := rt.RoundTrip(request(t, ctx, "POST", url, "a=1"))
				if err != nil || resp.StatusCode != 503 {
					t.Fatal(err)
				}
				text(t, resp)
			}
			all := h.all()
			ids := map[string]bool{}
			for _, s := range all {
				ids[s.id] = true
			}
			if len(all) != 4 || len(ids) != 4 || ids[""] {
				t.Errorf("%s: %d arrived, with %d Attempt-Ids", kind, len(all), len(ids))
			}
		}
	})
}

// The context of an answer's request is the caller's, so that what he does with it
// later is not taken for a nested layer.
func TestTheMarkStaysInside(t *testing.T) {
	s := &script{do: []step{says(200), says(503)}}
	tr := retryhttp.New(s, quick(nil))
	resp, err := tr.RoundTrip(request(t, t.Context(), "GET", "http://api.example/", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.RoundTrip(request(t, resp.Request.Context(), "GET", "http://api.example/", "")); err != nil {
		t.Fatal(err)
	}
	if len(s.at) != 1+4 {
		t.Errorf("sent %d times", len(s.at))
	}
}

// What fault does to real connections, this transport survives with one key, and it
// counts what the other side got.
func TestFaultsOnTheWay(t *testing.T) {
	for _, rule := range []string{"lose-answer count=1", "status count=2", "cut-before count=1", "cut-during count=1",
		"status-before count=1 code=429", "replay-old-connection count=1", "replay-old-connection at=after count=1"} {
		everyProtocol(t, func(t *testing.T, p protocol) {
			h := &recorder{script: []func(http.ResponseWriter, *http.Request){status(201)}}
			url, base := p.serve(t, h)
			broken := fault.NewTransport(base, fault.MustRule(rule))
			defer broken.Close()
			var report retryhttp.Report
			ctx := retryhttp.With(t.Context(), retryhttp.Call{Key: "once", Report: &report})
			resp, err := retryhttp.New(broken, quick(preset(t, contract.Idempotent))).RoundTrip(request(t, ctx, "POST", url, "a=1"))
			if err != nil {
				t.Fatalf("%s: %v", rule, err)
			}
			text(t, resp)
			all := h.all()
			if resp.StatusCode != 201 || len(all) > report.Sends || len(all) < 1 {
				t.Errorf("%s: %d, %d arrived, %+v", rule, resp.StatusCode, len(all), report)
			}
			for _, s := range all {
				if s.key != "once" || s.body != "a=1" {
					t.Errorf("%s: %+v", rule, s)
				}
			}
		})
	}
}
