package fault

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

func TestHandler(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			for _, r := range rows {
				t.Run(r.rule, func(t *testing.T) {
					noLeaks(t)
					s := newShop()
					h := NewHandler(s, MustRule(r.rule+" path=/notes count=1"))
					defer h.Close()
					srv := serve(t, kind, h)
					client := transport(t, kind, srv)
					got := send(client, "POST", srv.URL+"/notes", title)
					r.check(t, got, s)
					must(t, h.WaitDone(ctxFor(t), 1))
					e := h.Log()[0]
					if e.Outcome != Faulted || e.Faults != 1 || e.Status != r.status || e.Received != int64(len(got.body)) || e.Remote == "" {
						t.Errorf("log: %+v", e)
					}
					if want := r.completed + len(s.partial()); e.Sends != want || len(e.Upstream) != r.completed {
						t.Errorf("sends %d, want %d; upstream said %v", e.Sends, want, e.Upstream)
					}
					if after := send(client, "POST", srv.URL+"/notes", title); after.status != 201 || after.err != nil {
						t.Errorf("the next request: %+v", after)
					}
					must(t, h.WaitDone(ctxFor(t), 2))
					if e := h.Log()[1]; e.Outcome != Passed || e.Status != 201 || e.Sent != 8 || e.Received == 0 || e.Sends != 1 {
						t.Errorf("log of the next: %+v", e)
					}
				})
			}
		})
	}
}

// Without a rule nothing is between the server and the handler.
func TestHandlerPasses(t *testing.T) {
	h := NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/flush":
			io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/hijack":
			conn, _, err := w.(http.Hijacker).Hijack()
			must(t, err)
			io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
			conn.Close()
		}
	}))
	defer h.Close()
	srv := serve(t, "http1", h)
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", srv.URL+"/flush", nil)
	must(t, err)
	resp, err := srv.Client().Do(req)
	must(t, err)
	if c, err := bufio.NewReader(resp.Body).ReadByte(); c != 'a' {
		t.Errorf("streamed %q, %v", c, err)
	}
	cancel()
	resp.Body.Close()
	if got := send(srv.Client().Transport, "GET", srv.URL+"/hijack", ""); got.status != 204 {
		t.Errorf("hijack: %+v", got)
	}
	must(t, h.WaitDone(ctxFor(t), 2))
}

// The handler runs to its end although its client has left.
func TestHandlerOutlivesClient(t *testing.T) {
	noLeaks(t)
	begun, finish, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	h := NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(begun)
		<-finish
		ended <- r.Context().Err()
	}), MustRule("status"))
	defer h.Close()
	srv := serve(t, "http1", h)
	client := transport(t, "http1", srv)
	ctx, cancel := context.WithCancel(context.Background())
	results := make(chan result)
	go func() { results <- sendCtx(ctx, client, "POST", srv.URL, title) }()
	<-begun
	cancel()
	<-results
	close(finish)
	if err := <-ended; err != nil {
		t.Errorf("the handler was cancelled: %v", err)
	}
	must(t, h.WaitDone(ctxFor(t), 1))
}

func TestHandlerOldConnection(t *testing.T) {
	for _, kind := range kinds {
		for _, at := range []string{"before", "after"} {
			t.Run(kind+" "+at, func(t *testing.T) {
				s := newShop()
				h := NewHandler(s, MustRule("replay-old-connection count=1 at="+at))
				defer h.Close()
				srv := serve(t, kind, h)
				client := transport(t, kind, srv)
				if got := send(client, "POST", srv.URL, title); got.status != 201 {
					t.Fatalf("on the new connection: %+v", got)
				}
				before := s.completed()
				// No GetBody and no key: http.Transport has to report it.
				req, err := http.NewRequest("POST", srv.URL, io.MultiReader(strings.NewReader(title)))
				must(t, err)
				if resp, err := client.RoundTrip(req); err == nil {
					t.Errorf("on the reused connection: %v", resp.Status)
				}
				if want := map[string]int{"before": 0, "after": 1}[at]; s.completed()-before != want {
					t.Errorf("completed %d, want %d", s.completed()-before, want)
				}
			})
		}
	}
}

func TestHandlerOldConnectionNeedsConnContext(t *testing.T) {
	h := NewHandler(newShop(), MustRule("replay-old-connection"))
	defer h.Close()
	srv := httptest.NewServer(h)
	defer srv.Close()
	got := send(http.DefaultTransport, "GET", srv.URL, "")
	if got.status != 500 || !strings.Contains(got.body, "fault.ConnContext") {
		t.Errorf("got %+v", got)
	}
}

// A middleware outside that turns panics into a 500 does not repair an HTTP/1 cut.
func TestHandlerInsideRecover(t *testing.T) {
	h := NewHandler(newShop(), MustRule("lose-answer"))
	defer h.Close()
	srv := serve(t, "http1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(500)
			}
		}()
		h.ServeHTTP(w, r)
	}))
	if got := send(transport(t, "http1", srv), "POST", srv.URL, title); got.err == nil {
		t.Errorf("got %+v", got)
	}
}

func TestHandlerPanics(t *testing.T) {
	h := NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		panic(http.ErrAbortHandler)
	}), MustRule("lose-answer nth=1"), MustRule("delay for=1ms nth=2"))
	defer h.Close()
	srv := serve(t, "http1", h)
	for i := range 3 {
		if got := send(transport(t, "http1", srv), "POST", srv.URL, title); got.err == nil {
			t.Errorf("got %+v", got)
		}
		must(t, h.WaitDone(ctxFor(t), i+1))
	}
	for _, e := range h.Log() {
		if e.Err == "" {
			t.Errorf("log: %+v", e)
		}
	}
}

// Trailers, and answers that stream, pass a delay.
func TestHandlerDelayStreams(t *testing.T) {
	more := make(chan struct{})
	h := NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "one")
		http.NewResponseController(w).Flush()
		<-more
		io.WriteString(w, "two")
		w.Header().Set("X-Sum", "2")
	}), MustRule("delay for=1ms"))
	defer h.Close()
	for _, kind := range []string{"http1", "h2c"} {
		srv := serve(t, kind, h)
		resp, err := (&http.Client{Transport: transport(t, kind, srv)}).Get(srv.URL)
		must(t, err)
		first := make([]byte, 3)
		if _, err := io.ReadFull(resp.Body, first); string(first) != "one" {
			t.Errorf("%q, %v", first, err)
		}
		more <- struct{}{}
		rest, err := io.ReadAll(resp.Body)
		if string(rest) != "two" || err != nil || resp.Trailer.Get("X-Sum") != "2" {
			t.Errorf("%q, %v, trailer %v", rest, err, resp.Trailer)
		}
		resp.Body.Close()
	}
}

// An aborted stream leaves the others of its connection alone.
func TestHandlerHTTP2Stream(t *testing.T) {
	s := newShop()
	h := NewHandler(s, MustRule("lose-answer path=/lost"))
	defer h.Close()
	srv := serve(t, "tls-h2", h)
	client := transport(t, "tls-h2", srv)
	send(client, "POST", srv.URL+"/ok", title)
	err := send(client, "POST", srv.URL+"/lost", title).err
	var reset http2.StreamError
	if !errors.As(err, &reset) || reset.Code != http2.ErrCodeInternal {
		t.Errorf("want a reset stream, got %v", err)
	}
	send(client, "POST", srv.URL+"/ok", title)
	remotes := map[string]bool{}
	for _, e := range h.Log() {
		remotes[e.Remote] = true
	}
	if len(remotes) != 1 {
		t.Errorf("%d connections, want 1", len(remotes))
	}
}
