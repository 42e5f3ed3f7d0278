package retryhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// A body that was promised again, and is not there, ends the call with what there is.
func TestBodyThatIsNotThereAgain(t *testing.T) {
	gone := errors.New("gone")
	for name, do := range map[string]step{"lost": loses, "503": says(503)} {
		s := &script{do: []step{do}}
		var report retryhttp.Report
		ctx := retryhttp.With(t.Context(), retryhttp.Call{Key: "once", Report: &report})
		req := request(t, ctx, "POST", "http://api.example/", "a=1")
		req.GetBody = func() (io.ReadCloser, error) { return nil, gone }
		resp, err := retryhttp.New(s, quick(preset(t, contract.Idempotent))).RoundTrip(req)
		if len(s.at) != 1 || report.Stopped != retryhttp.StopRequest {
			t.Errorf("%s: sent %d times, stopped %q", name, len(s.at), report.Stopped)
		}
		if name == "lost" && (!errors.Is(err, gone) || !errors.Is(err, errReset) || !errors.Is(err, retryhttp.ErrUnconfirmed)) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "503" && (err != nil || text(t, resp) != "Service Unavailable") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every answer that is not returned is closed, and every body that was opened.
func TestEverythingIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, last := range map[string]step{"answered": says(200), "misleading": says(401), "lost": loses, "cancelled": nil} {
			ctx, cancel := context.WithCancel(keyed(t))
			var answers, bodies []*bool
			n := 0
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				r.Body.Close()
				if n++; n == 2 && last == nil {
					time.AfterFunc(time.Microsecond, cancel)
				} else if n > 2 {
					return last(r)
				}
				resp, closed := answer(503, "", "Retry-After", "1"), new(bool)
				answers = append(answers, closed)
				resp.Body = &closeWatcher{resp.Body, closed}
				return resp, nil
			})
			req := request(t, ctx, "POST", "http://api.example/", "a=1")
			watch := func(b io.ReadCloser) io.ReadCloser {
				closed := new(bool)
				bodies = append(bodies, closed)
				return &closeWatcher{b, closed}
			}
			again := req.GetBody
			req.Body = watch(req.Body)
			req.GetBody = func() (io.ReadCloser, error) { b, err := again(); return watch(b), err }
			o := quick(preset(t, contract.Idempotent))
			o.MaxAttempts = 3
			retryhttp.New(base, o).RoundTrip(req)
			cancel()
			for _, list := range [][]*bool{answers, bodies} {
				for i, closed := range list {
					if !*closed {
						t.Errorf("%s: number %d of %d is open", name, i+1, len(list))
					}
				}
			}
			if len(answers) != 2 || len(bodies) != 3 {
				t.Errorf("%s: %d answers, %d bodies", name, len(answers), len(bodies))
			}
		}
	})
}

// A body that was read for the sake of its code is delivered whole, however long it is,
// and however it ends.
func TestBodyIsDeliveredWhole(t *testing.T) {
	for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, 300 << 10} {
		for _, broken := range []bool{false, true} {
			body := strings.Repeat("x", size)
			s := &script{do: []step{func(*http.Request) (*http.Response, error) {
				resp := answer(400, body)
				if broken {
					resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), errorReader{errReset}))
				}
				return resp, nil
			}}}
			ctx := retryhttp.WithKey(t.Context(), "once")
			o := quick(preset(t, contract.StripeV1))
			o.MaxAttempts = 1
			resp, err := retryhttp.New(s, o).RoundTrip(request(t, ctx, "POST", "http://api.example/", ""))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if string(got) != body || (err != nil) != broken || broken && !errors.Is(err, errReset) {
				t.Errorf("size %d, broken %t: %d bytes, %v", size, broken, len(got), err)
			}
		}
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// An answer that breaks off while its code is looked for is no answer: it is asked again.
func TestCutAnswerIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := func(*http.Request) (*http.Response, error) {
			resp := answer(409, "")
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"error":{"co`), errorReader{io.ErrUnexpectedEOF}))
			return resp, nil
		}
		s := &script{do: []step{cut, says(200)}}
		resp, report, err := callIn(t, t.Context(), quick(preset(t, contract.StripeV1)), s)
		if err != nil || resp.StatusCode != 200 || report.Attempts != 2 {
			t.Errorf("%v, %+v", err, report)
		}
	})
}

// Once the answer is the caller's, nothing is sent any more, however its body ends.
func TestNothingIsSentAfterTheAnswer(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p protocol) {
		h := &recorder{script: []func(http.ResponseWriter, *http.Request){func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}}}
		url, base := p.serve(t, h)
		resp, err := retryhttp.New(base, quick(nil)).RoundTrip(request(t, context.Background(), "GET", url, ""))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(got) != "half" || err == nil || len(h.all()) != 1 {
			t.Errorf("%q, %v, %d arrived", got, err, len(h.all()))
		}
	})
}
