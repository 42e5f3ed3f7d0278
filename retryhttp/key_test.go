package retryhttp_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// sentBy returns what goes out for a request under a contract, and how it is seen.
func sentBy(t testing.TB, c *contract.Contract, call retryhttp.Call, req *http.Request) (*http.Request, retryhttp.Report, error) {
	t.Helper()
	var out *http.Request
	var report retryhttp.Report
	call.Report = &report
	o := quick(c)
	o.MaxAttempts = 2
	base := roundTripper(func(r *http.Request) (*http.Response, error) { out = r; return nil, errReset })
	_, err := retryhttp.New(base, o).RoundTrip(req.WithContext(retryhttp.With(t.Context(), call)))
	return out, report, err
}

// The key goes where the contract has it, in the contract's form, on the methods on
// which it counts; only then does it make a request replayable.
func TestKeyIsPutInItsPlace(t *testing.T) {
	body := contract.Contract{Name: "body", Carrier: contract.Carrier{Place: contract.Place{In: contract.InBody, Name: "/key"}},
		Retention: contract.Retention{Minimum: contract.Duration(time.Hour)}}
	for _, c := range []struct {
		name     string
		contract *contract.Contract
		method   string
		key      string
		header   http.Header // of the caller
		query    string
		want     string // header
		wantURL  string
		repeated bool
	}{
		{name: "quoted", contract: preset(t, contract.IETF), method: "POST", key: "a b", want: `"a b"`, repeated: true},
		{name: "quoted by the caller", contract: preset(t, contract.IETF), method: "POST", key: `"a b"`, want: `"a b"`, repeated: true},
		{name: "escaped", contract: preset(t, contract.IETF), method: "POST", key: `a"\`, want: `"a\"\\"`, repeated: true},
		{name: "bare", contract: preset(t, contract.StripeV1), method: "POST", key: "a b", want: "a b", repeated: true},
		{name: "not on this method", contract: preset(t, contract.StripeV1), method: "PUT", key: "a"},
		{name: "not where one reads", contract: preset(t, contract.Idempotent), method: "GET", key: "a", repeated: true},
		{name: "no contract", contract: preset(t, contract.Opaque), method: "POST", key: "a"},
		{name: "in the query", contract: preset(t, contract.AIP155), method: "POST", key: "5d8b1f3a-0c0e-4e6a-9a57-0d6a3f0b7c11", query: "a=1&b",
			wantURL: "a=1&b&requestId=5d8b1f3a-0c0e-4e6a-9a57-0d6a3f0b7c11", repeated: true},
		{name: "in the query already", contract: preset(t, contract.AIP155), method: "POST", key: "5d8b1f3a-0c0e-4e6a-9a57-0d6a3f0b7c11",
			query: "requestId=5d8b1f3a-0c0e-4e6a-9a57-0d6a3f0b7c11", wantURL: "requestId=5d8b1f3a-0c0e-4e6a-9a57-0d6a3f0b7c11", repeated: true},
		{name: "in the query, by itself", contract: preset(t, contract.AIP155), method: "POST",
			query: "requestId=5d8b1f3a-0c0e-4e6a-9a57-0d6a3f0b7c11", wantURL: "requestId=5d8b1f3a-0c0e-4e6a-9a57-0d6a3f0b7c11", repeated: true},
		{name: "in the query, malformed", contract: preset(t, contract.AIP155), method: "POST", query: "requestId=1", wantURL: "requestId=1"},
		{name: "in the body, vouched for", contract: &body, method: "POST", key: "a", repeated: true},
		{name: "in the body, unseen", contract: &body, method: "POST"},
		{name: "in the path", contract: preset(t, contract.Semel), method: "POST", key: "a", repeated: true},
		{name: "in the header, by itself", contract: preset(t, contract.IETF), method: "POST", header: http.Header{"Idempotency-Key": {"a"}}, want: "a", repeated: true},
		{name: "in the header, the same", contract: preset(t, contract.IETF), method: "POST", key: "a", header: http.Header{"Idempotency-Key": {"a"}}, want: "a", repeated: true},
		{name: "in the header twice", contract: preset(t, contract.IETF), method: "POST", header: http.Header{"Idempotency-Key": {"a", "b"}}, want: "a"},
		{name: "in the header, empty", contract: preset(t, contract.IETF), method: "POST", header: http.Header{"Idempotency-Key": nil}},
		{name: "in the header, malformed", contract: preset(t, contract.IETF), method: "POST", header: http.Header{"Idempotency-Key": {`"a`}}, want: `"a`},
	} {
		req := request(t, t.Context(), c.method, "http://api.example/things?"+c.query, "a=1")
		for name, values := range c.header {
			req.Header[name] = values
		}
		before := req.Header.Clone()
		out, report, err := sentBy(t, c.contract, retryhttp.Call{Key: c.key}, req)
		asError(t, err)
		if out == nil {
			t.Errorf("%s: nothing was sent: %v", c.name, err)
			continue
		}
		if got := out.Header.Get("Idempotency-Key"); got != c.want || out.URL.RawQuery != c.wantURL || report.Attempts == 2 != c.repeated {
			t.Errorf("%s: header %q, query %q, %d attempts", c.name, got, out.URL.RawQuery, report.Attempts)
		}
		if len(req.Header) != len(before) || req.URL.RawQuery != c.query {
			t.Errorf("%s: the caller's request was changed", c.name)
		}
	}
}

// A key that can't be used means that nothing is sent.
func TestUnusableKeyIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		contract, key, standing, query string
	}{
		"too long":                  {contract.StripeV1, strings.Repeat("x", 256), "", ""},
		"not of the set":            {contract.IETF, "schlüssel", "", ""},
		"a line break":              {contract.StripeV1, "a\r\nb", "", ""},
		"no UUID":                   {contract.AIP155, "1", "", ""},
		"another one in the header": {contract.IETF, "a", "b", ""},
		"another one in the query":  {contract.AIP155, "5d8b1f3a-0c0e-4e6a-9a57-0d6a3f0b7c11", "", "requestId=1"},
	} {
		req := request(t, t.Context(), "POST", "http://api.example/?"+c.query, "a=1")
		if c.standing != "" {
			req.Header.Set("Idempotency-Key", c.standing)
		}
		out, report, err := sentBy(t, preset(t, c.contract), retryhttp.Call{Key: c.key}, req)
		if out != nil || !errors.Is(err, retryhttp.ErrNotSent) || report.Stopped != retryhttp.StopRequest || strings.Contains(err.Error(), "schl") {
			t.Errorf("%s: %v, %v", name, out, err)
		}
	}
}

// A contract that wants the time of the first send has it, the same on every attempt and
// in every call.
func TestFirstSentIsTheSameOnEveryAttempt(t *testing.T) {
	first := time.Now().Add(-time.Minute)
	for _, given := range []time.Time{{}, first} {
		var values []string
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			values = append(values, r.Header.Get("Repeatability-First-Sent"))
			return nil, errReset
		})
		ctx := retryhttp.With(t.Context(), retryhttp.Call{Key: "5d8b1f3a-0c0e-4e6a-9a57-0d6a3f0b7c11", FirstSent: given})
		_, err := retryhttp.New(base, quick(preset(t, contract.Azure))).RoundTrip(request(t, ctx, "POST", "http://api.example/", "a=1"))
		asError(t, err)
		want := given
		if given.IsZero() {
			want = time.Now()
		}
		at, err := http.ParseTime(values[0])
		if err != nil || len(values) != 4 || values[0] != values[3] || want.Sub(at).Abs() > time.Minute/2 {
			t.Errorf("%q", values)
		}
	}
}

// Whatever the key, it arrives as it is, or nothing is sent.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"a", `"a"`, `a"b`, `\`, `"`, `""`, "a b", "ä", "\x00", strings.Repeat("x", 300)} {
		f.Add(s)
	}
	ietf, stripe, aip := preset(f, contract.IETF), preset(f, contract.StripeV1), preset(f, contract.AIP155)
	f.Fuzz(func(t *testing.T, key string) {
		for _, c := range []*contract.Contract{ietf, stripe, aip} {
			out, report, err := sentBy(t, c, retryhttp.Call{Key: key}, request(t, t.Context(), "POST", "http://api.example/", "a=1"))
			if out == nil {
				if !errors.Is(err, retryhttp.ErrNotSent) || report.Sends != 0 {
					t.Fatalf("nothing was sent: %v", err)
				}
				continue
			}
			if key == "" {
				continue
			}
			wire := out.Header.Get("Idempotency-Key")
			if c == aip {
				values, _ := url.ParseQuery(out.URL.RawQuery)
				wire = values.Get("requestId")
			}
			got, err := c.Key.ParseKey(wire)
			want, _ := c.Key.ParseKey(key)
			if c.Key.Quoting == contract.Either && (len(key) < 2 || key[0] != '"' || key[len(key)-1] != '"') {
				want = key
			}
			if err != nil || got != want {
				t.Fatalf("%q went out as %q, which names %q (%v)", key, wire, got, err)
			}
		}
	})
}
