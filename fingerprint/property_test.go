package fingerprint_test

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/semel-dev/semel/fingerprint"
	"pgregory.net/rapid"
)

// A number as the tests know it: ±digits × 10^exp, the digits without zeros at
// either end. math/big does here what the package does on text.
type number struct {
	neg    bool
	digits string
	exp    *big.Int
}

var numbers = rapid.Custom(func(t *rapid.T) number {
	digits := strings.Trim(rapid.StringMatching(`[0-9]{1,25}`).Draw(t, "digits"), "0")
	exp := rapid.OneOf(
		rapid.Map(rapid.IntRange(-25, 25), func(i int) *big.Int { return big.NewInt(int64(i)) }),
		rapid.Map(rapid.StringMatching(`-?([0-9]{1,3}|99999999999999[0-9]{1,9}|1000000000000000[0-9]{1,9}|[0-9]{1,40})`), func(s string) *big.Int {
			n, _ := new(big.Int).SetString(s, 10)
			return n
		}),
	).Draw(t, "exponent")
	if digits == "" {
		return number{exp: new(big.Int)}
	}
	return number{rapid.Bool().Draw(t, "negative"), digits, exp}
})

// spell writes a number in one of its many forms.
func (n number) spell(t *rapid.T) string {
	sign := ""
	if n.neg || n.digits == "" && rapid.Bool().Draw(t, "minus zero") {
		sign = "-"
	}
	digits := n.digits + strings.Repeat("0", rapid.IntRange(0, 4).Draw(t, "more zeros"))
	exp := new(big.Int).Sub(n.exp, big.NewInt(int64(len(digits)-len(n.digits))))
	frac := rapid.IntRange(0, len(digits)+3).Draw(t, "places")
	exp.Add(exp, big.NewInt(int64(frac)))
	if short := frac - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	whole, rest := strings.TrimLeft(digits[:len(digits)-frac], "0"), digits[len(digits)-frac:]
	if whole == "" {
		whole = "0"
	}
	if rest != "" {
		rest = "." + rest
	}
	if exp.Sign() == 0 && rapid.Bool().Draw(t, "no exponent") {
		return sign + whole + rest
	}
	e := exp.String()
	if e[0] != '-' {
		e = rapid.SampledFrom([]string{"", "+"}).Draw(t, "plus") + e
	}
	if rapid.Bool().Draw(t, "zero before exponent") {
		i := strings.IndexFunc(e, func(r rune) bool { return r >= '0' && r <= '9' })
		e = e[:i] + "00" + e[i:]
	}
	return sign + whole + rest + rapid.SampledFrom([]string{"e", "E"}).Draw(t, "e") + e
}

func (n number) equal(m number) bool {
	return n.digits == m.digits && n.neg == m.neg && n.exp.Cmp(m.exp) == 0
}

// One number has one text, and two numbers have two.
func TestNumberForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := numbers.Draw(t, "number")
		a, b := n.spell(t), n.spell(t)
		va, vb := must(t, a), must(t, b)
		if canon(va) != canon(vb) || !fingerprint.Equal(va, vb) {
			t.Fatalf("%s is %s, but %s is %s", a, canon(va), b, canon(vb))
		}
		m := numbers.Draw(t, "other number")
		if rapid.Bool().Draw(t, "near") {
			m = number{n.neg, n.digits, new(big.Int).Add(n.exp, big.NewInt(int64(rapid.IntRange(-1, 1).Draw(t, "by"))))}
		}
		if m.digits == "" {
			m.exp = new(big.Int)
		}
		vm := must(t, m.spell(t))
		if got := canon(va) == canon(vm); got != n.equal(m) || fingerprint.Equal(va, vm) != got {
			t.Fatalf("%s and %s: canonical forms equal is %t", canon(va), canon(vm), got)
		}
	})
}

// A document as the tests know it: nil, bool, number, string, []any or object.
type object []field
type field struct {
	name  string
	value any
}

var names = rapid.StringOfN(rapid.SampledFrom([]rune("ab/~*\"\\\n\x00é\ue000😀")), 0, 4, -1)

func documents(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), numbers.AsAny(), names.AsAny(), rapid.String().AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	array := rapid.Map(rapid.SliceOfN(documents(depth-1), 0, 4), func(s []any) any { return s })
	fields := rapid.Custom(func(t *rapid.T) field { return field{names.Draw(t, "name"), documents(depth-1).Draw(t, "value")} })
	obj := rapid.Map(rapid.SliceOfNDistinct(fields, 0, 5, func(f field) string { return f.name }), func(s []field) any { return object(s) })
	return rapid.OneOf(append(leaves, array, obj, obj)...)
}

// write spells a document with white space, an order, escapes and number forms
// of its own.
func write(t *rapid.T, buf *bytes.Buffer, doc any) {
	space := func() { buf.WriteString(rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r"}).Draw(t, "space")) }
	list := func(open, end string, n int, item func(int)) {
		buf.WriteString(open)
		space()
		for i := range n {
			if i > 0 {
				buf.WriteString(",")
				space()
			}
			item(i)
			space()
		}
		buf.WriteString(end)
	}
	switch d := doc.(type) {
	case nil:
		buf.WriteString("null")
	case bool:
		fmt.Fprint(buf, d)
	case number:
		buf.WriteString(d.spell(t))
	case string:
		writeString(t, buf, d)
	case []any:
		list("[", "]", len(d), func(i int) { write(t, buf, d[i]) })
	case object:
		order := rapid.Permutation(d).Draw(t, "order")
		list("{", "}", len(d), func(i int) {
			writeString(t, buf, order[i].name)
			space()
			buf.WriteString(":")
			space()
			write(t, buf, order[i].value)
		})
	}
}

func writeString(t *rapid.T, buf *bytes.Buffer, s string) {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '/': `\/`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
	buf.WriteString(`"`)
	for _, r := range s {
		how := rapid.IntRange(0, 2).Draw(t, "escape")
		esc, hasShort := short[r]
		switch {
		case hasShort && (how == 1 || how == 0 && r != '/'):
			buf.WriteString(esc)
		case r < 0x20 || how == 2 && r < 0x10000:
			fmt.Fprintf(buf, rapid.SampledFrom([]string{`\u%04x`, `\u%04X`}).Draw(t, "hex"), r)
		case how == 2:
			r -= 0x10000
			fmt.Fprintf(buf, `\u%04x\u%04X`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			buf.WriteRune(r)
		}
	}
	buf.WriteString(`"`)
}

func spell(t *rapid.T, doc any) fingerprint.Value {
	var buf bytes.Buffer
	write(t, &buf, doc)
	return must(t, buf.String())
}

// However a request is written, it has one fingerprint, and its canonical form
// says the same as the request.
func TestSpellingDoesNotCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := documents(3).Draw(t, "document")
		a, b := spell(t, doc), spell(t, doc)
		if fingerprint.AsSent("k", a) != fingerprint.AsSent("k", b) || !fingerprint.Equal(a, b) {
			t.Fatalf("%s and %s differ", canon(a), canon(b))
		}
		if d := fingerprint.Differ(a, b); d != nil {
			t.Fatalf("Differ of equal documents is %q", d)
		}
		again := must(t, canon(a))
		if canon(again) != canon(a) || !fingerprint.Equal(again, a) {
			t.Fatalf("canonical form of %s is %s", canon(a), canon(again))
		}
	})
}

// change makes one change somewhere in doc, and tells where a reader finds it.
func change(t *rapid.T, doc any) (any, string) {
	switch d := doc.(type) {
	case []any:
		if i := rapid.IntRange(-1, len(d)-1).Draw(t, "item"); i >= 0 {
			kid, at := change(t, d[i])
			d = slices.Clone(d)
			d[i] = kid
			return d, fingerprint.PointerOf(fmt.Sprint(i)) + at
		}
		return append(slices.Clip(d), "more"), fingerprint.PointerOf(fmt.Sprint(len(d)))
	case object:
		i := rapid.IntRange(-1, len(d)-1).Draw(t, "member")
		d = slices.Clone(d)
		if i < 0 {
			return append(d, field{"added", nil}), "/added"
		}
		at := fingerprint.PointerOf(d[i].name)
		if rapid.Bool().Draw(t, "remove") {
			return slices.Delete(d, i, i+1), at
		}
		kid, below := change(t, d[i].value)
		d[i].value = kid
		return d, at + below
	case number:
		if d.digits == "" {
			return number{false, "1", new(big.Int)}, ""
		}
		return number{d.neg, d.digits + "1", new(big.Int).Sub(d.exp, big.NewInt(1))}, ""
	case string:
		return d + "!", ""
	case bool:
		return !d, ""
	}
	return false, ""
}

// Every change of a value changes the fingerprint, and Differ says where.
func TestEveryChangeCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := documents(3).Draw(t, "document")
		changed, at := change(t, doc)
		a, b := spell(t, doc), spell(t, changed)
		if fingerprint.AsSent("k", a) == fingerprint.AsSent("k", b) || fingerprint.Equal(a, b) {
			t.Fatalf("%s and %s have one fingerprint", canon(a), canon(b))
		}
		if got := fingerprint.Differ(a, b); !slices.Equal(got, []string{at}) {
			t.Fatalf("%s and %s: Differ says %q, want %q", canon(a), canon(b), got, at)
		}
	})
}

// What a projection excludes does not count, everything else does.
func TestProjectionHidesChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := object{{"in", documents(2).Draw(t, "in")}, {"out", documents(2).Draw(t, "out")}}
		changed, at := change(t, doc)
		if at == "/in" || at == "/out" || at == "/added" {
			return // a member removed or added
		}
		for _, p := range []struct{ include, exclude []string }{{[]string{"/in"}, nil}, {nil, []string{"/out"}}} {
			projection, err := fingerprint.NewProjection(p.include, p.exclude)
			if err != nil {
				t.Fatal(err)
			}
			a, b := projection.Apply(spell(t, doc)), projection.Apply(spell(t, changed))
			if same := fingerprint.Equal(a, b); same != strings.HasPrefix(at, "/out") {
				t.Fatalf("change at %s: projected documents equal is %t", at, same)
			}
		}
	})
}
