package httpapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/httpapi/problem"
)

// A spec is openapi.yaml with what was really answered.
type spec struct {
	doc     *openapi3.T
	schemas map[string]*jsonschema.Schema // by name
	mu      sync.Mutex
	seen    map[string]bool
}

var description = loadSpec()

func loadSpec() *spec {
	doc, err := openapi3.NewLoader().LoadFromData(httpapi.OpenAPI)
	if err != nil {
		panic(err)
	}
	s := &spec{doc: doc, schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{}}
	text, err := doc.MarshalJSON()
	if err != nil {
		panic(err)
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schemas := whole.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
	for _, schema := range schemas {
		// Clients ignore members that they do not know; here, one that is not
		// described is a mistake.
		if o := schema.(map[string]any); o["properties"] != nil && o["additionalProperties"] == nil {
			o["additionalProperties"] = false
		}
	}
	if err := compiler.AddResource("openapi.json", whole); err != nil {
		panic(err)
	}
	for name := range schemas {
		s.schemas[name] = compiler.MustCompile("openapi.json#/components/schemas/" + name)
	}
	return s
}

// find returns the described path that a path is.
func (s *spec) find(path string) (string, *openapi3.PathItem) {
	segments := strings.Split(path, "/")
	for pattern, item := range s.doc.Paths.Map() {
		if fits(strings.Split(pattern, "/"), segments) {
			return pattern, item
		}
	}
	return "", nil
}

func fits(pattern, segments []string) bool {
	if len(pattern) != len(segments) {
		return false
	}
	for i, want := range pattern {
		if strings.HasPrefix(want, "{") && segments[i] == "" || !strings.HasPrefix(want, "{") && segments[i] != want {
			return false
		}
	}
	return true
}

// check holds an answer against the description.
func (s *spec) check(method, target string, a reply) error {
	head := method == "HEAD"
	if head {
		if len(a.body) > 0 {
			return errors.New("HEAD with a body")
		}
		method = "GET"
		a.body = nil
	}
	pattern, item := s.find(target)
	if item == nil || item.GetOperation(method) == nil {
		if _, ok := problem.Decode(a.status, a.Header, a.body); !ok && !head && a.status != 204 {
			return fmt.Errorf("status %d where there is no route", a.status)
		}
		return nil
	}
	described := item.GetOperation(method).Responses.Status(a.status)
	if described == nil {
		return fmt.Errorf("status %d is not described: %s", a.status, a.body)
	}
	s.mu.Lock()
	s.seen[fmt.Sprintf("%s %s %d", method, pattern, a.status)] = true
	s.mu.Unlock()
	if len(described.Value.Content) == 0 {
		if len(a.body) > 0 {
			return fmt.Errorf("status %d has a body", a.status)
		}
		return nil
	}
	media := described.Value.Content.Get(a.Get("Content-Type"))
	if media == nil {
		return fmt.Errorf("Content-Type %q is not described for %d", a.Get("Content-Type"), a.status)
	}
	for name, h := range described.Value.Headers {
		if value := a.Get(name); value != "" {
			var v any = value
			if h.Value.Schema.Value.Type.Is("integer") {
				if err := json.Unmarshal([]byte(value), &v); err != nil {
					return fmt.Errorf("header %s: %w", name, err)
				}
			}
			if err := h.Value.Schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020()); err != nil {
				return fmt.Errorf("header %s: %w", name, err)
			}
		}
	}
	if media.Schema.Value.Type.Is("string") || a.body == nil {
		return nil
	}
	return s.fitsSchema(path.Base(media.Schema.Ref), a.body)
}

// fitsSchema holds a JSON text against a schema of that name.
func (s *spec) fitsSchema(name string, text []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.schemas[name].Validate(v)
}

// After all tests: whatever the description says was really answered once.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.fuzz").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""
	if code == 0 && whole {
		for pattern, item := range description.doc.Paths.Map() {
			for method, op := range item.Operations() {
				for status := range op.Responses.Map() {
					if line := method + " " + pattern + " " + status; !description.seen[line] {
						fmt.Println("described, and answered by no test:", line)
						code = 1
					}
				}
			}
		}
	}
	os.Exit(code)
}
