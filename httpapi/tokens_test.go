package httpapi_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
)

// request makes a request that is not sent.
func request(options ...with) *http.Request {
	r := httptest.NewRequest("GET", "/v1/session", nil)
	for _, o := range options {
		o(r)
	}
	return r
}

func known(s *httpapi.Server, r *http.Request) bool {
	_, err := s.Identify(r)
	return err == nil
}

// signInDirectly signs in without a socket, and returns a request with the cookie.
func signInDirectly(t *testing.T, s *httpapi.Server, token string) *http.Request {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/v1/session", nil)
	as(token)(r)
	s.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatal(w.Code, w.Body)
	}
	return request(cookie(w.Result().Cookies()[0]))
}

func TestNewToken(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		token := httpapi.NewToken()
		// Base 32 has 5 bits in a letter: 26 of them are 130.
		if secret, ok := strings.CutPrefix(token, httpapi.TokenPrefix); !ok || len(secret) < 26 || seen[token] {
			t.Fatal(token)
		}
		seen[token] = true
	}
}

func TestBearer(t *testing.T) {
	tokens, err := httpapi.NewTokens([]httpapi.Token{{Hash: httpapi.HashToken("t"), Account: "acme", Name: "n"}, {Hash: httpapi.HashToken("u"), Account: "acme"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, ok := range []string{"Bearer t", "bearer t", "BEARER  t ", "Bearer u"} {
		who, err := tokens.Authenticate(request(header("Authorization", ok)))
		if err != nil || who.Account != "acme" || who.Ambient {
			t.Errorf("%q: %+v %v", ok, who, err)
		}
	}
	for _, bad := range [][]with{{}, {header("Authorization", "")}, {header("Authorization", "Bearer")}, {header("Authorization", "Bearer ")}, {header("Authorization", "t")},
		{header("Authorization", "Basic t")}, {header("Authorization", "Bearer T")}, {header("Authorization", "Bearer tt")},
		{header("Authorization", "Bearer t"), header("Authorization", "Bearer t")}, {header("Authorization", "Bearer "+strings.Repeat("t", 1025))},
		{header("Authorization", "Bearer "+httpapi.HashToken("t"))}} {
		if who, err := tokens.Authenticate(request(bad...)); !errors.Is(err, semel.ErrUnauthenticated) || who.Account != "" {
			t.Errorf("%+v %v", who, err)
		}
	}
}

func TestTokensAreChecked(t *testing.T) {
	good := httpapi.HashToken("t")
	for name, list := range map[string][]httpapi.Token{
		"plain token":       {{Hash: "t", Account: "a"}},
		"no prefix":         {{Hash: good[7:], Account: "a"}},
		"short":             {{Hash: good[:70], Account: "a"}},
		"long":              {{Hash: good + "00", Account: "a"}},
		"not hex":           {{Hash: good[:70] + "z", Account: "a"}},
		"twice":             {{Hash: good, Account: "a"}, {Hash: good, Account: "b"}},
		"good for nothing":  {{Hash: good}},
		"bad account":       {{Hash: good, Account: "A"}},
		"nameless operator": {{Hash: good, Operator: true, Accounts: []string{"*"}}},
		"bad accounts":      {{Hash: good, Operator: true, Name: "n", Accounts: []string{"a/b"}}},
		"accounts, no role": {{Hash: good, Account: "a", Accounts: []string{"b"}}},
	} {
		if _, err := httpapi.NewTokens(list); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tokens, err := httpapi.NewTokens([]httpapi.Token{{Hash: good, Account: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if tokens.Replace([]httpapi.Token{{Hash: "x"}}) == nil {
		t.Error("a bad list was taken")
	}
	if _, err := tokens.Authenticate(request(as("t"))); err != nil {
		t.Error("a refused list changed something")
	}
}

func TestNobodyIsKnownByDefault(t *testing.T) {
	if known(httpapi.New(nil, nil), request(as("t"))) {
		t.Error("somebody is")
	}
}
