package retryhttp_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"pgregory.net/rapid"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// The transport never sends more than it says, never more than it may, and never twice
// what may be sent once: over real connections, whatever the other side does, in any
// order.
func TestNeverSendsMoreThanItSays(t *testing.T) {
	contracts := contract.Presets()
	http1 := []func(http.ResponseWriter, *http.Request){status(200), status(201), status(400), status(401), status(409), status(429),
		status(429, "Retry-After", "0"), status(500), status(503), status(503, "Retry-After", "3600"), status(302), lose,
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			io.WriteString(w, "cut")
			panic(http.ErrAbortHandler)
		},
		status(503, "Connection", "close"), status(409, "Stripe-Should-Retry", "true")}
	http2s := []func(*http2.Framer, uint32, int) bool{
		reset(http2.ErrCodeProtocol), reset(http2.ErrCodeRefusedStream), reset(http2.ErrCodeInternal), reset(http2.ErrCodeEnhanceYourCalm), reset(http2.ErrCodeCancel),
		func(fr *http2.Framer, _ uint32, _ int) bool { fr.WriteGoAway(0, http2.ErrCodeNo, nil); return false },
		func(fr *http2.Framer, s uint32, _ int) bool { fr.WriteGoAway(s, http2.ErrCodeNo, nil); return false },
		func(fr *http2.Framer, s uint32, _ int) bool {
			fr.WriteGoAway(0, http2.ErrCodeProtocol, nil)
			return true
		},
		func(*http2.Framer, uint32, int) bool { return false },
		func(fr *http2.Framer, s uint32, _ int) bool { say(fr, s, "503"); return true },
		func(fr *http2.Framer, s uint32, _ int) bool { say(fr, s, "429"); return true },
		func(fr *http2.Framer, s uint32, _ int) bool { say(fr, s, "200"); return true },
	}
	h := &recorder{}
	url1, base1 := protocols[1].serve(t, h)
	var mu sync.Mutex // of script2
	var script2 []int
	s2 := startRude(t, false, func(fr *http2.Framer, stream uint32, n int) bool {
		mu.Lock()
		step := script2[min(n, len(script2))-1]
		mu.Unlock()
		return http2s[step](fr, stream, n)
	})
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 11), 1, 6).Draw(rt, "what the other side does")
		api := rapid.SampledFrom(contracts).Draw(rt, "contract")
		method := rapid.SampledFrom([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}).Draw(rt, "method")
		key := rapid.SampledFrom([]string{"", "5d8b1f3a-0c0e-4e6a-9a57-0d6a3f0b7c11"}).Draw(rt, "key")
		body := rapid.SampledFrom([]string{"", "a=1"}).Draw(rt, "body")
		attempts := rapid.IntRange(1, 5).Draw(rt, "attempts")
		over2 := rapid.Bool().Draw(rt, "HTTP/2")
		o := quick(&api)
		o.MaxAttempts = attempts
		o.Budget = 30 * time.Second
		var report retryhttp.Report
		ctx, cancel := context.WithTimeout(retryhttp.With(t.Context(), retryhttp.Call{Key: key, Report: &report}), time.Minute)
		defer cancel()
		url, base := url1, http.RoundTripper(base1)
		h.mu.Lock()
		h.seen, h.script = nil, nil
		for _, i := range steps {
			h.script = append(h.script, http1[i])
		}
		h.mu.Unlock()
		s2.mu.Lock()
		s2.got = nil
		s2.mu.Unlock()
		mu.Lock()
		script2 = steps
		mu.Unlock()
		if over2 {
			url, base = s2.url, s2.transport
		}
		resp, err := retryhttp.New(base, o).RoundTrip(request(t, ctx, method, url, body))
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		} else if e := asError(t, err); e.Attempts != report.Attempts || e.Sends != report.Sends {
			rt.Fatalf("the error says something else than the report: %v, %+v", err, report)
		}
		var keys, ids []string
		if over2 {
			for _, d := range s2.deliveries() {
				keys, ids = append(keys, d.Get("idempotency-key")), append(ids, d.Get("attempt-id"))
			}
		} else {
			for _, d := range h.all() {
				keys, ids = append(keys, d.key), append(ids, d.id)
			}
		}
		arrived := len(ids)
		if arrived > report.Sends || report.Attempts > attempts || report.Sends > attempts {
			rt.Fatalf("%d arrived; %+v", arrived, report)
		}
		may, _ := api.MaySendAgain(contract.Request{Method: method, Keyed: key != "" && api.Honours(method) && method != "GET", Replayable: true})
		if !may && (arrived > 1 || report.Attempts > 1) {
			rt.Fatalf("it may not be repeated, and %d arrived; %+v", arrived, report)
		}
		if slices.ContainsFunc(keys, func(k string) bool { return k != keys[0] }) {
			rt.Fatalf("the key changed: %q", keys)
		}
		slices.Sort(ids)
		if may && len(slices.Compact(ids)) != arrived {
			rt.Fatalf("Attempt-Ids are not fresh")
		}
	})
}
