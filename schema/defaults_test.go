package schema_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestDefaults(t *testing.T) {
	const draft7 = `"$schema":"http://json-schema.org/draft-07/schema#",`
	tests := []struct{ name, schema, params, want string }{
		{"present", `{"properties":{"a":{"default":1}}}`, `{"a":2}`, `{"a":2}`},
		{"absent", `{"properties":{"a":{"default":1}}}`, `{}`, `{"a":1}`},
		{"null is not absent", `{"properties":{"a":{"default":1}}}`, `{"a":null}`, `{"a":null}`},
		{"default null", `{"properties":{"a":{"default":null}}}`, `{}`, `{"a":null}`},
		{"no object", `{"properties":{"a":{"default":1}}}`, `[{}]`, `[{}]`},
		{"required", `{"properties":{"a":{"default":1}},"required":["a"]}`, `{}`, `{"a":1}`},
		{"parent present", `{"properties":{"o":{"properties":{"a":{"default":1}}}}}`, `{"o":{}}`, `{"o":{"a":1}}`},
		{"parent absent", `{"properties":{"o":{"properties":{"a":{"default":1}}}}}`, `{}`, `{}`},
		{"parent by default", `{"properties":{"o":{"default":{"b":2},"properties":{"a":{"default":1}}}}}`, `{}`, `{"o":{"a":1,"b":2}}`},
		{"in items", `{"properties":{"list":{"items":{"properties":{"a":{"default":1}}}}}}`, `{"list":[{},{"a":2},3,[{}]]}`, `{"list":[{"a":1},{"a":2},3,[{}]]}`},
		{"in items of items", `{"items":{"items":{"properties":{"a":{"default":[]}}}}}`, `[[{}],[]]`, `[[{"a":[]}],[]]`},
		{"in prefixItems", `{"prefixItems":[true,{"properties":{"a":{"default":1}}}],"items":{"properties":{"b":{"default":2}}}}`, `[{},{},{}]`, `[{},{"a":1},{"b":2}]`},
		{"in items, draft 7", `{` + draft7 + `"items":{"properties":{"a":{"default":1}}}}`, `[{}]`, `[{"a":1}]`},
		{"in a list of items, draft 7", `{` + draft7 + `"items":[true,{"properties":{"a":{"default":1}}}],"additionalItems":{"properties":{"b":{"default":2}}}}`, `[{},{},{}]`, `[{},{"a":1},{"b":2}]`},
		{"through a reference", `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"default":1}}}`, `{}`, `{"a":1}`},
		{"beside a reference", `{"properties":{"a":{"$ref":"#/$defs/a","default":2}},"$defs":{"a":{"default":1}}}`, `{}`, `{"a":2}`},
		{"through the root's reference", `{"$ref":"#/$defs/o","$defs":{"o":{"properties":{"a":{"default":1}}}}}`, `{}`, `{"a":1}`},
		{"through an anchor", `{"$ref":"#o","$defs":{"o":{"$anchor":"o","properties":{"a":{"default":1}}}}}`, `{}`, `{"a":1}`},
		{"with an identifier", `{"$id":"https://example.com/k","$ref":"other","$defs":{"o":{"$id":"other","properties":{"a":{"default":1}}}}}`, `{}`, `{"a":1}`},
		{"in allOf", `{"allOf":[{"properties":{"a":{"default":1}}},{"properties":{"a":{"default":2},"b":{"default":3}}}]}`, `{}`, `{"a":1,"b":3}`},
		{"nested in allOf", `{"properties":{"o":{"properties":{"a":{"default":1}}}},"allOf":[{"properties":{"o":{"properties":{"b":{"default":2}}}}}]}`, `{"o":{}}`, `{"o":{"a":1,"b":2}}`},
		{"in additionalProperties", `{"properties":{"x":true},"additionalProperties":{"properties":{"a":{"default":1}}}}`, `{"x":{},"y":{}}`, `{"x":{},"y":{"a":1}}`},
		{"in patternProperties", `{"patternProperties":{"^p":{"properties":{"a":{"default":1}}},"q$":{"properties":{"a":{"default":2},"b":{"default":3}}}}}`, `{"p":{},"pq":{},"r":{}}`, `{"p":{"a":1},"pq":{"a":1,"b":3},"r":{}}`},
		{"recursive", `{"properties":{"n":{"default":0},"kids":{"items":{"$ref":"#"}}}}`, `{"kids":[{"kids":[{}]}]}`, `{"kids":[{"kids":[{"n":0}],"n":0}],"n":0}`},
		{"default of items means nothing", `{"items":{"default":1},"default":[]}`, `[null]`, `[null]`},
		{"escapes", `{"properties":{"<&>\u2028":{"default":"<&>\u2028\n"}}}`, `{}`, "{\"<&>\u2028\":\"<&>\u2028\\n\"}"},
		{"same definition twice", `{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"},"c":{"items":{"$ref":"#/$defs/x"}}},"$defs":{"x":{"default":5}}}`, `{"b":6,"c":[1]}`, `{"a":5,"b":6,"c":[1]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := compile(t, tt.schema, nil)
			got, digest := normalize(t, c, tt.params)
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			again, same := normalize(t, c, got)
			if again != got || same != digest {
				t.Errorf("normalizing twice gives %s", again)
			}
		})
	}
}

// What Normalize returns has to be readable again.
func TestDefaultsDoNotMakeADocumentTooDeep(t *testing.T) {
	c := compile(t, `{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"kid":{"$ref":"#/$defs/n"},"deep":{"default":`+strings.Repeat("[", 900)+strings.Repeat("]", 900)+`}}}}}`, nil)
	nested := func(n int) string { return strings.Repeat(`{"kid":`, n) + `{}` + strings.Repeat(`}`, n) }
	got, _ := normalize(t, c, nested(99))
	normalize(t, c, got)
	if _, _, err := c.Normalize([]byte(nested(100))); err == nil || !strings.Contains(err.Error(), "nests more than 1000 levels deep") {
		t.Errorf("got %v", err)
	}
}

// An allOf that fans out at every level must not take time exponential in the
// levels.
func TestSharedReferences(t *testing.T) {
	const levels = 60
	var defs []string
	for i := range levels {
		defs = append(defs, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	s := fmt.Sprintf(`{"properties":{"x":{"$ref":"#/$defs/d%d"},"y":{"$ref":"#/$defs/d0"}},"$defs":{%s,"d%d":{"properties":{"a":{"default":1}}}}}`,
		levels-3, strings.Join(defs, ","), levels)
	if got, _ := normalize(t, compile(t, s, nil), `{"x":{}}`); got != `{"x":{"a":1}}` {
		t.Error(got)
	}
}
