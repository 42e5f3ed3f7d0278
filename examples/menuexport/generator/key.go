package generator

import (
	"errors"
	"strings"
)

// MaxKey is how long an idempotency key may be, in bytes.
const MaxKey = 255

// parseKey reads the values of an Idempotency-Key header: one, either a
// structured field string in double quotes or bare. Both forms name the same key.
func parseKey(values []string) (string, error) {
	if len(values) != 1 {
		return "", errors.New("exactly one Idempotency-Key is needed")
	}
	value := strings.Trim(values[0], " \t")
	key := value
	if strings.HasPrefix(value, `"`) {
		var err error
		if key, err = unquote(value); err != nil {
			return "", err
		}
	} else if strings.ContainsAny(value, " \t\",") {
		return "", errors.New("a bare Idempotency-Key has no spaces, commas or quotes")
	}
	for _, c := range []byte(key) {
		if c < 0x20 || c > 0x7e {
			return "", errors.New("an Idempotency-Key is printable ASCII")
		}
	}
	if len(key) < 1 || len(key) > MaxKey {
		return "", errors.New("an Idempotency-Key has 1 to 255 bytes")
	}
	return key, nil
}

// unquote reads an sf-string, in which a backslash comes before a quote or
// another backslash only.
func unquote(value string) (string, error) {
	var key strings.Builder
	for i := 1; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"' && i == len(value)-1:
			return key.String(), nil
		case c == '"':
			return "", errors.New("something follows the quoted Idempotency-Key")
		case c == '\\':
			if i++; i == len(value) || value[i] != '"' && value[i] != '\\' {
				return "", errors.New(`the quoted Idempotency-Key has a \ that escapes nothing`)
			}
			key.WriteByte(value[i])
		default:
			key.WriteByte(c)
		}
	}
	return "", errors.New("the quoted Idempotency-Key does not end")
}
