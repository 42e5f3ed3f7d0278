package fingerprint

import (
	"fmt"
	"strings"
)

// AppendPointer appends one more token to a JSON Pointer (RFC 6901), escaped.
func AppendPointer(dst []byte, token string) []byte {
	dst = append(dst, '/')
	for i := range len(token) {
		switch token[i] {
		case '~':
			dst = append(dst, '~', '0')
		case '/':
			dst = append(dst, '~', '1')
		default:
			dst = append(dst, token[i])
		}
	}
	return dst
}

// PointerOf is the JSON Pointer made of tokens. No token is the whole document,
// "".
func PointerOf(tokens ...string) string {
	var dst []byte
	for _, t := range tokens {
		dst = AppendPointer(dst, t)
	}
	return string(dst)
}

// SplitPointer takes a JSON Pointer apart. It fails when pointer is not one: it
// has to be empty or to start with "/", and after "~" comes 0 or 1.
func SplitPointer(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf(`%q is not a JSON Pointer: it has to start with "/"`, pointer)
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		for j := 0; j < len(t); j++ {
			if t[j] == '~' && (j+1 == len(t) || t[j+1] != '0' && t[j+1] != '1') {
				return nil, fmt.Errorf(`%q is not a JSON Pointer: "~" is written as "~0"`, pointer)
			}
		}
		t = strings.ReplaceAll(t, "~1", "/")
		tokens[i] = strings.ReplaceAll(t, "~0", "~")
	}
	return tokens, nil
}
