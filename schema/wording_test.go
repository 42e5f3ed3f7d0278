package schema_test

import (
	"testing"
)

func TestWording(t *testing.T) {
	const draft7 = `"$schema":"http://json-schema.org/draft-07/schema#",`
	tests := []struct{ schema, params, want string }{
		{`{"const":{"b":1.50,"a":"<"}}`, `1`, `must be {"a":"<","b":1.5}`},
		{`{"enum":[1]}`, `2`, `must be 1`},
		{`{"enum":[1,null,"x",[]]}`, `2`, `must be one of 1, null, "x", []`},
		{`{"enum":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]}`, `-1`, `must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, …`},
		{`{"type":["string","null"]}`, `1`, `must be null or a string, not a number`},
		{`{"type":"object"}`, `true`, `must be an object, not a boolean`},
		{`{"type":["integer","string"]}`, `1.5`, `must be a whole number or a string`},
		{`{"format":"date-time"}`, `"today"`, `must have the format "date-time"`},
		{`{"format":"no-such-format"}`, `"today"`, ``},
		{`{"pattern":"^[a-z]+$"}`, `"A"`, `must match the pattern ^[a-z]+$`},
		{`{"exclusiveMinimum":0.10}`, `0.1`, `must be more than 0.1`},
		{`{"exclusiveMaximum":-1e300}`, `5`, `must be less than -1e+300`},
		{`{"minProperties":1}`, `{}`, `must have at least 1 member, and has 0`},
		{`{"maxProperties":0}`, `{"a":1}`, `must have at most 0 members, and has 1`},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, `must not have the same item twice; items 0 and 2 are equal`},
		{`{"contains":{"const":1}}`, `[2]`, `lacks an item of the form that one of its items must have`},
		{`{"contains":{"const":1},"minContains":2}`, `[1]`, `must have at least 2 items of a certain form, and has 1`},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,1]`, `must have at most 1 item of a certain form, and has 2`},
		{`{"not":{"type":"string"}}`, `"a"`, `has a form that is not allowed`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `/a: is not allowed here`},
		{`{"unevaluatedProperties":false}`, `{"a":1}`, `/a: is not allowed here`},
		{`{"prefixItems":[true],"items":false}`, `[1,2]`, `/1: is not allowed here`},
		{`{` + draft7 + `"items":[true],"additionalItems":false}`, `[1,2,3]`, `has 2 items too many`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, `1`, `must be more than 1`},
		{`{"$schema":"http://json-schema.org/draft-06/schema#","contains":{"const":1}}`, `[2]`, `lacks an item of the form that one of its items must have`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","unevaluatedItems":false}`, `[2]`, `/0: is not allowed here`},
		{`{"dependentRequired":{"a":["b","c"]}}`, `{"a":1}`, `/b: is missing, and required beside "a"; /c: is missing, and required beside "a"`},
		{`{` + draft7 + `"dependencies":{"a":["b"]}}`, `{"a":1}`, `/b: is missing, and required beside "a"`},
		{`{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":1}`, `/b: is missing, and required`},
		{`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, `/b: is missing, and required`},
		{`{"allOf":[{"minimum":3},{"multipleOf":2}]}`, `1`, `must be a multiple of 2; must be at least 3`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"minimum":3}}}`, `1`, `must be at least 3`},
		{`{"anyOf":[{"type":"null"},{"properties":{"a":{"minimum":3}}}]}`, `{"a":1}`, `has none of the allowed forms (the first: must be null, not an object; the second: /a: must be at least 3)`},
		{`{"anyOf":[false,false,false,false]}`, `1`, `has none of the allowed forms (the first: is not allowed here; the second: is not allowed here; the third: is not allowed here; …)`},
		{`{"oneOf":[{"type":"null"}]}`, `1`, `has none of the allowed forms (the first: must be null, not a number)`},
		{`{"oneOf":[{"type":"null"},{"type":"string"},{"minimum":3},{"minimum":4}]}`, `5`, `has two of the allowed forms at once, the third and the 4th; it may have one only`},
		{`{"propertyNames":{"maxLength":3}}`, `{"long":1}`, `/long: is not an allowed member name; a name must have at most 3 characters, and has 4`},
		{`{"not":{"propertyNames":{"maxLength":3}}}`, `{"abc":1}`, `has a form that is not allowed`},
		{`{"not":{"propertyNames":{"maxLength":3}}}`, `{"long":1}`, ``},
	}
	for _, tt := range tests {
		_, _, err := compile(t, tt.schema, nil).Normalize([]byte(tt.params))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s by %s:\ngot  %s\nwant %s", tt.params, tt.schema, got, tt.want)
		}
	}
}

// A violation is named where it is, even if the document goes on after it.
func TestPlaceOfPropertyNames(t *testing.T) {
	c := compile(t, `{"additionalProperties":{"items":{"propertyNames":{"maxLength":3}}}}`, nil)
	_, _, err := c.Normalize([]byte(`{"a":[{"x":1},{"long":1},{"y":1}],"b":[{"x":1},{"y":1},{"z":1}],"c":[{},{},{},{}]}`))
	if err == nil || err.Error() != "/a/1/long: is not an allowed member name; a name must have at most 3 characters, and has 4" {
		t.Error(err)
	}
}

// Item 10 comes after item 9.
func TestOrderOfViolations(t *testing.T) {
	c := compile(t, `{"properties":{"list":{"items":{"type":"string"}}}}`, nil)
	_, _, err := c.Normalize([]byte(`{"list":["","",1,"","","","","","","",1]}`))
	if err == nil || err.Error() != "/list/2: must be a string, not a number; /list/10: must be a string, not a number" {
		t.Error(err)
	}
}
