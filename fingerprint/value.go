package fingerprint

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"unicode/utf8"
)

// Type is what a JSON value is.
type Type uint8

// The six types of JSON. The zero [Value] is null.
const (
	Null Type = iota
	Bool
	Number
	String
	Array
	Object
)

// String names the type as JSON Schema does: "null", "boolean", "number", …
func (t Type) String() string {
	switch t {
	case Null:
		return "null"
	case Bool:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string"
	case Array:
		return "array"
	case Object:
		return "object"
	}
	return "Type(" + strconv.Itoa(int(t)) + ")"
}

// A Value is one JSON value. It keeps the order of members and the text of
// numbers, and it never changes once made. Copying it copies a few words.
//
// A value made by [Parse] shares the memory of the parsed document: keeping one
// small part keeps the whole text.
type Value struct {
	text string   // a number's text, a string's content
	kids []Member // an object's members; an array's items, without names
	typ  Type
	flag bool // Bool: the value. Object: the members are in canonical order
}

// A Member is one name and value of an object.
type Member struct {
	Name  string
	Value Value
}

// BoolOf makes true or false.
func BoolOf(b bool) Value { return Value{typ: Bool, flag: b} }

// NumberOf makes a number from its JSON text, which is kept as it is. It fails
// when text is not a number of RFC 8259.
func NumberOf(text string) (Value, error) {
	p := parser{src: text}
	if n := p.numberEnd(0); n != len(text) || n == 0 {
		return Value{}, fmt.Errorf("fingerprint: %.40q is not a JSON number", text)
	}
	return Value{typ: Number, text: text}, nil
}

// StringOf makes a string. It fails when s is not valid UTF-8.
func StringOf(s string) (Value, error) {
	if !utf8.ValidString(s) {
		return Value{}, errors.New("fingerprint: a string must be valid UTF-8")
	}
	return Value{typ: String, text: s}, nil
}

// ArrayOf makes an array of items, which are copied.
func ArrayOf(items ...Value) Value {
	kids := make([]Member, len(items))
	for i, item := range items {
		kids[i].Value = item
	}
	return Value{typ: Array, kids: kids}
}

// ObjectOf makes an object of members, which are copied and keep their order.
// It fails when a name occurs twice or is not valid UTF-8.
func ObjectOf(members ...Member) (Value, error) {
	kids := append([]Member(nil), members...)
	for _, m := range kids {
		if !utf8.ValidString(m.Name) {
			return Value{}, errors.New("fingerprint: a member name must be valid UTF-8")
		}
	}
	if inOrder(kids) {
		return Value{typ: Object, kids: kids, flag: true}, nil
	}
	if at := duplicate(kids, canonicalOrder(nil, kids)); at >= 0 {
		return Value{}, fmt.Errorf("fingerprint: member name %s occurs twice", quoteName(kids[at].Name))
	}
	return Value{typ: Object, kids: kids}, nil
}

// Type tells what the value is.
func (v Value) Type() Type { return v.typ }

// Bool reports whether the value is true. It is false for every other value.
func (v Value) Bool() bool { return v.typ == Bool && v.flag }

// Text is a string's content, or a number's text as it was sent. It is empty
// for the other types.
func (v Value) Text() string { return v.text }

// Len is the number of items of an array or of members of an object, 0 for the
// other types.
func (v Value) Len() int { return len(v.kids) }

// Item is the i-th item of an array. It panics when there is none.
func (v Value) Item(i int) Value {
	if v.typ != Array {
		panic("fingerprint: Item of a value that is not an array")
	}
	return v.kids[i].Value
}

// Items ranges over an array's items. It yields nothing for the other types.
func (v Value) Items() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.typ != Array {
			return
		}
		for i := range v.kids {
			if !yield(i, v.kids[i].Value) {
				return
			}
		}
	}
}

// Members ranges over an object's members in their own order. It yields nothing
// for the other types.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.typ != Object {
			return
		}
		for i := range v.kids {
			if !yield(v.kids[i].Name, v.kids[i].Value) {
				return
			}
		}
	}
}

// Get finds an object's member. It reports false when there is none, and for
// every value that is not an object. It looks at the members one by one.
func (v Value) Get(name string) (Value, bool) {
	if v.typ == Object {
		for i := range v.kids {
			if v.kids[i].Name == name {
				return v.kids[i].Value, true
			}
		}
	}
	return Value{}, false
}

// Equal reports whether a and b say the same thing, which is whether their
// canonical forms are the same bytes.
func Equal(a, b Value) bool {
	if a.typ != b.typ || len(a.kids) != len(b.kids) {
		return false
	}
	switch a.typ {
	case Bool:
		return a.flag == b.flag
	case Number:
		return equalNumbers(a.text, b.text)
	case String:
		return a.text == b.text
	case Array:
		for i := range a.kids {
			if !Equal(a.kids[i].Value, b.kids[i].Value) {
				return false
			}
		}
	case Object:
		var sa, sb [smallObject]int
		oa, ob := order(sa[:0], a), order(sb[:0], b)
		for i := range a.kids {
			ma, mb := &a.kids[at(oa, i)], &b.kids[at(ob, i)]
			if ma.Name != mb.Name || !Equal(ma.Value, mb.Value) {
				return false
			}
		}
	}
	return true
}
