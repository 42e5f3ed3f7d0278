package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
)

func TestPreferredWait(t *testing.T) {
	for _, c := range []struct {
		lines []string
		wait  time.Duration
		there bool
	}{
		{nil, 0, false},
		{[]string{""}, 0, false},
		{[]string{"wait=10"}, 10 * time.Second, true},
		{[]string{"WAIT = 10"}, 10 * time.Second, true},
		{[]string{`wait="10"`}, 10 * time.Second, true},
		{[]string{`wait="1\0"`}, 10 * time.Second, true},
		{[]string{"wait=0"}, 0, true},
		{[]string{"wait=007"}, 7 * time.Second, true},
		{[]string{"wait=60"}, time.Minute, true},
		{[]string{"wait=61"}, time.Minute, true},
		{[]string{"wait=18446744073709551616"}, time.Minute, true},
		{[]string{"respond-async, wait=5"}, 5 * time.Second, true},
		{[]string{"respond-async", "wait=5"}, 5 * time.Second, true},
		{[]string{"wait=5; extra=1; more"}, 5 * time.Second, true},
		{[]string{`foo="a, wait=9", wait=5`}, 5 * time.Second, true},
		{[]string{`foo="a\", wait=9", wait=5`}, 5 * time.Second, true},
		{[]string{`foo; x="a, wait=9"`}, 0, false},
		{[]string{`foo="never closed, wait=5`}, 0, false},
		{[]string{"wait=1, wait=2"}, time.Second, true}, // the first one counts
		{[]string{"wait=x, wait=2"}, 0, false},
		{[]string{"wait"}, 0, false},
		{[]string{"wait="}, 0, false},
		{[]string{`wait=""`}, 0, false},
		{[]string{"wait=-1"}, 0, false},
		{[]string{"wait=1.5"}, 0, false},
		{[]string{"wait=1 0"}, 0, false},
		{[]string{"waits=5"}, 0, false},
		{[]string{",,;;,wait=5"}, 5 * time.Second, true},
	} {
		wait, there := httpapi.PreferredWait(c.lines)
		if wait != c.wait || there != c.there {
			t.Errorf("%q: %v %v", c.lines, wait, there)
		}
	}
}

func FuzzPrefer(f *testing.F) {
	for _, s := range []string{"wait=10", `a="b,c\"", wait=1; x`, "wait=99999999999999999999", ",;=", `"`} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		wait, there := httpapi.PreferredWait([]string{a, b})
		if wait < 0 || wait > httpapi.MaxWait || !there && wait != 0 || wait%time.Second != 0 {
			t.Errorf("%v %v", wait, there)
		}
		if first, ok := httpapi.PreferredWait([]string{a}); ok && first != wait {
			t.Errorf("a later line changed %v to %v", first, wait)
		}
	})
}

func FuzzIdempotencyKey(f *testing.F) {
	for _, s := range []string{"abc", `"abc"`, `"a\"b"`, `"`, "", "..", `"a";b=1`, strings.Repeat("x", 129)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		id, there, err := httpapi.IdempotencyKey([]string{line})
		if !there {
			t.Error("it is there")
		}
		if err != nil {
			if id != "" {
				t.Errorf("%q with %v", id, err)
			}
			return
		}
		if !semel.ValidID(id) {
			t.Errorf("%q is no operation ID", id)
		}
		// Both forms name the same key, and nothing else does but space around it.
		for _, form := range []string{id, `"` + id + `"`} {
			if other, _, err := httpapi.IdempotencyKey([]string{form}); err != nil || other != id {
				t.Errorf("%q is %q: %v", form, other, err)
			}
		}
		if bare := strings.Trim(line, " \t"); bare != id && bare != `"`+id+`"` {
			t.Errorf("%q names %q", line, id)
		}
		if _, _, err := httpapi.IdempotencyKey([]string{line, line}); err == nil {
			t.Error("two lines were taken")
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"/v1/operations/note/abc", "/v1/operations/note/%61bc", "/v1/operations/note/a%2Fb", "/v1/operations/note/..", "//v1", "/%zz", "*",
		"/v1/operator/operations/a/b/c/resolution", "/v1/operations/%6eote/a/events"} {
		f.Add(s)
	}
	server := httpapi.New(nil, nil)
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		pattern, values, err := httpapi.Find(server, &http.Request{URL: u})
		if err != nil || pattern == "" {
			if len(values) > 0 {
				t.Errorf("values without a route: %v", values)
			}
			return
		}
		// The plain spelling of what was found is the same place, so that one
		// operation has one canonical URL.
		plain := pattern
		for name, value := range values {
			if value == "" {
				t.Errorf("%s is empty", name)
			}
			plain = strings.Replace(plain, "{"+name+"}", url.PathEscape(value), 1)
		}
		u2, err := url.ParseRequestURI(plain)
		if err != nil {
			t.Fatal(err)
		}
		pattern2, values2, err := httpapi.Find(server, &http.Request{URL: u2})
		if err != nil || pattern2 != pattern || len(values2) != len(values) {
			t.Fatalf("%q is %s, and %q is %s (%v)", target, pattern, plain, pattern2, err)
		}
		for name := range values {
			if values[name] != values2[name] {
				t.Errorf("%s is %q and %q", name, values[name], values2[name])
			}
		}
		// A valid identity holds no separator and nothing that a browser would resolve.
		if id := values["operation_id"]; semel.ValidID(id) && (strings.ContainsAny(id, "/\\%\x00") || id == "." || id == "..") {
			t.Errorf("%q", id)
		}
	})
}
