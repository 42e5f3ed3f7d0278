package generator

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/math/fixed"
	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	tests := map[string]string{
		"  Tomato \n\t soup ":     "Tomato soup",
		"番茄\u3000炒蛋\u3000":        "番茄\u3000炒蛋",
		"Cre\u0300me bru\u0302le": "Crème brûle",
		"a\u200bb\u0000c\ufeff":   "abc",
		"❤\ufe0f👍🏽":               "❤👍",
		"Grandma’s “roast”":       `Grandma's "roast"`,
		"妈妈的“红烧肉”":                "妈妈的“红烧肉”",
		"10\u00a0kg":              "10\u00a0kg",
		"\u00a0\u202f":            "",
	}
	for in, want := range tests {
		if got := string(clean(in)); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// broken returns s broken into lines of at most n em.
func broken(s string, n int) []string {
	f := newTypeface(20, false)
	x := f.measure(s)
	var out []string
	for _, l := range x.lines(f.em(n * 1000)) {
		out = append(out, string(x.runes[l.a:l.b]))
	}
	return out
}

func TestLines(t *testing.T) {
	tests := []struct {
		text string
		em   int
		want string
	}{
		{"番茄炒蛋", 4, "番茄炒蛋"},
		{"番茄炒蛋盖饭", 4, "番茄炒蛋|盖饭"},
		{"番茄炒蛋，米饭", 4, "番茄炒|蛋，米饭"}, // a comma never begins a line
		{"番茄汤（热）", 4, "番茄汤|（热）"},   // a bracket never ends one
		{"Tomato soup", 4, "Tomato|soup"},
		{"Tomato   soup", 20, "Tomato soup"},
		{"番茄 soup 汤", 4, "番茄|soup 汤"},
		{"slow-cooked", 4, "slow-|cooked"},
		{"Supercalifragilistic", 3, "Super|califra|gilisti|c"}, // too long a word breaks anywhere
		{"价格￥20", 3, "价格|￥20"},
		{"一杯10\u00a0kg", 4, "一杯|10\u00a0kg"},
		{"番", 0, "番"}, // wider than the line: alone, never lost
	}
	for _, test := range tests {
		if got := strings.Join(broken(test.text, test.em), "|"); got != test.want {
			t.Errorf("%q in %d em: got %s, want %s", test.text, test.em, got, test.want)
		}
	}
}

func TestTidy(t *testing.T) {
	f := newTypeface(20, false)
	tests := []struct {
		text string
		em   int
		want string
	}{
		{"冬瓜排骨汤（小火慢炖）", 9, "冬瓜排骨汤|（小火慢炖）"}, // the remark goes on its own line
		{"番茄炒鸡蛋盖浇饭套餐", 9, "番茄炒鸡蛋|盖浇饭套餐"},   // no character is left alone
		{"番茄炒鸡蛋", 9, "番茄炒鸡蛋"},
	}
	for _, test := range tests {
		x := f.measure(test.text)
		var got []string
		for _, l := range x.tidy(f.em(test.em * 1000)) {
			got = append(got, string(x.runes[l.a:l.b]))
		}
		if s := strings.Join(got, "|"); s != test.want {
			t.Errorf("%q: got %s, want %s", test.text, s, test.want)
		}
	}
}

// Whatever the text, its lines hold every rune once and in order, only blanks
// fall away, and none is too wide unless it is a single rune.
func TestLinesProperty(t *testing.T) {
	f := newTypeface(18, false)
	alphabet := []rune("ab WMé -（），。“”番茄炒😀\u00a0\u3000\u0301'1")
	rapid.Check(t, func(t *rapid.T) {
		// Drawn lengths lean to the short; every other text is a long one.
		s := string(rapid.OneOf(rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 80), rapid.SliceOfN(rapid.SampledFrom(alphabet), 40, 80)).Draw(t, "text"))
		limit := fixed.I(rapid.IntRange(1, 400).Draw(t, "limit"))
		x := f.measure(s)
		base := x.lines(limit)
		for name, ls := range map[string][]span{"lines": base, "balanced": x.balanced(limit), "tidy": x.tidy(limit)} {
			var got []rune
			for _, l := range ls {
				if l.b-l.a > 1 && x.width(l.a, l.b) > limit {
					t.Fatalf("%s: %q is %v wide, limit %v", name, string(x.runes[l.a:l.b]), x.width(l.a, l.b), limit)
				}
				if isBlank(x.runes[l.a]) || isBlank(x.runes[l.b-1]) && l.b-l.a > 1 {
					t.Fatalf("%s: %q has blanks at an end", name, string(x.runes[l.a:l.b]))
				}
				got = append(got, x.runes[l.a:l.b]...)
			}
			if want := slices.DeleteFunc(slices.Clone(x.runes), isBlank); !slices.Equal(slices.DeleteFunc(got, isBlank), want) {
				t.Fatalf("%s: lines hold %q, want %q", name, string(got), string(want))
			}
			if len(ls) > len(base) {
				t.Fatalf("%s needs %d lines, greedy %d", name, len(ls), len(base))
			}
		}
	})
}

func TestAirBetweenScripts(t *testing.T) {
	f := newTypeface(20, false)
	apart := f.measure("番").pos[1] + f.measure("A").pos[1]
	if got := f.measure("番A").pos[2]; got <= apart {
		t.Errorf("番A is %v wide, 番 and A are %v", got, apart)
	}
	if kern := f.measure("AV").pos[2] - f.measure("A").pos[1] - f.measure("V").pos[1]; kern >= 0 {
		t.Errorf("AV is kerned by %v", kern)
	}
}
