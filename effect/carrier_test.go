package effect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestSpliceKeepsEveryOtherByte(t *testing.T) {
	for _, c := range []struct{ name, doc, pointer, want string }{
		{"empty object", `{}`, "/key", `{"key":"K"}`},
		{"space inside", "{ \n}", "/key", "{\"key\":\"K\" \n}"},
		{"before others", `{ "a" : 1.0 , "b":[ 1e2 ] }`, "/key", `{"key":"K", "a" : 1.0 , "b":[ 1e2 ] }`},
		{"replaces", `{"a":1, "key" : "old" ,"b":2}`, "/key", `{"a":1, "key" : "K" ,"b":2}`},
		{"replaces what is no string", `{"key":{"x":[1,2]}}`, "/key", `{"key":"K"}`},
		{"nested", `{"meta":{ "x":1},"n":9007199254740993}`, "/meta/key", `{"meta":{"key":"K", "x":1},"n":9007199254740993}`},
		{"makes objects", `{"a":1}`, "/meta/deep/key", `{"meta":{"deep":{"key":"K"}},"a":1}`},
		{"escaped name", `{"a/b":{}}`, "/a~1b/k~0", `{"a/b":{"k~":"K"}}`},
		{"skips a same name deeper", `{"x":{"key":1}}`, "/key", `{"key":"K","x":{"key":1}}`},
	} {
		got, err := splice([]byte(c.doc), c.pointer, "K")
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.want)
		}
	}
	for _, c := range []struct{ name, doc, pointer string }{
		{"a list", `[1]`, "/key"}, {"a string", `"x"`, "/key"}, {"nothing", ``, "/key"}, {"broken", `{"a":`, "/key"},
		{"a list on the way", `{"meta":[1]}`, "/meta/key"}, {"a number on the way", `{"meta":1}`, "/meta/key"},
	} {
		if got, err := splice([]byte(c.doc), c.pointer, "K"); err == nil {
			t.Errorf("%s: %s; want an error", c.name, got)
		}
	}
}

func FuzzSplice(f *testing.F) {
	f.Add([]byte(`{"a":1,"meta":{"x":[{}]}}`), "/meta/key", "k")
	f.Add([]byte(`{"key":"old"}`), "/key", `q"\`)
	f.Fuzz(func(t *testing.T, doc []byte, pointer, value string) {
		if !strings.HasPrefix(pointer, "/") || !json.Valid(doc) {
			return
		}
		out, err := splice(doc, pointer, value)
		if err != nil {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%q with %q became %q", doc, pointer, out)
		}
		again, err := splice(out, pointer, value)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("twice is not once: %q, then %q (%v)", out, again, err)
		}
	})
}

func TestDirectiveNeedsAVariable(t *testing.T) {
	body := []byte(`{"query":"mutation M($k: String!, $a: Int) { pay(a: $a) @idempotent(key: $k) { id } }","variables":{"a":1}}`)
	pointer, err := directiveVariable(body, "@idempotent(key)")
	if err != nil || pointer != "/variables/k" {
		t.Fatalf("%q, %v", pointer, err)
	}
	out, err := splice(body, pointer, "K")
	var got struct{ Variables map[string]any }
	if err != nil || json.Unmarshal(out, &got) != nil || !reflect.DeepEqual(got.Variables, map[string]any{"a": 1.0, "k": "K"}) {
		t.Errorf("%s, %v", out, err)
	}
	for _, query := range []string{"mutation { pay { id } }", `mutation { pay @idempotent(key: \"fixed\") { id } }`} {
		if _, err := directiveVariable([]byte(`{"query":"`+query+`"}`), "@idempotent(key)"); err == nil {
			t.Errorf("%s: no error", query)
		}
	}
}
