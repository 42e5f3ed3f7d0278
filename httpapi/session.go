package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
)

// The names of the cookie. A browser takes a "__Host-" cookie only over TLS, and
// only from this very host.
const (
	cookieName       = "semel_session"
	secureCookieName = "__Host-semel_session"
)

// A session is a sign-in. The cookie holds the token's hash and the end, signed;
// the token itself is looked up again with every request.
type session struct {
	hash     [sha256.Size]byte
	expires  time.Time
	identity Identity
}

// sessionView is what /v1/session tells.
type sessionView struct {
	Account  string   `json:"account,omitempty"`
	Operator bool     `json:"operator"`
	Accounts []string `json:"accounts,omitempty"`
	Name     string   `json:"name,omitempty"`
	// ExpiresAt is when a sign-in ends; absent for other credentials.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

func viewIdentity(who Identity) sessionView {
	return sessionView{Account: who.Account, Operator: who.Operator, Accounts: who.Accounts, Name: who.name()}
}

// session says who is asking.
func (c *call) session() error {
	view := viewIdentity(c.who)
	if c.who.Ambient && c.s.opts.Tokens != nil {
		if in, ok := c.s.signedIn(c.r); ok {
			view.ExpiresAt = in.expires
		}
	}
	return c.json(http.StatusOK, view)
}

// signIn exchanges a bearer token for a cookie.
func (c *call) signIn() error {
	if err := c.fromHere(); err != nil {
		return err
	}
	if c.s.opts.Tokens == nil {
		return &semel.Error{Code: semel.CodeUnauthenticated, Msg: "this server has no sign-in"}
	}
	token, err := bearer(c.r)
	if err != nil {
		return err
	}
	in := session{hash: sha256.Sum256([]byte(token)), expires: time.Now().Add(c.s.opts.SessionTTL).Truncate(time.Second).UTC()}
	stored, err := c.s.opts.Tokens.valid(in.hash)
	if err != nil {
		return err
	}
	if end := stored.ExpiresAt; !end.IsZero() && end.Before(in.expires) {
		in.expires = end.UTC()
	}
	c.who = stored.identity()
	cookie := c.s.cookie(c.r)
	cookie.Value = c.s.sign(in)
	cookie.MaxAge = max(1, int(time.Until(in.expires)/time.Second))
	http.SetCookie(c.w, cookie)
	view := viewIdentity(c.who)
	view.ExpiresAt = in.expires
	return c.json(http.StatusOK, view)
}

// signOut takes the cookie back.
func (c *call) signOut() error {
	if err := c.fromHere(); err != nil {
		return err
	}
	cookie := c.s.cookie(c.r)
	cookie.MaxAge = -1
	http.SetCookie(c.w, cookie)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) cookie(r *http.Request) *http.Cookie {
	c := &http.Cookie{Name: cookieName, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if s.secure(r) {
		c.Name, c.Secure = secureCookieName, true
	}
	return c
}

// sign writes a session as a cookie's value.
func (s *Server) sign(in session) string {
	b := binary.BigEndian.AppendUint64(in.hash[:], uint64(in.expires.Unix()))
	return base64.RawURLEncoding.EncodeToString(append(b, s.seal(b)...))
}

func (s *Server) seal(b []byte) []byte {
	mac := hmac.New(sha256.New, s.opts.SessionKey)
	mac.Write([]byte("semel session v1\x00"))
	mac.Write(b)
	return mac.Sum(nil)
}

// signedIn returns the sign-in that a request carries, if it is still good.
func (s *Server) signedIn(r *http.Request) (session, bool) {
	cookies := r.CookiesNamed(s.cookie(r).Name)
	if len(cookies) != 1 {
		return session{}, false // two are two opinions
	}
	raw, err := base64.RawURLEncoding.DecodeString(cookies[0].Value)
	const body = sha256.Size + 8
	if err != nil || len(raw) != body+sha256.Size || !hmac.Equal(raw[body:], s.seal(raw[:body])) {
		return session{}, false
	}
	in := session{hash: [sha256.Size]byte(raw), expires: time.Unix(int64(binary.BigEndian.Uint64(raw[sha256.Size:])), 0).UTC()}
	if !time.Now().Before(in.expires) {
		return session{}, false
	}
	stored, err := s.opts.Tokens.valid(in.hash)
	if err != nil {
		return session{}, false
	}
	in.identity = stored.identity()
	in.identity.Ambient = true
	return in, true
}
