package schema_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel/schema"
)

func TestCompileRefuses(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(secret, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, schema, says string }{
		{"not JSON", `{`, "byte 1: not JSON"},
		{"same name twice", `{"type":"object","type":"array"}`, "duplicate member name"},
		{"not a schema", `[]`, "must be a boolean or an object, not an array"},
		{"unknown type", `{"properties":{"a":{"type":"objekt"}}}`, "/properties/a/type: has none of the allowed forms"},
		{"bad limits", `{"properties":{"a":{"minLength":-1}},"required":"a"}`, "/properties/a/minLength: must be at least 0; /required: must be an array, not a string"},
		{"size beyond every document", `{"properties":{"a/b%":{"allOf":[true,{"maxLength":18446744073709551615}]}}}`, "/properties/a~1b%/allOf/1/maxLength: must be less than 1000000000"},
		{"size in a part with an identifier", `{"$ref":"other","$defs":{"o":{"$id":"https://example.com/other","maxItems":1e20}},"$id":"https://example.com/k"}`, "/$defs/o/maxItems: must be less than 1000000000"},
		{"look-ahead", `{"pattern":"(?=x)"}`, "/pattern: must be a regular expression of RE2"},
		{"look-ahead in a name", `{"patternProperties":{"(?=x)":true}}`, "must be a regular expression of RE2"},
		{"unknown reference", `{"$ref":"#/$defs/none"}`, "#/$defs/none"},
		{"file", `{"$ref":"file://` + secret + `"}`, "nothing is ever loaded"},
		{"relative file", `{"properties":{"a":{"$ref":"other.json"}}}`, "nothing is ever loaded"},
		{"address", `{"$ref":"https://example.com/schema.json"}`, `it refers to "https://example.com/schema.json", but nothing is ever loaded`},
		{"unknown dialect", `{"$schema":"https://example.com/dialect"}`, "nothing is ever loaded"},
		{"endless reference", `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`, "refers to itself without end"},
		{"dynamic reference", `{"$dynamicRef":"#x","$defs":{"x":{"$dynamicAnchor":"x"}}}`, "use $ref"},
		{"default of the wrong type", `{"properties":{"width":{"type":"integer","default":"800"}}}`,
			"/properties/width/default: breaks the schema that it is the default of: must be a whole number, not a string"},
		{"default out of range", `{"properties":{"a":{"properties":{"w~/":{"maximum":9,"default":10}}}}}`, "/properties/a/properties/w~0~1/default: breaks the schema"},
		{"default out of range by a little", `{"properties":{"n":{"maximum":9007199254740992,"default":9007199254740993}}}`, "/properties/n/default: breaks the schema"},
		{"default deep inside", `{"properties":{"o":{"properties":{"x":{"type":"string"}},"default":{"x":1}}}}`, "/properties/o/default/x: breaks the schema"},
		{"default incomplete", `{"properties":{"o":{"required":["x"],"default":{}}}}`, "/properties/o/default/x: breaks the schema that it is the default of: is missing"},
		{"default too large for the reference's user", `{"properties":{"w":{"$ref":"#/$defs/w","maximum":5}},"$defs":{"w":{"default":8}}}`, "/$defs/w/default: breaks the schema"},
		{"default of items", `{"items":{"type":"string","default":1}}`, "/items/default: breaks the schema"},
		{"default without end", `{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n","default":{}}}}}}`, "/$defs/n/properties/next/default: breaks the schema that it is the default of: nests more than 1000 levels deep"},
		{"default under anyOf", `{"anyOf":[{"properties":{"a":{"default":1}}},{"type":"null"}]}`, "/anyOf/0: has a default that cannot be filled in with certainty"},
		{"default of one form", `{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}},"$defs":{"a":{"default":1}}}`, "/properties/a/anyOf/0: has a default"},
		{"default under oneOf", `{"oneOf":[{"items":{"properties":{"a":{"default":1}}}}]}`, "/oneOf/0: has a default"},
		{"default under if", `{"if":{"properties":{"a":{"const":1}}},"then":{"properties":{"b":{"default":1}}},"else":{"properties":{"b":{"default":2}}}}`, "/else: has a default"},
		{"default under dependentSchemas", `{"dependentSchemas":{"a":{"properties":{"b":{"default":1}}}}}`, "/dependentSchemas/a: has a default"},
		{"default under dependencies", `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"properties":{"b":{"default":1}}}}}`, "/dependencies/a: has a default"},
		{"default under contains", `{"contains":{"properties":{"b":{"default":1}}}}`, "/contains: has a default"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := schema.Compile("menu-export", []byte(tt.schema), nil)
			if err == nil || !strings.HasPrefix(err.Error(), `schema of kind "menu-export": `) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %s", err, tt.says)
			}
			if err != nil && (strings.Contains(err.Error(), "semel:") || strings.Count(err.Error(), "\n") > 0) {
				t.Errorf("the message shows how it is made: %v", err)
			}
		})
	}
}

func TestCompileErrorsNameTheirPlaces(t *testing.T) {
	_, err := schema.Compile("k", []byte(`{"properties":{"a":{"minLength":-1},"b":{"maximum":"x"}}}`), nil)
	var bad *schema.Error
	if !errors.As(err, &bad) || len(bad.Violations) != 2 || bad.Violations[0].Pointer != "/properties/a/minLength" || bad.Violations[1].Pointer != "/properties/b/maximum" {
		t.Errorf("got %v", err)
	}
}

func TestCompileRefusesPaths(t *testing.T) {
	for _, opts := range []schema.Options{
		{Include: []string{"title"}}, {Exclude: []string{"/ok", "title"}}, {Exclude: []string{"/~"}}, {Exclude: []string{""}}, {Exclude: []string{"/\xff"}},
	} {
		if _, err := schema.Compile("k", []byte(`true`), &opts); err == nil {
			t.Errorf("%q was accepted", opts)
		}
	}
	_, err := schema.Compile("k", []byte(`true`), &schema.Options{Exclude: []string{"sent_at"}})
	if err == nil || err.Error() != `schema of kind "k": exclude path "sent_at" is not a JSON Pointer: it has to start with "/"` {
		t.Error(err)
	}
}

func TestVersion(t *testing.T) {
	base := compile(t, menuExport, nil)
	same := []*schema.Canon{
		compile(t, strings.Join(strings.Fields(menuExport), " "), new(schema.Options)),
		compile(t, strings.Replace(menuExport, "800", "8e2", 1), &schema.Options{Include: []string{}}),
	}
	for _, c := range same {
		if c.Version() != base.Version() || string(c.Definition()) != string(base.Definition()) {
			t.Errorf("another spelling of the schema is another version: %s", c.Definition())
		}
	}
	other := map[string]*schema.Canon{
		"default":  compile(t, strings.Replace(menuExport, "800", "801", 1), nil),
		"include":  compile(t, menuExport, &schema.Options{Include: []string{"/title"}}),
		"exclude":  compile(t, menuExport, &schema.Options{Exclude: []string{"/title"}}),
		"excludes": compile(t, menuExport, &schema.Options{Exclude: []string{"/title", "/days"}}),
		"any":      compile(t, `true`, nil),
		"json":     schema.JSON("menu-export"),
	}
	versions := map[string]string{base.Version(): "base"}
	prints := map[string]string{}
	for name, c := range other {
		if was, ok := versions[c.Version()]; ok {
			t.Errorf("%s and %s have one version", name, was)
		}
		versions[c.Version()] = name
		_, digest := normalize(t, c, menu)
		if was, ok := prints[digest]; ok {
			t.Errorf("%s and %s have one fingerprint", name, was)
		}
		prints[digest] = name
	}
	a := compile(t, menuExport, &schema.Options{Exclude: []string{"/title", "/days", "/title"}})
	if a.Version() != other["excludes"].Version() {
		t.Error("the order of the paths counts")
	}
}

func TestRecompile(t *testing.T) {
	for name, c := range map[string]*schema.Canon{
		"menu":       compile(t, menuExport, nil),
		"projection": compile(t, menuExport, &schema.Options{Include: []string{"/title", "/width"}, Exclude: []string{"/days/*/day"}}),
		"any":        compile(t, `true`, nil),
		"json":       schema.JSON("menu-export"),
	} {
		again, err := schema.Recompile("menu-export", c.Definition())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wantText, want := normalize(t, c, menu)
		text, digest := normalize(t, again, menu)
		if again.Version() != c.Version() || string(again.Definition()) != string(c.Definition()) || text != wantText || digest != want {
			t.Errorf("%s: not the same after Recompile", name)
		}
	}
	for _, bad := range []string{`{`, `{}`, `[]`, `{"canon":"json-schema-v9"}`, `{"canon":"json-schema-v1"}`, `{"canon":"json-schema-v1","schema":true,"include":[],"exclude":[1]}`,
		`{"canon":"json-schema-v1","schema":true,"include":[],"exclude":["x"]}`, `{"canon":"json-schema-v1","schema":[],"include":[],"exclude":[]}`} {
		if _, err := schema.Recompile("menu-export", []byte(bad)); err == nil || !strings.HasPrefix(err.Error(), `definition of kind "menu-export": `) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Stored definitions and fingerprints outlive the program that made them.
func TestDefinitionsNeverChange(t *testing.T) {
	c := compile(t, `{"properties":{"width":{"default":800}}}`, &schema.Options{Exclude: []string{"/sent_at"}})
	if got, want := string(c.Definition()), `{"canon":"json-schema-v1","exclude":["/sent_at"],"include":[],"schema":{"properties":{"width":{"default":800}}}}`; got != want {
		t.Errorf("definition is %s", got)
	}
	if got, want := c.Version(), "v1:sha256:9bedc088b4ac343c857b4189c953256c361d9c3470980deee8921b6d7aae1ca5"; got != want {
		t.Errorf("version is %s", got)
	}
	if _, got := normalize(t, c, `{}`); got != "v1:sha256:af1ca52124dafe8f08aaa9fdc06c16af179e81fbd89e99004e1ba20ad9589bd8" {
		t.Errorf("fingerprint is %s", got)
	}
	if got := string(schema.JSON("k").Definition()); got != `{"canon":"json"}` {
		t.Errorf("definition is %s", got)
	}
}

// What a caller does with the bytes it got changes nothing.
func TestDefinitionIsACopy(t *testing.T) {
	c := compile(t, menuExport, nil)
	clear(c.Definition())
	clear(c.Schema())
	if c.Definition()[0] != '{' || c.Schema()[0] != '{' {
		t.Error("the definition can be changed from outside")
	}
}
