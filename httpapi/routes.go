package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
)

// access says who may use a route.
type access int

const (
	open     access = iota // anybody
	signedIn               // any identity
	member                 // an identity with an account
	operator               // an operator
)

// A route is one line of the interface.
type route struct {
	method, pattern string
	access          access
	handle          func(*call) error
	// answers are the statuses of this route besides those that common adds.
	answers  []int
	segments []string
}

// table is the interface, line by line.
func (s *Server) table() []route {
	const (
		one   = "/v1/operations/{kind}/{operation_id}"
		other = "/v1/operator/operations/{account}/{kind}/{operation_id}"
	)
	all := []route{
		{"PUT", one, member, (*call).put, []int{200, 201, 400, 404, 408, 409, 410, 412, 413, 415, 429}, nil},
		{"GET", one, member, (*call).get, []int{200, 304, 400, 404, 410}, nil},
		{"DELETE", one, member, (*call).abandon, []int{200, 400, 404, 409, 410}, nil},
		{"GET", one + "/events", member, (*call).events, []int{200, 204, 400, 404, 410}, nil},
		{"GET", one + "/history", member, (*call).history, []int{200, 400, 404, 410}, nil},
		{"POST", "/v1/operations/{kind}", member, (*call).post, []int{200, 201, 400, 404, 408, 409, 410, 412, 413, 415, 422, 429}, nil},
		{"GET", "/v1/operations", member, (*call).list, []int{200, 400}, nil},
		{"GET", "/v1/kinds", signedIn, (*call).kinds, []int{200}, nil},
		{"GET", "/v1/kinds/{kind}", signedIn, (*call).kind, []int{200, 404}, nil},
		{"GET", "/v1/session", signedIn, (*call).session, []int{200}, nil},
		{"POST", "/v1/session", open, (*call).signIn, []int{200, 401, 403}, nil},
		{"DELETE", "/v1/session", open, (*call).signOut, []int{204, 403}, nil},
		{"GET", "/v1/operator/operations", operator, (*call).operatorList, []int{200, 400}, nil},
		{"GET", other, operator, (*call).operatorGet, []int{200, 304, 400, 404, 410}, nil},
		{"GET", other + "/history", operator, (*call).operatorHistory, []int{200, 400, 404, 410}, nil},
		{"PUT", other + "/resolution", operator, (*call).operatorResolve, []int{200, 400, 404, 408, 409, 410, 412, 413, 415, 428}, nil},
		{"GET", "/v1/operator/stats", operator, (*call).stats, []int{200}, nil},
		{"GET", "/healthz", open, (*call).health, []int{200}, nil},
		{"GET", "/readyz", open, (*call).ready, []int{200, 503}, nil},
		{"GET", "/openapi.yaml", open, (*call).openAPI, []int{200}, nil},
	}
	if s.opts.Metrics != nil {
		all = append(all, route{"GET", "/metrics", open, (*call).metrics, []int{200}, nil})
	}
	for i := range all {
		all[i].segments = strings.Split(all[i].pattern, "/")[1:]
		all[i].answers = common(all[i])
	}
	return all
}

// common adds what can happen on every route that asks who is there: the
// credential, the store, a mistake of ours.
func common(r route) []int {
	answers := slices.Clone(r.answers)
	if r.access != open {
		answers = append(answers, 401, 403, 500, 503)
	}
	slices.Sort(answers)
	return slices.Compact(answers)
}

// find returns the routes of a path, one per method, and the values of its
// variables. Segments are decoded one by one, so that "%2F" is never a separator
// and "%41" is "A", as RFC 3986 has it. Dots and empty segments stay what they
// are: they match no route, or are no key.
func (s *Server) find(r *http.Request) ([]*route, map[string]string, error) {
	path := r.URL.EscapedPath()
	if !strings.HasPrefix(path, "/") {
		return nil, nil, nil
	}
	segments := strings.Split(path, "/")[1:]
	for i, raw := range segments {
		decoded, err := url.PathUnescape(raw)
		if err != nil {
			return nil, nil, &semel.Error{Code: semel.CodeInvalid, Msg: "the path has a percent sign that is no escape"}
		}
		segments[i] = decoded
	}
	var found []*route
	for i := range s.routes {
		if s.routes[i].matches(segments) {
			found = append(found, &s.routes[i])
		}
	}
	if len(found) == 0 {
		return nil, nil, nil
	}
	values := map[string]string{}
	for i, want := range found[0].segments {
		if name, ok := variable(want); ok {
			values[name] = segments[i]
		}
	}
	return found, values, nil
}

func (r *route) matches(segments []string) bool {
	if len(segments) != len(r.segments) {
		return false
	}
	for i, want := range r.segments {
		if _, ok := variable(want); ok && segments[i] == "" || !ok && segments[i] != want {
			return false
		}
	}
	return true
}

func variable(segment string) (name string, ok bool) {
	if !strings.HasPrefix(segment, "{") {
		return "", false
	}
	return segment[1 : len(segment)-1], true
}

// pick returns the route of that method, and which methods there are. HEAD is
// GET: net/http leaves the body out.
func pick(routes []*route, method string) (*route, string) {
	if method == "HEAD" {
		method = "GET"
	}
	var allowed []string
	var found *route
	for _, r := range routes {
		allowed = append(allowed, r.method)
		if r.method == "GET" {
			allowed = append(allowed, "HEAD")
		}
		if r.method == method {
			found = r
		}
	}
	return found, strings.Join(allowed, ", ")
}
