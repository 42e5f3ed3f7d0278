package idempotency_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/idempotency"
)

// Another account, another route or another method with the same key is another
// intent; another credential of the same account is not.
func TestIsolation(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(nil)
		var runs atomic.Int64
		who := func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"account":%q,"run":%d}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), runs.Add(1))
		}
		n.handle("POST /orders", who)
		n.handle("POST /refunds", who)
		n.handle("PATCH /orders/{id}", who)
		key := newKey()
		first := n.send("POST", "/orders", key, `{}`, "Authorization: Bearer acme/1")
		for _, c := range []struct {
			name, method, path, credential string
			body                           string
			replayed                       bool
		}{
			{"another account", "POST", "/orders", "bolt/1", `{}`, false},
			{"another route", "POST", "/refunds", "acme/1", `{}`, false},
			{"another method", "PATCH", "/orders/1", "acme/1", `{}`, false},
			{"an account outside of the grammar", "POST", "/orders", "Acme Ltd.", `{}`, false},
			{"a rotated credential", "POST", "/orders", "acme/2", `{}`, true},
			{"the same meaning in other bytes", "POST", "/orders", "acme/3", "{ }\n", true},
		} {
			a := n.send(c.method, c.path, key, c.body, "Authorization: Bearer "+c.credential)
			if a.status != 200 || a.replayed() != c.replayed {
				t.Errorf("%s: %s", c.name, a)
			}
			if c.replayed && a.body != first.body {
				t.Errorf("%s: the answer was %s", c.name, a.body)
			}
			if !c.replayed && strings.Contains(a.body, "acme/1") && strings.Contains(c.credential, "bolt") {
				t.Errorf("%s got the answer of somebody else", c.name)
			}
		}
		// Equal bodies under two keys are two intents, also at the same time.
		before := runs.Load()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { n.send("POST", "/orders", newKey(), `{"same":1}`) })
		}
		all.Wait()
		if got := runs.Load() - before; got != 8 {
			t.Errorf("8 keys with equal requests ran %d times", got)
		}
	})
}

// Nobody is let in without an account.
func TestAccount(t *testing.T) {
	w := newWorld(t, "sqlite")
	n := w.node(func(o *idempotency.Options, _ *database) {
		o.Account = func(r *http.Request) (string, error) {
			switch who := r.Header.Get("Authorization"); who {
			case "broken":
				return "", io.ErrUnexpectedEOF
			case "limited":
				return "", &semel.Error{Code: semel.CodeForbidden, Msg: "not here"}
			default:
				return who, nil
			}
		}
	})
	n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) { t.Error("the handler ran") })
	for who, status := range map[string]int{"": 401, "broken": 401, "limited": 403} {
		if a := n.send("POST", "/orders", newKey(), `{}`, "Authorization: "+who); a.status != status {
			t.Errorf("%q: %s", who, a)
		}
	}
	for name, options := range map[string]*idempotency.Options{"no options": nil, "no account": {},
		"a contract that runs twice": {Account: account, Contract: &contract.Contract{Carrier: contract.Carrier{Place: contract.Place{In: contract.InHeader, Name: "K"}},
			Stored: contract.Stored{Outcomes: contract.StoresEvery}, InProgress: contract.InProgress{Do: contract.ConcurrentRuns}}}} {
		t.Run(name, func(t *testing.T) {
			if options.Validate() == nil {
				t.Error("Validate finds nothing")
			}
			defer func() {
				if recover() == nil {
					t.Error("NewHandler takes it")
				}
			}()
			idempotency.NewHandler(http.NotFoundHandler(), n.ledger, options)
		})
	}
}

// The header, line by line.
func TestKeyHeader(t *testing.T) {
	w := newWorld(t, "sqlite")
	n := w.node(nil)
	var runs atomic.Int64
	n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "run %d", runs.Add(1)) })
	long := strings.Repeat("k", 1000)
	for _, c := range []struct {
		name   string
		lines  []string
		status int
	}{
		{"none", nil, 400},
		{"empty", []string{""}, 400},
		{"blank", []string{"  "}, 400},
		{"an empty string", []string{`""`}, 400},
		{"two lines", []string{"one", "two"}, 400},
		{"two equal lines", []string{"one", "one"}, 400},
		{"two, joined on the way", []string{"one, two"}, 400},
		{"two strings, joined", []string{`"one", "two"`}, 400},
		{"non-ASCII", []string{"clé"}, 400},
		{"non-ASCII in quotes", []string{`"clé"`}, 400},
		{"a quote that is not closed", []string{`"one`}, 400},
		{"parameters", []string{`"one";v=1`}, 400},
		{"spaces without quotes", []string{"one two"}, 400},
		{"1,000 characters", []string{long}, 200},
		{"the same in quotes", []string{`"` + long + `"`}, 200},
		{"spaces in quotes", []string{`"one two"`}, 200},
		{"a dot", []string{`.`}, 200},
		{"the image of another key", []string{"h.qjvUXHIcaZk8YJfVzCbGQ0UPqmlbkKHmnBRUDwPeCdM"}, 200},
		{"base64", []string{"a+b/c=="}, 200},
	} {
		lines := make([]string, len(c.lines))
		for i, l := range c.lines {
			lines[i] = "Idempotency-Key: " + l
		}
		before := runs.Load()
		first := n.send("POST", "/orders", "", `{}`, lines...)
		again := n.send("POST", "/orders", "", `{}`, lines...)
		if first.status != c.status || again.status != c.status {
			t.Errorf("%s: %s, then %s", c.name, first, again)
			continue
		}
		if c.status == 400 {
			if first.header.Get("Content-Type") != "application/problem+json" || first.code() != "invalid-operation" || !strings.Contains(first.body, `"type":"https://`) {
				t.Errorf("%s: %s", c.name, first)
			}
			if runs.Load() != before {
				t.Errorf("%s: the handler ran", c.name)
			}
			continue
		}
		if !again.replayed() || again.body != first.body {
			t.Errorf("%s: the repeat got %s", c.name, again)
		}
	}
	if a, b := n.send("POST", "/orders", "abc", ""), n.send("POST", "/orders", `"abc"`, ""); !b.replayed() || a.body != b.body {
		t.Errorf("abc and \"abc\" are two keys: %s, %s", a, b)
	}
	if a, b := n.send("POST", "/orders", long, `{}`), n.send("POST", "/orders", long[1:], `{}`); a.body == b.body {
		t.Error("two long keys are one")
	}
}

// The public vectors for structured fields: a quoted key is exactly an RFC 9651
// string, under the policy that asks for one and under the one that takes bare
// keys too.
func TestStructuredFieldVectors(t *testing.T) {
	type vector struct {
		Name     string   `json:"name"`
		Raw      []string `json:"raw"`
		MustFail bool     `json:"must_fail"`
		CanFail  bool     `json:"can_fail"`
		Expected []any    `json:"expected"`
	}
	for _, file := range []string{"string.json", "item.json"} {
		path := filepath.Join("..", "..", "shared", "vectors", "structured-fields", file)
		data, err := os.ReadFile(path)
		if err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		var vectors []vector
		if err := json.Unmarshal(data, &vectors); err != nil || len(vectors) == 0 {
			t.Fatal(err, len(vectors))
		}
		for _, v := range vectors {
			want, isString := "", false
			if len(v.Expected) > 0 {
				want, isString = v.Expected[0].(string)
			}
			for _, quoting := range []contract.Quoting{contract.Quoted, contract.Either} {
				key, err := idempotency.ParseKeyLines(contract.KeyGrammar{Charset: contract.ASCII, Quoting: quoting}, v.Raw)
				bare := len(v.Raw) == 1 && !strings.HasPrefix(strings.Trim(v.Raw[0], " \t"), `"`)
				switch {
				case quoting == contract.Either && bare:
					// No string, and so a bare key or none: not the vectors' business.
				case v.MustFail || !isString || want == "" || v.CanFail:
					// An empty string is a string, and no key; two lines may be refused.
					if err == nil {
						t.Errorf("%s (%s): %q is taken as %q", v.Name, quoting, v.Raw, key)
					}
				case err != nil || key != want:
					t.Errorf("%s (%s): %q is %q (%v), want %q", v.Name, quoting, v.Raw, key, err, want)
				}
			}
		}
	}
}

// What is compared: the meaning of JSON, the bytes of anything else, path and
// query; and what differs is named.
func TestMismatch(t *testing.T) {
	c := idempotency.DefaultContract()
	c.Compare.What = append(c.Compare.What, contract.CompareHeaders)
	c.Compare.Headers = []string{"Accept-Language"}
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(func(o *idempotency.Options, _ *database) { o.Contract = &c })
		var runs atomic.Int64
		n.handle("PATCH /orders/{id}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "run %d", runs.Add(1)) })
		base := `{"a":1,"b":{"c":[1,2]},"secret":"s3cr3t"}`
		type request struct {
			name, path, body, line, fields string
			same                           bool
		}
		for _, r := range []request{
			{"spaces and order", "/orders/1?x=1&y=2", `{"b": {"c": [1.0, 2e0]}, "secret": "s3cr3t", "a": 1}`, "", "", true},
			{"query in another order", "/orders/1?y=2&x=1", base, "", "", true},
			{"a value", "/orders/1?x=1&y=2", `{"a":2,"b":{"c":[1,2]},"secret":"s3cr3t"}`, "", `["/body/a"]`, false},
			{"a secret", "/orders/1?x=1&y=2", `{"a":1,"b":{"c":[1,3]},"secret":"other"}`, "", `["/body/b/c/1","/body/secret"]`, false},
			{"the path", "/orders/2?x=1&y=2", base, "", `["/path"]`, false},
			{"the query", "/orders/1?x=1", base, "", `["/query"]`, false},
			{"the type", "/orders/1?x=1&y=2", base, "Content-Type: text/plain", `["/body"]`, false},
			{"a header", "/orders/1?x=1&y=2", base, "Accept-Language: de", `["/header/Accept-Language"]`, false},
			{"no body", "/orders/1?x=1&y=2", "", "", `["/body"]`, false},
		} {
			key := newKey()
			n.send("PATCH", "/orders/1?x=1&y=2", key, base)
			before := runs.Load()
			lines := []string{}
			if r.line != "" {
				lines = append(lines, r.line)
			}
			a := n.send("PATCH", r.path, key, r.body, lines...)
			if r.same != a.replayed() || runs.Load() != before {
				t.Errorf("%s: %s", r.name, a)
			}
			if !r.same && (a.status != 422 || a.code() != "fingerprint-mismatch" || !strings.Contains(a.body, `"differing_fields":`+r.fields)) {
				t.Errorf("%s: %s", r.name, a)
			}
			if strings.Contains(a.body, "s3cr3t") || strings.Contains(a.body, "other") {
				t.Errorf("%s: the refusal tells values: %s", r.name, a)
			}
			if again := n.send("PATCH", "/orders/1?x=1&y=2", key, base); !again.replayed() {
				t.Errorf("%s: afterwards the right request got %s", r.name, again)
			}
		}
	})
}
