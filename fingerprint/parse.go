package fingerprint

import (
	"fmt"
	"sync"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest in a document.
const MaxDepth = 1000

// A Fault is the reason why a document is refused.
type Fault string

// Every reason for which [Parse] refuses a document.
const (
	BadSyntax     Fault = "not JSON"
	ByteOrderMark Fault = "byte order mark"
	InvalidUTF8   Fault = "invalid UTF-8"
	LoneSurrogate Fault = "surrogate without its partner"
	DuplicateName Fault = "duplicate member name"
	TooDeep       Fault = "nested too deeply"
	TrailingData  Fault = "data after the document"
)

// A SyntaxError says where a document breaks a rule, and which one. It holds no
// value of the document; for [DuplicateName] it holds the name.
type SyntaxError struct {
	Offset int    // in bytes, from the start of the document
	Fault  Fault  // the rule
	Detail string // what was found, or what would be right; may be empty
}

// Error is "byte 17: duplicate member name: "amount"".
func (e *SyntaxError) Error() string {
	s := fmt.Sprintf("byte %d: %s", e.Offset, e.Fault)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Parse reads one JSON document. The error, if any, is a [*SyntaxError]. doc is
// copied once and may be changed afterwards.
func Parse(doc []byte) (Value, error) {
	p := parsers.Get().(*parser)
	defer p.release()
	p.src = string(doc)
	if len(doc) >= 3 && p.src[:3] == "\xEF\xBB\xBF" {
		return Value{}, &SyntaxError{0, ByteOrderMark, "send the document without it"}
	}
	if !utf8.ValidString(p.src) {
		return Value{}, &SyntaxError{firstInvalid(p.src), InvalidUTF8, ""}
	}
	p.skipSpace()
	v, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	p.skipSpace()
	if p.pos != len(p.src) {
		return Value{}, &SyntaxError{p.pos, TrailingData, "send one JSON value only"}
	}
	return v, nil
}

// parser reads src. The children of the containers that are still open lie on
// one stack and move to their final place when their container closes, so that
// each container costs one exact allocation, or none while the slab lasts.
type parser struct {
	src   string
	pos   int
	stack []Member
	names []int    // offsets of the names on the stack
	high  int      // how much of the stack has been used
	order []int    // scratch of the duplicate check
	text  []byte   // scratch of strings with escapes
	slab  []Member // room for the children of small containers
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// release gives the scratch memory back, without what it refers to.
func (p *parser) release() {
	const keep = 4096
	if cap(p.stack) > keep || cap(p.order) > keep || cap(p.text) > 16*keep {
		return
	}
	clear(p.stack[:p.high])
	*p = parser{stack: p.stack[:0], names: p.names[:0], order: p.order[:0], text: p.text[:0]}
	parsers.Put(p)
}

func (p *parser) value(depth int) (Value, *SyntaxError) {
	if p.pos == len(p.src) {
		return Value{}, p.unexpected("a value")
	}
	switch c := p.src[p.pos]; c {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		s, err := p.str()
		return Value{typ: String, text: s}, err
	case 't':
		return p.literal("true", Value{typ: Bool, flag: true})
	case 'f':
		return p.literal("false", Value{typ: Bool})
	case 'n':
		return p.literal("null", Value{})
	default:
		if c != '-' && (c < '0' || c > '9') {
			return Value{}, p.unexpected("a value")
		}
		start := p.pos
		end := p.numberEnd(start)
		if end == start {
			return Value{}, p.unexpected("a digit")
		}
		p.pos = end
		return Value{typ: Number, text: p.src[start:end]}, nil
	}
}

func (p *parser) literal(word string, v Value) (Value, *SyntaxError) {
	for i := range len(word) {
		if p.pos == len(p.src) || p.src[p.pos] != word[i] {
			return Value{}, p.unexpected("the word " + word)
		}
		p.pos++
	}
	return v, nil
}

func (p *parser) array(depth int) (Value, *SyntaxError) {
	if depth == MaxDepth {
		return Value{}, p.tooDeep()
	}
	p.pos++
	p.skipSpace()
	if p.take(']') {
		return Value{typ: Array}, nil
	}
	mark := len(p.stack)
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		p.push(Member{Value: v}, 0)
		p.skipSpace()
		if p.take(']') {
			return Value{typ: Array, kids: p.pop(mark)}, nil
		}
		if !p.take(',') {
			return Value{}, p.unexpected(`"," or "]"`)
		}
		p.skipSpace()
	}
}

func (p *parser) object(depth int) (Value, *SyntaxError) {
	if depth == MaxDepth {
		return Value{}, p.tooDeep()
	}
	p.pos++
	p.skipSpace()
	if p.take('}') {
		return Value{typ: Object, flag: true}, nil
	}
	mark := len(p.stack)
	for {
		start := p.pos
		if start == len(p.src) || p.src[start] != '"' {
			return Value{}, p.unexpected("a member name in double quotes")
		}
		name, err := p.str()
		if err != nil {
			return Value{}, err
		}
		p.skipSpace()
		if !p.take(':') {
			return Value{}, p.unexpected(`":"`)
		}
		p.skipSpace()
		v, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		p.push(Member{Name: name, Value: v}, start)
		p.skipSpace()
		if p.take('}') {
			return p.closeObject(mark)
		}
		if !p.take(',') {
			return Value{}, p.unexpected(`"," or "}"`)
		}
		p.skipSpace()
	}
}

// closeObject checks that no name occurs twice. Sorting makes that n log n even
// for an object made to be slow; a request that is canonical already skips it.
func (p *parser) closeObject(mark int) (Value, *SyntaxError) {
	sorted := inOrder(p.stack[mark:])
	if !sorted {
		p.order = canonicalOrder(p.order[:0], p.stack[mark:])
		if i := duplicate(p.stack[mark:], p.order); i >= 0 {
			return Value{}, &SyntaxError{p.names[mark+i], DuplicateName, quoteName(p.stack[mark+i].Name)}
		}
	}
	return Value{typ: Object, kids: p.pop(mark), flag: sorted}, nil
}

func (p *parser) push(m Member, name int) {
	p.stack = append(p.stack, m)
	p.names = append(p.names, name)
	p.high = max(p.high, len(p.stack))
}

// pop moves everything above mark off the stack.
func (p *parser) pop(mark int) []Member {
	const slab = 64
	n := len(p.stack) - mark
	if len(p.slab) < n {
		if n >= slab/2 {
			kids := append(make([]Member, 0, n), p.stack[mark:]...)
			p.stack, p.names = p.stack[:mark], p.names[:mark]
			return kids
		}
		// What is on the stack will need room as well.
		p.slab = make([]Member, min(slab, max(2*n, len(p.stack))))
	}
	kids := p.slab[:n:n]
	p.slab = p.slab[n:]
	copy(kids, p.stack[mark:])
	p.stack, p.names = p.stack[:mark], p.names[:mark]
	return kids
}

func (p *parser) skipSpace() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\n', '\t', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) take(c byte) bool {
	if p.pos < len(p.src) && p.src[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) tooDeep() *SyntaxError {
	return &SyntaxError{p.pos, TooDeep, fmt.Sprintf("at most %d levels", MaxDepth)}
}

func (p *parser) unexpected(want string) *SyntaxError {
	if p.pos >= len(p.src) {
		return &SyntaxError{len(p.src), BadSyntax, "it ends where " + want + " should be"}
	}
	return &SyntaxError{p.pos, BadSyntax, "expected " + want}
}

// quoteName makes a member name fit for an error message.
func quoteName(name string) string {
	const limit = 64
	for i := range name {
		if i > limit {
			return fmt.Sprintf("%q…", name[:i])
		}
	}
	return fmt.Sprintf("%q", name)
}
