package page

import (
	"bytes"
	"net"
	"net/http"
	"strconv"

	"github.com/semel-dev/semel/httpapi"
)

// page serves the page, and tells it in its head who is signed in, so that it
// need not ask.
func (s *Site) page(w http.ResponseWriter, r *http.Request) {
	who, err := s.server.Identify(r)
	signedIn := err == nil
	if !signedIn {
		who, signedIn = s.signIn(w, r)
	}
	account := ""
	if signedIn {
		account = who.Account // of a grammar without anything to escape
	}
	movable := signedIn && who.Operator && s.opts.Causes != nil
	html := bytes.Replace(s.index, []byte(`name="semel-account" content=""`),
		[]byte(`name="semel-account" content="`+account+`"`), 1)
	html = bytes.Replace(html, []byte(`name="semel-switches" content=""`),
		[]byte(`name="semel-switches" content="`+strconv.FormatBool(movable)+`"`), 1)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(html)))
	// Not "no-store", which would cost the back/forward cache.
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Vary", "Cookie")
	w.Write(html)
}

// signIn gives a browser on this machine the cookie of the demo's account. The
// Host must be this machine's, so that no other site can be made to point here;
// with "?sign-in" the person wants to sign in as somebody else.
func (s *Site) signIn(w http.ResponseWriter, r *http.Request) (httpapi.Identity, bool) {
	if s.opts.Token == "" || !loopback(r.Host) || r.URL.Query().Has("sign-in") {
		return httpapi.Identity{}, false
	}
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "/v1/session", http.NoBody)
	if err != nil {
		return httpapi.Identity{}, false
	}
	ask.Host, ask.TLS, ask.RemoteAddr = r.Host, r.TLS, r.RemoteAddr
	ask.Header.Set("Authorization", "Bearer "+s.opts.Token)
	who, err := s.server.Identify(ask)
	if err != nil {
		return httpapi.Identity{}, false
	}
	answer := headerOnly{}
	s.server.ServeHTTP(answer, ask)
	for _, cookie := range http.Header(answer).Values("Set-Cookie") {
		w.Header().Add("Set-Cookie", cookie)
	}
	return who, true
}

func loopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// headerOnly keeps the header of an answer.
type headerOnly http.Header

func (h headerOnly) Header() http.Header          { return http.Header(h) }
func (headerOnly) Write(body []byte) (int, error) { return len(body), nil }
func (headerOnly) WriteHeader(int)                {}
