package httpapi

import (
	"fmt"
	"net/http"
)

// Interface lists the routes with their answers, for the test that holds them
// against openapi.yaml.
func Interface(s *Server) (lines []string) {
	for _, r := range s.routes {
		lines = append(lines, fmt.Sprint(r.method, " ", r.pattern, " ", r.answers))
	}
	return lines
}

// The parsers, for tables and fuzzing.
var PreferredWait = preferredWait

func IdempotencyKey(lines []string) (id string, there bool, err error) {
	c := &call{r: &http.Request{Header: http.Header{"Idempotency-Key": lines}}}
	return c.idempotencyKey()
}

func Find(s *Server, r *http.Request) (pattern string, values map[string]string, err error) {
	routes, values, err := s.find(r)
	if len(routes) > 0 {
		pattern = routes[0].pattern
	}
	return pattern, values, err
}
