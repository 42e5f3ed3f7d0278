package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semel-dev/semel/contract"
	"pgregory.net/rapid"
)

// The keys of one seed under many grammars. They must never change: an operation that began under one release is
// repeated under the next.
func TestKeysAreStable(t *testing.T) {
	const seed = "acme/menu-export/0197"
	tests := []struct {
		name string
		g    contract.KeyGrammar
		want string
	}{
		{"says nothing", contract.KeyGrammar{}, "a015e24f6b28564a2ad2cfbf8451fa15"},
		{"quoted", contract.KeyGrammar{Quoting: contract.Quoted}, `"a015e24f6b28564a2ad2cfbf8451fa15"`},
		{"UUID", contract.KeyGrammar{Form: contract.KeyUUID}, "a015e24f-6b28-864a-aad2-cfbf8451fa15"},
		{"UUIDv4", contract.KeyGrammar{Form: contract.KeyUUID, UUIDVersion: 4}, "a015e24f-6b28-464a-aad2-cfbf8451fa15"},
		{"digits", contract.KeyGrammar{Charset: contract.Digits}, "212790107676374695524537604917234366997"},
		{"short", contract.KeyGrammar{MaxLength: 30}, "4s4lwjkf4H6sXkO5KJ52sn"},
		{"long", contract.KeyGrammar{MinLength: 40, MaxLength: 64}, "a015e24f6b28564a2ad2cfbf8451fa152b4ca015"},
	}
	for _, tt := range tests {
		got, err := tt.g.FormatKey(seed)
		if err != nil || got != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	for _, tt := range []struct{ preset, want string }{
		{contract.Semel, "a015e24f6b28564a2ad2cfbf8451fa15"}, // in a path there are no quotes
		{contract.IETF, `"a015e24f6b28564a2ad2cfbf8451fa15"`},
		{contract.StripeV1, "a015e24f6b28564a2ad2cfbf8451fa15"},
	} {
		if got, err := preset(t, tt.preset).FormatKey(seed); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.preset, got, err, tt.want)
		}
	}
}

// Whatever the grammar: a key that is made is accepted, the same every time, another one for another seed.
func TestKeysFitTheirGrammar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := contract.KeyGrammar{
			Form:        rapid.SampledFrom([]contract.KeyForm{"", contract.KeyText, contract.KeyUUID}).Draw(t, "form"),
			UUIDVersion: rapid.SampledFrom([]int{0, 1, 4, 5, 7, 8}).Draw(t, "version"),
			Charset: rapid.SampledFrom([]contract.Charset{"", contract.Digits, contract.Hex, contract.Alphanumeric, contract.URLSafe,
				contract.VisibleASCII, contract.ASCII}).Draw(t, "charset"),
			MinLength:       rapid.IntRange(0, 200).Draw(t, "min"),
			MaxLength:       rapid.SampledFrom([]int{0, 10, 21, 22, 31, 32, 36, 39, 45, 64, 255, 1000}).Draw(t, "max"),
			Unit:            rapid.SampledFrom([]contract.Unit{"", contract.Bytes, contract.Characters}).Draw(t, "unit"),
			Quoting:         rapid.SampledFrom([]contract.Quoting{"", contract.Bare, contract.Quoted, contract.Either}).Draw(t, "quoting"),
			CaseInsensitive: rapid.Bool().Draw(t, "case"),
		}
		seed := rapid.StringN(1, 80, -1).Draw(t, "seed")
		a, err := g.FormatKey(seed)
		if err != nil {
			return // no room, or a UUID that holds a time
		}
		if err := g.CheckKey(a); err != nil {
			t.Fatalf("%+v does not accept its own key %s: %v", g, a, err)
		}
		if again, _ := g.FormatKey(seed); again != a {
			t.Fatalf("%s, then %s", a, again)
		}
		if other, _ := g.FormatKey(seed + "x"); other == a {
			t.Fatalf("two seeds, one key %s", a)
		}
		bare, err := g.ParseKey(a)
		if err != nil || strings.ContainsAny(bare, `"\`) {
			t.Fatalf("%s is read as %s, %v", a, bare, err)
		}
	})
}

func TestKeysThatCannotBeMade(t *testing.T) {
	tests := []struct {
		g    contract.KeyGrammar
		seed string
		want string
	}{
		{contract.KeyGrammar{}, "", "empty seed"},
		{contract.KeyGrammar{Form: contract.KeyUUID, UUIDVersion: 7}, "s", "holds a time"},
		{contract.KeyGrammar{MaxLength: 16}, "s", "too short"},
		{contract.KeyGrammar{MaxLength: 30, CaseInsensitive: true}, "s", "too short"},
		{contract.KeyGrammar{MaxLength: 30, Charset: contract.Hex}, "s", "too short"},
		{contract.KeyGrammar{MaxLength: 38, Charset: contract.Digits}, "s", "too short"},
		{contract.KeyGrammar{Form: contract.KeyUUID, MaxLength: 32}, "s", "may have at most"},
	}
	for _, tt := range tests {
		if key, err := tt.g.FormatKey(tt.seed); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %q, %v; want an error with %q", tt.g, key, err, tt.want)
		}
	}
}

func TestCheckKey(t *testing.T) {
	either := contract.KeyGrammar{Charset: contract.ASCII, MaxLength: 10, Quoting: contract.Either}
	quoted := contract.KeyGrammar{Quoting: contract.Quoted}
	bare := contract.KeyGrammar{Charset: contract.URLSafe, MinLength: 2, MaxLength: 4}
	uuid := contract.KeyGrammar{Form: contract.KeyUUID, UUIDVersion: 4}
	tests := []struct {
		g    contract.KeyGrammar
		wire string
		key  string
		want string // part of the error
	}{
		{either, `"abc"`, "abc", ""},
		{either, `abc`, "abc", ""},
		{either, `"a\"\\b"`, `a"\b`, ""},
		{either, `"a\b"`, "", "backslash"},
		{either, `"abc`, "", "closing quote"},
		{either, `"abc"x`, "", "follows"},
		{either, `"abc";p=1`, "", "follows"},
		{either, `"ab` + "\x7f" + `"`, "", "printable"},
		{either, `"a\`, "", "backslash"},
		{either, `""`, "", "empty"},
		{either, ``, "", "empty"},
		{either, `"12345678901"`, "", "at most 10"},
		{quoted, `abc`, "", "quotes"},
		{bare, `abc`, "abc", ""},
		{bare, `"bc"`, "", "not of the set"},
		{bare, `a`, "", "at least 2"},
		{bare, `abcde`, "", "at most 4"},
		{bare, `a/b`, "", "byte 1"},
		{contract.KeyGrammar{}, "päß", "päß", ""},
		{contract.KeyGrammar{}, "a\nb", "", "not of the set"},
		{contract.KeyGrammar{}, "a\xffb", "", "not of the set"},
		{contract.KeyGrammar{MaxLength: 3}, "päß", "päß", ""},
		{contract.KeyGrammar{MaxLength: 3, Unit: contract.Bytes}, "päß", "", "5 bytes"},
		{contract.KeyGrammar{CaseInsensitive: true}, "AbC", "abc", ""},
		{uuid, "8e03978e-40d5-43e8-bc93-6894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f9324", ""},
		{uuid, "8E03978E-40D5-43E8-BC93-6894A57F9324", "8E03978E-40D5-43E8-BC93-6894A57F9324", ""},
		{uuid, "8e03978e-40d5-73e8-bc93-6894a57f9324", "", "version 4"},
		{uuid, "8e03978e40d543e8bc936894a57f9324", "", "36 characters"},
		{uuid, "8e03978g-40d5-43e8-bc93-6894a57f9324", "", "hexadecimal"},
		{contract.KeyGrammar{Form: contract.KeyUUID}, "00000000-0000-0000-0000-000000000000", "", "nil UUID"},
	}
	for _, tt := range tests {
		key, err := tt.g.ParseKey(tt.wire)
		switch {
		case tt.want == "" && (err != nil || key != tt.key):
			t.Errorf("%q is read as %q, %v; want %q", tt.wire, key, err, tt.key)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%q: %v, want an error with %q", tt.wire, err, tt.want)
		}
		if (tt.g.CheckKey(tt.wire) == nil) != (tt.want == "") {
			t.Errorf("CheckKey and ParseKey disagree about %q", tt.wire)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{`"a"`, `a`, `"a\"b"`, `"`, ``, "\x00", `"a";q`} {
		f.Add(s)
	}
	g := contract.KeyGrammar{Charset: contract.ASCII, MaxLength: 64, Quoting: contract.Either}
	f.Fuzz(func(t *testing.T, wire string) {
		key, err := g.ParseKey(wire)
		if err != nil {
			return
		}
		// What was read can be written in quotes, and is read as the same key.
		again, err := g.ParseKey(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`)
		if err != nil || again != key {
			t.Fatalf("%q is read as %q, and then as %q, %v", wire, key, again, err)
		}
	})
}

func ExampleContract_FormatKey() {
	stripe, _ := contract.Preset(contract.StripeV1)
	key, err := stripe.FormatKey("a digest of the operation's identity")
	fmt.Println(key, err)
	// Output: cf044682c12c95ce0a7d411e777626ae <nil>
}
