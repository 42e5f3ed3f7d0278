package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi/problem"
)

// A call is one request on its way through the server.
type call struct {
	s     *Server
	w     *answer
	r     *http.Request
	route *route
	path  map[string]string // the variables of the path
	who   Identity
	key   semel.Key // of the operation concerned, valid or empty

	// for the log
	attempt  string
	state    semel.State
	replayed bool
	code     semel.Code
	cause    error
}

// answer remembers what was answered.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	c := &call{s: s, w: &answer{ResponseWriter: w}, r: r}
	abort := false
	defer func() {
		c.log(time.Since(start))
		if abort {
			panic(http.ErrAbortHandler)
		}
	}()
	defer func() {
		if v := recover(); v != nil {
			abort = c.panicked(v)
		}
	}()
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

func (c *call) serve() error {
	routes, path, err := c.s.find(c.r)
	if err != nil {
		return err
	}
	c.cors()
	if len(routes) == 0 {
		p := problem.Of(&semel.Error{Code: semel.CodeInvalid, Msg: "there is nothing under this path",
			Hint: "an operation is /v1/operations/{kind}/{operation_id}; see /openapi.yaml"})
		p.Status = http.StatusNotFound
		return p
	}
	route, allowed := pick(routes, c.r.Method)
	if route == nil {
		c.w.Header().Set("Allow", allowed)
		if c.preflight(allowed) {
			return nil
		}
		p := problem.Of(&semel.Error{Code: semel.CodeInvalid, Msg: "this path does not have that method", Hint: "it has " + allowed})
		p.Status = http.StatusMethodNotAllowed
		return p
	}
	c.route, c.path = route, path
	if err := c.admit(); err != nil {
		return err
	}
	return c.route.handle(c)
}

// admit asks who is there and whether they may use the route, and makes the key.
func (c *call) admit() (err error) {
	if c.route.access == open {
		return nil
	}
	if c.who, err = c.s.Identify(c.r); err != nil {
		return err
	}
	switch c.route.access {
	case operator:
		if !c.who.Operator {
			return &semel.Error{Code: semel.CodeForbidden, Msg: "this is for operators"}
		}
		return nil
	case member:
		if c.who.Account == "" {
			return &semel.Error{Code: semel.CodeForbidden, Msg: "this credential has no account of its own",
				Hint: "operators find operations under /v1/operator/operations"}
		}
	}
	if c.path["operation_id"] == "" {
		return nil
	}
	return c.setKey(semel.Key{Account: c.who.Account, Kind: c.path["kind"], ID: c.path["operation_id"]})
}

func (c *call) setKey(key semel.Key) error {
	if err := key.Validate(); err != nil {
		return err
	}
	c.key = key
	return nil
}

// Identify says who sent a request, as the server itself sees it: by
// [Options.Authenticate] or by a sign-in. Handlers beside the server, such as
// pages and files of an account, use it too.
//
// Errors by code: [semel.CodeUnauthenticated]; [semel.CodeForbidden] for an unsafe
// request that a browser may have been tricked into; what Authenticate returns.
func (s *Server) Identify(r *http.Request) (Identity, error) {
	who, err := s.authenticate(r)
	if err != nil {
		var e *semel.Error
		if !errors.As(err, &e) {
			err = &semel.Error{Op: "authenticate", Code: semel.CodeUnauthenticated, Msg: "who is asking?", Err: err}
		}
		return Identity{}, err
	}
	if who.Account != "" && !semel.ValidName(who.Account) {
		return Identity{}, &semel.Error{Op: "authenticate", Code: semel.CodeInternal, Msg: "the credential's account is not a valid name"}
	}
	if who.Ambient {
		if err := s.sameOrigin(r); err != nil {
			return Identity{}, err
		}
	}
	return who, nil
}

func (s *Server) authenticate(r *http.Request) (Identity, error) {
	if s.opts.Tokens != nil && len(r.Header.Values("Authorization")) == 0 {
		if signed, ok := s.signedIn(r); ok {
			return signed.identity, nil
		}
	}
	return s.opts.Authenticate(r)
}

// fail answers with a problem.
func (c *call) fail(err error) {
	var p problem.Problem
	if !errors.As(err, &p) {
		p = problem.Of(err)
	}
	c.code, c.cause = p.Code, err
	if p.Operation != nil {
		c.state = p.Operation.State
	}
	if p.Status == http.StatusUnauthorized {
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="semel"`)
	}
	problem.Write(c.w, p)
}

// panicked answers a panic, and reports whether the connection must be cut
// because a part of an answer is on its way: half an answer must not look whole.
func (c *call) panicked(v any) (abort bool) {
	if v == http.ErrAbortHandler {
		return true
	}
	// The value may hold anything, parameters too. Its type, the stack and what the
	// runtime says do not.
	what := reflect.TypeOf(v).String()
	if e, ok := v.(runtime.Error); ok {
		what = e.Error()
	}
	c.code = semel.CodeInternal
	c.s.opts.Logger.Error("panic", append(c.identity(), "panic", what, "stack", string(debug.Stack()))...)
	if c.w.status != 0 {
		return true
	}
	c.fail(&semel.Error{Code: semel.CodeInternal, Msg: "the request was interrupted by a mistake in the server",
		Hint: "it may have been recorded; send it again with the same key"})
	return false
}

// identity is what may be logged of a request.
func (c *call) identity() []any {
	out := []any{"method", c.r.Method[:min(len(c.r.Method), 16)]}
	if c.route != nil {
		out = append(out, "route", c.route.pattern)
	}
	if name := c.who.name(); name != "" {
		out = append(out, "by", name)
	}
	if c.key.Kind != "" {
		out = append(out, "account", c.key.Account, "kind", c.key.Kind, "id", c.key.ID)
	} else if c.who.Account != "" {
		out = append(out, "account", c.who.Account)
	}
	if c.attempt != "" {
		out = append(out, "attempt_id", c.attempt)
	}
	return out
}

// log writes the one record of a request. A path that is no route is not logged:
// it may hold anything.
func (c *call) log(took time.Duration) {
	level := slog.LevelInfo
	switch {
	case c.r.Context().Err() != nil: // the client left; it is no fault of anybody
	case c.w.status >= 500 || c.code == semel.CodeInternal:
		level = slog.LevelError
	case c.route != nil && c.route.access == open && c.route.method == "GET" && c.w.status < 400:
		level = slog.LevelDebug // probes come every second
	}
	out := append(c.identity(), "status", c.w.status, "ms", float64(took.Microseconds())/1000)
	if c.state != "" {
		out = append(out, "state", c.state)
	}
	if c.replayed {
		out = append(out, "replayed", true)
	}
	if c.code != "" {
		out = append(out, "code", c.code)
	}
	if c.cause != nil && c.w.status >= 500 {
		out = append(out, "error", c.cause.Error())
	}
	c.s.opts.Logger.Log(c.r.Context(), level, "request", out...)
}
