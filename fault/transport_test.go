package fault

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/http2"
)

// row is one fault, what the client sees and what the upstream has done.
type row struct {
	rule      string
	status    int    // 0: an error instead of an answer
	body      string // of the answer
	cutBody   bool   // the answer breaks
	completed int
	partial   string // the broken body that the upstream got; "-" for none
}

const title = "eight ch" // a body of 8 bytes

var rows = []row{
	{"lose-answer", 0, "", false, 1, "-"},
	{"status", 503, "Service Unavailable\n", false, 1, "-"},
	{"status code=418", 418, "I'm a teapot\n", false, 1, "-"},
	{"status-before code=502", 502, "Bad Gateway\n", false, 0, "-"},
	{"cut-before", 0, "", false, 0, "-"},
	{"cut-during", 0, "", false, 0, title[:4]},
	{"cut-during bytes=0", 0, "", false, 0, ""},
	{"cut-during bytes=3", 0, "", false, 0, title[:3]},
	{"cut-during bytes=1000", 0, "", false, 0, title[:7]},
	{"cut-after", 201, answer(1)[:3], true, 1, "-"},
	{"cut-after bytes=0", 201, "", true, 1, "-"},
	{"cut-after bytes=2", 201, answer(1)[:2], true, 1, "-"},
	{"delay for=1ms", 201, answer(1), false, 1, "-"},
	{"delay for=1ms at=after", 201, answer(1), false, 1, "-"},
	{"duplicate", 201, answer(1), false, 2, "-"},
	{"duplicate answer=second", 201, answer(2), false, 2, "-"},
	{"duplicate parallel=true", 201, "", false, 2, "-"},
	{"reset-stream at=before", 0, "", false, 0, "-"},
	{"reset-stream", 0, "", false, 1, "-"},
}

// check compares what was seen with the row.
func (r row) check(t *testing.T, got result, s *shop) {
	t.Helper()
	switch {
	case r.status == 0 && got.err == nil:
		t.Fatalf("the client got an answer: %+v", got)
	case r.status != 0 && !r.cutBody && got.err != nil:
		t.Fatalf("the client got an error: %v", got.err)
	case r.cutBody && got.err == nil:
		t.Fatalf("the answer did not break: %q", got.body)
	}
	if got.status != r.status {
		t.Errorf("status %d, want %d", got.status, r.status)
	}
	if got.body != r.body && !strings.Contains(r.rule, "parallel") {
		t.Errorf("body %q, want %q", got.body, r.body)
	}
	if r.partial != "-" {
		s.wait(t)
		if p := s.partial(); len(p) != 1 || p[0] != r.partial {
			t.Errorf("the upstream got %q, want %q", p, r.partial)
		}
	}
	if n := s.completed(); n != r.completed {
		t.Errorf("the upstream completed %d requests, want %d", n, r.completed)
	}
}

func TestTransport(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			for _, r := range rows {
				t.Run(r.rule, func(t *testing.T) {
					noLeaks(t)
					s := newShop()
					srv := serve(t, kind, s)
					client := NewTransport(transport(t, kind, srv), MustRule(r.rule+" path=/notes count=1"))
					defer client.Close()
					got := send(client, "POST", srv.URL+"/notes", title)
					r.check(t, got, s)
					must(t, client.WaitDone(ctxFor(t), 1))
					must(t, client.WaitFaults(ctxFor(t), 1))
					e := client.Log()[0]
					if e.Outcome != Faulted || !strings.HasPrefix(e.Rule, r.rule) || e.Faults != 1 || e.Status != r.status || e.Received != int64(len(got.body)) {
						t.Errorf("log: %+v", e)
					}
					if want := r.completed + len(s.partial()); e.Sends != want || len(e.Upstream) != r.completed {
						t.Errorf("sends %d, want %d; upstream said %v", e.Sends, want, e.Upstream)
					}
					// The rule is spent: the next request passes.
					if after := send(client, "POST", srv.URL+"/notes", title); after.status != 201 || after.err != nil {
						t.Errorf("the next request: %+v", after)
					}
				})
			}
		})
	}
}

func TestTransportErrors(t *testing.T) {
	srv := serve(t, "http1", newShop())
	client := NewTransport(nil, MustRule("lose-answer nth=1"), MustRule("reset-stream code=REFUSED_STREAM nth=2"))
	defer client.Close()

	err := send(client, "POST", srv.URL, title).err
	var cut *Error
	if !errors.As(err, &cut) || cut.Rule.Fault != LoseAnswer || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("lost answer: %v", err)
	}
	err = send(client, "POST", srv.URL, title).err
	var reset http2.StreamError
	if !errors.As(err, &reset) || reset.Code != http2.ErrCodeRefusedStream {
		t.Errorf("reset: %v", err)
	}
}

func TestTransportUpstreamGone(t *testing.T) {
	srv := serve(t, "http1", newShop())
	url := srv.URL
	srv.Close()
	client := NewTransport(nil, MustRule("lose-answer"))
	defer client.Close()
	err := send(client, "POST", url, title).err
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a dial that fails is not a lost answer: %v", err)
	}
	if e := client.Log()[0]; e.Outcome != Failed || e.Faults != 0 || e.Sends != 0 || e.Err == "" {
		t.Errorf("log: %+v", e)
	}
}

func TestTransportHold(t *testing.T) {
	for _, at := range []string{"before", "after"} {
		t.Run(at, func(t *testing.T) {
			noLeaks(t)
			s := newShop()
			srv := serve(t, "http1", s)
			client := NewTransport(transport(t, "http1", srv), MustRule("hold at="+at))
			defer client.Close()
			results := make(chan result)
			go func() { results <- send(client, "POST", srv.URL, title) }()
			must(t, client.WaitHeld(ctxFor(t), 1))
			if want := map[string]int{"before": 0, "after": 1}[at]; s.completed() != want {
				t.Errorf("while held, the upstream has completed %d, want %d", s.completed(), want)
			}
			if e := client.Log()[0]; !e.Held || e.Outcome != StillRunning {
				t.Errorf("while held: %+v", e)
			}
			if n := client.Release(); n != 1 {
				t.Errorf("released %d", n)
			}
			if got := <-results; got.err != nil || got.body != answer(1) {
				t.Errorf("after the release: %+v", got)
			}
			if client.ReleaseOne() {
				t.Error("something is still held")
			}
		})
	}
}

// A client that gives up does not call its request back.
func TestTransportLateDelivery(t *testing.T) {
	noLeaks(t)
	s := newShop()
	srv := serve(t, "http1", s)
	client := NewTransport(transport(t, "http1", srv), MustRule("hold at=before"))
	defer client.Close()
	ctx, cancel := context.WithCancel(context.Background())
	results := make(chan result)
	go func() { results <- sendCtx(ctx, client, "POST", srv.URL, title) }()
	must(t, client.WaitHeld(ctxFor(t), 1))
	cancel()
	if got := <-results; !errors.Is(got.err, context.Canceled) {
		t.Errorf("the client gave up, and saw %+v", got)
	}
	if s.completed() != 0 {
		t.Error("delivered before the release")
	}
	client.Release()
	must(t, client.WaitDone(ctxFor(t), 1))
	if s.completed() != 1 {
		t.Error("never delivered")
	}
}

// A client that gives up does not stop an upstream that is about to complete.
func TestTransportDetached(t *testing.T) {
	noLeaks(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	srv := serve(t, "http1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(begun)
		<-finish
		ended <- r.Context().Err()
	}))
	client := NewTransport(transport(t, "http1", srv), MustRule("lose-answer"))
	defer client.Close()
	ctx, cancel := context.WithCancel(context.Background())
	results := make(chan result)
	go func() { results <- sendCtx(ctx, client, "POST", srv.URL, title) }()
	<-begun
	cancel()
	if got := <-results; !errors.Is(got.err, context.Canceled) {
		t.Errorf("the client saw %+v", got)
	}
	close(finish)
	if err := <-ended; err != nil {
		t.Errorf("the handler was cancelled: %v", err)
	}
	must(t, client.WaitDone(ctxFor(t), 1))
	if e := client.Log()[0]; e.Outcome != Faulted || len(e.Upstream) != 1 {
		t.Errorf("log: %+v", e)
	}
}

func TestTransportClose(t *testing.T) {
	noLeaks(t)
	s := newShop()
	srv := serve(t, "http1", s)
	client := NewTransport(transport(t, "http1", srv), MustRule("hold at=before nth=1"), MustRule("hold nth=2"))
	results := make(chan result, 2)
	for i := range 2 {
		go func() { results <- send(client, "POST", srv.URL, title) }()
		must(t, client.WaitHeld(ctxFor(t), i+1))
	}
	must(t, client.Close())
	for range 2 {
		if got := <-results; !errors.Is(got.err, ErrClosed) {
			t.Errorf("held at Close: %+v", got)
		}
	}
	if got := send(client, "GET", srv.URL, ""); !errors.Is(got.err, ErrClosed) {
		t.Errorf("after Close: %+v", got)
	}
	if err := client.WaitDone(ctxFor(t), 3); !errors.Is(err, ErrClosed) {
		t.Errorf("a wait for what cannot happen: %v", err)
	}
	if s.completed() != 1 {
		t.Errorf("completed %d, want only the one that was held after", s.completed())
	}
}

// Requests without a body are cut in their header.
func TestTransportCutDuringNoBody(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := newShop()
			srv := serve(t, kind, s)
			client := NewTransport(transport(t, kind, srv), MustRule("cut-during count=1"))
			defer client.Close()
			if got := send(client, "GET", srv.URL, ""); got.err == nil {
				t.Errorf("got %+v", got)
			}
			if s.completed() != 0 {
				t.Error("the upstream got the whole request")
			}
		})
	}
}

// A body of unknown length goes out in chunks, and breaks between them.
func TestTransportCutDuringChunked(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := newShop()
			srv := serve(t, kind, s)
			client := NewTransport(transport(t, kind, srv), MustRule("cut-during bytes=5"))
			defer client.Close()
			req, err := http.NewRequest("POST", srv.URL, io.MultiReader(strings.NewReader(title)))
			must(t, err)
			if _, err := client.RoundTrip(req); err == nil {
				t.Error("no error")
			}
			s.wait(t)
			if p := s.partial(); len(p) != 1 || p[0] != title[:5] {
				t.Errorf("the upstream got %q", p)
			}
		})
	}
}

// keyed is a request that http.Transport believes it may send again by itself.
func keyed(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequest("POST", url, strings.NewReader(title))
	must(t, err)
	req.Header.Set("Idempotency-Key", "k1")
	return req
}

func TestTransportOldConnection(t *testing.T) {
	for _, at := range []string{"before", "after"} {
		t.Run(at, func(t *testing.T) {
			s := newShop()
			srv := serve(t, "http1", s)
			client := NewTransport(transport(t, "http1", srv), MustRule("replay-old-connection count=1 at="+at))
			defer client.Close()
			for range 3 {
				resp, err := client.RoundTrip(keyed(t, srv.URL))
				if err == nil {
					drain(resp.Body)
				}
			}
			log := client.Log()
			if log[0].Faults != 0 || log[2].Faults != 0 {
				t.Errorf("a new connection is not a reused one: %+v", log)
			}
			if log[1].Faults != 1 || log[1].Key != "k1" {
				t.Errorf("the reused connection was not cut: %+v", log[1])
			}
			if s.completed() != 3 {
				t.Errorf("completed %d, want 3", s.completed())
			}
			if st := client.Rules()[0]; st.Applied != 1 {
				t.Errorf("counters: %+v", st)
			}
		})
	}
}

// Hidden re-sends of http.Transport are counted.
func TestTransportCountsHiddenSends(t *testing.T) {
	s := newShop()
	cutter := NewHandler(s, MustRule("replay-old-connection count=1 at=after"))
	defer cutter.Close()
	srv := serve(t, "http1", cutter)
	client := NewTransport(transport(t, "http1", srv))
	defer client.Close()
	for range 2 {
		resp, err := client.RoundTrip(keyed(t, srv.URL))
		must(t, err)
		drain(resp.Body)
	}
	if log := client.Log(); log[0].Sends != 1 || log[1].Sends != 2 || log[1].Sent != 2*int64(len(title)) {
		t.Errorf("one call, sent twice by http.Transport itself; log: %+v", log)
	}
	if s.completed() != 3 {
		t.Errorf("completed %d, want 3", s.completed())
	}
}

// A request with a fault of its own is not sent again by http.Transport: what
// the rule says is what happens.
func TestTransportFaultedIsSentOnce(t *testing.T) {
	s := newShop()
	cutter := NewHandler(s, MustRule("replay-old-connection count=1 at=after"))
	defer cutter.Close()
	srv := serve(t, "http1", cutter)
	client := NewTransport(transport(t, "http1", srv), MustRule("status nth=2"))
	defer client.Close()
	resp, err := client.RoundTrip(keyed(t, srv.URL))
	must(t, err)
	drain(resp.Body)
	if resp, err := client.RoundTrip(keyed(t, srv.URL)); err == nil {
		t.Errorf("the upstream's connection broke, and the client was told %s", resp.Status)
	}
	if e := client.Log()[1]; e.Sends != 1 || e.Outcome != Failed || s.completed() != 2 {
		t.Errorf("completed %d, log: %+v", s.completed(), e)
	}
}

func TestTransportRefusesContains(t *testing.T) {
	client := NewTransport(nil)
	defer client.Close()
	if err := client.SetRules(MustRule("lose-answer contains=COMMIT")); err == nil {
		t.Error("contains= was accepted over HTTP")
	}
}
