package contract_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-dev/semel/contract"
)

// source is what the package's own comments say of its types.
type source struct {
	fields map[string]map[string]string // type, field, comment
	values map[string][]string          // type of words, its words in order
	types  map[string]string            // type, comment
	words  map[string]string            // name of a constant, its word
	notes  map[string][]string          // type of words, what its comments say of single words
}

func readSource(t *testing.T) source {
	s := source{map[string]map[string]string{}, map[string][]string{}, map[string]string{}, map[string]string{}, map[string][]string{}}
	for _, file := range []string{"contract.go", "key.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				s.read(g)
			}
		}
	}
	return s
}

func (s source) read(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.types[spec.Name.Name] = oneLine(g.Doc)
			st, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			fields := map[string]string{}
			for _, f := range st.Fields.List {
				for _, name := range f.Names {
					fields[name.Name] = oneLine(f.Doc, f.Comment)
				}
			}
			s.fields[spec.Name.Name] = fields
		case *ast.ValueSpec:
			ident, ok := spec.Type.(*ast.Ident)
			lit, isText := spec.Values[0].(*ast.BasicLit)
			if !ok || !isText {
				continue
			}
			word := "`" + strings.Trim(lit.Value, `"`) + "`"
			s.values[ident.Name] = append(s.values[ident.Name], word)
			s.words[spec.Names[0].Name] = word
			if note := oneLine(spec.Doc, spec.Comment); note != "" {
				note = strings.TrimPrefix(note, spec.Names[0].Name+": ")
				s.notes[ident.Name] = append(s.notes[ident.Name], word+": "+note)
			}
		}
	}
}

var docLink = regexp.MustCompile(`\[([A-Za-z0-9.]+)\]`)

// say turns a comment of the source into a line of the page: constants become their words, and fields their names in
// JSON.
func (s source) say(comment string, f reflect.StructField) string {
	comment = docLink.ReplaceAllStringFunc(comment, func(link string) string {
		name := strings.Trim(link, "[]")
		if word, ok := s.words[name]; ok {
			return word
		}
		return "`" + strings.ToLower(strings.NewReplacer("CodeAt", "code_at").Replace(name)) + "`"
	})
	if rest, ok := strings.CutPrefix(comment, f.Name+" "); ok {
		comment = "`" + jsonName(f) + "` " + rest
	}
	return escape(comment)
}

// oneLine returns the first comment that is there, on one line.
func oneLine(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if g != nil {
			return strings.Join(strings.Fields(g.Text()), " ")
		}
	}
	return ""
}

// reference writes one table for each axis: field, what may stand there, what it means.
func reference(t *testing.T, b *strings.Builder) {
	s := readSource(t)
	b.WriteString("\n## The axes\n")
	axes := reflect.TypeFor[contract.Contract]()
	for i := range axes.NumField() {
		axis := axes.Field(i)
		if axis.Type.Kind() != reflect.Struct {
			continue
		}
		name := jsonName(axis)
		fmt.Fprintf(b, "\n### `%s`\n\n%s\n\n| field | value | meaning |\n|---|---|---|\n", name, s.types[axis.Type.Name()])
		s.rows(t, b, axis.Type)
		s.noteList(b, axis.Type)
	}
}

// noteList writes what the source says of single words.
func (s source) noteList(b *strings.Builder, typ reflect.Type) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Anonymous {
			s.noteList(b, f.Type)
			continue
		}
		word := f.Type
		if word.Kind() == reflect.Slice {
			word = word.Elem()
		}
		if len(s.notes[word.Name()]) == 0 {
			continue
		}
		fmt.Fprintf(b, "\nThe values of `%s`:\n\n", jsonName(f))
		for _, note := range s.notes[word.Name()] {
			fmt.Fprintf(b, "- %s\n", s.say(note, f))
		}
	}
}

func (s source) rows(t *testing.T, b *strings.Builder, typ reflect.Type) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Anonymous {
			s.rows(t, b, f.Type)
			continue
		}
		meaning := s.fields[typ.Name()][f.Name]
		if meaning == "" {
			t.Errorf("%s.%s has no comment", typ.Name(), f.Name)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", jsonName(f), s.valueWords(f.Type), s.say(meaning, f))
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func (s source) valueWords(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[contract.Duration]():
		return "time span, as in `24h` or `30d`"
	case reflect.TypeFor[contract.Match]():
		return "answer"
	case reflect.TypeFor[contract.Mark]():
		return "`{header, value}`"
	case reflect.TypeFor[contract.Place]():
		return "`{in, name}`"
	case reflect.TypeFor[contract.AgainSign]():
		return "`{header, yes, no}`"
	}
	switch t.Kind() {
	case reflect.Slice:
		return "list of " + s.valueWords(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "number"
	}
	if words := s.values[t.Name()]; len(words) > 0 {
		return strings.Join(words, ", ")
	}
	return "text"
}
