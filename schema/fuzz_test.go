package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/semel-dev/semel/schema"
)

// Whatever is sent, the answer is parameters that normalize to themselves, or
// an Error with a place.
func FuzzNormalize(f *testing.F) {
	c := compile(f, menuExport, &schema.Options{Exclude: []string{"/days/*/day"}})
	f.Add([]byte(menu))
	f.Add([]byte(`{"title":"t","days":[{"day":"d","dishes":["x"]}],"width":8e2,"theme":"dark"}`))
	f.Add([]byte(`{"title":"","days":[{}],"width":1e99999,"theme":1,"x":{}}`))
	f.Fuzz(func(t *testing.T, params []byte) { judge(t, c, params) })
}

// Whatever the schema, it is refused with an error, or it works.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		menuExport, `true`, `{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"kid":{"$ref":"#/$defs/n"},"v":{"default":1}}}}}`,
		`{"items":{"properties":{"a":{"type":"object","default":{}}},"patternProperties":{"^x":{"properties":{"b":{"default":2}}}}}}`,
		`{"allOf":[{"properties":{"a":{"default":1}}}],"additionalProperties":{"anyOf":[{"type":"null"},{"const":1e5}]}}`,
		`{"propertyNames":{"pattern":"^a"},"dependentRequired":{"a":["b"]},"uniqueItems":true,"multipleOf":0.01}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","minimum":1,"exclusiveMinimum":true,"dependencies":{"a":["b"]}}`,
	} {
		f.Add([]byte(s), []byte(menu), "/days")
		f.Add([]byte(s), []byte(`[{},{"a":{}},{"xy":{}}]`), "/*/a")
	}
	f.Fuzz(func(t *testing.T, schemaJSON, params []byte, exclude string) {
		if len(schemaJSON) > 2000 || len(params) > 2000 {
			return
		}
		c, err := schema.Compile("k", schemaJSON, &schema.Options{Exclude: []string{exclude}})
		if err != nil {
			return
		}
		again, err := schema.Recompile("k", c.Definition())
		if err != nil || again.Version() != c.Version() {
			t.Fatalf("%s: %v", c.Definition(), err)
		}
		judge(t, c, params)
		judge(t, again, params)
	})
}

func judge(t *testing.T, c *schema.Canon, params []byte) {
	once, digest, err := c.Normalize(params)
	if err != nil {
		var bad *schema.Error
		if !errors.As(err, &bad) || len(bad.Violations) == 0 || len(bad.Violations) > schema.MaxViolations {
			t.Fatalf("%q: %v", params, err)
		}
		return
	}
	twice, same, err := c.Normalize(once)
	if err != nil || !bytes.Equal(once, twice) || digest != same || !json.Valid(once) {
		t.Fatalf("%q became %q and then %q, %v", params, once, twice, err)
	}
	if differ := c.Differ(once, params); differ != nil {
		t.Fatalf("%q differs from itself in %q", params, differ)
	}
	if _, err := c.AsSent(params); err != nil {
		t.Fatal(err)
	}
}
