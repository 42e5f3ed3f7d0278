package httpapi_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
)

type sessionView struct {
	Account   string
	Operator  bool
	Accounts  []string
	Name      string
	ExpiresAt time.Time `json:"expires_at"`
}

// signIn returns a request option that carries the cookie of a sign-in.
func (w *world) signIn(token string) (with, *http.Cookie) {
	w.Helper()
	a := w.do("POST", "/v1/session", as(token)).is(200)
	cookies := (&http.Response{Header: a.Header}).Cookies()
	if len(cookies) != 1 {
		w.Fatalf("%v", a.Header)
	}
	return cookie(cookies[0]), cookies[0]
}

func cookie(c *http.Cookie) with {
	return func(r *http.Request) {
		r.Header.Del("Authorization")
		r.AddCookie(c)
	}
}

func TestSignIn(t *testing.T) {
	w := newWorld(t, nil)
	a := w.do("POST", "/v1/session", header("Sec-Fetch-Site", "same-origin")).is(200)
	set := a.Header.Get("Set-Cookie")
	for _, attribute := range []string{"semel_session=", "; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age=43"} {
		if !strings.Contains(set, attribute) {
			t.Errorf("no %q in %s", attribute, set)
		}
	}
	if strings.Contains(set, "Secure") || strings.Contains(set, acme) || bytes.Contains(a.body, []byte(acme)) {
		t.Errorf("%s %s", set, a.body)
	}
	if v := decoded[sessionView](a); v.Account != "acme" || v.Operator || time.Until(v.ExpiresAt) > 12*time.Hour || time.Until(v.ExpiresAt) < 11*time.Hour {
		t.Errorf("%s", a.body)
	}
	in, _ := w.signIn(acme)
	here := header("Origin", w.url)
	path := note(semel.NewID())
	w.do("PUT", path, body(menu), in, here).is(201)
	w.do("GET", path, in).is(200)
	w.do("GET", path+"/history", in).is(200)
	w.do("GET", path).is(200) // the same account by its token
	if v := decoded[sessionView](w.do("GET", "/v1/session", in).is(200)); v.ExpiresAt.IsZero() || v.Account != "acme" {
		t.Errorf("%+v", v)
	}
	if v := decoded[sessionView](w.do("GET", "/v1/session", as(auditor)).is(200)); !v.ExpiresAt.IsZero() || v.Account != "initech" || !v.Operator || v.Name != "alice" || len(v.Accounts) != 1 {
		t.Errorf("%+v", v)
	}
	out := w.do("DELETE", "/v1/session", in, here).is(204).Header.Get("Set-Cookie")
	if !strings.HasPrefix(out, "semel_session=; ") || !strings.Contains(out, "Max-Age=0") {
		t.Errorf("%s", out)
	}
	w.do("GET", path, nobody).problem(401, semel.CodeUnauthenticated)
	w.do("POST", "/v1/session", as("semel_wrong")).problem(401, semel.CodeUnauthenticated)
	w.do("POST", "/v1/session", nobody).problem(401, semel.CodeUnauthenticated)
}

// A cookie goes wherever the browser goes, so a page of another origin may try to
// use it.
func TestCrossSiteRequestsFail(t *testing.T) {
	w := newWorld(t, nil)
	in, _ := w.signIn(acme)
	path, op := w.create()
	foreign := [][]with{
		{},
		{header("Origin", "https://evil.example")},
		{header("Origin", "null")},
		{header("Origin", "")},
		{header("Origin", w.url+".evil.example")},
		{header("Origin", "http://127.0.0.1:1")}, // another port is another origin, though the same site
		{header("Origin", w.url), header("Origin", w.url)},
		{header("Sec-Fetch-Site", "cross-site"), header("Origin", w.url)},
		{header("Sec-Fetch-Site", "same-site")},
		{header("Sec-Fetch-Site", "none")},
		{header("Sec-Fetch-Site", "")},
		{header("Sec-Fetch-Site", "same-origin"), header("Sec-Fetch-Site", "cross-site")},
	}
	operatorIn, _ := w.signIn(auditor)
	for _, from := range foreign {
		unsafe := func(method, path string, o ...with) {
			t.Helper()
			w.do(method, path, append(o, from...)...).problem(403, semel.CodeForbidden)
		}
		unsafe("PUT", note(semel.NewID()), body(menu), in)
		unsafe("POST", "/v1/operations/note", body(menu), header("Idempotency-Key", "evil"), in)
		unsafe("DELETE", path, in)
		unsafe("PUT", operatorPath(op)+"/resolution", header("If-Match", `"1"`), body(`{"verdict":"applied","evidence":"e"}`), operatorIn)
		if len(from) > 0 { // sign-in and sign-out are for programs too, which say nothing
			unsafe("POST", "/v1/session")
			unsafe("DELETE", "/v1/session", in)
		}
	}
	for _, from := range [][]with{{header("Origin", w.url)}, {header("Sec-Fetch-Site", "same-origin")}, {header("Sec-Fetch-Site", "same-origin"), header("Origin", "https://behind.example")}} {
		w.do("PUT", path, append(from, body(menu), in)...).is(200)
	}
	// A token is sent by a program on purpose. It counts alone, also beside a cookie.
	w.do("PUT", path, body(menu), header("Origin", "https://evil.example")).is(200)
	both := func(r *http.Request) { in(r); as(globex)(r) }
	w.do("GET", path, both).problem(404, semel.CodeNotFound)
	bad := func(r *http.Request) { in(r); as("semel_wrong")(r) }
	w.do("GET", path, bad).problem(401, semel.CodeUnauthenticated)
}

func TestBadCookies(t *testing.T) {
	w := newWorld(t, nil)
	in, c := w.signIn(acme)
	w.do("GET", "/v1/session", in).is(200)
	tampered := func(change func(v string) string) with {
		other := *c
		other.Value = change(c.Value)
		return cookie(&other)
	}
	for name, o := range map[string]with{
		"one letter":      tampered(func(v string) string { return strings.ToLower(v) }),
		"shortened":       tampered(func(v string) string { return v[:len(v)-4] }),
		"longer":          tampered(func(v string) string { return v + "AAAA" }),
		"empty":           tampered(func(string) string { return "" }),
		"another's":       tampered(func(v string) string { return strings.Repeat("A", len(v)) }),
		"two cookies":     func(r *http.Request) { in(r); r.AddCookie(c) },
		"the secure name": cookie(&http.Cookie{Name: "__Host-semel_session", Value: c.Value}),
	} {
		if a := w.do("GET", "/v1/session", o); a.status != 401 {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	// Signed by a server with another key.
	other := newWorld(t, nil)
	other.do("GET", "/v1/session", in).problem(401, semel.CodeUnauthenticated)
}

// One key on all nodes: a sign-in holds on each of them and over restarts, and
// ends with its token.
func TestSessionKey(t *testing.T) {
	key := bytes.Repeat([]byte{7}, 32)
	tokens, err := httpapi.NewTokens([]httpapi.Token{{Hash: httpapi.HashToken(acme), Account: "acme"}})
	if err != nil {
		t.Fatal(err)
	}
	node := func() *world {
		return newWorld(t, func(s *setup) { s.server.SessionKey, s.server.Tokens = key, tokens })
	}
	a, b := node(), node()
	in, _ := a.signIn(acme)
	b.do("GET", "/v1/session", in).is(200)
	if err := tokens.Replace([]httpapi.Token{{Hash: httpapi.HashToken(globex), Account: "acme"}}); err != nil {
		t.Fatal(err)
	}
	b.do("GET", "/v1/session", in).problem(401, semel.CodeUnauthenticated)
	a.do("GET", "/v1/session", as(globex)).is(200)
}

func TestSecureCookie(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.server.SecureCookies = true })
	in, c := w.signIn(acme)
	if c.Name != "__Host-semel_session" || !c.Secure || c.Domain != "" || c.Path != "/" {
		t.Errorf("%+v", c)
	}
	path := note(semel.NewID())
	w.do("PUT", path, body(menu), in, header("Origin", "https"+strings.TrimPrefix(w.url, "http"))).is(201)
	w.do("PUT", path, body(menu), in, header("Origin", w.url)).problem(403, semel.CodeForbidden) // the page came without TLS
}

func TestNoSignInWithoutTokens(t *testing.T) {
	w := newWorld(t, func(s *setup) {
		s.server.Tokens = nil
		s.server.Authenticate = func(r *http.Request) (httpapi.Identity, error) {
			c, err := r.Cookie("mine")
			if err != nil {
				return httpapi.Identity{}, err
			}
			return httpapi.Identity{Account: c.Value, Ambient: true}, nil
		}
	})
	w.do("POST", "/v1/session").problem(401, semel.CodeUnauthenticated)
	// A hook with cookies of its own gets the same protection.
	mine := cookie(&http.Cookie{Name: "mine", Value: "acme"})
	w.do("PUT", note("n1"), body(menu), mine).problem(403, semel.CodeForbidden)
	w.do("PUT", note("n1"), body(menu), mine, header("Sec-Fetch-Site", "same-origin")).is(201)
	w.do("GET", note("n1"), mine).is(200)
	w.do("GET", note("n1"), cookie(&http.Cookie{Name: "mine", Value: "../acme"})).problem(500, semel.CodeInternal)
}

// Time ends tokens and sign-ins.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token := httpapi.NewToken()
		tokens, err := httpapi.NewTokens([]httpapi.Token{
			{Hash: httpapi.HashToken(token), Account: "acme", ExpiresAt: time.Now().Add(time.Hour)},
			{Hash: httpapi.HashToken(acme), Account: "acme"}, // its successor
		})
		if err != nil {
			t.Fatal(err)
		}
		s := httpapi.New(nil, &httpapi.Options{Tokens: tokens, SessionTTL: 2 * time.Hour, Logger: slog.New(slog.DiscardHandler)})
		inShort, inLong := signInDirectly(t, s, token), signInDirectly(t, s, acme)
		byToken := request(as(token))
		for _, c := range []struct {
			later              time.Duration
			token, short, long bool
		}{{0, true, true, true}, {time.Hour - time.Second, true, true, true}, {time.Second, false, false, true}, {time.Hour, false, false, false}} {
			time.Sleep(c.later) // synctest's time
			for name, got := range map[string]bool{"token": known(s, byToken) == c.token, "short": known(s, inShort) == c.short, "long": known(s, inLong) == c.long} {
				if !got {
					t.Errorf("after another %v: %s", c.later, name)
				}
			}
		}
		if !known(s, request(as(acme))) {
			t.Error("the token without end has ended")
		}
	})
}
