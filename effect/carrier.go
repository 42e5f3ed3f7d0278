package effect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/semel-dev/semel/contract"
)

// place returns the first place of the carrier that the method and the URL allow.
func (h *HTTP) place(c contract.Carrier) (contract.Place, bool) {
	for _, p := range append([]contract.Place{c.Place}, c.Or...) {
		switch p.In {
		case "":
			continue
		case contract.InBody, contract.InDirective:
			if !hasBody(h.spec.Method) {
				continue
			}
		case contract.InPath:
			if !h.url.has("key", p.Name) {
				continue
			}
		}
		return p, true
	}
	return contract.Place{}, false
}

func hasBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// carry puts the key into a request, and returns the body to send. A key in the
// path is there already.
func carry(c contract.Carrier, p contract.Place, req *http.Request, body []byte, wire, bare string) ([]byte, error) {
	switch p.In {
	case contract.InHeader:
		req.Header[http.CanonicalHeaderKey(p.Name)] = []string{wire}
	case contract.InQuery:
		q := req.URL.Query()
		q.Set(p.Name, bare)
		req.URL.RawQuery = q.Encode()
	case contract.InBody:
		return splice(body, p.Name, bare)
	case contract.InDirective:
		pointer, err := directiveVariable(body, p.Name)
		if err != nil {
			return nil, err
		}
		return splice(body, pointer, bare)
	}
	return body, nil
}

var directiveName = regexp.MustCompile(`^@(\w+)\((\w+)\)$`)

// directiveVariable finds the GraphQL variable that the query gives to the
// directive, and returns the JSON Pointer of its value.
func directiveVariable(body []byte, name string) (string, error) {
	m := directiveName.FindStringSubmatch(name)
	if m == nil {
		return "", fmt.Errorf("%q is not a directive with its argument", name)
	}
	query, _ := textAt(body, "/query")
	use := regexp.MustCompile(`@` + m[1] + `\s*\([^)]*\b` + m[2] + `\s*:\s*\$(\w+)`).FindStringSubmatch(query)
	if use == nil {
		return "", fmt.Errorf("the query does not give a variable to %s", name)
	}
	return "/variables/" + use[1], nil
}

// splice sets the member under a JSON Pointer to a string. All other bytes stay
// as they are: numbers, order and white space are somebody else's. Objects that
// are missing on the way are made.
func splice(doc []byte, pointer, value string) ([]byte, error) {
	steps := pointerSteps(pointer)
	dec := json.NewDecoder(bytes.NewReader(doc))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, errors.New("the request is not a JSON object, so it can't carry a key")
	}
	for i, step := range steps {
		open := int(dec.InputOffset())
		found, empty, err := seek(dec, step)
		switch {
		case err != nil:
			return nil, err
		case !found:
			return replace(doc, open, open, newMember(steps[i:], value, empty)), nil
		case i == len(steps)-1:
			var old json.RawMessage
			if err := dec.Decode(&old); err != nil {
				return nil, errors.New("the request is not JSON")
			}
			end := int(dec.InputOffset())
			return replace(doc, end-len(old), end, quote(value)), nil
		}
		if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
			return nil, fmt.Errorf("the request has something else than an object on the way to %s", pointer)
		}
	}
	return nil, errors.New("the pointer is empty")
}

// seek moves the decoder, which is inside an object, behind the name of a member.
func seek(dec *json.Decoder, name string) (found, empty bool, err error) {
	empty = true
	for dec.More() {
		empty = false
		tok, err := dec.Token()
		if err != nil {
			return false, false, errors.New("the request is not JSON")
		}
		if tok == name {
			return true, false, nil
		}
		var skipped json.RawMessage
		if err := dec.Decode(&skipped); err != nil {
			return false, false, errors.New("the request is not JSON")
		}
	}
	return false, empty, nil
}

// newMember writes a member, with the objects that lead to it.
func newMember(steps []string, value string, alone bool) string {
	text := quote(value)
	for i := len(steps) - 1; i > 0; i-- {
		text = "{" + quote(steps[i]) + ":" + text + "}"
	}
	text = quote(steps[0]) + ":" + text
	if !alone {
		text += ","
	}
	return text
}

func replace(doc []byte, from, to int, text string) []byte {
	out := make([]byte, 0, len(doc)+len(text))
	out = append(append(out, doc[:from]...), text...)
	return append(out, doc[to:]...)
}

func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(s) // a string: cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
