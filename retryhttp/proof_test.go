package retryhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

type step = func(*http.Request) (*http.Response, error)

func saysBody(code int, body string, header ...string) step {
	return func(*http.Request) (*http.Response, error) { return answer(code, body, header...), nil }
}

func refusesToDial(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
}

// What is settled, refused, or the caller's own matter is never sent again, with or
// without a Retry-After.
func TestNeverRepeated(t *testing.T) {
	type never struct {
		contract string
		method   string
		code     int
		body     string
	}
	var cases []never
	for _, name := range []string{contract.IETF, contract.StripeV1, contract.Idempotent, contract.Semel} {
		for _, code := range []int{200, 201, 204, 206, 300, 301, 302, 303, 304, 307, 308, 400, 401, 402, 403, 404, 405, 410, 412, 413, 415, 422, 501, 505} {
			for _, method := range []string{"GET", "POST"} {
				cases = append(cases, never{name, method, code, ""})
			}
		}
	}
	cases = append(cases,
		never{contract.Semel, "POST", 409, `{"code":"fingerprint-mismatch"}`},
		never{contract.Semel, "PUT", 409, `{"code":"fingerprint-mismatch"}`},
		never{contract.Semel, "PUT", 409, `{"code":"operation-abandoned"}`},
		never{contract.Semel, "PUT", 409, `{"code":"outcome-unknown"}`},
		never{contract.StripeV1, "POST", 400, `{"error":{"type":"idempotency_error"}}`},
		never{contract.Increase, "POST", 409, `{"type":"idempotency_key_already_used_error"}`},
		never{contract.Opaque, "GET", 409, ""},
	)
	synctest.Test(t, func(t *testing.T) {
		for _, c := range cases {
			s := &script{do: []step{saysBody(c.code, c.body, "Retry-After", "1")}}
			ctx := retryhttp.WithKey(t.Context(), "once")
			resp, err := retryhttp.New(s, quick(preset(t, c.contract))).RoundTrip(request(t, ctx, c.method, "http://api.example/", ""))
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			if got := text(t, resp); len(s.at) != 1 || got != c.body || resp.StatusCode != c.code {
				t.Errorf("%+v: sent %d times; got %d %q", c, len(s.at), resp.StatusCode, got)
			}
		}
	})
}

// What may be repeated, and is of use.
func TestRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			contract, method string
			first            step
		}{
			{contract.Opaque, "GET", says(500)}, {contract.Opaque, "GET", says(502)}, {contract.Opaque, "GET", says(503)},
			{contract.Opaque, "GET", says(504)}, {contract.Opaque, "GET", says(429)}, {contract.Opaque, "GET", says(408)},
			{contract.Opaque, "HEAD", loses}, {contract.Opaque, "GET", refusesToDial},
			{contract.Idempotent, "POST", says(500)}, {contract.Idempotent, "POST", says(502)}, {contract.Idempotent, "POST", loses},
			{contract.Idempotent, "POST", says(429)}, {contract.Idempotent, "POST", refusesToDial},
			{contract.IETF, "PATCH", says(409)}, {contract.StripeV1, "POST", says(429)},
			{contract.StripeV1, "POST", saysBody(409, `{"error":{"code":"idempotency_key_in_use"}}`)},
			{contract.StripeV1, "POST", says(500, "Stripe-Should-Retry", "true")},
			{contract.Semel, "PUT", saysBody(503, `{"code":"store-unavailable","recorded":"no"}`)},
			{contract.Semel, "PUT", saysBody(409, `{"code":"in-progress"}`)},
		} {
			s := &script{do: []step{c.first, says(200)}}
			ctx := retryhttp.WithKey(t.Context(), "once")
			resp, err := retryhttp.New(s, quick(preset(t, c.contract))).RoundTrip(request(t, ctx, c.method, "http://api.example/", ""))
			if err != nil || resp.StatusCode != 200 || len(s.at) != 2 {
				t.Errorf("%+v: sent %d times, %v", c, len(s.at), err)
			}
		}
	})
}

// What the contract does not let be repeated passes through once.
func TestOnce(t *testing.T) {
	for _, c := range []struct{ contract, method, key string }{
		{contract.Opaque, "POST", "once"}, {contract.Opaque, "PUT", ""}, {contract.Opaque, "DELETE", ""},
		{contract.Queryable, "POST", "once"}, {contract.IETF, "POST", ""}, {contract.StripeV1, "PUT", "once"},
	} {
		for name, do := range map[string]step{"lost": loses, "dial": refusesToDial, "503": says(503, "Retry-After", "1"), "429": says(429)} {
			s := &script{do: []step{do}}
			var report retryhttp.Report
			ctx := retryhttp.With(t.Context(), retryhttp.Call{Key: c.key, Report: &report})
			resp, err := retryhttp.New(s, quick(preset(t, c.contract))).RoundTrip(request(t, ctx, c.method, "http://api.example/", "a=1"))
			if err == nil {
				text(t, resp)
			}
			if len(s.at) != 1 || report.Attempts != 1 || report.Stopped != retryhttp.StopOnce {
				t.Errorf("%+v %s: sent %d times; %+v", c, name, len(s.at), report)
			}
		}
	}
	// A body that can't be had again is not sent again, whatever the key says.
	s := &script{do: []step{loses}}
	req := request(t, retryhttp.WithKey(t.Context(), "once"), "POST", "http://api.example/", "a=1")
	req.GetBody = nil
	_, err := retryhttp.New(s, quick(preset(t, contract.Idempotent))).RoundTrip(req)
	if e := asError(t, err); len(s.at) != 1 || e.Stopped != retryhttp.StopOnce {
		t.Errorf("sent %d times: %v", len(s.at), err)
	}
}

// A proof covers one transmission.
func TestLostThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name     string
			contract string
			method   string
			then     []step
			state    retryhttp.State
			answer   int // in an error
			response int
		}{
			{name: "a replay", contract: contract.Idempotent, then: []step{says(200)}, state: retryhttp.Applied, response: 200},
			{name: "401", contract: contract.Idempotent, then: []step{says(401)}, state: retryhttp.Unconfirmed, answer: 401},
			{name: "422, another request's key", contract: contract.IETF, then: []step{says(422)}, state: retryhttp.Unconfirmed, answer: 422},
			{name: "404", contract: contract.Idempotent, method: "DELETE", then: []step{says(404)}, state: retryhttp.Unconfirmed, answer: 404},
			{name: "429 to the end", contract: contract.StripeV1, then: []step{says(429)}, state: retryhttp.Unconfirmed, answer: 429},
			{name: "unlisted 429 to the end", contract: contract.IETF, then: []step{says(429)}, state: retryhttp.Unconfirmed, answer: 429},
			{name: "503 to the end", contract: contract.Idempotent, then: []step{says(503)}, state: retryhttp.Unconfirmed, response: 503},
			{name: "a redirect", contract: contract.Idempotent, then: []step{says(303)}, state: retryhttp.Unconfirmed, response: 303},
			{name: "no connection any more", contract: contract.Idempotent, then: []step{refusesToDial}, state: retryhttp.Unconfirmed},
			{name: "a refusal after the look-up", contract: contract.Semel, method: "PUT",
				then: []step{saysBody(409, `{"code":"operation-abandoned"}`)}, state: retryhttp.Refused, response: 409},
			{name: "404 for one who reads", contract: contract.Idempotent, method: "GET", then: []step{says(404)}, state: retryhttp.Unconfirmed, response: 404},
		} {
			s := &script{do: append([]step{loses}, c.then...)}
			var report retryhttp.Report
			ctx := retryhttp.With(t.Context(), retryhttp.Call{Key: "once", Report: &report})
			if c.method == "" {
				c.method = "POST"
			}
			resp, err := retryhttp.New(s, quick(preset(t, c.contract))).RoundTrip(request(t, ctx, c.method, "http://api.example/", ""))
			if report.State() != c.state {
				t.Errorf("%s: %s", c.name, report.State())
			}
			if c.response != 0 {
				if err != nil || resp.StatusCode != c.response {
					t.Errorf("%s: %v", c.name, err)
				}
				continue
			}
			e := asError(t, err)
			if !errors.Is(err, retryhttp.ErrUnconfirmed) || errors.Is(err, retryhttp.ErrNotSent) || (e.Answer != nil) != (c.answer != 0) {
				t.Errorf("%s: %v", c.name, err)
			}
			if e.Answer != nil && (e.Answer.Status != c.answer || string(e.Answer.Body) != http.StatusText(c.answer)) {
				t.Errorf("%s: %+v", c.name, e.Answer)
			}
		}
	})
}

// A base that sends more than once within an attempt is found out, and what it says of the
// last send is not taken for the others.
func TestBaseThatRepeatsByItself(t *testing.T) {
	for _, c := range []struct {
		method string
		code   int
		state  retryhttp.State
		fails  bool
	}{{"POST", 201, retryhttp.Applied, false}, {"POST", 401, retryhttp.Unconfirmed, true}, {"GET", 404, retryhttp.Refused, false}} {
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			for range 3 {
				trace.GetConn("")
				trace.GotConn(httptrace.GotConnInfo{})
			}
			return answer(c.code, ""), nil
		})
		var report retryhttp.Report
		ctx := retryhttp.With(t.Context(), retryhttp.Call{Report: &report})
		_, err := retryhttp.New(base, nil).RoundTrip(request(t, ctx, c.method, "http://api.example/", ""))
		if report.Attempts != 1 || report.Sends != 3 || report.State() != c.state || (err != nil) != c.fails {
			t.Errorf("%+v: %+v, %v", c, report, err)
		}
	}
}

// What net/http would refuse is refused, and nothing is sent.
func TestRequestsThatAreNone(t *testing.T) {
	for _, req := range []*http.Request{{}, {Method: "POST", URL: &url.URL{Scheme: "http", Host: "api.example"}}} {
		closed := false
		req.Body = &closeWatcher{strings.NewReader(""), &closed}
		s := &script{do: []step{says(200)}}
		if _, err := retryhttp.New(s, nil).RoundTrip(req); !errors.Is(err, retryhttp.ErrNotSent) || !closed || len(s.at) != 0 {
			t.Errorf("%v", err)
		}
	}
}

// A connection that changes its protocol is the caller's and the base's.
func TestUpgradeGoesToTheBase(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		io.WriteString(conn, line)
	}))
	defer server.Close()
	tr := retryhttp.New(&http.Transport{}, nil)
	defer tr.CloseIdleConnections()
	req := request(t, t.Context(), "GET", server.URL, "")
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(resp.Body.(io.Writer), "hello\n")
	if got := text(t, resp); got != "hello\n" {
		t.Errorf("%q", got)
	}
}

// An error never says more than is known, and nothing that is nobody's business.
func TestErrorText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send := func(do ...step) error {
			s := &script{do: do}
			o := quick(preset(t, contract.Idempotent))
			o.MaxAttempts = 2
			ctx := retryhttp.WithKey(t.Context(), "a-key-of-ours")
			_, err := retryhttp.New(s, o).RoundTrip(request(t, ctx, "POST", "http://api.example/secret/path?token=1", "a=1"))
			return err
		}
		for want, err := range map[string]error{
			"retryhttp: POST api.example: unconfirmed, it may have happened (2 attempts, 2 sends since 2000-01-01T00:00:00Z); " +
				"last: there is no answer, and the request may have arrived: it failed in a way that says nothing; stopped: attempts: read: connection reset by peer": send(loses),
			"retryhttp: POST api.example: unconfirmed, it may have happened (2 attempts, 2 sends since 2000-01-01T00:00:00Z); last: rejected with 401": send(loses, says(401)),
		} {
			if err.Error() != want {
				t.Errorf("got  %s\nwant %s", err, want)
			}
			if strings.Contains(err.Error(), "fail") && !strings.Contains(want, "fail") {
				t.Errorf("says that it failed: %v", err)
			}
		}
		base := roundTripper(refusesToDial)
		_, err := retryhttp.New(base, &retryhttp.Options{MaxAttempts: 1}).RoundTrip(request(t, t.Context(), "GET", "http://api.example/", ""))
		if want := "retryhttp: GET api.example: not sent (1 attempt, 0 sends); last: nothing happened, no byte of the request went out: " +
			"the connection was refused or the host was not reached; stopped: attempts: dial tcp: connection refused"; err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
		var n net.Error
		//lint:ignore SA1019 what the deprecated method says is the point here
		if !errors.As(err, &n) || n.Timeout() || n.Temporary() {
			t.Errorf("not a net.Error: %v", err)
		}
	})
}

func ExampleError() {
	ctx := context.Background()
	transport := retryhttp.New(nil, nil)
	req, err := http.NewRequestWithContext(ctx, "POST", "http://127.0.0.1:1/orders", strings.NewReader("a=1"))
	if err != nil {
		panic(err)
	}
	_, err = transport.Client().Do(req)
	var e *retryhttp.Error
	switch {
	case errors.Is(err, retryhttp.ErrNotSent):
		fmt.Println("nothing happened: it may be tried again")
	case errors.As(err, &e):
		fmt.Println(e.State(), "since", e.Since)
	}
	// Output: nothing happened: it may be tried again
}
