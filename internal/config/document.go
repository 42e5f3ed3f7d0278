package config

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

// document knows where the members of the file stand.
type document struct {
	path string
	file *ast.File
}

// second is where the second document begins: at its "---", or else, after a "...",
// at its first word.
func (d *document) second() string {
	at := d.file.Docs[1].Start
	if body := d.file.Docs[1].Body; at == nil && body != nil {
		at = body.GetToken()
	}
	if at == nil {
		return d.path
	}
	return fmt.Sprintf("%s:%d", d.path, at.Position.Line)
}

// syntax turns an error of the YAML package into "file:line:column: member:
// what is wrong, and what is expected", followed by the lines around it.
func (d *document) syntax(err error) error {
	var positioned yaml.Error
	if !errors.As(err, &positioned) {
		return fmt.Errorf("%s: %w", d.path, err)
	}
	at := positioned.GetToken()
	excerpt := strings.TrimSpace(positioned.FormatError(false, true))
	if i := strings.IndexByte(excerpt, '\n'); i >= 0 {
		excerpt = excerpt[i+1:]
	}
	return fmt.Errorf("%s:%d:%d: %s\n%s", d.path, at.Position.Line, at.Position.Column, d.tell(positioned, at), excerpt)
}

// tell says in the file's own words what the YAML package says in those of Go.
func (d *document) tell(err error, at *token.Token) string {
	path, _ := pathTo(d.body(), at, nil)
	member := dotted(path)
	if member != "" {
		member += ": "
	}
	var unknown *yaml.UnknownFieldError
	var twice *yaml.DuplicateKeyError
	var syntax *yaml.SyntaxError
	var overflow *yaml.OverflowError
	switch {
	case errors.As(err, &unknown):
		parent := typeAt(path[:max(len(path)-1, 0)])
		return fmt.Sprintf("there is no member %q here: there are %s", at.Value, strings.Join(members(parent), ", "))
	case errors.As(err, &twice):
		return told(twice.Message)
	case errors.As(err, &syntax) && repeated.MatchString(syntax.Message):
		return told(syntax.Message)
	case errors.As(err, &syntax):
		return fmt.Sprintf("this is not YAML: %s", syntax.Message)
	case errors.As(err, &overflow):
		return fmt.Sprintf("%s%s is too large", member, at.Value)
	}
	want := wanted(typeAt(path))
	switch at.Type {
	case token.SequenceStartType, token.SequenceEntryType:
		return fmt.Sprintf("%sa list stands here: write %s", member, want)
	case token.MappingStartType, token.MappingValueType:
		return fmt.Sprintf("%smembers stand here: write %s", member, want)
	}
	return fmt.Sprintf("%s%q stands here: write %s", member, at.Value, want)
}

// repeated is how the YAML package tells of a member that is there twice.
var repeated = regexp.MustCompile(`^mapping key (".*") already defined at \[(\d+):\d+\]$`)

func told(message string) string {
	return repeated.ReplaceAllString(message, "$1 is there twice, the first time in line $2: keep one")
}

// plain turns an error of package encoding/json, about a part that another package
// reads, into one in the file's own words, about the member itself.
func (d *document) plain(path []string, err error) ([]string, error) {
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return d.named(path, name), fmt.Errorf("there is no such member%s", known(path))
	}
	var sort *json.UnmarshalTypeError
	if !errors.As(err, &sort) {
		return path, err
	}
	stands := map[string]string{"array": "a list", "object": "members", "bool": "true or false", "number": "a number", "string": "text"}[sort.Value]
	if stands == "" {
		stands = sort.Value
	}
	if sort.Field != "" {
		path = append(path[:len(path):len(path)], strings.Split(sort.Field, ".")...)
	}
	return path, fmt.Errorf("%s stands here: write %s", stands, wanted(sort.Type))
}

// known lists what may stand in a part that another package reads.
func known(path []string) string {
	owners := map[string]reflect.Type{"contract": reflect.TypeFor[contract.Contract](), "http": reflect.TypeFor[effect.HTTPSpec]()}
	owner := owners[path[len(path)-1]]
	if owner == nil {
		return ""
	}
	var list []string
	if owner == owners["contract"] {
		list = append(list, "preset")
	}
	for i := range owner.NumField() {
		if name, _, _ := strings.Cut(owner.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			list = append(list, name)
		}
	}
	return fmt.Sprintf(": %s has %s", path[len(path)-1], strings.Join(list, ", "))
}

// named finds the first member of that name below path.
func (d *document) named(path []string, name string) []string {
	var find func(node ast.Node, path []string) []string
	find = func(node ast.Node, path []string) []string {
		for _, v := range values(node) {
			here := append(path[:len(path):len(path)], v.Key.GetToken().Value)
			if here[len(here)-1] == name {
				return here
			}
			if found := find(v.Value, here); found != nil {
				return found
			}
		}
		return nil
	}
	node := d.body()
	for _, part := range path {
		for _, v := range values(node) {
			if v.Key.GetToken().Value == part {
				node = v.Value
				break
			}
		}
	}
	if found := find(node, path); found != nil {
		return found
	}
	return path
}

// wanted names what a value of a type is written as.
func wanted(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "text" // such as a duration
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Map:
		return "members (name: value)"
	case reflect.Slice:
		return "a list ([a, b])"
	case reflect.Struct:
		if list := members(t); len(list) > 0 {
			return "members (name: value): " + strings.Join(list, ", ")
		}
		return "members (name: value)"
	}
	return "text"
}

// typeAt is the type of the member at path.
func typeAt(path []string) reflect.Type {
	t := reflect.TypeFor[Config]()
	for _, name := range path {
		switch t.Kind() {
		case reflect.Map, reflect.Slice:
			t = t.Elem()
		case reflect.Struct:
			for i := range t.NumField() {
				if t.Field(i).Tag.Get("yaml") == name {
					t = t.Field(i).Type
					break
				}
			}
		}
	}
	return t
}

// members are the names of a mapping's members, in the order of the source.
func members(t reflect.Type) []string {
	var list []string
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if name := t.Field(i).Tag.Get("yaml"); name != "" {
				list = append(list, name)
			}
		}
	}
	return list
}

func (d *document) body() ast.Node {
	if d.file == nil || len(d.file.Docs) == 0 { // it is not YAML
		return nil
	}
	return d.file.Docs[0].Body
}

// at names the line of the deepest member of path that is there.
func (d *document) at(err error, path ...string) error {
	return fmt.Errorf("%s: %s: %w", d.line(path), dotted(path), err)
}

// line is "file:line" of the deepest member of path that is there.
func (d *document) line(path []string) string {
	return fmt.Sprintf("%s:%d", d.path, lineOf(d.body(), path, 1))
}

// dotted writes a path as in accounts.acme.tokens[0].hash.
func dotted(path []string) string {
	var b strings.Builder
	for i, name := range path {
		if _, err := strconv.Atoi(name); err == nil {
			b.WriteString("[" + name + "]")
			continue
		}
		if i > 0 {
			b.WriteString(".")
		}
		b.WriteString(name)
	}
	return b.String()
}

// values are the members of a mapping; one with a single member is a node of its
// own in some forms.
func values(node ast.Node) []*ast.MappingValueNode {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

func lineOf(node ast.Node, path []string, line int) int {
	if node == nil || len(path) == 0 {
		return line
	}
	for _, v := range values(node) {
		if key := v.Key.GetToken(); key.Value == path[0] {
			return lineOf(v.Value, path[1:], key.Position.Line)
		}
	}
	if list, ok := node.(*ast.SequenceNode); ok {
		for i, v := range list.Values {
			if strconv.Itoa(i) == path[0] {
				return lineOf(v, path[1:], v.GetToken().Position.Line)
			}
		}
	}
	return line
}

// pathTo finds the member whose name or value begins at that token.
func pathTo(node ast.Node, at *token.Token, path []string) ([]string, bool) {
	if node == nil {
		return nil, false
	}
	here := func(t *token.Token) bool { return t != nil && t.Position.Offset == at.Position.Offset }
	for _, v := range values(node) {
		member := append(path[:len(path):len(path)], v.Key.GetToken().Value)
		if here(v.Key.GetToken()) {
			return member, true
		}
		if found, ok := pathTo(v.Value, at, member); ok {
			return found, true
		}
	}
	if list, ok := node.(*ast.SequenceNode); ok {
		for i, v := range list.Values {
			if found, ok := pathTo(v, at, append(path[:len(path):len(path)], strconv.Itoa(i))); ok {
				return found, true
			}
		}
	}
	return path, here(node.GetToken())
}
