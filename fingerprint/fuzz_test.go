package fingerprint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/semel-dev/semel/fingerprint"
)

var seeds = []string{
	`{"title":"本周菜单","days":[{"day":"周一","dishes":["番茄炒蛋","米饭"]}],"theme":"light","width":800}`,
	`[0,-0,1.0,1e400,-12.5E-3,9007199254740993,1e999999999999999999999]`, `"\ud83d\ude00\u0000\/"`, `{"a":1,"a":2}`, `"\ud800"`,
	"\xEF\xBB\xBF1", "\"\xff\"", `[[[[]]]]`, ` null `, `{"a":{"b":[true,false,null]}}`, `01`, `{"":""}`, `[1,]`, `tru`,
}

// The parser accepts what encoding/json accepts, except for what its
// documentation refuses, and reads the same from it.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := fingerprint.Parse(doc)
		if err == nil {
			if !json.Valid(doc) {
				t.Fatalf("%q is not JSON, but was accepted", doc)
			}
			if got, want := plain(v), decode(t, doc); !reflect.DeepEqual(got, want) {
				t.Fatalf("%q: got %#v, want %#v", doc, got, want)
			}
			return
		}
		var bad *fingerprint.SyntaxError
		if !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > len(doc) {
			t.Fatalf("%q: %v", doc, err)
		}
		switch bad.Fault {
		case fingerprint.DuplicateName, fingerprint.LoneSurrogate, fingerprint.InvalidUTF8, fingerprint.TooDeep:
		default:
			if json.Valid(doc) {
				t.Fatalf("%q is JSON, but was refused: %v", doc, err)
			}
		}
	})
}

// The canonical form is JSON, says the same as the document, and is its own
// canonical form.
func FuzzCanonical(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := fingerprint.Parse(doc)
		if err != nil {
			return
		}
		once := fingerprint.AppendCanonical(nil, v)
		w, err := fingerprint.Parse(once)
		if err != nil {
			t.Fatalf("%q became %q: %v", doc, once, err)
		}
		if twice := fingerprint.AppendCanonical(nil, w); !bytes.Equal(once, twice) {
			t.Fatalf("%q became %q and then %q", doc, once, twice)
		}
		if !fingerprint.Equal(v, w) || fingerprint.Differ(v, w) != nil || fingerprint.AsSent("k", v) != fingerprint.AsSent("k", w) {
			t.Fatalf("%q became %q, which is not equal", doc, once)
		}
	})
}

// Whatever is compared under whatever paths, a difference is reported exactly
// when there is one.
func FuzzDiffer(f *testing.F) {
	f.Add([]byte(`{"a":[1,2]}`), []byte(`{"a":[1]}`), "/a/*")
	f.Add([]byte(`{"a/b":1}`), []byte(`{"a~b":1}`), "/a~1b")
	f.Add([]byte(`[]`), []byte(`{}`), "")
	f.Fuzz(func(t *testing.T, a, b []byte, path string) {
		va, errA := fingerprint.Parse(a)
		vb, errB := fingerprint.Parse(b)
		if errA != nil || errB != nil {
			return
		}
		for _, paths := range [][2][]string{{nil, nil}, {{path}, nil}, {nil, {path}}, {{"/*"}, {path}}} {
			p, err := fingerprint.NewProjection(paths[0], paths[1])
			if err != nil {
				continue
			}
			pa, pb := p.Apply(va), p.Apply(vb)
			if again := p.Apply(pa); !fingerprint.Equal(pa, again) {
				t.Fatalf("%q: applied twice, %s", paths, canon(again))
			}
			found := fingerprint.Differ(pa, pb)
			if fingerprint.Equal(pa, pb) != (len(found) == 0) || len(found) > fingerprint.MaxDiffer {
				t.Fatalf("%s and %s: Differ says %q", canon(pa), canon(pb), found)
			}
			for _, at := range found {
				if _, err := fingerprint.SplitPointer(at); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// decode is what encoding/json makes of a document.
func decode(t *testing.T, doc []byte) any {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// plain is a value in the form of encoding/json.
func plain(v fingerprint.Value) any {
	switch v.Type() {
	case fingerprint.Bool:
		return v.Bool()
	case fingerprint.Number:
		return json.Number(v.Text())
	case fingerprint.String:
		return v.Text()
	case fingerprint.Array:
		items := []any{}
		for _, item := range v.Items() {
			items = append(items, plain(item))
		}
		return items
	case fingerprint.Object:
		members := map[string]any{}
		for name, m := range v.Members() {
			members[name] = plain(m)
		}
		return members
	}
	return nil
}
