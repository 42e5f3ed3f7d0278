package schema_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/schema"
)

var _ semel.Canon = (*schema.Canon)(nil)

// menuExport is the schema of the example that runs through the project.
const menuExport = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"additionalProperties": false,
	"required": ["title", "days"],
	"properties": {
		"title": {"type": "string", "minLength": 1, "maxLength": 80},
		"days": {"type": "array", "minItems": 1, "maxItems": 7, "items": {
			"type": "object",
			"additionalProperties": false,
			"required": ["day", "dishes"],
			"properties": {
				"day": {"type": "string", "minLength": 1, "maxLength": 20},
				"dishes": {"type": "array", "minItems": 1, "maxItems": 20, "items": {"type": "string", "minLength": 1, "maxLength": 60}}
			}
		}},
		"theme": {"enum": ["light", "dark"], "default": "light"},
		"width": {"type": "integer", "minimum": 320, "maximum": 2400, "default": 800}
	}
}`

const menu = `{"title":"本周菜单","days":[{"day":"周一","dishes":["番茄炒蛋","米饭"]}]}`

func compile(t testing.TB, schemaJSON string, opts *schema.Options) *schema.Canon {
	t.Helper()
	c, err := schema.Compile("menu-export", []byte(schemaJSON), opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func normalize(t testing.TB, c *schema.Canon, params string) (string, string) {
	t.Helper()
	normalized, digest, err := c.Normalize([]byte(params))
	if err != nil {
		t.Fatalf("%s: %v", params, err)
	}
	return string(normalized), digest
}

func TestDefaultsDoNotCount(t *testing.T) {
	c := compile(t, menuExport, nil)
	want, digest := normalize(t, c, menu)
	if want != `{"days":[{"day":"周一","dishes":["番茄炒蛋","米饭"]}],"theme":"light","title":"本周菜单","width":800}` {
		t.Errorf("normalized is %s", want)
	}
	for _, same := range []string{
		`{"width":800,"title":"本周菜单","days":[{"day":"周一","dishes":["番茄炒蛋","米饭"]}]}`,
		`{"theme":"light","title":"本周菜单","days":[{"dishes":["番茄炒蛋","米饭"],"day":"周一"}]}`,
		" {\n\"days\" : [ { \"day\":\"\\u5468一\", \"dishes\":[\"番茄炒蛋\", \"米饭\"] } ], \"title\":\"本周菜单\", \"width\": 8.00e2 }\n",
		want,
	} {
		got, d := normalize(t, c, same)
		if got != want || d != digest {
			t.Errorf("%s: got %s, %s", same, got, d)
		}
		if differ := c.Differ([]byte(want), []byte(same)); differ != nil {
			t.Errorf("%s: differs in %q", same, differ)
		}
	}
	for _, other := range []string{
		strings.Replace(menu, "{", `{"width":801,`, 1),
		strings.Replace(menu, "{", `{"theme":"dark",`, 1),
		strings.Replace(menu, "米饭", "面条", 1),
	} {
		if _, d := normalize(t, c, other); d == digest {
			t.Errorf("%s has the same fingerprint", other)
		}
	}
}

func TestViolations(t *testing.T) {
	c := compile(t, menuExport, nil)
	long := strings.Repeat("长", 81)
	day := `{"day":"Mo","dishes":["x"]}`
	tests := []struct {
		params string
		want   []string
	}{
		{`{}`, []string{"/days: is missing, and required", "/title: is missing, and required"}},
		{`[]`, []string{"must be an object, not an array"}},
		{`{"title":"t","days":[]}`, []string{"/days: must have at least 1 item, and has 0"}},
		{`{"title":"","days":[` + day + `]}`, []string{"/title: must have at least 1 character, and has 0"}},
		{`{"title":"` + long + `","days":[` + day + `]}`, []string{"/title: must have at most 80 characters, and has 81"}},
		{`{"title":5,"days":[` + day + `]}`, []string{"/title: must be a string, not a number"}},
		{`{"title":"t","days":[` + strings.Repeat(day+",", 7) + day + `]}`, []string{"/days: must have at most 7 items, and has 8"}},
		{`{"title":"t","days":[` + day + `],"widht":800}`, []string{"/widht: is not a known member; remove it or correct its name"}},
		{`{"title":"t","days":[` + day + `],"a/b":1,"~":1}`, []string{"/a~1b: is not a known member; remove it or correct its name", "/~0: is not a known member; remove it or correct its name"}},
		{`{"title":"t","days":[` + day + `],"width":319.5}`, []string{"/width: must be a whole number"}},
		{`{"title":"t","days":[` + day + `],"width":"800"}`, []string{"/width: must be a whole number, not a string"}},
		{`{"title":"t","days":[` + day + `],"width":null}`, []string{"/width: must be a whole number, not null"}},
		{`{"title":"t","days":[` + day + `],"width":2401}`, []string{"/width: must be at most 2400"}},
		{`{"title":"t","days":[` + day + `],"width":-1e999}`, []string{"/width: must be at least 320"}},
		{`{"title":"t","days":[` + day + `],"width":1e1001}`, []string{"/width: is a number of more than 1000 digits or with an exponent beyond ±1000; send it as a string"}},
		{`{"title":"t","days":[` + day + `],"theme":"blue"}`, []string{`/theme: must be one of "light", "dark"`}},
		{`{"title":"t","days":[{"day":"Mo","dishes":["x",""],"extra":1},{}]}`, []string{
			"/days/0/dishes/1: must have at least 1 character, and has 0", "/days/0/extra: is not a known member; remove it or correct its name",
			"/days/1/day: is missing, and required", "/days/1/dishes: is missing, and required"}},
		{`{"title":"a","title":"b"}`, []string{`byte 13: duplicate member name: "title"`}},
		{`{"title":`, []string{"byte 9: not JSON: it ends where a value should be"}},
	}
	for _, tt := range tests {
		normalized, digest, err := c.Normalize([]byte(tt.params))
		var bad *schema.Error
		if !errors.As(err, &bad) || normalized != nil || digest != "" {
			t.Errorf("%s: got %s, %v", tt.params, normalized, err)
			continue
		}
		var got []string
		for _, v := range bad.Violations {
			got = append(got, v.String())
		}
		if !slices.Equal(got, tt.want) || err.Error() != strings.Join(tt.want, "; ") {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.params, got, tt.want)
		}
	}
}

// Lengths count characters, not bytes and not UTF-16 units.
func TestLengthsCountCharacters(t *testing.T) {
	c := compile(t, menuExport, nil)
	for _, char := range []string{"a", "é", "长", "😀"} {
		params := func(n int) []byte {
			return []byte(`{"title":"` + strings.Repeat(char, n) + `","days":[{"day":"x","dishes":["` + strings.Repeat(char, 60) + `"]}]}`)
		}
		if _, _, err := c.Normalize(params(80)); err != nil {
			t.Errorf("80 × %s: %v", char, err)
		}
		if _, _, err := c.Normalize(params(81)); err == nil {
			t.Errorf("81 × %s were accepted", char)
		}
	}
}

func TestViolationsStopAtTen(t *testing.T) {
	c := compile(t, `{"items":{"type":"string"}}`, nil)
	for range 5 { // always the same ten
		_, _, err := c.Normalize([]byte(`[0,1,2,3,4,5,6,7,8,9,10,11,"12",13]`))
		var bad *schema.Error
		if !errors.As(err, &bad) || len(bad.Violations) != schema.MaxViolations || bad.More != 3 {
			t.Fatalf("got %v", err)
		}
		if bad.Violations[9].Pointer != "/9" || !strings.HasSuffix(bad.Error(), "; and 3 more") {
			t.Errorf("got %v", err)
		}
	}
}

// The message goes into answers and perhaps into logs.
func TestErrorsHoldNoValue(t *testing.T) {
	c := compile(t, `{"properties":{
		"a":{"type":"integer"}, "b":{"enum":["x"]}, "c":{"pattern":"^a"}, "d":{"format":"date"}, "e":{"const":1}, "f":{"not":{"type":"string"}},
		"g":{"uniqueItems":true}, "h":{"anyOf":[{"type":"number"},{"pattern":"^b"}]}, "i":{"maxLength":1}, "j":{"minimum":5}, "k":{"contains":{"const":1}}
	}}`, nil)
	_, _, err := c.Normalize([]byte(`{"a":"secret","b":"secret","c":"secret","d":"secret","e":"secret","f":"secret","g":["secret","secret"],"h":"secret","i":"secret","j":-4711,"k":["secret"]}`))
	var bad *schema.Error
	if !errors.As(err, &bad) || len(bad.Violations)+bad.More != 11 {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "4711") {
		t.Error(err)
	}
}

func TestNumbersStayExact(t *testing.T) {
	c := compile(t, `{"properties":{
		"big":   {"type":"integer","default":9007199254740993},
		"fine":  {"type":"number","default":1.000000000000000005},
		"huge":  {"default":1e400},
		"exact": {"enum":[9007199254740993]},
		"bound": {"maximum":9007199254740993},
		"cents": {"multipleOf":0.01}
	}}`, nil)
	got, digest := normalize(t, c, `{}`)
	if got != `{"big":9007199254740993,"fine":1.000000000000000005,"huge":1e+400}` {
		t.Errorf("got %s", got)
	}
	if _, same := normalize(t, c, `{"big":9007199254740993.0,"fine":1000000000000000005e-18,"huge":10e399}`); same != digest {
		t.Error("another form of the same numbers has another fingerprint")
	}
	for _, other := range []string{`{"big":9007199254740992}`, `{"fine":1}`, `{"fine":1.00000000000000001}`, `{"huge":1e401}`} {
		if _, d := normalize(t, c, other); d == digest {
			t.Errorf("%s has the same fingerprint", other)
		}
	}
	for params, says := range map[string]string{
		`{"exact":9007199254740992}`:   "/exact: must be 9007199254740993",
		`{"bound":9007199254740994}`:   "/bound: must be at most 9007199254740993",
		`{"cents":1.005}`:              "/cents: must be a multiple of 0.01",
		`{"big":1.000000000000000005}`: "/big: must be a whole number",
	} {
		if _, _, err := c.Normalize([]byte(params)); err == nil || err.Error() != says {
			t.Errorf("%s: got %v, want %s", params, err, says)
		}
	}
	for _, ok := range []string{`{"exact":9007199254740993}`, `{"bound":9007199254740993}`, `{"cents":0.07}`, `{"cents":1234567890123.45}`, `{"big":1e3}`} {
		normalize(t, c, ok)
	}
}

// A number of a few bytes must not keep the validator busy.
func TestHugeNumbersAreRefusedEarly(t *testing.T) {
	c := compile(t, `{"items":{"type":"integer","minimum":0,"multipleOf":7},"uniqueItems":true}`, nil)
	for _, n := range []string{"1e999999999", "1e-999999999", "1e" + strings.Repeat("9", 1000), strings.Repeat("9", 1001), "0." + strings.Repeat("7", 1001)} {
		if _, _, err := c.Normalize([]byte("[" + n + "]")); err == nil || !strings.HasPrefix(err.Error(), "/0: is a number of more than") {
			t.Errorf("%.20s: %v", n, err)
		}
	}
	normalize(t, c, "[7e1000,"+strings.Repeat("7", 1000)+",0."+strings.Repeat("0", 5000)+",700"+"]")
	if _, err := schema.Compile("k", []byte(`{"minimum":1e999999999}`), nil); err == nil || !strings.Contains(err.Error(), "/minimum: is a number of more than") {
		t.Errorf("got %v", err)
	}
	// Without a schema nothing is computed with it.
	if got, _ := normalize(t, schema.JSON("k"), "[1e999999999999]"); got != "[1e+999999999999]" {
		t.Error(got)
	}
}

func TestProjection(t *testing.T) {
	const s = `{"properties":{"to":{"type":"string"},"sent_at":{"type":"string"},"currency":{"default":"EUR"},"lines":{"items":{"properties":{"n":{"default":1}}}}}}`
	without := compile(t, s, &schema.Options{Exclude: []string{"/sent_at", "/lines/*/trace"}})
	_, digest := normalize(t, without, `{"to":"a","sent_at":"10:00","lines":[{"trace":1}]}`)
	got, same := normalize(t, without, `{"to":"a","sent_at":"10:05","lines":[{"trace":2,"n":1.0}]}`)
	if same != digest {
		t.Error("what is excluded counts")
	}
	if got != `{"currency":"EUR","lines":[{"n":1,"trace":2}],"sent_at":"10:05","to":"a"}` {
		t.Errorf("what is excluded is not kept: %s", got)
	}
	if d := without.Differ([]byte(got), []byte(`{"to":"a","lines":[{}]}`)); d != nil {
		t.Errorf("differs in %q", d)
	}
	if d := without.Differ([]byte(got), []byte(`{"to":"b","lines":[{"n":2}],"currency":"USD"}`)); !slices.Equal(d, []string{"/currency", "/lines/0/n", "/to"}) {
		t.Errorf("differs in %q", d)
	}
	only := compile(t, s, &schema.Options{Include: []string{"/to"}})
	_, a := normalize(t, only, `{"to":"a"}`)
	if _, b := normalize(t, only, `{"to":"a","currency":"USD"}`); a != b {
		t.Error("what is not included counts")
	}
	if a == digest {
		t.Error("two projections, one fingerprint")
	}
}

func TestDiffer(t *testing.T) {
	c := compile(t, menuExport, nil)
	stored, _ := normalize(t, c, menu)
	tests := []struct {
		params string
		want   []string
	}{
		{menu, nil},
		{strings.Replace(menu, "{", `{"width":801,`, 1), []string{"/width"}},
		{`{"title":"x","days":[{"day":"周一","dishes":["番茄炒蛋"]}],"theme":"dark"}`, []string{"/days/0/dishes/1", "/theme", "/title"}},
		{`{"title":7}`, []string{"/days", "/title"}}, // not valid, but different
		{`{"title":"本周菜单","width":1e9999}`, []string{"/days", "/width"}},
		{`[]`, []string{""}},
		{`{"a":1,"a":2}`, []string{""}},
	}
	for _, tt := range tests {
		if got := c.Differ([]byte(stored), []byte(tt.params)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.params, got, tt.want)
		}
	}
}

func TestAsSent(t *testing.T) {
	c := compile(t, menuExport, nil)
	want, err := fingerprint.Of("menu-export", []byte(menu))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.AsSent([]byte(menu)); err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	// No schema speaks here: not valid today, but perhaps it was.
	if _, err := c.AsSent([]byte(`{"title":7}`)); err != nil {
		t.Error(err)
	}
	if withDefault, _ := c.AsSent([]byte(strings.Replace(menu, "{", `{"width":800,`, 1))); withDefault == want {
		t.Error("defaults were applied")
	}
	_, err = c.AsSent([]byte(`{"a":1,"a":2}`))
	var bad *schema.Error
	var cause *fingerprint.SyntaxError
	if !errors.As(err, &bad) || !errors.As(err, &cause) || cause.Fault != fingerprint.DuplicateName {
		t.Errorf("got %v", err)
	}
}

func TestJSON(t *testing.T) {
	c := schema.JSON("anything")
	if c.Version() != "json" || string(c.Schema()) != "true" {
		t.Errorf("version %q, schema %s", c.Version(), c.Schema())
	}
	got, digest := normalize(t, c, ` {"b":1.0,"a":[1e999999999999]} `)
	if got != `{"a":[1e+999999999999],"b":1}` {
		t.Error(got)
	}
	if _, same := normalize(t, c, got); same != digest {
		t.Error("normalizing twice gives another fingerprint")
	}
	if _, _, err := c.Normalize([]byte(`{`)); err == nil {
		t.Error("an open object was accepted")
	}
	if d := c.Differ([]byte(`{"a":1}`), []byte(`{"a":2}`)); !slices.Equal(d, []string{"/a"}) {
		t.Errorf("differs in %q", d)
	}
	_, other, _ := schema.JSON("something").Normalize([]byte(got))
	if other == digest {
		t.Error("the kind does not count")
	}
}

// One Canon serves all requests at once.
func TestConcurrentUse(t *testing.T) {
	c := compile(t, menuExport, &schema.Options{Exclude: []string{"/days/*/day"}})
	want, digest := normalize(t, c, menu)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				got, print, err := c.Normalize([]byte(menu))
				if err != nil || string(got) != want || print != digest {
					t.Errorf("got %s, %s, %v", got, print, err)
				}
				if _, _, err := c.Normalize([]byte(`{"title":1}`)); err == nil {
					t.Error("invalid parameters were accepted")
				}
				if d := c.Differ(got, []byte(`{"title":1}`)); len(d) != 2 {
					t.Errorf("differ in %q", d)
				}
			}
		})
	}
	wg.Wait()
}
