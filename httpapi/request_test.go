package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
)

// Two readers must not be able to see two requests in one body.
func TestStrictJSON(t *testing.T) {
	w := newWorld(t, nil)
	put := func(text string) reply { return w.do("PUT", note(semel.NewID()), body(text)) }
	for _, bad := range []string{``, ` `, `{`, `{"a":1}{"a":2}`, `{"a":1} x`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `[{"b":{"c":1,"c":1}}]`,
		"\"\xff\"", `"\ud800"`, `"\udc00\ud800"`, "\xef\xbb\xbf{}", `{'a':1}`, `{"a":NaN}`, `{"a":01}`, `{"a":1,}`, "\"\t\"", strings.Repeat("[", 100_000)} {
		p := put(bad).problem(400, semel.CodeInvalid)
		if p.Recorded != semel.RecordedNo || p.Retryable || p.Detail == "" {
			t.Errorf("%.40q: %+v", bad, p)
		}
		w.do("POST", "/v1/operations/note", body(bad), header("Idempotency-Key", "k")).problem(400, semel.CodeInvalid)
	}
	for _, good := range []string{`{}`, `null`, `1e400`, `"<>&  "`, ` {"a" : 1.0} `, `"\ud83c\udf5c"`} {
		op := put(good).is(201).op()
		var want bytes.Buffer
		json.Compact(&want, []byte(good))
		if good == "null" { // a JSON null in params reads as nothing
			continue
		}
		if string(op.Params) != want.String() {
			t.Errorf("%s came back as %s", good, op.Params)
		}
	}
	if p, _ := w.ledger.List(t.Context(), semel.Query{}); len(p.Operations) != 6 {
		t.Errorf("%d operations", len(p.Operations))
	}
}

func TestTooLarge(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.server.MaxBody = 100 })
	fits, over := `"`+strings.Repeat("x", 98)+`"`, `"`+strings.Repeat("x", 99)+`"`
	chunked := func(r *http.Request) { r.ContentLength = -1 }
	w.do("PUT", note(semel.NewID()), body(fits)).is(201)
	w.do("PUT", note(semel.NewID()), body(fits), chunked).is(201)
	for _, o := range [][]with{{body(over)}, {body(over), chunked}, {body(strings.Repeat("[", 10<<20))}, {body(strings.Repeat("[", 10<<20)), chunked}} {
		p := w.do("PUT", note(semel.NewID()), o...).problem(413, semel.CodeTooLarge)
		if p.Recorded != semel.RecordedNo {
			t.Errorf("%+v", p)
		}
		w.do("POST", "/v1/operations/note", append(o, header("Idempotency-Key", "k"))...).problem(413, semel.CodeTooLarge)
	}
	// The default is 1 MiB.
	w = newWorld(t, nil)
	w.do("PUT", note(semel.NewID()), body(`"`+strings.Repeat("x", 1<<20-2)+`"`)).is(201)
	w.do("PUT", note(semel.NewID()), body(`"`+strings.Repeat("x", 1<<20-1)+`"`)).problem(413, semel.CodeTooLarge)
}

func TestMediaType(t *testing.T) {
	w := newWorld(t, nil)
	for _, good := range []string{"application/json", "Application/JSON; charset=UTF-8", "application/menu+json"} {
		w.do("PUT", note(semel.NewID()), header("Content-Type", good), body(menu)).is(201)
	}
	for _, bad := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/jsonp", "text/json+json", "application/json, text/plain", ";", "*/*"} {
		p := w.do("PUT", note(semel.NewID()), header("Content-Type", bad), body(menu)).problem(415, semel.CodeInvalid)
		if p.Hint == "" {
			t.Error("no hint")
		}
		w.do("POST", "/v1/operations/note", header("Content-Type", bad), body(menu), header("Idempotency-Key", "k")).problem(415, semel.CodeInvalid)
	}
	without := func(r *http.Request) { r.Header.Del("Content-Type") }
	w.do("PUT", note(semel.NewID()), body(menu), without).problem(415, semel.CodeInvalid)
	twice := func(r *http.Request) { r.Header["Content-Type"] = []string{"application/json", "application/json"} }
	w.do("PUT", note(semel.NewID()), body(menu), twice).problem(415, semel.CodeInvalid)

	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, menu)
	z.Close()
	w.do("PUT", note(semel.NewID()), body(packed.String()), header("Content-Encoding", "gzip")).has("Accept-Encoding", "identity").problem(415, semel.CodeInvalid)
	w.do("PUT", note(semel.NewID()), body(menu), header("Content-Encoding", "identity")).is(201)
}

func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t, nil)
	post := func(o ...with) reply {
		return w.do("POST", "/v1/operations/note", append(o, body(menu))...)
	}
	post().problem(400, semel.CodeInvalid)
	for _, bad := range []string{"", `""`, `"`, `"a`, `a"`, `"a" `, `"a"b`, `"a";p=1`, "a b", "a,b", `"a", "b"`, `'a'`, "a/b", `"a/b"`, `"a\"b"`, ".", "..", `".."`, "ä", `"ä"`, ":YQ==:", "?1", "a%2Fb",
		strings.Repeat("x", 129), `"` + strings.Repeat("x", 129) + `"`} {
		if a := post(header("Idempotency-Key", bad)); a.status != 400 && bad != `"a" ` { // space around a value is not a part of it
			t.Errorf("%q: %d %s", bad, a.status, a.body)
		}
	}
	// Two lines are two opinions, also when they agree.
	post(header("Idempotency-Key", "a"), header("Idempotency-Key", "b")).problem(400, semel.CodeInvalid)
	post(header("Idempotency-Key", "c"), header("Idempotency-Key", "c")).problem(400, semel.CodeInvalid)
	for _, good := range []string{strings.Repeat("x", 128), `"` + strings.Repeat("y", 128) + `"`, "1", `"A.b_c~d-e"`} {
		post(header("Idempotency-Key", good)).is(201)
	}
	// On PUT the path is the name; a header that says otherwise is refused.
	w.do("PUT", note("p1"), body(menu), header("Idempotency-Key", `"p1"`)).is(201)
	w.do("PUT", note("p1"), body(menu), header("Idempotency-Key", "p2")).problem(400, semel.CodeInvalid)
	w.do("PUT", note("p1"), body(menu), header("Idempotency-Key", "")).problem(400, semel.CodeInvalid)
}

// The public suite for structured fields: a string that is an operation ID names
// it, and whatever must fail, fails. What is not in quotes is a bare key, so "1"
// is no integer here.
func TestIdempotencyKeyVectors(t *testing.T) {
	for _, name := range []string{"string.json", "item.json"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "shared", "vectors", "structured-fields", name))
		if os.IsNotExist(err) && os.Getenv("CI") != "true" {
			t.Skip("the public vectors are not here")
		}
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			Name     string
			Raw      []string
			Expected []any
			MustFail bool `json:"must_fail"`
		}
		if err := json.Unmarshal(text, &cases); err != nil || len(cases) == 0 {
			t.Fatal(err)
		}
		for _, c := range cases {
			want := strings.Trim(c.Raw[0], " \t") // space around a field's value is not a part of it
			if strings.HasPrefix(want, `"`) && !c.MustFail {
				want = c.Expected[0].(string)
			}
			id, _, err := httpapi.IdempotencyKey(c.Raw)
			if len(c.Raw) > 1 || !semel.ValidID(want) {
				if err == nil {
					t.Errorf("%s: %q is taken as %q", c.Name, c.Raw, id)
				}
			} else if id != want || err != nil {
				t.Errorf("%s: %q is %q: %v", c.Name, c.Raw, id, err)
			}
		}
	}
}

func TestMethods(t *testing.T) {
	w := newWorld(t, nil)
	for _, c := range []struct{ method, path, allow string }{
		{"POST", note("n1"), "PUT, GET, HEAD, DELETE"},
		{"PATCH", note("n1"), "PUT, GET, HEAD, DELETE"},
		{"OPTIONS", note("n1"), "PUT, GET, HEAD, DELETE"},
		{"PUT", note("n1") + "/events", "GET, HEAD"},
		{"GET", "/v1/operations/note", "POST"},
		{"HEAD", "/v1/operations/note", "POST"},
		{"DELETE", "/v1/operator/operations/acme/note/n1/resolution", "PUT"},
		{"TRACE", "/healthz", "GET, HEAD"},
		{"BREW", "/v1/session", "GET, HEAD, POST, DELETE"},
	} {
		a := w.do(c.method, c.path).has("Allow", c.allow)
		if c.method != "HEAD" {
			if p := a.problem(405, semel.CodeInvalid); p.Retryable {
				t.Errorf("%+v", p)
			}
		} else if a.status != 405 {
			t.Error(a.status)
		}
	}
	p := w.do("GET", "/nothing", nobody).problem(404, semel.CodeInvalid)
	if p.Hint == "" || p.Recorded != semel.RecordedNo {
		t.Errorf("%+v", p)
	}
}

func TestNoCORS(t *testing.T) {
	w := newWorld(t, nil)
	for _, a := range []reply{
		w.do("GET", note("n1"), header("Origin", "https://app.example")),
		w.do("OPTIONS", note("n1"), nobody, header("Origin", "https://app.example"), header("Access-Control-Request-Method", "PUT")).is(405),
	} {
		for name := range a.Header {
			if strings.HasPrefix(name, "Access-Control") {
				t.Errorf("%s: %s", name, a.Header.Get(name))
			}
		}
	}
}

func TestCORS(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.server.CORS = []string{"https://app.example"} })
	from := header("Origin", "https://app.example")
	pre := w.do("OPTIONS", note("n1"), nobody, from, header("Access-Control-Request-Method", "PUT"), header("Access-Control-Request-Headers", "authorization, attempt-id")).is(204).
		has("Access-Control-Allow-Origin", "https://app.example").has("Access-Control-Allow-Credentials", "").has("Access-Control-Allow-Methods", "PUT, GET, HEAD, DELETE")
	for _, name := range []string{"Authorization", "Attempt-Id", "Prefer", "If-None-Match"} {
		if !strings.Contains(pre.Header.Get("Access-Control-Allow-Headers"), name) {
			t.Errorf("%s is not allowed", name)
		}
	}
	a := w.do("PUT", note("n1"), body(menu), from).is(201).has("Access-Control-Allow-Origin", "https://app.example").has("Vary", "Origin")
	if !strings.Contains(a.Header.Get("Access-Control-Expose-Headers"), "Idempotency-Replayed") {
		t.Error("the replay marker can't be read")
	}
	w.do("PUT", note("n1"), body(`1`), from).has("Access-Control-Allow-Origin", "https://app.example").problem(409, semel.CodeMismatch)
	for _, other := range []string{"https://app.example.evil", "http://app.example", "null", "*"} {
		w.do("GET", note("n1"), header("Origin", other)).is(200).has("Access-Control-Allow-Origin", "").has("Vary", "Origin")
		w.do("OPTIONS", note("n1"), nobody, header("Origin", other), header("Access-Control-Request-Method", "PUT")).is(405)
	}
	in, _ := w.signIn(acme)
	w.do("PUT", note("n1"), body(menu), in, from).problem(403, semel.CodeForbidden) // no cookies for other origins
}

// A mistake of ours is told as unknown, never as "not run", and only its kind is
// logged.
func TestPanics(t *testing.T) {
	w := newWorld(t, func(s *setup) {
		s.server.Metrics = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(200)
			io.WriteString(rw, "half")
			panic(secret)
		})
		authenticate := s.server.Tokens.Authenticate
		s.server.Authenticate = func(r *http.Request) (httpapi.Identity, error) {
			if r.Header.Get("X-Panic") != "" {
				var none []string
				_ = none[len(r.Header)]
			}
			return authenticate(r)
		}
	})
	p := w.do("PUT", note("n1"), body(menu), header("X-Panic", "1")).problem(500, semel.CodeInternal)
	if p.Recorded != semel.RecordedUnknown || !p.Retryable {
		t.Errorf("%+v", p)
	}
	// Half an answer must not look whole.
	resp, err := http.Get(w.url + "/metrics")
	if err == nil {
		if _, err = io.ReadAll(resp.Body); err == nil {
			t.Error("half an answer looks whole")
		}
		resp.Body.Close()
	}
	logs := w.logs.String()
	if !strings.Contains(logs, "index out of range") || !strings.Contains(logs, `"panic":"string"`) || !strings.Contains(logs, "request_test.go") {
		t.Errorf("%s", logs)
	}
}

// Law 14. That no log has more is checked after every test of this package.
func TestLogs(t *testing.T) {
	w := newWorld(t, nil)
	w.do("PUT", note("n1"), body(menu), header("Attempt-Id", "t1")).is(201)
	w.do("PUT", note("n1"), body(menu), header("Attempt-Id", "bad one "+secret)).is(200)
	w.do("PUT", note("n1"), body(`{"x":"`+secret+`"}`)).is(409)
	w.do("GET", "/v1/operations?kind="+"SECRET-x").is(400)
	w.do("GET", "/SECRET-path").is(404)
	w.do("GET", note("SECRET-..%20")).is(400)
	w.do("GET", "/v1/kinds/SECRET-kind").is(404)
	w.do("GET", "/v1/session", as("SECRET-token")).is(401)
	w.do("PUT", note("n2"), body(`{"SECRET-name":1,"SECRET-name":2}`)).is(400)
	w.do("GET", "/v1/operator/operations?account=SECRET-account", as(auditor)).is(200)
	lines := strings.Split(strings.TrimSpace(w.logs.String()), "\n")
	if len(lines) != 10 {
		t.Errorf("%d records of 10 requests", len(lines))
	}
	var first map[string]any
	json.Unmarshal([]byte(lines[0]), &first)
	delete(first, "time")
	delete(first, "ms")
	want := map[string]any{"level": "INFO", "msg": "request", "method": "PUT", "route": "/v1/operations/{kind}/{operation_id}", "by": "acme",
		"account": "acme", "kind": "note", "id": "n1", "attempt_id": "t1", "status": 201.0, "state": "accepted"}
	if fmt.Sprint(first) != fmt.Sprint(want) {
		t.Errorf("\n%v\n%v", first, want)
	}
	if !strings.Contains(lines[1], `"replayed":true`) || !strings.Contains(lines[2], `"code":"fingerprint-mismatch"`) {
		t.Errorf("%s\n%s", lines[1], lines[2])
	}
}

// A record that came from a program need not be JSON; it is told without those
// bytes.
func TestRecordsThatAreNotJSON(t *testing.T) {
	w := newWorld(t, nil)
	acc, err := w.ledger.Accept(t.Context(), semel.Request{Key: semel.Key{Account: "acme", Kind: "note", ID: "raw"}, Params: []byte("not JSON")})
	if err != nil {
		t.Fatal(err)
	}
	if op := w.do("GET", note("raw")).is(200).op(); op.Revision != acc.Operation.Revision || op.Params != nil {
		t.Errorf("%+v", op)
	}
	w.do("PUT", note("raw"), body(`{}`)).problem(409, semel.CodeMismatch)
	if e := w.follow(note("raw")).next(); e.op.Revision != 1 {
		t.Errorf("%+v", e)
	}
}

func TestHTTPServer(t *testing.T) {
	w := newWorld(t, nil)
	srv := httpapi.NewHTTPServer("127.0.0.1:0", w.server)
	if srv.ReadHeaderTimeout == 0 || srv.ReadTimeout == 0 || srv.WriteTimeout < httpapi.MaxWait || srv.IdleTimeout == 0 || srv.MaxHeaderBytes > 1<<20 {
		t.Errorf("%+v", srv)
	}
	l, err := net.Listen("tcp", srv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(l)
	w.url = "http://" + l.Addr().String()
	if status := w.raw("GET /healthz", "X-A: "+strings.Repeat("x", 100<<10), ""); status != 431 {
		t.Error(status)
	}
	// A graceful shutdown does not wait for streams.
	path, _ := w.create()
	s := w.follow(path)
	s.next()
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	s.ends()
}
