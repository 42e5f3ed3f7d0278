package fingerprint_test

import (
	"strings"
	"testing"

	"github.com/semel-dev/semel/fingerprint"
)

func TestProjection(t *testing.T) {
	list := func(s string) []string {
		if s == "-" {
			return nil
		}
		return strings.Fields(strings.ReplaceAll(s, `""`, ` `+"\x00"+` `))
	}
	tests := []struct{ include, exclude, doc, want string }{
		{"-", "-", `{"a":1}`, `{"a":1}`},
		{"-", "/t", `{"a":1,"t":2}`, `{"a":1}`},
		{"-", "/t", `{"a":1}`, `{"a":1}`},
		{"-", "/a/b", `{"a":{"b":1}}`, `{"a":{}}`},
		{"-", "/a/b", `{"a":5}`, `{"a":5}`},
		{"-", "/t", `[1]`, `[1]`},
		{"-", "/t", `1`, `1`},
		{"-", "/items/*/id", `{"items":[{"id":1,"n":2},{"n":3}]}`, `{"items":[{"n":2},{"n":3}]}`},
		{"-", "/*/id", `{"x":{"id":1,"n":2},"y":[1]}`, `{"x":{"n":2},"y":[1]}`},
		{"-", "/a/0", `{"a":[1,2]}`, `{"a":[null,2]}`},
		{"-", "/a/1", `{"a":[1,2]}`, `{"a":[1]}`},
		{"-", "/a/1", `{"a":[1]}`, `{"a":[1]}`},
		{"-", "/a/*", `{"a":[1,2]}`, `{"a":[]}`},
		{"-", "/a/1 /a/2", `{"a":[null,2,3]}`, `{"a":[null]}`},
		{"-", "/a~1b /c~0d", `{"a/b":1,"c~d":2,"e":3}`, `{"e":3}`},
		{"-", "/", `{"":1,"a":2}`, `{"a":2}`},
		{"-", "/a/01", `{"a":[1,2]}`, `{"a":[1,2]}`},
		{"-", "/a/* /a/b/c", `{"a":{"b":{"c":1},"d":1}}`, `{"a":{}}`},
		{"/a", "-", `{"a":1,"b":2}`, `{"a":1}`},
		{"/a", "-", `{"b":2}`, `{}`},
		{"/a", "-", `{}`, `{}`},
		{"/a", "-", `[1,2]`, `[]`},
		{"/a", "-", `7`, `null`},
		{"/a/b", "-", `{"a":{"b":1,"c":2},"d":3}`, `{"a":{"b":1}}`},
		{"/a/b", "-", `{"a":{"c":2}}`, `{}`},
		{"/a/b", "-", `{"a":5}`, `{}`},
		{"/a/1", "-", `{"a":[1,2,3]}`, `{"a":[null,2]}`},
		{"/a/*/n", "-", `{"a":[{"n":1,"x":2},{"x":3},{"n":null},{}]}`, `{"a":[{"n":1},null,{"n":null}]}`},
		{"/a /a/b", "-", `{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":2}}`},
		{"/*/x /k/y", "-", `{"k":{"x":1,"y":2,"z":3},"j":{"x":1,"y":2}}`, `{"j":{"x":1},"k":{"x":1,"y":2}}`},
		{"/a", "/a/t", `{"a":{"t":1,"u":2},"b":1}`, `{"a":{"u":2}}`},
		{"/a", "/a/t", `{"a":{"t":1}}`, `{"a":{}}`},
		{"/a/t", "/a", `{"a":{"t":1}}`, `{}`},
		{"/a/*/n", "/a/1", `{"a":[{},{"n":1}]}`, `{}`},
		{"/b /a", "-", `{"b":1,"a":2,"c":3}`, `{"a":2,"b":1}`},
		{`""`, "-", `{"a":1}`, `{"a":1}`},
		{`""`, "/a", `{"a":1,"b":2}`, `{"b":2}`},
	}
	for _, tt := range tests {
		include := list(tt.include)
		for i := range include {
			include[i] = strings.Trim(include[i], "\x00")
		}
		p, err := fingerprint.NewProjection(include, list(tt.exclude))
		if err != nil {
			t.Errorf("include %s, exclude %s: %v", tt.include, tt.exclude, err)
			continue
		}
		got := p.Apply(must(t, tt.doc))
		if canon(got) != tt.want {
			t.Errorf("include %s, exclude %s of %s: got %s, want %s", tt.include, tt.exclude, tt.doc, canon(got), tt.want)
		}
		if again := p.Apply(got); canon(again) != tt.want {
			t.Errorf("include %s, exclude %s of %s: applied twice, %s", tt.include, tt.exclude, tt.doc, canon(again))
		}
	}
}

func TestNilProjection(t *testing.T) {
	var p *fingerprint.Projection
	if got := canon(p.Apply(must(t, `{"a":1}`))); got != `{"a":1}` {
		t.Error(got)
	}
}

func TestBadProjection(t *testing.T) {
	for _, tt := range []struct{ path, says string }{
		{"a", `"a" is not a JSON Pointer: it has to start with "/"`},
		{"$.a", `start with "/"`},
		{"/a~", `"~" is written as "~0"`},
		{"/a~2b", `"~" is written as "~0"`},
	} {
		for _, build := range []func() (*fingerprint.Projection, error){
			func() (*fingerprint.Projection, error) { return fingerprint.NewProjection([]string{tt.path}, nil) },
			func() (*fingerprint.Projection, error) {
				return fingerprint.NewProjection(nil, []string{"/ok", tt.path})
			},
		} {
			if _, err := build(); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("path %q: %v", tt.path, err)
			}
		}
	}
	if _, err := fingerprint.NewProjection(nil, []string{""}); err == nil {
		t.Error("the whole document can be excluded")
	}
}

func TestPointers(t *testing.T) {
	for pointer, tokens := range map[string][]string{
		"": nil, "/": {""}, "/a": {"a"}, "/a/0": {"a", "0"}, "/a~1b/~0/~01": {"a/b", "~", "~1"}, "//": {"", ""}, "/é/ ": {"é", " "},
	} {
		got, err := fingerprint.SplitPointer(pointer)
		if err != nil || strings.Join(got, "\n") != strings.Join(tokens, "\n") || len(got) != len(tokens) {
			t.Errorf("SplitPointer(%q) is %q, %v", pointer, got, err)
		}
		if got := fingerprint.PointerOf(tokens...); got != pointer {
			t.Errorf("PointerOf(%q) is %q", tokens, got)
		}
	}
}
