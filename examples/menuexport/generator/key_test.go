package generator

import (
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	good := map[string]string{
		`abc`:                        "abc",
		`"abc"`:                      "abc",
		` "abc" `:                    "abc",
		`acme/menu-export/0197-a~.b`: "acme/menu-export/0197-a~.b",
		`"a b, c"`:                   "a b, c",
		`"say \"hi\" \\ there"`:      `say "hi" \ there`,
		strings.Repeat("k", MaxKey):  strings.Repeat("k", MaxKey),
	}
	for header, want := range good {
		if got, err := parseKey([]string{header}); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", header, got, err, want)
		}
	}
	bad := [][]string{
		nil, {""}, {" "}, {`""`}, {"a", "a"}, {"a b"}, {"a,b"}, {`a"b`}, {`"abc`}, {`"`}, {`"a"b"`}, {`"a";p=1`},
		{`"a\b"`}, {`"a\`}, {`"a\"`}, {"käse"}, {"\"a\tb\""}, {"\"a\x7f\""}, {strings.Repeat("k", MaxKey+1)},
	}
	for _, values := range bad {
		if got, err := parseKey(values); err == nil {
			t.Errorf("%q: got %q, want an error", values, got)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(`"a\"b"`)
	f.Add(`abc`)
	f.Fuzz(func(t *testing.T, header string) {
		key, err := parseKey([]string{header})
		if err != nil {
			return
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := parseKey([]string{quoted}); err != nil || again != key {
			t.Fatalf("%q: quoted %s comes back as %q, %v", key, quoted, again, err)
		}
	})
}
