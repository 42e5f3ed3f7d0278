package fingerprint_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/semel-dev/semel/fingerprint"
)

// Stored fingerprints outlive the program that made them: these constants may
// only change together with the version.
func TestDigestsNeverChange(t *testing.T) {
	doc := `{"title":"本周菜单","width":800,"big":9007199254740993,"tiny":1e-999}`
	got, err := fingerprint.Of("menu-export", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	b := fingerprint.NewBuilder("http-request")
	b.Add("method", "POST")
	b.Add("header accept", "a", "b")
	b.JSON("body", must(t, doc))
	b.Raw("raw", []byte{0, 1, 2})
	tests := []struct{ name, got, want string }{
		{"as sent", got, "v1:sha256:e86aefe0b1a6c08373d0f98af19b93f6dd106fae5ca3ab3894015e18e41ad703"},
		{"normalised", fingerprint.Normalised("menu-export", "def", must(t, doc)), "v1:sha256:f38647fd0a4fb72260d1d7b54b06a6b93d9da1f7e26c49914eedbccd681cd2ac"},
		{"builder", b.Sum(), "v1:sha256:92cc9e7b63e31b941f22b188bc764882a7045efc67cc9ce1d1704486ea01222e"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, tt.got, tt.want)
		}
		if !regexp.MustCompile(`^v1:sha256:[0-9a-f]{64}$`).MatchString(tt.got) {
			t.Errorf("%s is not a fingerprint", tt.got)
		}
	}
}

// Every builder below says something else than all the others.
func TestFieldsDoNotRunIntoEachOther(t *testing.T) {
	type field func(*fingerprint.Builder)
	text := func(name string, values ...string) field {
		return func(b *fingerprint.Builder) { b.Add(name, values...) }
	}
	raw := func(name, data string) field { return func(b *fingerprint.Builder) { b.Raw(name, []byte(data)) } }
	doc := func(name, data string) field {
		return func(b *fingerprint.Builder) { b.JSON(name, must(t, data)) }
	}
	seen := map[string]int{}
	for i, fields := range [][]field{
		{},
		{text("a")},
		{text("a", "")},
		{text("a", "", "")},
		{text("a", "bc")},
		{text("ab", "c")},
		{text("a", "b", "c")},
		{text("a", "bc", "")},
		{text("a", "", "bc")},
		{text("a", "b"), text("c")},
		{text("a", "b"), text("", "c")},
		{text("a", "b\x00c")},
		{text("", "abc")},
		{text("a"), text("bc")},
		{text("bc"), text("a")},
		{raw("a", "bc")},
		{raw("a", "1")},
		{doc("a", "1")},
		{text("a", "1")},
		{doc("a", `"1"`)},
		{raw("a", `"1"`)},
		{raw("a", ""), raw("b", "1")},
		{raw("a", "1"), raw("b", "")},
	} {
		b := fingerprint.NewBuilder("p")
		for _, f := range fields {
			f(b)
		}
		sum := b.Sum()
		if j, ok := seen[sum]; ok {
			t.Errorf("%d and %d have one fingerprint", i, j)
		}
		seen[sum] = i
	}
	b, c := fingerprint.NewBuilder("pa"), fingerprint.NewBuilder("p")
	b.Add("x")
	c.Add("ax")
	if b.Sum() == c.Sum() || b.Sum() == fingerprint.NewBuilder("q").Sum() {
		t.Error("the purpose does not count")
	}
}

func TestSeparateDomains(t *testing.T) {
	v := must(t, `{"a":1}`)
	sums := map[string]string{}
	for name, sum := range map[string]string{
		"as sent":                      fingerprint.AsSent("k", v),
		"as sent, other kind":          fingerprint.AsSent("k2", v),
		"as sent, other value":         fingerprint.AsSent("k", must(t, `{"a":2}`)),
		"normalised":                   fingerprint.Normalised("k", "d", v),
		"normalised, other kind":       fingerprint.Normalised("kd", "", v),
		"normalised, other definition": fingerprint.Normalised("k", "d2", v),
	} {
		if other, ok := sums[sum]; ok {
			t.Errorf("%q and %q have one fingerprint", name, other)
		}
		sums[sum] = name
	}
}

func TestBuilderGoesOnAfterSum(t *testing.T) {
	b := fingerprint.NewBuilder("p")
	b.Add("a", strings.Repeat("x", 5000))
	first := b.Sum()
	if again := b.Sum(); again != first {
		t.Error("asking twice gives two answers")
	}
	b.Add("b")
	if b.Sum() == first {
		t.Error("what is added after Sum does not count")
	}
}

func TestOfRefuses(t *testing.T) {
	if sum, err := fingerprint.Of("k", []byte(`{"a":1,"a":1}`)); err == nil || sum != "" {
		t.Errorf("got %q, %v", sum, err)
	}
}
