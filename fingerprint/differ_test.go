package fingerprint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/semel-dev/semel/fingerprint"
)

func TestDiffer(t *testing.T) {
	tests := []struct {
		a, b string
		want []string
	}{
		{`{"a":1}`, `{"a":1.0}`, nil},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, nil},
		{`{"a":1}`, `{"a":2}`, []string{"/a"}},
		{`{"a":1}`, `{"a":"1"}`, []string{"/a"}},
		{`{"a":null}`, `{}`, []string{"/a"}},
		{`{}`, `{"a":{"b":1}}`, []string{"/a"}},
		{`{"a":1,"c":1}`, `{"b":1,"c":2}`, []string{"/a", "/b", "/c"}},
		{`{"z":1,"a":{"y":1,"x":[1,2]}}`, `{"a":{"x":[1,3],"y":2},"z":2}`, []string{"/a/x/1", "/a/y", "/z"}},
		{`[1,2,3]`, `[1,2]`, []string{"/2"}},
		{`[1]`, `[0,2,3,4]`, []string{"/0", "/1"}},
		{`{"a":[]}`, `{"a":{}}`, []string{"/a"}},
		{`{"a":[]}`, `{"a":null}`, []string{"/a"}},
		{`1`, `2`, []string{""}},
		{`{}`, `[]`, []string{""}},
		{`{"":1}`, `{"":2}`, []string{"/"}},
		{`{"a/b":1,"c~d":1,"~1":1}`, `{"a/b":2,"c~d":2,"~1":2}`, []string{"/a~1b", "/c~0d", "/~01"}},
		{`{"\ud83d\ude00":1,"\ufb33":1}`, `{"\ufb33":2,"\ud83d\ude00":2}`, []string{"/\U0001F600", "/\ufb33"}},
		{`true`, `false`, []string{""}},
	}
	for _, tt := range tests {
		for _, got := range [][]string{
			fingerprint.Differ(must(t, tt.a), must(t, tt.b)),
			fingerprint.Differ(must(t, tt.b), must(t, tt.a)),
		} {
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s and %s: got %q, want %q", tt.a, tt.b, got, tt.want)
			}
		}
	}
}

func TestDifferStopsAtTwenty(t *testing.T) {
	var a, b, items []string
	for i := range 100 {
		a = append(a, fmt.Sprintf(`"m%02d":1`, i))
		b = append(b, fmt.Sprintf(`"m%02d":2`, i))
		items = append(items, fmt.Sprint(i))
	}
	got := fingerprint.Differ(must(t, "{"+strings.Join(a, ",")+"}"), must(t, "{"+strings.Join(b, ",")+"}"))
	if len(got) != fingerprint.MaxDiffer || got[0] != "/m00" || got[19] != "/m19" {
		t.Errorf("got %q", got)
	}
	got = fingerprint.Differ(must(t, "["+strings.Join(items, ",")+"]"), must(t, "["+strings.Repeat("true,", 50)+"null]"))
	if len(got) != fingerprint.MaxDiffer || got[19] != "/19" {
		t.Errorf("got %q", got)
	}
	nested := func(n string) fingerprint.Value {
		return must(t, `{"a":[`+strings.Repeat(`{"x":`+n+`,"y":`+n+`},`, 30)+n+`],"b":`+n+`}`)
	}
	if got = fingerprint.Differ(nested("1"), nested("2")); len(got) != fingerprint.MaxDiffer || got[19] != "/a/9/y" {
		t.Errorf("got %q", got)
	}
}

func TestDifferShortensPointers(t *testing.T) {
	long := strings.Repeat("n", 2000)
	doc := func(n string) fingerprint.Value {
		return must(t, `{"a":{"`+long+`1":`+n+`,"`+long+`2":{"x":`+n+`}},"b":`+n+`}`)
	}
	if got, want := fingerprint.Differ(doc("1"), doc("2")), []string{"/a", "/b"}; !slices.Equal(got, want) {
		t.Errorf("got %.200q, want %q", got, want)
	}
}
