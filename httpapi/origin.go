package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
)

// sameOrigin refuses an unsafe request that does not come from a page of this
// server. Browsers say where a request comes from by Sec-Fetch-Site, and older
// ones, or pages without TLS, by Origin; a page can change neither. A request
// that has neither was not made by a browser of today, and a cookie is for
// browsers.
func (s *Server) sameOrigin(r *http.Request) error {
	if r.Method == "GET" || r.Method == "HEAD" {
		return nil
	}
	site, origin := r.Header.Values("Sec-Fetch-Site"), r.Header.Values("Origin")
	ok := false
	switch {
	case len(site) > 0:
		ok = len(site) == 1 && site[0] == "same-origin"
	case len(origin) == 1:
		u, err := url.Parse(origin[0])
		ok = err == nil && strings.EqualFold(u.Host, r.Host) && (u.Scheme == "https" || u.Scheme == "http" && !s.secure(r))
	}
	if ok {
		return nil
	}
	return &semel.Error{Op: "authenticate", Code: semel.CodeForbidden, Msg: "a request with a cookie must come from a page of this server",
		Hint: "programs send Authorization: Bearer instead"}
}

// fromHere is sameOrigin for sign-in and sign-out, which programs may use too:
// they say nothing of an origin.
func (c *call) fromHere() error {
	if len(c.r.Header.Values("Origin")) == 0 && len(c.r.Header.Values("Sec-Fetch-Site")) == 0 {
		return nil
	}
	return c.s.sameOrigin(c.r)
}

// What pages of other origins may send and read, where CORS is on.
const (
	corsRequest = "Authorization, Content-Type, Idempotency-Key, Attempt-Id, Prefer, Accept-Until, If-Match, If-None-Match, Last-Event-ID"
	corsAnswer  = "ETag, Location, Retry-After, Idempotency-Replayed, Preference-Applied"
)

// cors lets the configured origins read the answer. They are never given cookies.
func (c *call) cors() {
	if len(c.s.opts.CORS) == 0 {
		return
	}
	h := c.w.Header()
	h.Add("Vary", "Origin")
	if origin := c.r.Header.Get("Origin"); slices.Contains(c.s.opts.CORS, origin) {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", corsAnswer)
	}
}

// preflight answers a browser that asks whether it may send. It reports false if
// the request is something else.
func (c *call) preflight(allowed string) bool {
	h := c.w.Header()
	if c.r.Method != "OPTIONS" || h.Get("Access-Control-Allow-Origin") == "" || c.r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", allowed)
	h.Set("Access-Control-Allow-Headers", corsRequest)
	h.Set("Access-Control-Max-Age", "600")
	c.w.WriteHeader(http.StatusNoContent)
	return true
}
