/*
Package schema makes a kind's JSON Schema the judge of its requests: which are
valid, what their defaults are, and which of them are the same request.

	canon, err := schema.Compile("menu-export", schemaJSON, nil)
	…
	params, fingerprint, err := canon.Normalize(body)

[Canon.Normalize] reads the parameters strictly (see package fingerprint), fills
in the defaults, validates, and returns the parameters to execute and store, in
canonical form, with the fingerprint under which they are compared. {"width":800}
present or absent, when 800 is the default: the same parameters, the same
fingerprint.

# Schemas

Drafts 4, 6, 7, 2019-09 and 2020-12; without "$schema" it is 2020-12. Formats
("date-time", "uuid", "email", …) are checked; unknown ones are ignored, as the
standard says. Lengths count characters (code points). Patterns are RE2: no
look-ahead, no back-references, and none can be made slow. A schema is complete
in itself: nothing is ever loaded from a file or an address. $dynamicRef and
$recursiveRef, which are for schemas of schemas, are refused.

Numbers are decimals and stay exact, in bounds, in "multipleOf", in "enum" and in
defaults. To bound the work of validation, a number in parameters or schema may
have at most 1000 digits and an exponent of at most 1000 in its canonical form;
a kind without a schema ([JSON]) takes any.

# Defaults

The "default" of a property is filled in where an object is present and the
property is not, also in items of arrays, in additionalProperties and
patternProperties, through "$ref" and "allOf", and in what was filled in itself.
An object that is absent is not created for the sake of what is in it, null is
not absent, and a required property that has a default may be left out. Defaults
are filled in before the parameters are validated.

A default that violates its own schema is refused by [Compile]. So is one that
could not be filled in with certainty, because it depends on what the parameters
look like: below anyOf, oneOf, not, if, contains and their kin.

# Definitions

What [Compile] makes is named by [Canon.Version], which goes into the
fingerprint, and can be stored as [Canon.Definition] and made again by
[Recompile]. So a retry can be compared under the schema that its operation was
accepted under, whatever the schema is today.

A [*Canon] is immutable and safe for concurrent use.

Validation is by github.com/santhosh-tekuri/jsonschema, which compares numbers
exactly and reports every violation with its place. Defaults are this package's
own: that library has none, and google/jsonschema-go makes doubles of them and
leaves the items of arrays out.
*/
package schema

import (
	jsonschema "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/semel-dev/semel/fingerprint"
)

// Canon is the canonicaliser of one kind: one schema and one projection. Make
// it with [Compile], [Recompile] or [JSON].
type Canon struct {
	kind       string
	version    string
	definition []byte
	schema     []byte
	root       *jsonschema.Schema // nil: any JSON document
	defaults   defaults
	projection *fingerprint.Projection
}

// JSON is the Canon of a kind without a schema: any JSON document is valid, has
// no defaults, and counts as a whole.
func JSON(kind string) *Canon {
	return &Canon{kind: kind, version: "json", definition: []byte(`{"canon":"json"}`), schema: []byte("true")}
}

// Version names the schema and the projection: "json", or the fingerprint of the
// [Canon.Definition]. It is part of every fingerprint that Normalize returns.
func (c *Canon) Version() string { return c.version }

// Definition is all that [Recompile] needs, a JSON object.
func (c *Canon) Definition() []byte { return append([]byte(nil), c.definition...) }

// Schema is the JSON Schema in canonical form; "true", which any document
// satisfies, for a kind without one.
func (c *Canon) Schema() []byte { return append([]byte(nil), c.schema...) }

// AsSent is the fingerprint of the parameters as they came, with the kind. It
// does not depend on the schema. An error is an [*Error]: the parameters are
// not strict JSON.
func (c *Canon) AsSent(params []byte) (string, error) {
	v, err := parse(params)
	if err != nil {
		return "", err
	}
	return fingerprint.AsSent(c.kind, v), nil
}

// Normalize checks params and returns them with their defaults, in canonical
// form, and the fingerprint of what the projection leaves of that. Normalizing
// the result changes nothing. An error is an [*Error] that names each violation.
func (c *Canon) Normalize(params []byte) (normalized []byte, digest string, err error) {
	v, err := parse(params)
	if err != nil {
		return nil, "", err
	}
	if c.root != nil {
		if err := checkNumbers(v); err != nil {
			return nil, "", err
		}
		if v, err = c.defaults.fill(v, c.root); err != nil {
			return nil, "", err
		}
		if err := validate(c.root, v); err != nil {
			return nil, "", err
		}
	}
	normalized = fingerprint.AppendCanonical(make([]byte, 0, len(params)+64), v)
	return normalized, fingerprint.Normalised(c.kind, c.version, c.projection.Apply(v)), nil
}

// Differ names the places where stored parameters, as Normalize returned them,
// and params differ after defaults and projection: JSON Pointers, no values, as
// many as [fingerprint.Differ] gives. params need not be valid; if they are not
// even strict JSON, the answer is the whole document, "".
func (c *Canon) Differ(stored, params []byte) []string {
	a, errA := fingerprint.Parse(stored)
	b, errB := fingerprint.Parse(params)
	if errA != nil || errB != nil {
		return []string{""}
	}
	if c.root != nil {
		if filled, err := c.defaults.fill(b, c.root); err == nil {
			b = filled
		}
	}
	return fingerprint.Differ(c.projection.Apply(a), c.projection.Apply(b))
}

// parse makes an [*Error] of what fingerprint.Parse says.
func parse(params []byte) (fingerprint.Value, error) {
	v, err := fingerprint.Parse(params)
	if err != nil {
		return v, &Error{Violations: []Violation{{Message: err.Error()}}, Err: err}
	}
	return v, nil
}
