package effect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// A template is a URL with variables behind its host:
//
//	{key}              the key at the external service
//	{name}             the same, where the contract's key travels in the path under this name
//	{params:/pointer}  a string, number or boolean in the parameters
type template struct {
	host  string
	parts []part
}

type part struct {
	text    string // literal text, or the variable's name
	pointer string // for a variable "params"
	isVar   bool
	inQuery bool
}

var variable = regexp.MustCompile(`\{([^{}]*)\}`)

func parseTemplate(text string) (template, error) {
	var t template
	literal := variable.ReplaceAllString(text, "x")
	u, err := url.Parse(literal)
	if err != nil {
		return t, fmt.Errorf("%q is not a URL", text)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return t, fmt.Errorf("%q is not an absolute http or https URL", text)
	case u.User != nil:
		return t, errors.New("the URL holds a user name; credentials go into secret_headers")
	case u.Fragment != "" || strings.Contains(literal, "#"):
		return t, fmt.Errorf("%q has a fragment, which is never sent", text)
	case strings.ContainsAny(literal, "{}"):
		return t, fmt.Errorf("%q has a brace that belongs to no variable", text)
	case !strings.HasPrefix(text, u.Scheme+"://"+u.Host):
		return t, fmt.Errorf("%q has a variable in its host; they may only stand behind it", text)
	}
	t.host = u.Host
	at, query := 0, false
	for _, m := range variable.FindAllStringSubmatchIndex(text, -1) {
		before, name := text[at:m[0]], text[m[2]:m[3]]
		query = query || strings.Contains(before, "?")
		t.parts = append(t.parts, part{text: before})
		p := part{text: name, isVar: true, inQuery: query}
		if pointer, ok := strings.CutPrefix(name, "params:"); ok {
			p.text, p.pointer = "params", pointer
			if !strings.HasPrefix(pointer, "/") {
				return t, fmt.Errorf("{%s}: a JSON Pointer begins with a slash", name)
			}
		} else if name == "" {
			return t, fmt.Errorf("%q has a variable without a name", text)
		}
		t.parts = append(t.parts, p)
		at = m[1]
	}
	t.parts = append(t.parts, part{text: text[at:]})
	return t, nil
}

// has reports whether there is a variable of one of these names.
func (t template) has(names ...string) bool {
	for _, p := range t.parts {
		for _, name := range names {
			if p.isVar && p.text == name {
				return true
			}
		}
	}
	return false
}

// unknown returns the first variable that is none of ours.
func (t template) unknown(pathName string) string {
	for _, p := range t.parts {
		if p.isVar && p.text != "key" && p.text != "params" && p.text != pathName {
			return p.text
		}
	}
	return ""
}

// expand fills in the variables. A value that would change the meaning of the
// path (empty, "." or "..") is refused.
func (t template) expand(key string, params []byte) (*url.URL, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if !p.isVar {
			b.WriteString(p.text)
			continue
		}
		value := key
		if p.text == "params" {
			var ok bool
			if value, ok = textAt(params, p.pointer); !ok {
				return nil, fmt.Errorf("the parameters have no text or number at %s, which the URL needs", p.pointer)
			}
		}
		switch {
		case p.inQuery:
			b.WriteString(url.QueryEscape(value))
		case value == "" || value == "." || value == "..":
			return nil, errors.New("a value would change the meaning of the URL's path")
		default:
			b.WriteString(url.PathEscape(value))
		}
	}
	return url.Parse(b.String())
}

// decode reads one JSON document with numbers as they are written.
func decode(doc []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// textAt returns the string, number or boolean under a JSON Pointer, as text.
func textAt(doc []byte, pointer string) (string, bool) {
	v, err := decode(doc)
	if err != nil {
		return "", false
	}
	return textIn(v, pointer)
}

func textIn(v any, pointer string) (string, bool) {
	switch at, _ := valueIn(v, pointer); at := at.(type) {
	case string:
		return at, true
	case json.Number:
		return at.String(), true
	case bool:
		return fmt.Sprint(at), true
	}
	return "", false
}

// valueIn returns the value under a JSON Pointer (RFC 6901).
func valueIn(v any, pointer string) (any, bool) {
	if pointer == "" {
		return v, true
	}
	for _, step := range pointerSteps(pointer) {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i := indexIn(step, len(at))
			if i < 0 {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func pointerSteps(pointer string) []string {
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, s := range steps {
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	return steps
}

// indexIn reads an array index without sign or leading zeros; -1 where it is none.
func indexIn(step string, length int) int {
	if step == "" || len(step) > 9 || len(step) > 1 && step[0] == '0' {
		return -1
	}
	i := 0
	for _, c := range step {
		if c < '0' || c > '9' {
			return -1
		}
		i = i*10 + int(c-'0')
	}
	if i >= length {
		return -1
	}
	return i
}

func checkPointer(name, pointer string) error {
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		return fmt.Errorf("%s: %q is not a JSON Pointer; it begins with a slash", name, pointer)
	}
	return nil
}
