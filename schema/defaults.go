package schema

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	jsonschema "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/semel-dev/semel/fingerprint"
)

// defaults fills in what parameters leave out. It has a rule for every schema.
type defaults map[*jsonschema.Schema]*rule

type rule struct {
	inPlace  []*jsonschema.Schema // what applies to the same value: the schema itself, $ref, allOf
	patterns []pattern            // patternProperties, in a fixed order
	named    []string             // the properties that have a default, in order
	needed   bool                 // whether a default may be due in a value or below it
	origin   *jsonschema.Schema   // which of inPlace has the default; nil if none
	value    fingerprint.Value    // the default, if there is one
}

type pattern struct {
	regexp jsonschema.Regexp
	schema *jsonschema.Schema
}

// newDefaults prepares the defaults of all schemas, the first of which is the
// root, and checks each of them.
func newDefaults(all []*jsonschema.Schema) (defaults, error) {
	d := defaults{}
	for _, s := range all {
		r := new(rule)
		if err := r.add(s, nil); err != nil {
			return nil, err
		}
		for re, sub := range s.PatternProperties {
			r.patterns = append(r.patterns, pattern{re, sub})
		}
		slices.SortFunc(r.patterns, func(a, b pattern) int { return strings.Compare(a.regexp.String(), b.regexp.String()) })
		d[s] = r
	}
	for s, r := range d {
		for name, sub := range s.Properties {
			if d[sub].origin != nil {
				r.named = append(r.named, name)
			}
		}
		slices.Sort(r.named)
	}
	d.spread(all)
	return d, d.check(all)
}

// add adds s, and all that applies to the same value with certainty, on being
// the way to s. The first default that is found there counts.
func (r *rule) add(s *jsonschema.Schema, on []*jsonschema.Schema) error {
	if slices.Contains(on, s) {
		return &Error{Violations: []Violation{{fingerprint.PointerOf(tokens(s)...), "refers to itself without end"}}}
	}
	if slices.Contains(r.inPlace, s) {
		return nil
	}
	r.inPlace = append(r.inPlace, s)
	if s.Default != nil && r.origin == nil {
		value, err := toValue(*s.Default)
		if err != nil {
			return err
		}
		r.origin, r.value = s, value
	}
	on = append(on, s)
	for _, next := range append([]*jsonschema.Schema{s.Ref}, s.AllOf...) {
		if next == nil {
			continue
		}
		if err := r.add(next, on); err != nil {
			return err
		}
	}
	return nil
}

// spread tells for every schema whether a default may be due below it, so that
// the rest of a document is left alone.
func (d defaults) spread(all []*jsonschema.Schema) {
	for changed := true; changed; {
		changed = false
		for _, s := range all {
			if d[s].needed || !d.due(s) {
				continue
			}
			d[s].needed, changed = true, true
		}
	}
}

func (d defaults) due(s *jsonschema.Schema) bool {
	if len(d[s].named) > 0 {
		return true
	}
	for sub := range certain(s) {
		if d[sub].needed {
			return true
		}
	}
	return false
}

// check refuses defaults that would be ignored, that never end, or that are
// wrong.
func (d defaults) check(all []*jsonschema.Schema) error {
	var found violations
	for _, s := range all {
		for sub := range uncertain(s) {
			if d[sub].needed || d[sub].origin != nil {
				found.add(tokens(sub), "has a default that cannot be filled in with certainty, since this part of the schema applies to some values only; give it to the property itself")
			}
		}
	}
	for _, s := range all {
		if d[s].origin == nil {
			continue
		}
		at := append(tokens(d[s].origin), "default")
		v, err := d.fill(d[s].value, s)
		if err == nil {
			err = validate(s, v)
		}
		var bad *Error
		if !errors.As(err, &bad) {
			continue
		}
		for _, b := range bad.Violations {
			below, _ := fingerprint.SplitPointer(b.Pointer)
			found.add(append(slices.Clip(at), below...), "breaks the schema that it is the default of: "+b.Message)
		}
	}
	return found.err()
}

// fill is v with the defaults of s.
func (d defaults) fill(v fingerprint.Value, s *jsonschema.Schema) (fingerprint.Value, error) {
	if !d[s].needed {
		return v, nil
	}
	v, ok := d.apply(v, d[s].inPlace, 0)
	if !ok {
		return v, &Error{Violations: []Violation{{Message: fmt.Sprintf("nests more than %d levels deep once defaults are filled in", fingerprint.MaxDepth)}}}
	}
	return v, nil
}

// apply reports false when the document becomes too deep.
func (d defaults) apply(v fingerprint.Value, schemas []*jsonschema.Schema, depth int) (fingerprint.Value, bool) {
	if len(schemas) == 0 || v.Type() != fingerprint.Array && v.Type() != fingerprint.Object {
		return v, true
	}
	if depth == fingerprint.MaxDepth {
		return v, false
	}
	if v.Type() == fingerprint.Array {
		return d.array(v, schemas, depth)
	}
	return d.object(v, schemas, depth)
}

func (d defaults) array(v fingerprint.Value, schemas []*jsonschema.Schema, depth int) (fingerprint.Value, bool) {
	items := make([]fingerprint.Value, 0, v.Len())
	for i, item := range v.Items() {
		var below []*jsonschema.Schema
		for _, s := range schemas {
			below = d.below(below, itemSchema(s, i))
		}
		item, ok := d.apply(item, below, depth+1)
		if !ok {
			return v, false
		}
		items = append(items, item)
	}
	return fingerprint.ArrayOf(items...), true
}

func (d defaults) object(v fingerprint.Value, schemas []*jsonschema.Schema, depth int) (fingerprint.Value, bool) {
	members := make([]fingerprint.Member, 0, v.Len()+4)
	for name, m := range v.Members() {
		members = append(members, fingerprint.Member{Name: name, Value: m})
	}
	for _, s := range schemas {
		for _, name := range d[s].named {
			if slices.ContainsFunc(members, func(m fingerprint.Member) bool { return m.Name == name }) {
				continue
			}
			value := d[s.Properties[name]].value
			if depth+1+levels(value) > fingerprint.MaxDepth {
				return v, false
			}
			members = append(members, fingerprint.Member{Name: name, Value: value})
		}
	}
	for i := range members {
		var below []*jsonschema.Schema
		for _, s := range schemas {
			below = d.member(below, s, members[i].Name)
		}
		m, ok := d.apply(members[i].Value, below, depth+1)
		if !ok {
			return v, false
		}
		members[i].Value = m
	}
	out, err := fingerprint.ObjectOf(members...)
	return out, err == nil
}

// levels is how deep arrays and objects nest in v.
func levels(v fingerprint.Value) int {
	deepest := 0
	for _, item := range v.Items() {
		deepest = max(deepest, levels(item))
	}
	for _, m := range v.Members() {
		deepest = max(deepest, levels(m))
	}
	if v.Type() == fingerprint.Array || v.Type() == fingerprint.Object {
		deepest++
	}
	return deepest
}

// member adds the schemas that s has for a member.
func (d defaults) member(below []*jsonschema.Schema, s *jsonschema.Schema, name string) []*jsonschema.Schema {
	sub, evaluated := s.Properties[name]
	below = d.below(below, sub)
	for _, p := range d[s].patterns {
		if p.regexp.MatchString(name) {
			evaluated = true
			below = d.below(below, p.schema)
		}
	}
	if more, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !evaluated {
		below = d.below(below, more)
	}
	return below
}

func (d defaults) below(list []*jsonschema.Schema, s *jsonschema.Schema) []*jsonschema.Schema {
	if s == nil || !d[s].needed {
		return list
	}
	return append(list, d[s].inPlace...)
}

// itemSchema is the schema that s has for item i of an array, in the terms of
// every draft; nil if there is none.
func itemSchema(s *jsonschema.Schema, i int) *jsonschema.Schema {
	if i < len(s.PrefixItems) {
		return s.PrefixItems[i]
	}
	if s.Items2020 != nil {
		return s.Items2020
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		return items
	case []*jsonschema.Schema:
		if i < len(items) {
			return items[i]
		}
		more, _ := s.AdditionalItems.(*jsonschema.Schema)
		return more
	}
	return nil
}

// tokens is where in the document a schema is.
func tokens(s *jsonschema.Schema) []string {
	_, fragment, _ := strings.Cut(s.Location, "#")
	at, err := url.PathUnescape(fragment)
	if err != nil {
		return nil
	}
	list, err := fingerprint.SplitPointer(at)
	if err != nil {
		return nil
	}
	return list
}
