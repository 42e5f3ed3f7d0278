package fingerprint

// Canonical is the canonical form of a JSON document. It fails as [Parse] does.
func Canonical(doc []byte) ([]byte, error) {
	v, err := Parse(doc)
	if err != nil {
		return nil, err
	}
	return AppendCanonical(make([]byte, 0, len(doc)), v), nil
}

// AppendCanonical appends the canonical form of v to dst. The package comment
// says what that is.
func AppendCanonical(dst []byte, v Value) []byte {
	switch v.typ {
	case Null:
		return append(dst, "null"...)
	case Bool:
		if v.flag {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case Number:
		return appendNumber(dst, v.text)
	case String:
		return appendString(dst, v.text)
	case Array:
		dst = append(dst, '[')
		for i := range v.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendCanonical(dst, v.kids[i].Value)
		}
		return append(dst, ']')
	default:
		return appendObject(dst, v)
	}
}

// appendObject is apart from [AppendCanonical] to keep its scratch array off
// the stack of arrays.
func appendObject(dst []byte, v Value) []byte {
	var buf [smallObject]int
	sorted := order(buf[:0], v)
	dst = append(dst, '{')
	for i := range v.kids {
		if i > 0 {
			dst = append(dst, ',')
		}
		m := &v.kids[at(sorted, i)]
		dst = appendString(dst, m.Name)
		dst = append(dst, ':')
		dst = AppendCanonical(dst, m.Value)
	}
	return append(dst, '}')
}

// mustEscape marks the bytes that may not stand for themselves in a string.
var mustEscape = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !mustEscape[c] {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
