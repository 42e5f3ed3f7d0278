package fingerprint

import (
	"bytes"
	"strconv"
	"strings"
)

// maxPlain is the number of digits before the point up to which ECMAScript, and
// so RFC 8785, writes a number without an exponent.
const maxPlain = 21

// A decimal is a number's text taken apart: ±0.<whole><frac> × 10^n, where n is
// exp + shift. exp stays text because it may have any number of digits.
type decimal struct {
	neg         bool
	whole, frac string // significant digits; neither end is a zero, unless both are empty
	exp         string // optional sign, digits; may be empty
	shift       int
}

// takeApart expects a valid number. For zero, whole and frac are empty.
func takeApart(text string) decimal {
	var d decimal
	if text[0] == '-' {
		d.neg, text = true, text[1:]
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		text, d.exp = text[:i], text[i+1:]
	}
	d.whole, d.frac, _ = strings.Cut(text, ".")
	d.whole = strings.TrimLeft(d.whole, "0")
	d.shift = len(d.whole)
	d.frac = strings.TrimRight(d.frac, "0")
	if d.whole == "" {
		f := strings.TrimLeft(d.frac, "0")
		d.shift, d.frac = len(f)-len(d.frac), f
	}
	if d.frac == "" {
		d.whole = strings.TrimRight(d.whole, "0")
	}
	return d
}

// appendNumber appends the canonical text of a valid number.
func appendNumber(dst []byte, text string) []byte {
	if plainInteger(text) {
		return append(dst, text...)
	}
	d := takeApart(text)
	k := len(d.whole) + len(d.frac)
	if k == 0 {
		return append(dst, '0')
	}
	if d.neg {
		dst = append(dst, '-')
	}
	n, small := d.point()
	switch {
	case small && int64(k) <= n && n <= maxPlain:
		dst = append(append(dst, d.whole...), d.frac...)
		return appendZeros(dst, int(n)-k)
	case small && 0 < n && n <= maxPlain:
		return d.appendSplit(dst, int(n))
	case small && -6 < n && n <= 0:
		dst = appendZeros(append(dst, "0."...), int(-n))
		return append(append(dst, d.whole...), d.frac...)
	}
	dst = append(d.appendSplit(dst, 1), 'e')
	if !small {
		return appendSum(dst, d.exp, int64(d.shift-1))
	}
	if n > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, n-1, 10)
}

// plainInteger reports whether text is canonical as it stands. Most numbers are.
func plainInteger(text string) bool {
	t := text
	if t[0] == '-' {
		t = t[1:]
	}
	if len(t) > maxPlain || t[0] == '0' && len(t) == 1 && len(text) == 2 {
		return false
	}
	for i := range len(t) {
		if t[i] < '0' || t[i] > '9' {
			return false
		}
	}
	return true
}

// smallExponent is how many digits an exponent may have to be computed with. It
// leaves room for shift, which the length of a document bounds.
const smallExponent = 17

// point is n, and whether it could be computed. What could not is far too large
// for any form but the one with an exponent.
func (d *decimal) point() (n int64, small bool) {
	if d.exp == "" {
		return int64(d.shift), true
	}
	neg, digits := splitSign(d.exp)
	if len(digits) > smallExponent {
		return 0, false
	}
	e, _ := strconv.ParseInt("0"+digits, 10, 64)
	if neg {
		e = -e
	}
	return e + int64(d.shift), true
}

// appendSplit writes the digits with a point after the first n of them, if any
// are left.
func (d *decimal) appendSplit(dst []byte, n int) []byte {
	if n <= len(d.whole) {
		dst = append(dst, d.whole[:n]...)
		if n == len(d.whole) && d.frac == "" {
			return dst
		}
		dst = append(append(dst, '.'), d.whole[n:]...)
		return append(dst, d.frac...)
	}
	n -= len(d.whole)
	dst = append(append(dst, d.whole...), d.frac[:n]...)
	if n == len(d.frac) {
		return dst
	}
	return append(append(dst, '.'), d.frac[n:]...)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

// splitSign takes the sign and the leading zeros off an exponent.
func splitSign(exp string) (neg bool, digits string) {
	switch exp[0] {
	case '-':
		neg, exp = true, exp[1:]
	case '+':
		exp = exp[1:]
	}
	return neg, strings.TrimLeft(exp, "0")
}

// appendSum writes exp + delta with its sign. exp has more than smallExponent
// digits, and delta is bounded by the length of a document, so that only the low
// digits, a carry and a borrow need arithmetic, whatever the length of exp.
func appendSum(dst []byte, exp string, delta int64) []byte {
	const low, base = 15, 1_000_000_000_000_000 // base is 10^low
	neg, digits := splitSign(exp)
	if neg {
		dst, delta = append(dst, '-'), -delta
	} else {
		dst = append(dst, '+')
	}
	head := []byte(digits[:len(digits)-low])
	tail, _ := strconv.ParseInt(digits[len(digits)-low:], 10, 64)
	tail += delta
	switch {
	case tail >= base:
		tail -= base
		head = increment(head)
	case tail < 0:
		tail += base
		head = decrement(head)
	}
	dst = append(dst, head...)
	var buf [low]byte
	for i := low - 1; i >= 0; i-- {
		buf[i] = byte('0' + tail%10)
		tail /= 10
	}
	return append(dst, buf[:]...)
}

// increment adds one to a decimal.
func increment(d []byte) []byte {
	for i := len(d) - 1; i >= 0; i-- {
		if d[i] != '9' {
			d[i]++
			return d
		}
		d[i] = '0'
	}
	return append([]byte{'1'}, d...)
}

// decrement takes one from a decimal that is greater than one, and drops the
// leading zero that may come of it.
func decrement(d []byte) []byte {
	for i := len(d) - 1; i >= 0; i-- {
		if d[i] != '0' {
			d[i]--
			break
		}
		d[i] = '9'
	}
	return bytes.TrimLeft(d, "0")
}

// equalNumbers reports whether two numbers are the same decimal.
func equalNumbers(a, b string) bool {
	if a == b {
		return true
	}
	var x, y [64]byte
	return bytes.Equal(appendNumber(x[:0], a), appendNumber(y[:0], b))
}
