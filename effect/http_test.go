package effect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
)

// A service is an external service that remembers what arrived.
type service struct {
	*httptest.Server
	mu       sync.Mutex
	arrived  []*http.Request
	bodies   []string
	remotes  []string
	onAnswer func(w http.ResponseWriter, r *http.Request, body []byte)
}

func newService(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body []byte)) *service {
	t.Helper()
	s := &service{onAnswer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.arrived, s.bodies, s.remotes = append(s.arrived, r), append(s.bodies, string(body)), append(s.remotes, r.RemoteAddr)
		s.mu.Unlock()
		s.onAnswer(w, r, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.arrived)
}

func answerWith(status int, body string) func(http.ResponseWriter, *http.Request, []byte) {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// cut ends the connection without a word, or after some bytes.
func cut(w http.ResponseWriter, bytes string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	io.WriteString(conn, bytes)
	if tcp, ok := conn.(*net.TCPConn); ok && bytes == "" {
		tcp.SetLinger(0) // a reset
	}
	conn.Close()
}

func mustPreset(t *testing.T, name string) contract.Contract {
	t.Helper()
	c, err := contract.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newEffect(t *testing.T, c contract.Contract, spec HTTPSpec, options *HTTPOptions) *HTTP {
	t.Helper()
	h, err := NewHTTP(spec, options)
	if err == nil {
		err = h.Check(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func callUnder(c contract.Contract) *Call {
	return &Call{Key: testKey, Contract: c, Params: []byte(`{"n":1}`), Request: []byte(`{ "n" : 1.0 }`),
		FirstSent: time.Date(2026, 3, 1, 12, 0, 0, 5e8, time.UTC)}
}

func TestTheKeyTravelsWhereTheContractSays(t *testing.T) {
	put := func(p contract.Place, more func(*contract.Carrier)) contract.Contract {
		c := contract.Contract{Name: "test", Carrier: contract.Carrier{Place: p}}
		if more != nil {
			more(&c.Carrier)
		}
		return c
	}
	key := func(c contract.Contract) string {
		k, err := (&Call{Key: testKey, Contract: c}).DownstreamKey()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	quoted := put(contract.Place{In: contract.InHeader, Name: "Idempotency-Key"}, nil)
	quoted.Key.Quoting = contract.Quoted
	for _, c := range []struct {
		name     string
		contract contract.Contract
		spec     HTTPSpec
		see      func(r *http.Request, body, key string) (got, want string)
	}{
		{"header", put(contract.Place{In: contract.InHeader, Name: "Idempotency-Key"}, nil), HTTPSpec{URL: "/o"},
			func(r *http.Request, body, key string) (string, string) {
				return r.Header.Get("Idempotency-Key") + body, key + `{ "n" : 1.0 }`
			}},
		{"quoted header", quoted, HTTPSpec{URL: "/o"},
			func(r *http.Request, _, key string) (string, string) {
				return r.Header.Get("Idempotency-Key"), `"` + key + `"`
			}},
		{"body", put(contract.Place{In: contract.InBody, Name: "/idempotency_key"}, nil), HTTPSpec{URL: "/o"},
			func(_ *http.Request, body, key string) (string, string) {
				return body, `{"idempotency_key":"` + key + `", "n" : 1.0 }`
			}},
		{"query", put(contract.Place{In: contract.InQuery, Name: "request_id"}, nil), HTTPSpec{URL: "/o?a=1", Method: "DELETE"},
			func(r *http.Request, body, key string) (string, string) {
				return r.URL.RawQuery + body, "a=1&request_id=" + key
			}},
		{"path", put(contract.Place{In: contract.InPath, Name: "operation_id"}, nil), HTTPSpec{URL: "/o/{operation_id}", Method: "PUT"},
			func(r *http.Request, _, key string) (string, string) { return r.Method + r.URL.Path, "PUT/o/" + key }},
		{"second place", put(contract.Place{In: contract.InBody, Name: "/k"}, func(c *contract.Carrier) {
			c.Or = []contract.Place{{In: contract.InQuery, Name: "k"}}
		}), HTTPSpec{URL: "/o", Method: "DELETE"},
			func(r *http.Request, _, key string) (string, string) { return r.URL.Query().Get("k"), key }},
		{"dated pair", put(contract.Place{In: contract.InHeader, Name: "Repeatability-Request-ID"}, func(c *contract.Carrier) {
			c.FirstSent, c.Client = "Repeatability-First-Sent", "Repeatability-Client-ID"
		}), HTTPSpec{URL: "/o", ClientID: "us"},
			func(r *http.Request, _, _ string) (string, string) {
				return r.Header.Get("Repeatability-First-Sent") + r.Header.Get("Repeatability-Client-ID"), "Sun, 01 Mar 2026 12:00:00 GMTus"
			}},
		{"nowhere", contract.Contract{Name: "opaque"}, HTTPSpec{URL: "/o"},
			func(r *http.Request, body, key string) (string, string) {
				return fmt.Sprint(strings.Contains(fmt.Sprint(r.Header, r.URL, body), key)), "false"
			}},
	} {
		s := newService(t, answerWith(200, `{}`))
		c.spec.URL = s.URL + c.spec.URL
		h := newEffect(t, c.contract, c.spec, nil)
		for range 2 {
			if r := Do(context.Background(), h, callUnder(c.contract)); r.Proof.Proves != contract.Applied {
				t.Errorf("%s: %+v", c.name, r.Proof)
			}
		}
		for i := range s.arrived {
			if got, want := c.see(s.arrived[i], s.bodies[i], key(c.contract)); got != want {
				t.Errorf("%s: saw %q, want %q", c.name, got, want)
			}
		}
		if s.count() != 2 {
			t.Errorf("%s: %d arrived", c.name, s.count())
		}
	}
}

// What each thing that can happen proves, over real connections.
func TestWhatACallProves(t *testing.T) {
	idem := mustPreset(t, contract.Idempotent)
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request, body []byte)
		want   contract.Proves
		cause  contract.Cause
	}{
		{"success", answerWith(201, `{"id":1}`), contract.Applied, contract.CauseSuccess},
		{"rejection", answerWith(403, `{"code":"no"}`), contract.Refused, contract.CauseRejected},
		{"mismatch", answerWith(422, `{}`), contract.Refused, contract.CauseMismatch},
		{"in progress", answerWith(409, `{}`), contract.InProgressNow, contract.CauseInProgress},
		{"server error", answerWith(500, `{}`), contract.Unknown, contract.CauseServerError},
		{"bad gateway", answerWith(502, ``), contract.Unknown, contract.CauseIntermediary},
		{"redirect", func(w http.ResponseWriter, r *http.Request, _ []byte) { http.Redirect(w, r, "/elsewhere", 307) }, contract.Unknown, contract.CauseUnlisted},
		{"reset", func(w http.ResponseWriter, _ *http.Request, _ []byte) { cut(w, "") }, contract.Unknown, contract.Cause(contract.FailedReset)},
		{"closed", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
		}, contract.Unknown, contract.Cause(contract.FailedEOF)},
		{"half an answer", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			cut(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
		}, contract.Unknown, contract.CauseCutAnswer},
		{"a whole answer, then a break", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			cut(w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}, contract.Applied, contract.CauseSuccess},
		{"no HTTP", func(w http.ResponseWriter, _ *http.Request, _ []byte) { cut(w, "hello\r\n\r\n") }, contract.Unknown, contract.Cause(contract.FailedMalformed)},
	} {
		s := newService(t, c.answer)
		h := newEffect(t, idem, HTTPSpec{URL: s.URL + "/o"}, nil)
		r := Do(context.Background(), h, callUnder(idem))
		if r.Proof.Proves != c.want || r.Proof.Cause != c.cause {
			t.Errorf("%s: proves %s by %s, want %s by %s", c.name, r.Proof.Proves, r.Proof.Cause, c.want, c.cause)
		}
		if r.Sends != 1 || s.count() != 1 {
			t.Errorf("%s: counted %d sends, %d arrived", c.name, r.Sends, s.count())
		}
		if (r.Failure == nil) != (c.want == contract.Applied) {
			t.Errorf("%s: failure %v", c.name, r.Failure)
		}
	}
}

func TestTimeoutIsUnknownAndNoServerIsNotSent(t *testing.T) {
	idem := mustPreset(t, contract.Idempotent)
	release := make(chan struct{})
	ctx := timeUp{context.Background(), make(chan struct{})}
	s := newService(t, func(http.ResponseWriter, *http.Request, []byte) {
		close(ctx.over) // it has arrived, and is not answered
		<-release
	})
	defer close(release)
	h := newEffect(t, idem, HTTPSpec{URL: s.URL}, nil)
	if r := Do(ctx, h, callUnder(idem)); r.Proof.Proves != contract.Unknown || r.Proof.Cause != contract.Cause(contract.FailedTimeout) {
		t.Errorf("timeout: %+v", r.Proof)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	h = newEffect(t, idem, HTTPSpec{URL: "http://" + l.Addr().String()}, nil)
	if r := Do(context.Background(), h, callUnder(idem)); r.Proof.Proves != contract.NotSent || r.Sends != 0 {
		t.Errorf("no server: %+v, %d sends", r.Proof, r.Sends)
	}
}

// timeUp is a context whose time is over when the channel closes.
type timeUp struct {
	context.Context
	over chan struct{}
}

func (c timeUp) Done() <-chan struct{} { return c.over }

func (c timeUp) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A process that was stopped in the middle and wakes up late sends nothing.
func TestNothingIsSentAfterTheDeadline(t *testing.T) {
	idem := mustPreset(t, contract.Idempotent)
	s := newService(t, answerWith(200, `{}`))
	sleep := &HTTPOptions{Authorize: func(ctx context.Context, _ *http.Request) error {
		end, _ := ctx.Deadline()
		for time.Now().Before(end) { // the context's own timer has not fired yet, or just has
		}
		return nil
	}}
	h := newEffect(t, idem, HTTPSpec{URL: s.URL}, sleep)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if r := Do(ctx, h, callUnder(idem)); r.Proof.Proves != contract.NotSent || r.Proof.Cause != "too_late" || s.count() != 0 {
		t.Errorf("%+v, %d arrived", r.Proof, s.count())
	}
}

// net/http's transport sends a POST with an Idempotency-Key again by itself when a
// reused connection breaks. Ours must not.
func TestNoHiddenResendOnAReusedConnection(t *testing.T) {
	idem := mustPreset(t, contract.Idempotent)
	n := 0
	s := newService(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		if n++; n == 1 {
			io.WriteString(w, "{}")
			return
		}
		cut(w, "")
	})
	h := newEffect(t, idem, HTTPSpec{URL: s.URL}, nil)
	for _, want := range []contract.Proves{contract.Applied, contract.Unknown} {
		if r := Do(context.Background(), h, callUnder(idem)); r.Proof.Proves != want || r.Sends != 1 {
			t.Errorf("%+v, %d sends, want %s", r.Proof, r.Sends, want)
		}
	}
	if s.count() != 2 || s.remotes[0] != s.remotes[1] {
		t.Errorf("%d arrived, from %v; want two on one connection", s.count(), s.remotes)
	}
}

func TestOpaqueCallsUseFreshConnections(t *testing.T) {
	opaque := mustPreset(t, contract.Opaque)
	s := newService(t, answerWith(200, `{}`))
	h := newEffect(t, opaque, HTTPSpec{URL: s.URL}, nil)
	for range 2 {
		Do(context.Background(), h, callUnder(opaque))
	}
	if s.remotes[0] == s.remotes[1] {
		t.Error("two opaque calls shared a connection, which may be closed at the moment of the second")
	}
}

func TestResultsOfAnswers(t *testing.T) {
	idem := mustPreset(t, contract.Idempotent)
	long := `{"x":"` + strings.Repeat("y", 100) + `"}`
	mapping := Mapping{"url": "/image/url", "first": "/list/0", "where": "header:Location", "none": "/nope"}
	for _, c := range []struct {
		name, body, mediaType string
		status                int
		mapping               Mapping
		want                  string
	}{
		{"whole body, byte for byte", `{ "a": 1e2 }`, "application/json", 200, nil, `{ "a": 1e2 }`},
		{"mapped", `{"image":{"url":"u"},"list":[9007199254740993]}`, "application/json", 200, mapping,
			`{"first":9007199254740993,"none":null,"url":"u","where":"/there"}`},
		{"too large", long, "application/json", 201, nil, `{"omitted":{"why":"too-large","status":201,"media_type":"application/json","bytes":64}}`},
		{"too large, mapped", long, "application/json", 200, Mapping{"where": "header:Location"},
			`{"omitted":{"why":"too-large","status":200,"media_type":"application/json","bytes":64},"where":"/there"}`},
		{"not JSON", "\x89PNG", "image/png", 200, nil, `{"omitted":{"why":"not-json","status":200,"media_type":"image/png","bytes":4}}`},
		{"two documents", `{} {}`, "application/json", 200, nil, `{"omitted":{"why":"not-json","status":200,"media_type":"application/json","bytes":5}}`},
		{"broken text", "\"\xff\"", "application/json", 200, nil, `{"omitted":{"why":"not-json","status":200,"media_type":"application/json","bytes":3}}`},
		{"empty", ``, "text/plain", 204, nil, `{"omitted":{"why":"empty","status":204,"media_type":"text/plain"}}`},
	} {
		s := newService(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("Content-Type", c.mediaType)
			w.Header().Set("Location", "/there")
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		})
		h := newEffect(t, idem, HTTPSpec{URL: s.URL, Result: c.mapping, MaxResponse: 64}, nil)
		r := Do(context.Background(), h, callUnder(idem))
		if r.Proof.Proves != contract.Applied || string(r.Output) != c.want {
			t.Errorf("%s: %s, %s\nwant %s", c.name, r.Proof.Proves, r.Output, c.want)
		}
	}
}

func TestRefusalsGiveTheirReason(t *testing.T) {
	idem := mustPreset(t, contract.Idempotent)
	s := newService(t, answerWith(403, `{"error":{"code":"card_declined","message":"The card was declined."}}`))
	h := newEffect(t, idem, HTTPSpec{URL: s.URL, Refusal: Reason{Code: "/error/code", Message: "/error/message"}}, nil)
	r := Do(context.Background(), h, callUnder(idem))
	if r.Failure == nil || r.Failure.Code != "card_declined" || r.Failure.Message != "The card was declined." {
		t.Errorf("%+v", r.Failure)
	}
	h = newEffect(t, idem, HTTPSpec{URL: s.URL}, nil)
	if r = Do(context.Background(), h, callUnder(idem)); r.Failure.Code != "refused" || strings.Contains(r.Failure.Message, "declined") {
		t.Errorf("without a place: %+v", r.Failure)
	}
}

func TestCredentials(t *testing.T) {
	idem := mustPreset(t, contract.Idempotent)
	s := newService(t, answerWith(200, `{}`))
	env := func(name string) (string, bool) { return "s3cret", name == "TOKEN" }
	spec := HTTPSpec{URL: s.URL, Headers: map[string]string{"X-Plain": "p"}, SecretHeaders: map[string]string{"Authorization": "Bearer ${TOKEN}"}}
	authorized := true
	options := &HTTPOptions{LookupEnv: env, Authorize: func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-Signed", "yes")
		if !authorized {
			return errors.New("the token s3cret has expired")
		}
		return nil
	}}
	h := newEffect(t, idem, spec, options)
	Do(context.Background(), h, callUnder(idem))
	got := s.arrived[0].Header
	if got.Get("Authorization") != "Bearer s3cret" || got.Get("X-Plain") != "p" || got.Get("X-Signed") != "yes" {
		t.Errorf("%v", got)
	}
	authorized = false
	r := Do(context.Background(), h, callUnder(idem))
	if r.Proof.Proves != contract.NotSent || s.count() != 1 || strings.Contains(fmt.Sprintf("%+v %+v", r, r.Failure), "s3cret") {
		t.Errorf("%+v %+v, %d arrived", r, r.Failure, s.count())
	}
	spec.SecretHeaders["Authorization"] = "Bearer ${MISSING}"
	if _, err := NewHTTP(spec, options); err == nil || !strings.Contains(err.Error(), "MISSING") {
		t.Errorf("missing variable: %v", err)
	}
	spec.SecretHeaders["Authorization"] = "${TOKEN}\n"
	if _, err := NewHTTP(spec, options); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a secret that is no header: %v", err)
	}
}

func TestNothingIsSentThatCannotBeBuilt(t *testing.T) {
	c := contract.Contract{Name: "body", Carrier: contract.Carrier{Place: contract.Place{In: contract.InBody, Name: "/key"}}}
	s := newService(t, answerWith(200, `{}`))
	h := newEffect(t, c, HTTPSpec{URL: s.URL}, nil)
	call := callUnder(c)
	call.Request = []byte(`[1,2]`)
	r := Do(context.Background(), h, call)
	if r.Proof.Proves != contract.Refused || r.Failure.Code != "request-not-built" || s.count() != 0 || r.Sends != 0 {
		t.Errorf("%+v %+v, %d arrived", r.Proof, r.Failure, s.count())
	}
}

func TestCheckFindsWhatDoesNotFit(t *testing.T) {
	idem, query := mustPreset(t, contract.Idempotent), mustPreset(t, contract.Queryable)
	posts := idem
	posts.Use.Methods = []string{"POST"}
	body := contract.Contract{Name: "b", Carrier: contract.Carrier{Place: contract.Place{In: contract.InBody, Name: "/k"}}}
	path := contract.Contract{Name: "p", Carrier: contract.Carrier{Place: contract.Place{In: contract.InPath, Name: "id"}}}
	client := contract.Contract{Name: "c", Carrier: contract.Carrier{Place: contract.Place{In: contract.InHeader, Name: "K"}, Client: "C"}}
	natural := query
	natural.LookUp.By = contract.ByNaturalKey
	look := &LookUpSpec{URL: "http://h/o/{key}"}
	for _, c := range []struct {
		name     string
		contract contract.Contract
		spec     HTTPSpec
		problem  string
	}{
		{"fits", idem, HTTPSpec{URL: "http://h/o"}, ""},
		{"fits too", query, HTTPSpec{URL: "http://h/o", LookUp: look}, ""},
		{"opaque with {key}", contract.Contract{}, HTTPSpec{URL: "http://h/o"}, ""},
		{"method", posts, HTTPSpec{URL: "http://h/o", Method: "DELETE"}, "on POST, not on DELETE"},
		{"body on DELETE", body, HTTPSpec{URL: "http://h/o", Method: "DELETE"}, "no place for a key"},
		{"path", path, HTTPSpec{URL: "http://h/o", Method: "PUT"}, "no place for a key"},
		{"client", client, HTTPSpec{URL: "http://h/o"}, "client_id"},
		{"variable", idem, HTTPSpec{URL: "http://h/{nope}"}, "{nope}"},
		{"no look-up", query, HTTPSpec{URL: "http://h/o"}, "look_up must say how"},
		{"needless look-up", idem, HTTPSpec{URL: "http://h/o", LookUp: look}, "has none"},
		{"look-up without key", query, HTTPSpec{URL: "http://h/o", LookUp: &LookUpSpec{URL: "http://h/o"}}, "needs {key}"},
		{"natural without params", natural, HTTPSpec{URL: "http://h/o", LookUp: look}, "natural key"},
	} {
		h, err := NewHTTP(c.spec, nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		err = h.Check(c.contract)
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v; want %q", c.name, err, c.problem)
		}
	}
}

func TestNewHTTPSaysEverythingThatIsWrong(t *testing.T) {
	bad := "x"
	_, err := NewHTTP(HTTPSpec{URL: "nope", Method: "GET", Headers: map[string]string{"a b": ""}, Result: Mapping{"r": "x"},
		Refusal: Reason{Code: "x"}, LookUp: &LookUpSpec{URL: "http://h/{key}", Items: &bad}}, nil)
	for _, part := range []string{"nope", "GET", "a b", "result.r", "refusal.code", "look_up.items"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("nothing about %s in: %v", part, err)
		}
	}
}

// An HTTP effect can be written for every contract that is built in.
func TestEveryPresetCanBeKept(t *testing.T) {
	for _, c := range contract.Presets() {
		spec := HTTPSpec{URL: "http://h/o/{key}", ClientID: "us"}
		if len(c.Use.Methods) > 0 {
			spec.Method = c.Use.Methods[0]
		}
		if c.LookUp.By != "" {
			spec.LookUp = &LookUpSpec{URL: "http://h/o?key={key}&ref={params:/ref}"}
		}
		h, err := NewHTTP(spec, nil)
		if err == nil {
			err = h.Check(c)
		}
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}
