package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-dev/semel/fingerprint"
)

// MaxViolations is how many violations an [Error] lists.
const MaxViolations = 10

// Error says what is wrong with parameters, or with a schema, place by place. It
// holds names and what the schema asks for, never a value of the parameters.
type Error struct {
	Violations []Violation // at least one, at most MaxViolations, in the order of their places
	More       int         // how many more there are
	Err        error       // the cause, if there is one: a *fingerprint.SyntaxError
}

// Violation is one rule that is broken.
type Violation struct {
	Pointer string // where: a JSON Pointer, "" for the whole document
	Message string // what is wrong, and so what to change
}

// Error lists the violations: "/width: must be at most 2400; …".
func (e *Error) Error() string {
	var b strings.Builder
	for i, v := range e.Violations {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(v.String())
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "; and %d more", e.More)
	}
	return b.String()
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// String is place and message; the whole document has no place to name.
func (v Violation) String() string {
	if v.Pointer == "" {
		return v.Message
	}
	return v.Pointer + ": " + v.Message
}

// violations collects what becomes an [Error].
type violations []violation

type violation struct {
	at      []string
	message string
}

func (vs *violations) add(at []string, message string) {
	*vs = append(*vs, violation{slices.Clone(at), message})
}

// err is nil when there is no violation. The library walks maps, so order is
// made here.
func (vs violations) err() error {
	if len(vs) == 0 {
		return nil
	}
	slices.SortFunc(vs, violation.compare)
	vs = slices.CompactFunc(vs, func(a, b violation) bool { return a.compare(b) == 0 })
	e := &Error{More: max(0, len(vs)-MaxViolations)}
	for _, v := range vs[:len(vs)-e.More] {
		e.Violations = append(e.Violations, Violation{fingerprint.PointerOf(v.at...), v.message})
	}
	return e
}

func (v violation) compare(w violation) int {
	return cmp.Or(slices.CompareFunc(v.at, w.at, compareTokens), cmp.Compare(v.message, w.message))
}

// compareTokens puts item 10 after item 9.
func compareTokens(a, b string) int {
	if digits(a) && digits(b) {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}
	return cmp.Compare(a, b)
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
