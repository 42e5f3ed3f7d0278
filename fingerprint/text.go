package fingerprint

import (
	"strings"
	"unicode/utf8"
)

// numberEnd is the end of the number that starts at i, or i when there is none.
// The grammar is RFC 8259's: no leading zeros, no bare point, no plus sign.
func (p *parser) numberEnd(i int) int {
	s, start := p.src, i
	if i < len(s) && s[i] == '-' {
		i++
	}
	switch {
	case i == len(s) || s[i] < '0' || s[i] > '9':
		p.pos = i
		return start
	case s[i] == '0':
		i++
	default:
		i = digitsEnd(s, i)
	}
	if i < len(s) && s[i] == '.' {
		j := digitsEnd(s, i+1)
		if j == i+1 {
			p.pos = j
			return start
		}
		i = j
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		k := digitsEnd(s, j)
		if k == j {
			p.pos = j
			return start
		}
		i = k
	}
	return i
}

func digitsEnd(s string, i int) int {
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// firstInvalid is the offset of the first byte that is not UTF-8.
func firstInvalid(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(s)
}

// str reads the string at pos, quotes included. Without escapes it is a part of
// the document and costs nothing.
func (p *parser) str() (string, *SyntaxError) {
	start := p.pos + 1
	switch p.run(start) {
	case '"':
		p.pos++
		return p.src[start : p.pos-1], nil
	case '\\':
		return p.escaped(start)
	}
	return "", p.badString()
}

// escaped reads on, from the first escape of the string that begins at start.
func (p *parser) escaped(start int) (string, *SyntaxError) {
	buf := p.text[:0]
	for {
		buf = append(buf, p.src[start:p.pos]...)
		r, err := p.escape()
		if err != nil {
			return "", err
		}
		buf = utf8.AppendRune(buf, r)
		start = p.pos
		switch p.run(start) {
		case '"':
			buf = append(buf, p.src[start:p.pos]...)
			p.pos++
			p.text = buf
			return string(buf), nil
		case '\\':
		default:
			return "", p.badString()
		}
	}
}

// run moves pos from i over characters that stand for themselves, and tells
// which byte ended them; 0 is the end of the document.
func (p *parser) run(i int) byte {
	s := p.src
	for i < len(s) && !mustEscape[s[i]] {
		i++
	}
	p.pos = i
	if i == len(s) {
		return 0
	}
	return s[i]
}

func (p *parser) badString() *SyntaxError {
	if p.pos == len(p.src) {
		return p.unexpected("the end of a string")
	}
	return &SyntaxError{p.pos, BadSyntax, `a control character in a string is written as \u00XX`}
}

// escape reads one escape, the backslash being at pos.
func (p *parser) escape() (rune, *SyntaxError) {
	at := p.pos
	if at+1 == len(p.src) {
		p.pos++
		return 0, p.unexpected("an escape")
	}
	c := p.src[at+1]
	if c != 'u' {
		i := strings.IndexByte(`"\/bfnrt`, c)
		if i < 0 {
			return 0, &SyntaxError{at, BadSyntax, "unknown escape"}
		}
		p.pos += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	r, ok := hex4(p.src, at+2)
	if !ok {
		return 0, &SyntaxError{at, BadSyntax, `\u takes four hexadecimal digits`}
	}
	p.pos += 6
	if r < 0xD800 || r > 0xDFFF {
		return r, nil
	}
	if r < 0xDC00 && strings.HasPrefix(p.src[p.pos:], `\u`) {
		if low, ok := hex4(p.src, p.pos+2); ok && low >= 0xDC00 && low <= 0xDFFF {
			p.pos += 6
			return 0x10000 + (r-0xD800)<<10 + (low - 0xDC00), nil
		}
	}
	return 0, &SyntaxError{at, LoneSurrogate, ""}
}

func hex4(s string, i int) (rune, bool) {
	if i+4 > len(s) {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[i : i+4]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
