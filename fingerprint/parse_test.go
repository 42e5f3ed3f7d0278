package fingerprint_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-dev/semel/fingerprint"
	"pgregory.net/rapid"
)

// must parses a document that is known to be good.
func must(t rapid.TB, doc string) fingerprint.Value {
	t.Helper()
	v, err := fingerprint.Parse([]byte(doc))
	if err != nil {
		t.Fatalf("Parse(%.80q): %v", doc, err)
	}
	return v
}

func canon(v fingerprint.Value) string { return string(fingerprint.AppendCanonical(nil, v)) }

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("[", fingerprint.MaxDepth+1) + strings.Repeat("]", fingerprint.MaxDepth+1)
	tests := []struct {
		name, doc string
		offset    int
		fault     fingerprint.Fault
	}{
		{"nothing", "", 0, fingerprint.BadSyntax},
		{"white space only", " \n", 2, fingerprint.BadSyntax},
		{"byte order mark", "\xEF\xBB\xBF{}", 0, fingerprint.ByteOrderMark},
		{"byte order mark inside", "[\xEF\xBB\xBF1]", 1, fingerprint.BadSyntax},
		{"two documents", `{} {}`, 3, fingerprint.TrailingData},
		{"trailing comma after it", `1,`, 1, fingerprint.TrailingData},
		{"comment", `{} // ok`, 3, fingerprint.TrailingData},
		{"zero byte after it", "1\x00", 1, fingerprint.TrailingData},
		{"trailing comma in array", `[1,]`, 3, fingerprint.BadSyntax},
		{"trailing comma in object", `{"a":1,}`, 7, fingerprint.BadSyntax},
		{"two commas", `[1,,2]`, 3, fingerprint.BadSyntax},
		{"no comma", `[1 2]`, 3, fingerprint.BadSyntax},
		{"no colon", `{"a" 1}`, 5, fingerprint.BadSyntax},
		{"no value", `{"a":}`, 5, fingerprint.BadSyntax},
		{"name without quotes", `{a:1}`, 1, fingerprint.BadSyntax},
		{"number as name", `{1:1}`, 1, fingerprint.BadSyntax},
		{"single quotes", `['a']`, 1, fingerprint.BadSyntax},
		{"open array", `[1`, 2, fingerprint.BadSyntax},
		{"open object", `{"a":1`, 6, fingerprint.BadSyntax},
		{"object ends after name", `{"a"`, 4, fingerprint.BadSyntax},
		{"wrong bracket", `[1}`, 2, fingerprint.BadSyntax},
		{"word in capitals", `True`, 0, fingerprint.BadSyntax},
		{"broken word", `nul`, 3, fingerprint.BadSyntax},
		{"misspelt word", `trux`, 3, fingerprint.BadSyntax},
		{"NaN", `NaN`, 0, fingerprint.BadSyntax},
		{"form feed as space", "[\f1]", 1, fingerprint.BadSyntax},
		{"leading zero", `01`, 1, fingerprint.TrailingData},
		{"leading zero in array", `[-01]`, 3, fingerprint.BadSyntax},
		{"plus", `+1`, 0, fingerprint.BadSyntax},
		{"minus alone", `-`, 1, fingerprint.BadSyntax},
		{"bare point", `[.5]`, 1, fingerprint.BadSyntax},
		{"point without digits", `[1.]`, 3, fingerprint.BadSyntax},
		{"exponent without digits", `[1e]`, 3, fingerprint.BadSyntax},
		{"exponent with sign only", `[1e+]`, 4, fingerprint.BadSyntax},
		{"hexadecimal", `[0x1]`, 2, fingerprint.BadSyntax},
		{"open string", `"abc`, 4, fingerprint.BadSyntax},
		{"open string after escape", `"a\n`, 4, fingerprint.BadSyntax},
		{"ends in escape", `"\`, 2, fingerprint.BadSyntax},
		{"unknown escape", `"\x41"`, 1, fingerprint.BadSyntax},
		{"short escape", `"\u12"`, 1, fingerprint.BadSyntax},
		{"escape not hexadecimal", `"\u12g4"`, 1, fingerprint.BadSyntax},
		{"raw newline in string", "\"a\nb\"", 2, fingerprint.BadSyntax},
		{"raw tab after escape", "\"\\n\t\"", 3, fingerprint.BadSyntax},
		{"bad UTF-8", "{\"a\":\"\xff\"}", 6, fingerprint.InvalidUTF8},
		{"cut UTF-8", "\"é\xc3\"", 3, fingerprint.InvalidUTF8},
		{"overlong UTF-8", "\"\xc0\xaf\"", 1, fingerprint.InvalidUTF8},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", 1, fingerprint.InvalidUTF8},
		{"high surrogate alone", `"a\ud800"`, 2, fingerprint.LoneSurrogate},
		{"low surrogate alone", `"\udc00"`, 1, fingerprint.LoneSurrogate},
		{"surrogates in the wrong order", `"\udc00\ud800"`, 1, fingerprint.LoneSurrogate},
		{"two high surrogates", `"\ud800\ud800"`, 1, fingerprint.LoneSurrogate},
		{"high surrogate and other escape", `"\ud800\n"`, 1, fingerprint.LoneSurrogate},
		{"lone surrogate in a name", `{"\ud83d":1}`, 2, fingerprint.LoneSurrogate},
		{"same name", `{"a":1,"a":1}`, 7, fingerprint.DuplicateName},
		{"same name, escaped", `{"a":1,"b":2,"\u0061":3}`, 13, fingerprint.DuplicateName},
		{"same name deep inside", `[{"x":{"k":1,"j":2,"k":3}}]`, 19, fingerprint.DuplicateName},
		{"same empty name", `{"":1,"":2}`, 6, fingerprint.DuplicateName},
		{"first of two duplicates", `{"b":1,"a":1,"a":2,"b":2}`, 13, fingerprint.DuplicateName},
		{"too deep", deep, fingerprint.MaxDepth, fingerprint.TooDeep},
		{"too deep in objects", strings.Repeat(`{"a":`, fingerprint.MaxDepth+1), 5 * fingerprint.MaxDepth, fingerprint.TooDeep},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := fingerprint.Parse([]byte(tt.doc))
			var bad *fingerprint.SyntaxError
			if !errors.As(err, &bad) {
				t.Fatalf("got %s, %v; want a SyntaxError", canon(v), err)
			}
			if bad.Offset != tt.offset || bad.Fault != tt.fault {
				t.Errorf("got byte %d, %q (%s); want byte %d, %q", bad.Offset, bad.Fault, bad.Detail, tt.offset, tt.fault)
			}
		})
	}
}

func TestParseAccepts(t *testing.T) {
	nested := strings.Repeat("[", fingerprint.MaxDepth) + strings.Repeat("]", fingerprint.MaxDepth)
	tests := []struct{ doc, want string }{
		{" \t\r\n null \n", "null"},
		{"true", "true"},
		{"[ ]", "[]"},
		{"{ }", "{}"},
		{`[[],{},"",0,null,false]`, `[[],{},"",0,null,false]`},
		{`"\"\\\/\b\f\n\r\t\u0041\u00e9\u4E2D\ud83d\ude00"`, `"\"\\/\b\f\n\r\tAé中😀"`},
		{`"\u0000\u001F\u007f\u2028"`, "\"\\u0000\\u001f\u007f\u2028\""},
		{`"\ufffd\uffff"`, "\"\ufffd\uffff\""},
		{"\"\ufeff\"", "\"\ufeff\""},
		{`{"a":{"a":{"a":1}},"A":[{"a":1},{"a":2}]}`, `{"A":[{"a":1},{"a":2}],"a":{"a":{"a":1}}}`},
		{nested, nested},
	}
	for _, tt := range tests {
		if got := canon(must(t, tt.doc)); got != tt.want {
			t.Errorf("canonical form of %s: got %s, want %s", tt.doc, got, tt.want)
		}
	}
}

// A large object must not take quadratic time, nor may a small one beside it.
func TestParseManyMembers(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(`{"z":0`)
	for i := range 100_000 {
		doc.WriteString(`,"` + strings.Repeat("x", i%7) + strconv.Itoa(i) + `":{"b":1,"a":2}`)
	}
	doc.WriteString(`}`)
	if n := must(t, doc.String()).Len(); n != 100_001 {
		t.Errorf("got %d members", n)
	}
	twice := strings.TrimSuffix(doc.String(), "}") + `,"z":1}`
	var bad *fingerprint.SyntaxError
	if _, err := fingerprint.Parse([]byte(twice)); !errors.As(err, &bad) || bad.Fault != fingerprint.DuplicateName {
		t.Errorf("got %v", err)
	}
}

func TestParseKeepsOrderAndNumberText(t *testing.T) {
	v := must(t, `{"b":1.50,"a":[1e2,"x",true]}`)
	var names []string
	for name := range v.Members() {
		names = append(names, name)
	}
	if strings.Join(names, "") != "ba" {
		t.Errorf("members came as %v", names)
	}
	b, _ := v.Get("b")
	if b.Type() != fingerprint.Number || b.Text() != "1.50" {
		t.Errorf("number became %s %q", b.Type(), b.Text())
	}
	a, _ := v.Get("a")
	if a.Len() != 3 || a.Item(0).Text() != "1e2" || a.Item(1).Text() != "x" || !a.Item(2).Bool() {
		t.Errorf("items became %s", canon(a))
	}
	if _, ok := v.Get("c"); ok {
		t.Error("found a member that is not there")
	}
}

func TestParseCopiesTheDocument(t *testing.T) {
	doc := []byte(`{"a":"before"}`)
	v, err := fingerprint.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	for i := range doc {
		doc[i] = 'x'
	}
	if got := canon(v); got != `{"a":"before"}` {
		t.Errorf("value changed with the caller's bytes: %s", got)
	}
}

func TestErrorsHoldNoValue(t *testing.T) {
	for _, doc := range []string{`{"a":"secret`, `["secret" 1]`, `{"a":"secret","a":1}`, `"secret"x`} {
		_, err := fingerprint.Parse([]byte(doc))
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Parse(%s): %v", doc, err)
		}
	}
	long := strings.Repeat("n", 10_000)
	_, err := fingerprint.Parse([]byte(`{"` + long + `":1,"` + long + `":2}`))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("error about a long name has %d bytes", len(err.Error()))
	}
}

// Types have the names that JSON Schema gives them.
func TestTypes(t *testing.T) {
	v := must(t, `[null,true,1,"x",[],{}]`)
	var names []string
	for _, item := range v.Items() {
		names = append(names, item.Type().String())
	}
	if got := strings.Join(names, " "); got != "null boolean number string array object" {
		t.Error(got)
	}
}

func TestConstructors(t *testing.T) {
	one, err := fingerprint.NumberOf("1.0")
	if err != nil {
		t.Fatal(err)
	}
	text, err := fingerprint.StringOf("é")
	if err != nil {
		t.Fatal(err)
	}
	obj, err := fingerprint.ObjectOf(fingerprint.Member{Name: "b", Value: fingerprint.ArrayOf(one, text)},
		fingerprint.Member{Name: "a", Value: fingerprint.BoolOf(true)}, fingerprint.Member{Name: "c"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := canon(obj), `{"a":true,"b":[1,"é"],"c":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, bad := range []string{"", "-", "01", "1 ", "1.", "0x1", "NaN", "1e"} {
		if _, err := fingerprint.NumberOf(bad); err == nil {
			t.Errorf("NumberOf(%q) succeeded", bad)
		}
	}
	if _, err := fingerprint.StringOf("\xff"); err == nil {
		t.Error("StringOf took invalid UTF-8")
	}
	for _, names := range [][]string{{"a", "b", "a"}, {"a", "a"}, {"\xff"}} {
		var members []fingerprint.Member
		for _, n := range names {
			members = append(members, fingerprint.Member{Name: n})
		}
		if _, err := fingerprint.ObjectOf(members...); err == nil {
			t.Errorf("ObjectOf(%q) succeeded", names)
		}
	}
}
