package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	jsonschema "github.com/santhosh-tekuri/jsonschema/v6"
	broken "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/semel-dev/semel/fingerprint"
)

// validate returns nil or an [*Error].
func validate(s *jsonschema.Schema, v fingerprint.Value) error {
	err := s.Validate(toAny(v))
	if err == nil {
		return nil
	}
	var violated *jsonschema.ValidationError
	if !errors.As(err, &violated) {
		return &Error{Violations: []Violation{{Message: "cannot be validated"}}, Err: err}
	}
	return newError(violated)
}

// newError makes of the library's tree of errors one list, in words that say
// what to change and hold no value of the document.
func newError(e *jsonschema.ValidationError) error {
	var found violations
	found.collect(e)
	return found.err()
}

// collect goes down to what was broken in the end.
func (vs *violations) collect(e *jsonschema.ValidationError) {
	at := e.InstanceLocation
	each := func(names []string, message string) {
		for _, name := range names {
			vs.add(append(slices.Clone(at), name), message)
		}
	}
	switch k := e.ErrorKind.(type) {
	case *broken.Schema, *broken.Group, *broken.AllOf, *broken.Reference:
		for _, cause := range e.Causes {
			vs.collect(cause)
		}
	case *broken.Required:
		each(k.Missing, "is missing, and required")
	case *broken.DependentRequired:
		each(k.Missing, fmt.Sprintf("is missing, and required beside %q", k.Prop))
	case *broken.Dependency:
		each(k.Missing, fmt.Sprintf("is missing, and required beside %q", k.Prop))
	case *broken.AdditionalProperties:
		each(k.Properties, "is not a known member; remove it or correct its name")
	case *broken.PropertyNames: // of a schema; parameters have badName
		each([]string{k.Property}, badMemberName(e))
	case badName:
		each([]string{k.name}, badMemberName(k.why))
	case *broken.AnyOf:
		vs.add(at, "has none of the allowed forms"+forms(e.Causes))
	case *broken.OneOf:
		if len(k.Subschemas) > 0 {
			vs.add(at, fmt.Sprintf("has two of the allowed forms at once, the %s and the %s; it may have one only", ordinal(k.Subschemas[0]), ordinal(k.Subschemas[1])))
		} else {
			vs.add(at, "has none of the allowed forms"+forms(e.Causes))
		}
	default:
		vs.add(at, wording(k))
	}
}

// badMemberName says why a name is not allowed.
func badMemberName(e *jsonschema.ValidationError) string {
	var found violations
	for _, cause := range e.Causes {
		found.collect(cause)
	}
	var why *Error
	if !errors.As(found.err(), &why) {
		return "is not an allowed member name"
	}
	return "is not an allowed member name; a name " + why.Violations[0].Message
}

// forms says why each of a few alternatives does not fit.
func forms(causes []*jsonschema.ValidationError) string {
	const limit = 3
	var reasons []string
	for i, cause := range causes[:min(limit, len(causes))] {
		var found violations
		found.collect(cause)
		var why *Error
		if errors.As(found.err(), &why) {
			reasons = append(reasons, fmt.Sprintf("the %s: %s", ordinal(i), why.Violations[0]))
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	if len(causes) > limit {
		reasons = append(reasons, "…")
	}
	return " (" + strings.Join(reasons, "; ") + ")"
}

func ordinal(i int) string {
	if i < 3 {
		return [...]string{"first", "second", "third"}[i]
	}
	return fmt.Sprintf("%dth", i+1)
}

// wording is about the value at a place itself.
func wording(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *broken.Type:
		want := strings.Join(articles(k.Want), " or ")
		if k.Got == "number" && slices.Contains(k.Want, "integer") {
			return "must be " + want // and is a number, but not a whole one
		}
		return fmt.Sprintf("must be %s, not %s", want, article(k.Got))
	case *broken.Enum:
		return "must be " + oneOf(k.Want)
	case *broken.Const:
		return "must be " + show(k.Want)
	case *broken.Format:
		if k.Want == "regex" {
			return "must be a regular expression of RE2, which has no look-ahead and no back-references"
		}
		return fmt.Sprintf("must have the format %q", k.Want)
	case *broken.Pattern:
		return fmt.Sprintf("must match the pattern %s", k.Want)
	case *broken.MinLength:
		return fmt.Sprintf("must have at least %s, and has %d", count(k.Want, "character"), k.Got)
	case *broken.MaxLength:
		return fmt.Sprintf("must have at most %s, and has %d", count(k.Want, "character"), k.Got)
	case *broken.MinItems:
		return fmt.Sprintf("must have at least %s, and has %d", count(k.Want, "item"), k.Got)
	case *broken.MaxItems:
		return fmt.Sprintf("must have at most %s, and has %d", count(k.Want, "item"), k.Got)
	case *broken.AdditionalItems:
		return fmt.Sprintf("has %s too many", count(k.Count, "item"))
	case *broken.MinProperties:
		return fmt.Sprintf("must have at least %s, and has %d", count(k.Want, "member"), k.Got)
	case *broken.MaxProperties:
		return fmt.Sprintf("must have at most %s, and has %d", count(k.Want, "member"), k.Got)
	case *broken.UniqueItems:
		return fmt.Sprintf("must not have the same item twice; items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *broken.Contains:
		return "lacks an item of the form that one of its items must have"
	case *broken.MinContains:
		return fmt.Sprintf("must have at least %s of a certain form, and has %d", count(k.Want, "item"), len(k.Got))
	case *broken.MaxContains:
		return fmt.Sprintf("must have at most %s of a certain form, and has %d", count(k.Want, "item"), len(k.Got))
	case *broken.Minimum:
		return "must be at least " + decimal(k.Want)
	case *broken.Maximum:
		return "must be at most " + decimal(k.Want)
	case *broken.ExclusiveMinimum:
		return "must be more than " + decimal(k.Want)
	case *broken.ExclusiveMaximum:
		return "must be less than " + decimal(k.Want)
	case *broken.MultipleOf:
		return "must be a multiple of " + decimal(k.Want)
	case *broken.Not:
		return "has a form that is not allowed"
	case *broken.FalseSchema:
		return "is not allowed here"
	}
	// A keyword that the library learned after this was written. Its own words
	// may hold a value, so its name has to do.
	return "breaks the rule " + strings.Join(k.KeywordPath(), "/")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func article(typ string) string {
	switch typ {
	case "null":
		return typ
	case "integer":
		return "a whole number"
	case "array", "object":
		return "an " + typ
	}
	return "a " + typ
}

func articles(types []string) []string {
	var list []string
	for _, t := range types {
		list = append(list, article(t))
	}
	return list
}

// oneOf lists what the schema allows.
func oneOf(values []any) string {
	const limit = 20
	if len(values) == 1 {
		return show(values[0])
	}
	var list []string
	for _, v := range values[:min(limit, len(values))] {
		list = append(list, show(v))
	}
	if len(values) > limit {
		list = append(list, "…")
	}
	return "one of " + strings.Join(list, ", ")
}

// show prints a value of the schema.
func show(v any) string {
	const limit = 200
	value, err := toValue(v)
	if err != nil {
		return "the value that the schema gives"
	}
	text := fingerprint.AppendCanonical(nil, value)
	if len(text) > limit {
		return "the value that the schema gives"
	}
	return string(text)
}

// decimal prints a bound of the schema exactly. Every number of JSON is a
// fraction with an end.
func decimal(r *big.Rat) string {
	places, _ := r.FloatPrec()
	return show(json.Number(r.FloatString(places)))
}
