package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
)

// The description is a valid OpenAPI 3.1 document, and the code has exactly its
// routes, methods and statuses. Every answer of every test is held against its
// schemas too, and after the last test each described answer must have been seen.
func TestDescriptionIsTheCode(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(httpapi.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	var described []string
	for pattern, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			var statuses []int
			for status := range op.Responses.Map() {
				n, _ := strconv.Atoi(status)
				statuses = append(statuses, n)
			}
			slices.Sort(statuses)
			described = append(described, fmt.Sprint(method, " ", pattern, " ", statuses))
		}
	}
	w := newWorld(t, nil)
	inCode := httpapi.Interface(w.server)
	slices.Sort(described)
	slices.Sort(inCode)
	for _, line := range described {
		if !slices.Contains(inCode, line) {
			t.Errorf("described, and not in the code: %s", line)
		}
	}
	for _, line := range inCode {
		if !slices.Contains(described, line) {
			t.Errorf("in the code, and not described: %s", line)
		}
	}
}

// Every code that there is can stand in a problem.
func TestDescriptionKnowsTheCodes(t *testing.T) {
	var described []semel.Code
	for _, v := range description.doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		described = append(described, semel.Code(v.(string)))
	}
	codes := semel.Codes()
	slices.Sort(codes)
	slices.Sort(described)
	if !slices.Equal(codes, described) {
		t.Errorf("\n%v\n%v", codes, described)
	}
}

func TestServesItsDescription(t *testing.T) {
	w := newWorld(t, nil)
	a := w.do("GET", "/openapi.yaml", nobody).is(200).has("Content-Type", "application/yaml")
	if string(a.body) != string(httpapi.OpenAPI) {
		t.Error("it is another one")
	}
}

// Whatever route: who is there comes first, and a mistake or an outage in finding
// that out is a problem like any other.
func TestEveryRouteAsksWhoIsThere(t *testing.T) {
	hooks := map[int]func(*http.Request) (httpapi.Identity, error){
		401: func(*http.Request) (httpapi.Identity, error) {
			return httpapi.Identity{}, fmt.Errorf("password is %s", secret)
		},
		403: func(*http.Request) (httpapi.Identity, error) { return httpapi.Identity{}, semel.ErrForbidden },
		500: func(*http.Request) (httpapi.Identity, error) { panic("it is " + secret) },
		503: func(*http.Request) (httpapi.Identity, error) { return httpapi.Identity{}, semel.ErrUnavailable },
	}
	for status, hook := range hooks {
		w := newWorld(t, func(s *setup) { s.server.Authenticate = hook })
		for pattern, item := range description.doc.Paths.Map() {
			for method, op := range item.Operations() {
				if op.Responses.Status(500) == nil { // open to everybody
					continue
				}
				a := w.do(method, pathOf(pattern), body("{}"))
				if a.status != status {
					t.Errorf("%s %s: %d instead of %d", method, pattern, a.status, status)
				}
				if status == 401 {
					a.has("WWW-Authenticate", `Bearer realm="semel"`)
				}
			}
		}
	}
}

var variables = strings.NewReplacer("{account}", "acme", "{kind}", "note", "{operation_id}", "n1")

func pathOf(pattern string) string {
	return variables.Replace(pattern)
}
