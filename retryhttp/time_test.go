package retryhttp_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// script is a base that does one thing after the other, the last one for ever, and
// notes when it was asked.
type script struct {
	do []func(*http.Request) (*http.Response, error)
	at []time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.at = append(s.at, time.Now())
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.GetConn("")
		trace.GotConn(httptrace.GotConnInfo{})
	}
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	return s.do[min(len(s.at), len(s.do))-1](r)
}

func says(code int, header ...string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		return answer(code, http.StatusText(code), header...), nil
	}
}

func loses(*http.Request) (*http.Response, error) { return nil, errReset }

// hangs answers nothing until its context is done.
func hangs(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

// callIn makes a keyed POST through a script, in a bubble of its own time.
func callIn(t *testing.T, ctx context.Context, o *retryhttp.Options, s *script) (*http.Response, retryhttp.Report, error) {
	t.Helper()
	var report retryhttp.Report
	ctx = retryhttp.With(ctx, retryhttp.Call{Key: "once", Report: &report})
	resp, err := retryhttp.New(s, o).RoundTrip(request(t, ctx, "POST", "http://api.example/things", "a=1"))
	return resp, report, err
}

func TestRetryAfterIsALowerBound(t *testing.T) {
	for name, header := range map[string][]string{
		"seconds":  {"Retry-After", "7"},
		"IMF date": {"Retry-After", "Sun, 06 Nov 1994 08:49:44 GMT", "Date", "Sun, 06 Nov 1994 08:49:37 GMT"},
		"RFC 850":  {"Retry-After", "Sunday, 06-Nov-94 08:49:44 GMT", "Date", "Sun, 06 Nov 1994 08:49:37 GMT"},
		"asctime":  {"Retry-After", "Sun Nov  6 08:49:44 1994", "Date", "Sun, 06 Nov 1994 08:49:37 GMT"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{do: []func(*http.Request) (*http.Response, error){says(503, header...), says(200)}}
				resp, report, err := callIn(t, t.Context(), quick(preset(t, contract.Idempotent)), s)
				if err != nil {
					t.Fatal(err)
				}
				text(t, resp)
				if wait := s.at[1].Sub(s.at[0]); report.Attempts != 2 || wait < 7*time.Second || wait > 8*time.Second {
					t.Errorf("%d attempts, asked again after %s", report.Attempts, wait)
				}
			})
		})
	}
}

// What can't be waited for ends the call at once, and the answer is the caller's.
func TestStopsInsteadOfSleeping(t *testing.T) {
	for name, c := range map[string]struct {
		header   string
		deadline time.Duration
		budget   time.Duration
		age      time.Duration
		want     retryhttp.Stop
	}{
		"far beyond everything": {header: "9223372037", want: retryhttp.StopWait},
		"too many digits":       {header: strings.Repeat("9", 40), want: retryhttp.StopWait},
		"beyond MaxWait":        {header: "31", want: retryhttp.StopWait},
		"beyond the deadline":   {header: "20", deadline: 19 * time.Second, want: retryhttp.StopDeadline},
		"beyond the budget":     {header: "20", budget: 19 * time.Second, want: retryhttp.StopBudget},
		"beyond the retention":  {header: "20", age: 24*time.Hour - 29*time.Second, want: retryhttp.StopRetention},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				start := time.Now()
				s := &script{do: []func(*http.Request) (*http.Response, error){says(503, "Retry-After", c.header)}}
				o := quick(preset(t, contract.Idempotent))
				o.Budget = c.budget
				var report retryhttp.Report
				call := retryhttp.Call{Key: "once", Report: &report}
				if c.age > 0 {
					call.FirstSent = start.Add(-c.age)
				}
				resp, err := retryhttp.New(s, o).RoundTrip(request(t, retryhttp.With(ctx, call), "POST", "http://api.example/", "a=1"))
				if err != nil {
					t.Fatal(err)
				}
				if got := text(t, resp); resp.StatusCode != 503 || got != "Service Unavailable" {
					t.Errorf("%d %q", resp.StatusCode, got)
				}
				if report.Stopped != c.want || report.Attempts != 1 || time.Since(start) != 0 {
					t.Errorf("stopped %q after %d attempts and %s", report.Stopped, report.Attempts, time.Since(start))
				}
			})
		})
	}
}

// A key that the API may have forgotten is not sent again at all, by no way of sending.
func TestNothingIsSentAfterTheRetention(t *testing.T) {
	s := &script{do: []func(*http.Request) (*http.Response, error){says(200)}}
	tr := retryhttp.New(s, quick(preset(t, contract.Idempotent)))
	ctx := retryhttp.With(t.Context(), retryhttp.Call{Key: "once", FirstSent: time.Now().Add(-24 * time.Hour)})
	_, err := tr.RoundTrip(request(t, ctx, "POST", "http://api.example/", "a=1"))
	if e := asError(t, err); e.State() != retryhttp.NotSent || !errors.Is(err, retryhttp.ErrNotSent) {
		t.Errorf("%v", err)
	}
	if _, err := tr.Send(request(t, ctx, "POST", "http://api.example/", "a=1"), 0); !errors.Is(err, retryhttp.ErrNotSent) {
		t.Errorf("%v", err)
	}
	if len(s.at) != 0 {
		t.Errorf("sent %d times", len(s.at))
	}
}

func TestBudgetBoundsTheWholeCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: []func(*http.Request) (*http.Response, error){hangs}}
		o := &retryhttp.Options{Contract: preset(t, contract.Idempotent), AttemptTimeout: 4 * time.Second,
			Budget: 10 * time.Second, MaxAttempts: 100}
		start := time.Now()
		_, report, err := callIn(t, t.Context(), o, s)
		if e := asError(t, err); e.State() != retryhttp.Unconfirmed || !e.Timeout() || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took > 10*time.Second || took < 8*time.Second || report.Stopped != retryhttp.StopBudget || report.Attempts != 3 {
			t.Errorf("%s, %d attempts, stopped %q", took, report.Attempts, report.Stopped)
		}
	})
}

func TestAttemptTimeoutLeadsToTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: []func(*http.Request) (*http.Response, error){hangs, says(200)}}
		o := quick(preset(t, contract.Idempotent))
		o.AttemptTimeout = 3 * time.Second
		resp, report, err := callIn(t, t.Context(), o, s)
		if err != nil {
			t.Fatal(err)
		}
		text(t, resp)
		if wait := s.at[1].Sub(s.at[0]); report.Attempts != 2 || wait < 3*time.Second || wait > 3*time.Second+10*time.Millisecond {
			t.Errorf("%d attempts, the second after %s", report.Attempts, wait)
		}
	})
}

// An answer that comes when the timer has already run out can't be read any more: it
// counts as cut, unless there is nothing to read.
func TestTimerThatIsFasterThanTheAnswer(t *testing.T) {
	for _, c := range []struct {
		body     io.ReadCloser
		attempts int
	}{{io.NopCloser(strings.NewReader("late")), 2}, {http.NoBody, 1}} {
		synctest.Test(t, func(t *testing.T) {
			late := func(*http.Request) (*http.Response, error) {
				time.Sleep(4 * time.Second)
				resp := answer(200, "")
				resp.Body = c.body
				return resp, nil
			}
			s := &script{do: []func(*http.Request) (*http.Response, error){late, says(201)}}
			o := quick(preset(t, contract.Idempotent))
			o.AttemptTimeout = 3 * time.Second
			resp, report, err := callIn(t, t.Context(), o, s)
			if err != nil || report.Attempts != c.attempts || resp.StatusCode != 199+c.attempts {
				t.Errorf("%v, %+v", err, report)
			}
			o.MaxAttempts = 1
			s = &script{do: s.do[:1]}
			if resp, _, err = callIn(t, t.Context(), o, s); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); errors.Is(err, context.DeadlineExceeded) != (c.attempts == 2) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A request that passes through once has no time limit of ours.
func TestNoTimerOnWhatPassesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Hour)
			return answer(200, "late"), nil
		}
		s := &script{do: []func(*http.Request) (*http.Response, error){slow}}
		resp, err := retryhttp.New(s, nil).RoundTrip(request(t, t.Context(), "POST", "http://api.example/", "a=1"))
		if err != nil {
			t.Fatal(err)
		}
		text(t, resp)
	})
}

func TestCancellationWakesAtOnce(t *testing.T) {
	mine := errors.New("mine")
	for name, c := range map[string]struct {
		do    func(*http.Request) (*http.Response, error)
		state retryhttp.State
	}{
		"while it waits, after a lost answer": {loses, retryhttp.Unconfirmed},
		"while it waits, after a dial error": {func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}, retryhttp.NotSent},
		"while an attempt runs": {hangs, retryhttp.Unconfirmed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				start := time.Now()
				time.AfterFunc(time.Second, func() { cancel(mine) })
				s := &script{do: []func(*http.Request) (*http.Response, error){c.do}}
				o := quick(preset(t, contract.Idempotent))
				o.Backoff = retryhttp.Backoff{Base: time.Hour, Max: time.Hour}
				o.Budget, o.AttemptTimeout = -1, -1
				base := http.RoundTripper(s)
				if c.state == retryhttp.NotSent { // no connection was got
					base = roundTripper(c.do)
				}
				ctx = retryhttp.WithKey(ctx, "once")
				_, err := retryhttp.New(base, o).RoundTrip(request(t, ctx, "POST", "http://api.example/", "a=1"))
				e := asError(t, err)
				if !errors.Is(err, context.Canceled) || e.State() != c.state || e.Stopped != retryhttp.StopCancelled || e.Attempts != 1 {
					t.Errorf("%s, stopped %q: %v", e.State(), e.Stopped, err)
				}
				if took := time.Since(start); took != time.Second {
					t.Errorf("woke after %s", took)
				}
			})
		})
	}
}

func TestNothingIsSentOnceCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &script{do: []func(*http.Request) (*http.Response, error){says(200)}}
	closed := false
	req := request(t, ctx, "POST", "http://api.example/", "a=1")
	req.Body = &closeWatcher{Reader: req.Body, closed: &closed}
	_, err := retryhttp.New(s, nil).RoundTrip(req)
	if e := asError(t, err); !errors.Is(err, context.Canceled) || !errors.Is(err, retryhttp.ErrNotSent) || e.Attempts != 0 || len(s.at) != 0 || !closed {
		t.Errorf("%+v, sent %d times, body closed: %t", e, len(s.at), closed)
	}
}

type closeWatcher struct {
	io.Reader
	closed *bool
}

func (c *closeWatcher) Close() error { *c.closed = true; return nil }

// The attempt's timer, and its context, end with the header: the body can be read as
// slowly as its reader likes.
func TestBodyOutlivesTheTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := &script{do: []func(*http.Request) (*http.Response, error){func(req *http.Request) (*http.Response, error) {
			go func() {
				for range 3 {
					select {
					case <-time.After(time.Hour):
						w.Write([]byte("tick "))
					case <-req.Context().Done():
						w.CloseWithError(context.Cause(req.Context()))
						return
					}
				}
				w.Close()
			}()
			resp := answer(200, "")
			resp.Body, resp.ContentLength = r, -1
			return resp, nil
		}}}
		o := quick(preset(t, contract.Idempotent))
		o.AttemptTimeout, o.Budget = time.Second, 2*time.Second
		resp, _, err := callIn(t, t.Context(), o, s)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, resp); got != "tick tick tick " {
			t.Errorf("%q", got)
		}
	})
}

// "In progress" is asked again at the pace of the contract, or of the answer; it is no
// verdict, and takes nothing from the quota.
func TestInProgressIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		retryAfter string
		least      time.Duration
	}{{"", time.Second}, {"3", 3 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			busy := says(409)
			if c.retryAfter != "" {
				busy = says(409, "Retry-After", c.retryAfter)
			}
			s := &script{do: []func(*http.Request) (*http.Response, error){loses, busy, busy, says(200)}}
			o := quick(preset(t, contract.IETF))
			o.Quota = &retryhttp.Quota{Reserve: 1}
			resp, report, err := callIn(t, t.Context(), o, s)
			if err != nil {
				t.Fatal(err)
			}
			text(t, resp)
			if len(s.at) != 4 {
				t.Fatalf("sent %d times, stopped %q", len(s.at), report.Stopped)
			}
			for i := 2; i < 4; i++ {
				if wait := s.at[i].Sub(s.at[i-1]); wait < c.least || wait > c.least+time.Second {
					t.Errorf("asked again after %s", wait)
				}
			}
			if report.Attempts != 4 || report.State() != retryhttp.Applied {
				t.Errorf("%+v", report)
			}
		})
	}
	// At the end of the attempts it is what the caller gets: the answer says itself
	// that it is no verdict.
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: []func(*http.Request) (*http.Response, error){says(409)}}
		resp, report, err := callIn(t, t.Context(), quick(preset(t, contract.IETF)), s)
		if err != nil || resp.StatusCode != 409 || report.State() != retryhttp.Unconfirmed || report.Attempts != 4 || report.Stopped != retryhttp.StopAttempts {
			t.Errorf("%v, %+v", err, report)
		}
	})
}

// An outage costs a reserve and nothing more; a half-broken host one tenth.
func TestQuotaBoundsAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		broken func(n int) bool
		most   int
	}{
		"down":                     {func(int) bool { return true }, 10},
		"every second answer":      {func(n int) bool { return n%2 == 0 }, 100},
		"down after a healthy day": {func(n int) bool { return n > 500 }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, sends := 0, 0
				base := roundTripper(func(*http.Request) (*http.Response, error) {
					sends++
					if c.broken(n) {
						return answer(503, ""), nil
					}
					return answer(200, ""), nil
				})
				tr := retryhttp.New(base, quick(nil))
				for n = range 1000 {
					resp, err := tr.RoundTrip(request(t, t.Context(), "GET", "http://api.example/", ""))
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
				}
				if extra := sends - 1000; extra == 0 || extra > c.most {
					t.Errorf("%d extra sends for 1000 requests; at most %d are allowed", extra, c.most)
				}
				// Another host has a bucket of its own.
				n = 999
				before := sends
				resp, _ := tr.RoundTrip(request(t, t.Context(), "GET", "http://other.example/", ""))
				resp.Body.Close()
				if name == "down" && sends-before != 4 {
					t.Errorf("another host was asked %d times", sends-before)
				}
			})
		})
	}
}

func TestBackoffHasFullJitter(t *testing.T) {
	b := retryhttp.Backoff{Base: 100 * time.Millisecond, Max: time.Second}
	for n, bound := range map[int]time.Duration{-1: 100 * time.Millisecond, 1: 100 * time.Millisecond, 2: 200 * time.Millisecond,
		4: 800 * time.Millisecond, 5: time.Second, 62: time.Second, math.MaxInt: time.Second} {
		var low, high int
		for range 2000 {
			w := b.Wait(n, 0)
			if w <= 0 || w > bound {
				t.Fatalf("wait %d is %s, the bound %s", n, w, bound)
			}
			if w < bound/4 {
				low++
			}
			if w > bound-bound/4 {
				high++
			}
		}
		if low < 350 || high < 350 { // 500 each, on average
			t.Errorf("wait %d: %d of 2000 in the lowest quarter, %d in the highest", n, low, high)
		}
	}
	if w := b.Wait(1, math.MaxInt64-1); w != math.MaxInt64 && w < math.MaxInt64-1 {
		t.Errorf("the sum overflows: %s", w)
	}
	if w := b.Wait(3, -time.Hour); w <= 0 {
		t.Errorf("a negative wait counts: %s", w)
	}
}
