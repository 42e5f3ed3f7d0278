package fingerprint_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/semel-dev/semel/fingerprint"
	"pgregory.net/rapid"
)

func TestCanonicalNumbers(t *testing.T) {
	tests := []struct{ sent, want string }{
		{"0", "0"}, {"-0", "0"}, {"0.0", "0"}, {"-0.000", "0"}, {"0e5", "0"}, {"-0E-99999999999999999999", "0"},
		{"1", "1"}, {"1.0", "1"}, {"1e0", "1"}, {"1E+0", "1"}, {"10e-1", "1"}, {"0.1e1", "1"}, {"0.001e+03", "1"},
		{"-1.50", "-1.5"}, {"100", "100"}, {"1e2", "100"}, {"100.000", "100"}, {"12.5e1", "125"}, {"-12.5e0", "-12.5"},
		{"123456.789e3", "123456789"}, {"123456.789e2", "12345678.9"}, {"0.00123e2", "0.123"}, {"0.0123e2", "1.23"},
		{"9007199254740992", "9007199254740992"}, {"9007199254740993", "9007199254740993"},
		{"1.000000000000000005", "1.000000000000000005"}, {"333333333.33333329", "333333333.33333329"},
		// 21 digits before the point are written out, 22 are not.
		{"1e20", "100000000000000000000"}, {"1e21", "1e+21"}, {"123456789012345678901", "123456789012345678901"},
		{"1234567890123456789012", "1.234567890123456789012e+21"}, {"1000000000000000000000", "1e+21"},
		{"123456789012345678901.5", "123456789012345678901.5"}, {"-1234567890123456789012.5", "-1.2345678901234567890125e+21"},
		// Six places after the point are written out, seven zeros are not.
		{"0.000001", "0.000001"}, {"0.0000001", "1e-7"}, {"0.00000012", "1.2e-7"}, {"1e-6", "0.000001"}, {"12e-7", "0.0000012"},
		{"1e400", "1e+400"}, {"1e-999", "1e-999"}, {"10E399", "1e+400"}, {"0.001e-996", "1e-999"},
		{"1e999999999999", "1e+999999999999"}, {"10e999999999999", "1e+1000000000000"},
		{"1e99999999999999999", "1e+99999999999999999"}, {"10e99999999999999999", "1e+100000000000000000"},
		{"1e000000000000000000000000000000007", "10000000"}, {"5e-000000000000000000000000000000001", "0.5"},
		// Exponents beyond every machine integer: carry, borrow, another length.
		{"10e999999999999999999999999999999", "1e+1000000000000000000000000000000"},
		{"0.1e1000000000000000000000000000000", "1e+999999999999999999999999999999"},
		{"0.01e-999999999999999999999999999999", "1e-1000000000000000000000000000001"},
		{"100e-1000000000000000000000000000000", "1e-999999999999999999999999999998"},
		{"12.5e+000123456789012345678901234567890", "1.25e+123456789012345678901234567891"},
		{"10e123999999999999999", "1e+124000000000000000"}, {"0.1e124000000000000000", "1e+123999999999999999"},
		{"-7e100000000000000000", "-7e+100000000000000000"}, {"0.7e100000000000000000", "7e+99999999999999999"},
		{"70e-100000000000000000", "7e-99999999999999999"}, {"70e-100000000000000000000", "7e-99999999999999999999"},
	}
	for _, tt := range tests {
		if got := canon(must(t, tt.sent)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.sent, got, tt.want)
		}
	}
}

// Where RFC 8785 is exact, the text is the same. encoding/json prints a double
// as ECMAScript does, so it is the oracle.
func TestCanonicalNumbersAreRFC8785(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, f float64) {
		want, err := json.Marshal(f + 0) // -0 + 0 is 0
		if err != nil {
			return // infinity, NaN
		}
		for _, sent := range []string{string(want), strconv.FormatFloat(f, 'e', -1, 64)} {
			n, err := fingerprint.NumberOf(sent)
			if err != nil {
				t.Fatalf("%s: %v", sent, err)
			}
			if got := canon(n); got != string(want) {
				t.Fatalf("%s: got %s, RFC 8785 has %s", sent, got, want)
			}
		}
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 1, math.MaxFloat64, math.SmallestNonzeroFloat64, 1e21, 1e20, 1e-6, 1e-7,
		math.MaxInt64, 1 << 53, 0.1, 0.30000000000000004, 5e-324, 1.7976931348623157e308, 295147905179352830000, 9.999999999999997e22} {
		check(t, f)
		check(t, -f)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, math.Float64frombits(rapid.Uint64().Draw(t, "bits"))) })
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.Float64().Draw(t, "number")) })
}

// The table in the package comment.
func TestWhereRFC8785IsNotExact(t *testing.T) {
	for _, tt := range []struct{ sent, rfc, want string }{
		{"9007199254740993", "9007199254740992", "9007199254740993"},
		{"1152921504606846976", "1152921504606847000", "1152921504606846976"},
		{"333333333.33333329", "333333333.3333333", "333333333.33333329"},
		{"1.000000000000000005", "1", "1.000000000000000005"},
		{"1e400", "", "1e+400"},
	} {
		var f float64
		rfc := ""
		if err := json.Unmarshal([]byte(tt.sent), &f); err == nil {
			text, _ := json.Marshal(f)
			rfc = string(text)
		}
		if got := canon(must(t, tt.sent)); got != tt.want || rfc != tt.rfc {
			t.Errorf("%s: got %s, want %s; RFC 8785 has %q, want %q", tt.sent, got, tt.want, rfc, tt.rfc)
		}
	}
}

func TestCanonicalOrderIsUTF16(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringOf(rapid.SampledFrom([]rune("a~\u00e9\u07ff\ud7ff\ue000\ufb33\uffff\U00010000\U0001F600\U0010FFFF"))), rapid.ID[string]).Draw(t, "names")
		var members []fingerprint.Member
		for _, n := range names {
			members = append(members, fingerprint.Member{Name: n})
		}
		v, err := fingerprint.ObjectOf(members...)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(names, func(a, b string) int { return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))) })
		var want bytes.Buffer
		for i, n := range names {
			want.WriteString(map[bool]string{true: "{", false: ","}[i == 0] + `"` + n + `":null`)
		}
		want.WriteString(map[bool]string{true: "{}", false: "}"}[len(names) == 0])
		if got := canon(v); got != want.String() {
			t.Fatalf("got %s, want %s", got, want.String())
		}
	})
}

func TestCanonicalStrings(t *testing.T) {
	var all strings.Builder
	for c := range 0x80 {
		all.WriteByte(byte(c))
	}
	v, err := fingerprint.StringOf(all.String() + "</script>&\u2028é中😀")
	if err != nil {
		t.Fatal(err)
	}
	const want = `"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017` +
		`\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_` + "`" +
		"abcdefghijklmnopqrstuvwxyz{|}~\x7f</script>&\u2028é中😀\""
	if got := canon(v); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCanonicalOfDocument(t *testing.T) {
	got, err := fingerprint.Canonical([]byte(` { "b" : [ 1.0 , "\u0061" ] , "a" : null } `))
	if err != nil || string(got) != `{"a":null,"b":[1,"a"]}` {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := fingerprint.Canonical([]byte(`{`)); err == nil {
		t.Error("an open object was accepted")
	}
}

// A number of a few bytes must stay a number of a few bytes.
func TestNumbersAreNeverExpanded(t *testing.T) {
	doc := []byte(`[1e999999999999,1e-999999999999,1e` + strings.Repeat("9", 500_000) + `]`)
	got, err := fingerprint.Canonical(doc)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) > len(doc)+10 {
		t.Errorf("%d bytes became %d", len(doc), len(got))
	}
}

// Writing takes no memory but the destination's.
func TestEncodeDoesNotAllocate(t *testing.T) {
	v := must(t, `{"b":[1.50,-1e400,"x\n"],"a":{"z":null,"y":true,"x":0.0000001}}`)
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { buf = fingerprint.AppendCanonical(buf[:0], v) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
