package schema

import (
	"iter"
	"maps"
	"slices"

	jsonschema "github.com/santhosh-tekuri/jsonschema/v6"
)

// reach lists a schema and every schema in or behind it, each once, the root
// first.
func reach(root *jsonschema.Schema) []*jsonschema.Schema {
	list := []*jsonschema.Schema{root}
	seen := map[*jsonschema.Schema]bool{root: true}
	for i := 0; i < len(list); i++ {
		for _, next := range []iter.Seq[*jsonschema.Schema]{certain(list[i]), uncertain(list[i])} {
			for s := range next {
				if !seen[s] {
					seen[s] = true
					list = append(list, s)
				}
			}
		}
	}
	return list
}

// certain yields the schemas that apply to a value, or to a part of it, because
// of nothing but its place. Defaults are filled in through these.
func certain(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return subschemas(s.Ref, s.AllOf, s.Properties, slices.Collect(maps.Values(s.PatternProperties)), s.AdditionalProperties,
		s.PrefixItems, s.Items2020, s.Items, s.AdditionalItems)
}

// uncertain yields the others: whether these apply depends on what a value
// looks like, or on the way by which it was reached.
func uncertain(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	var dynamic *jsonschema.Schema
	if s.DynamicRef != nil {
		dynamic = s.DynamicRef.Ref
	}
	parts := []any{s.AnyOf, s.OneOf, s.Not, s.If, s.Then, s.Else, s.DependentSchemas, s.Contains, s.PropertyNames,
		s.UnevaluatedProperties, s.UnevaluatedItems, s.RecursiveRef, dynamic, s.ContentSchema}
	for _, dep := range s.Dependencies {
		parts = append(parts, dep)
	}
	return subschemas(parts...)
}

// subschemas yields what the parts of a schema hold: the library's types for a
// part are a schema, a list or a map of schemas, or something that is none.
func subschemas(parts ...any) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		for _, part := range parts {
			var list []*jsonschema.Schema
			switch part := part.(type) {
			case *jsonschema.Schema:
				list = []*jsonschema.Schema{part}
			case []*jsonschema.Schema:
				list = part
			case map[string]*jsonschema.Schema:
				list = slices.Collect(maps.Values(part))
			}
			for _, s := range list {
				if s != nil && !yield(s) {
					return
				}
			}
		}
	}
}
