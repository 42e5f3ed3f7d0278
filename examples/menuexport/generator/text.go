package generator

import (
	"strings"
	"unicode"

	"golang.org/x/image/math/fixed"
	"golang.org/x/text/unicode/norm"
)

// clean returns what of s is drawn: composed characters, one space for any run
// of white space, nothing that has no shape of its own.
func clean(s string) []rune {
	var out []rune
	for _, r := range norm.NFC.String(s) {
		switch {
		case r == ' ' || r == '\u3000':
			out = append(out, r)
		case r == '\u00a0' || r == '\u202f': // these forbid a line break; see canBreak
			out = append(out, '\u00a0')
		case unicode.IsSpace(r):
			out = append(out, ' ')
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector):
		case r >= 0x1f3fb && r <= 0x1f3ff: // skin tones belong to the emoji before them
		default:
			out = append(out, r)
		}
		if n := len(out); n > 1 && out[n-1] == ' ' && out[n-2] == ' ' {
			out = out[:n-1]
		}
	}
	for len(out) > 0 && isBlank(out[0]) {
		out = out[1:]
	}
	for len(out) > 0 && isBlank(out[len(out)-1]) {
		out = out[:len(out)-1]
	}
	return latinQuotes(out)
}

func isBlank(r rune) bool { return r == ' ' || r == '\u00a0' || r == '\u3000' }

// latinQuotes replaces curly quotes beside Latin letters. The font draws these
// as wide as a Chinese character, which tears “Grandma’s” apart.
func latinQuotes(rs []rune) []rune {
	latin := func(i int) bool {
		return i >= 0 && i < len(rs) && (rs[i] < 0x250 && (unicode.IsLetter(rs[i]) || unicode.IsDigit(rs[i])))
	}
	for i, r := range rs {
		switch {
		case !latin(i-1) && !latin(i+1):
		case r == '‘' || r == '’':
			rs[i] = '\''
		case r == '“' && latin(i+1), r == '”' && latin(i-1):
			rs[i] = '"'
		}
	}
	return rs
}

// text is one paragraph, measured. Positions between runes are called 0 to n.
type text struct {
	face  *typeface
	runes []rune
	lead  []fixed.Int26_6 // space before rune i when it is not first in its line: kerning, or air between scripts
	pos   []fixed.Int26_6 // pos[i] is where rune i's lead begins, pos[n] is the end
}

func (t *typeface) measure(s string) *text {
	rs := clean(s)
	x := &text{face: t, runes: rs, lead: make([]fixed.Int26_6, len(rs)), pos: make([]fixed.Int26_6, len(rs)+1)}
	for i, r := range rs {
		if i > 0 {
			x.lead[i] = t.face.Kern(rs[i-1], r)
			if scriptsMeet(rs[i-1], r) {
				x.lead[i] += t.em(150)
			}
		}
		x.pos[i+1] = x.pos[i] + x.lead[i] + t.advance(r)
	}
	return x
}

// width of the runes i to j, set in one line.
func (x *text) width(i, j int) fixed.Int26_6 {
	if i >= j {
		return 0
	}
	return x.pos[j] - x.pos[i] - x.lead[i]
}

// span is one line of a text: the runes from a to b.
type span struct{ a, b int }

// lines breaks the text into lines no wider than limit. Where no break is
// allowed, it breaks anywhere: a rune is never cut. One that is wider than
// limit stands alone.
func (x *text) lines(limit fixed.Int26_6) []span {
	var out []span
	n := len(x.runes)
	for a := 0; a < n; {
		b, last := a+1, a
		for ; b < n; b++ {
			if canBreak(x.runes[b-1], x.runes[b]) {
				last = b
			}
			// Blanks at a line's end take no room.
			if !isBlank(x.runes[b]) && x.width(a, b+1) > limit {
				break
			}
		}
		next := b
		if b < n && last > a {
			next = last
		}
		out = append(out, x.span(a, next))
		for a = next; a < n && isBlank(x.runes[a]); a++ {
		}
	}
	return out
}

// span returns the line from a to b, less the blanks at its end.
func (x *text) span(a, b int) span {
	for b > a+1 && isBlank(x.runes[b-1]) {
		b--
	}
	return span{a, b}
}

// balanced breaks into as few lines as lines does, as even as these can be.
func (x *text) balanced(limit fixed.Int26_6) []span {
	best := x.lines(limit)
	if len(best) < 2 {
		return best
	}
	lo, hi := limit/fixed.Int26_6(len(best)+1), limit
	for hi-lo > fixed.I(1) {
		mid := (lo + hi) / 2
		if try := x.lines(mid); len(try) > len(best) || x.widest(try) > mid {
			lo = mid
		} else {
			best, hi = try, mid
		}
	}
	return best
}

// tidy breaks like lines, but puts a remark in brackets on a line of its own where
// that needs no more lines, and evens the lines where a few characters would be
// left alone on the last one.
func (x *text) tidy(limit fixed.Int26_6) []span {
	ls := x.lines(limit)
	n := len(ls)
	if n == 2 {
		for i, r := range x.runes {
			if i == 0 || r != '（' && r != '(' || !canBreak(x.runes[i-1], r) {
				continue
			}
			if two := []span{x.span(0, i), {i, len(x.runes)}}; x.widest(two) <= limit {
				return two
			}
		}
	}
	if n > 1 && x.width(ls[n-1].a, ls[n-1].b) < limit/4 {
		return x.balanced(limit)
	}
	return ls
}

func (x *text) widest(ls []span) fixed.Int26_6 {
	var w fixed.Int26_6
	for _, l := range ls {
		w = max(w, x.width(l.a, l.b))
	}
	return w
}

// Characters that must not begin a line, and those that must not end one.
const (
	noStart = "、。，．：；！？‼⁇）〕］｝〉》」』】〗’”…‥—～〜·・ーゝゞ々ぁぃぅぇぉっゃゅょァィゥェォッャュョ％℃°′″,.:;!?)]}>%/|-–"
	noEnd   = "（〔［｛〈《「『【〖‘“￥＄￡([{<$£€¥#@"
)

// canBreak tells whether a line may end between a and b.
func canBreak(a, b rune) bool {
	switch {
	case a == '\u00a0' || b == '\u00a0' || b == ' ' || unicode.Is(unicode.Mn, b):
		return false
	case a == ' ':
		return true
	case strings.ContainsRune(noStart, b) || strings.ContainsRune(noEnd, a):
		return false
	case a == '-' || a == '–' || a == '/' || a == '—':
		return true
	}
	return isWide(a) || isWide(b)
}

// isWide tells whether lines may break on both sides of r.
func isWide(r rune) bool {
	return r >= 0x2e80 && r < 0xa4d0 || r >= 0xac00 && r < 0xd7b0 || r >= 0xf900 && r < 0xfb00 ||
		r >= 0xfe30 && r < 0xfe50 || r >= 0xff00 && r < 0xffef || r >= 0x1f000 || r == '…' || r == '—'
}

// scriptsMeet tells whether a and b are an ideograph and a Latin letter or a
// digit, in either order. Good Chinese setting leaves a little air there.
func scriptsMeet(a, b rune) bool {
	ideograph := func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }
	western := func(r rune) bool { return r < 0x530 && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	return ideograph(a) && western(b) || western(a) && ideograph(b)
}
