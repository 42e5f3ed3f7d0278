package fingerprint

import (
	"errors"
	"fmt"
	"strconv"
)

// A Projection says which parts of a document count. What does not count can
// change without changing a fingerprint: a time stamp, a trace ID.
//
// Paths are JSON Pointers. A token "*" stands for every member of an object and
// every item of an array, so a member whose name is "*" cannot be meant alone.
// A path stands for the whole value that it points to; one that points to
// nothing does no harm.
//
// With include paths, only these count. Exclude paths then take away from what
// is left. Members that do not count are absent, and with include paths so is an
// object or array in which nothing counts (at the root it is empty, and any other
// root is null). Items keep their positions: one that does not count becomes null
// when a later item counts, and is absent otherwise.
//
// A nil *Projection is valid: everything counts.
type Projection struct {
	include, exclude *path
}

// path is a tree of tokens. end marks the end of one of the paths.
type path struct {
	end    bool
	tokens map[string]*path
	any    *path // the token "*"
}

// NewProjection compiles paths. Without any, everything counts. It fails when a
// path is not a JSON Pointer, or when the whole document is excluded.
func NewProjection(include, exclude []string) (*Projection, error) {
	p := new(Projection)
	var err error
	if p.include, err = compilePaths("include", include); err != nil {
		return nil, err
	}
	if p.exclude, err = compilePaths("exclude", exclude); err != nil {
		return nil, err
	}
	if p.exclude != nil && p.exclude.end {
		return nil, errors.New(`exclude path "" is the whole document; then no two requests would differ`)
	}
	return p, nil
}

func compilePaths(what string, pointers []string) (*path, error) {
	if len(pointers) == 0 {
		return nil, nil
	}
	root := new(path)
	for _, pointer := range pointers {
		tokens, err := SplitPointer(pointer)
		if err != nil {
			return nil, fmt.Errorf("%s path %w", what, err)
		}
		at := root
		for _, t := range tokens {
			at = at.child(t)
		}
		at.end = true
	}
	return root, nil
}

func (p *path) child(token string) *path {
	if token == "*" {
		if p.any == nil {
			p.any = new(path)
		}
		return p.any
	}
	if p.tokens == nil {
		p.tokens = make(map[string]*path)
	}
	if p.tokens[token] == nil {
		p.tokens[token] = new(path)
	}
	return p.tokens[token]
}

// Apply is v reduced to what counts.
func (p *Projection) Apply(v Value) Value {
	if p == nil {
		return v
	}
	at := position{all: p.include == nil || p.include.end}
	if !at.all {
		at.include = []*path{p.include}
	}
	if p.exclude != nil {
		at.exclude = []*path{p.exclude}
	}
	kept, ok := at.project(v)
	if ok {
		return kept
	}
	if v.typ == Array || v.typ == Object {
		return Value{typ: v.typ, flag: v.typ == Object}
	}
	return Value{}
}

// position is where the walk is: which paths lead on from here (more than one
// can, because of "*"), and whether an include path has ended on the way.
type position struct {
	all              bool
	include, exclude []*path
}

// project reports false when nothing in v counts.
func (at position) project(v Value) (Value, bool) {
	if at.all && len(at.exclude) == 0 {
		return v, true
	}
	if v.typ != Array && v.typ != Object {
		return v, at.all
	}
	out := Value{typ: v.typ, flag: v.flag}
	last := 0
	for i := range v.kids {
		m := v.kids[i]
		next, ok := at.child(v.typ, m.Name, i)
		if ok {
			m.Value, ok = next.project(m.Value)
		}
		switch {
		case ok:
			out.kids = append(out.kids, m)
			last = len(out.kids)
		case v.typ == Array:
			out.kids = append(out.kids, Member{}) // null keeps the place
		}
	}
	out.kids = out.kids[:last]
	return out, at.all || last > 0
}

// child reports false when a child does not count, whatever is in it.
func (at position) child(typ Type, name string, i int) (position, bool) {
	if typ == Array {
		name = strconv.Itoa(i)
	}
	next := position{all: at.all, exclude: step(at.exclude, name)}
	if ended(next.exclude) {
		return next, false
	}
	if !next.all {
		next.include = step(at.include, name)
		next.all = ended(next.include)
	}
	return next, next.all || len(next.include) > 0
}

// step follows the paths that have token next.
func step(paths []*path, token string) []*path {
	var next []*path
	for _, p := range paths {
		if p.any != nil {
			next = append(next, p.any)
		}
		if q := p.tokens[token]; q != nil {
			next = append(next, q)
		}
	}
	return next
}

func ended(paths []*path) bool {
	for _, p := range paths {
		if p.end {
			return true
		}
	}
	return false
}
