package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonschema "github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/message"

	"github.com/semel-dev/semel/fingerprint"
)

// Options says which parts of the parameters make one request differ from
// another, as paths of a [fingerprint.Projection]. All of them are validated,
// executed and stored, whether they count or not.
type Options struct {
	// Include are the paths that count. Defaults to everything.
	Include []string
	// Exclude are paths that do not count, such as a time stamp. Defaults to
	// none.
	Exclude []string
}

// location is where the library believes the schema to be, in a place of its
// own. It shows in no message.
const (
	noPlace  = "semel:///"
	location = noPlace + "schema"
)

// canonV1 names how this package reads a definition. A change of what defaults
// or a projection mean needs another name.
const canonV1 = "json-schema-v1"

// Compile makes the Canon of a kind from its JSON Schema. The error says what is
// wrong in the schema or in opts, and where; it wraps an [*Error] if the schema
// breaks a rule of JSON Schema or of this package.
func Compile(kind string, schemaJSON []byte, opts *Options) (*Canon, error) {
	doc, err := fingerprint.Parse(schemaJSON)
	if err != nil {
		return nil, fmt.Errorf("schema of kind %q: %w", kind, err)
	}
	if opts == nil {
		opts = new(Options)
	}
	c, err := compile(kind, doc, opts.Include, opts.Exclude)
	if err != nil {
		return nil, fmt.Errorf("schema of kind %q: %w", kind, err)
	}
	return c, nil
}

// Recompile makes a Canon from a stored [Canon.Definition]. It has the version
// that it had then.
func Recompile(kind string, definition []byte) (*Canon, error) {
	doc, err := fingerprint.Parse(definition)
	if err != nil {
		return nil, fmt.Errorf("definition of kind %q: %w", kind, err)
	}
	canon, _ := doc.Get("canon")
	switch canon.Text() {
	case "json":
		return JSON(kind), nil
	case canonV1:
	default:
		return nil, fmt.Errorf("definition of kind %q: canon %q is not known to this release", kind, canon.Text())
	}
	sch, ok := doc.Get("schema")
	include, okI := paths(doc, "include")
	exclude, okE := paths(doc, "exclude")
	if !ok || !okI || !okE {
		return nil, fmt.Errorf("definition of kind %q: it needs a schema, and lists of strings as include and exclude", kind)
	}
	c, err := compile(kind, sch, include, exclude)
	if err != nil {
		return nil, fmt.Errorf("definition of kind %q: %w", kind, err)
	}
	return c, nil
}

func paths(doc fingerprint.Value, name string) (list []string, ok bool) {
	v, _ := doc.Get(name)
	for _, p := range v.Items() {
		if p.Type() != fingerprint.String {
			return nil, false
		}
		list = append(list, p.Text())
	}
	return list, v.Type() == fingerprint.Array
}

func compile(kind string, doc fingerprint.Value, include, exclude []string) (*Canon, error) {
	projection, err := fingerprint.NewProjection(include, exclude)
	if err != nil {
		return nil, err
	}
	if err := checkNumbers(doc); err != nil {
		return nil, err
	}
	root, err := compileSchema(doc)
	if err != nil {
		return nil, err
	}
	all := reach(root)
	if err := refuseDynamic(all); err != nil {
		return nil, err
	}
	if err := checkSizes(doc, all); err != nil {
		return nil, err
	}
	mendPropertyNames(all)
	defaults, err := newDefaults(all)
	if err != nil {
		return nil, err
	}
	definition, err := define(doc, include, exclude)
	if err != nil {
		return nil, err
	}
	version := fingerprint.NewBuilder("definition")
	version.JSON("definition", definition)
	return &Canon{
		kind:       kind,
		version:    version.Sum(),
		definition: fingerprint.AppendCanonical(nil, definition),
		schema:     fingerprint.AppendCanonical(nil, doc),
		root:       root,
		defaults:   defaults,
		projection: projection,
	}, nil
}

// define makes the definition. The order of paths means nothing, so it is not
// kept.
func define(doc fingerprint.Value, include, exclude []string) (fingerprint.Value, error) {
	list := func(pointers []string) (fingerprint.Value, error) {
		var items []fingerprint.Value
		for _, p := range slices.Compact(slices.Sorted(slices.Values(pointers))) {
			item, err := fingerprint.StringOf(p)
			if err != nil {
				return item, fmt.Errorf("path %q: %w", p, err)
			}
			items = append(items, item)
		}
		return fingerprint.ArrayOf(items...), nil
	}
	in, err := list(include)
	if err != nil {
		return in, err
	}
	ex, err := list(exclude)
	if err != nil {
		return ex, err
	}
	canon, err := fingerprint.StringOf(canonV1)
	if err != nil {
		return canon, err
	}
	return fingerprint.ObjectOf(fingerprint.Member{Name: "canon", Value: canon}, fingerprint.Member{Name: "exclude", Value: ex},
		fingerprint.Member{Name: "include", Value: in}, fingerprint.Member{Name: "schema", Value: doc})
}

func compileSchema(doc fingerprint.Value) (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	compiler.AssertFormat()
	if err := compiler.AddResource(location, toAny(doc)); err != nil {
		return nil, err
	}
	root, err := compiler.Compile(location)
	if err == nil {
		return root, nil
	}
	var invalid *jsonschema.SchemaValidationError
	var violated *jsonschema.ValidationError
	var load *jsonschema.LoadURLError
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &violated):
		return nil, newError(violated)
	case errors.As(err, &load):
		return nil, fmt.Errorf("it refers to %q, but nothing is ever loaded: put that schema under $defs and refer to it from there", strings.TrimPrefix(load.URL, noPlace))
	}
	return nil, errors.New(strings.ReplaceAll(err.Error(), location, ""))
}

// noLoader refuses to load anything: a schema must not read files of the server
// or call out, and must mean the same tomorrow.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("not loaded") }

// refuseDynamic keeps out the two keywords whose meaning depends on the way by
// which a schema was reached. They are for schemas of schemas.
func refuseDynamic(all []*jsonschema.Schema) error {
	var found violations
	for _, s := range all {
		if s.DynamicRef != nil || s.RecursiveRef != nil {
			found.add(tokens(s), "uses $dynamicRef or $recursiveRef; use $ref")
		}
	}
	return found.err()
}

// sizes are the keywords that the library keeps as a machine integer.
var sizes = []string{"minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties"}

// checkSizes refuses a size that no document has: the library would keep some
// other number in its place, and refuse everything or nothing.
func checkSizes(doc fingerprint.Value, all []*jsonschema.Schema) error {
	var found violations
	for _, s := range all {
		at := tokens(s)
		here := lookup(doc, at)
		for _, keyword := range sizes {
			size, ok := here.Get(keyword)
			if ok && size.Type() == fingerprint.Number && len(fingerprint.AppendCanonical(nil, size)) > len("999999999") {
				found.add(append(slices.Clip(at), keyword), "must be less than 1000000000; leave it out if there is no limit")
			}
		}
	}
	return found.err()
}

// mendPropertyNames takes the keyword propertyNames over from the library, whose
// report of it can name the place of another object: the report shares memory
// with the walk, which goes on and overwrites it.
func mendPropertyNames(all []*jsonschema.Schema) {
	for _, s := range all {
		if s.PropertyNames != nil {
			s.Extensions = append(s.Extensions, propertyNames{s.PropertyNames})
			s.PropertyNames = nil
		}
	}
}

type propertyNames struct{ names *jsonschema.Schema }

func (p propertyNames) Validate(ctx *jsonschema.ValidatorContext, v any) {
	object, _ := v.(map[string]any)
	for name := range object {
		var why *jsonschema.ValidationError
		if errors.As(p.names.Validate(name), &why) {
			ctx.AddError(badName{name, why})
		}
	}
}

// badName is a member name that propertyNames does not allow.
type badName struct {
	name string
	why  *jsonschema.ValidationError
}

func (badName) KeywordPath() []string { return []string{"propertyNames"} }

func (b badName) LocalizedString(*message.Printer) string { return badMemberName(b.why) }
