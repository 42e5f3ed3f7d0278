package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/semel-dev/semel/fingerprint"
)

// maxDigits and maxExponent bound the numbers that are validated. The library
// compares them as fractions of integers, and the cost of 1e-1000000 would be a
// million digits.
const (
	maxDigits   = 1000
	maxExponent = 1000
)

// checkNumbers finds the numbers that are too large to be validated.
func checkNumbers(v fingerprint.Value) error {
	var found violations
	var walk func(v fingerprint.Value, at []string)
	walk = func(v fingerprint.Value, at []string) {
		switch v.Type() {
		case fingerprint.Number:
			if !bounded(v) {
				found.add(at, fmt.Sprintf("is a number of more than %d digits or with an exponent beyond ±%d; send it as a string", maxDigits, maxExponent))
			}
		case fingerprint.Array:
			for i, item := range v.Items() {
				walk(item, append(at, strconv.Itoa(i)))
			}
		case fingerprint.Object:
			for name, m := range v.Members() {
				walk(m, append(at, name))
			}
		}
	}
	walk(v, nil)
	return found.err()
}

func bounded(number fingerprint.Value) bool {
	if t := number.Text(); len(t) <= 100 && !strings.ContainsAny(t, "eE") {
		return true
	}
	digits, exp, _ := strings.Cut(string(fingerprint.AppendCanonical(nil, number)), "e")
	if exp == "" {
		exp = "0"
	}
	n, err := strconv.Atoi(exp)
	digits = strings.Replace(strings.TrimLeft(digits, "-0."), ".", "", 1)
	return err == nil && len(digits) <= maxDigits && -maxExponent <= n && n <= maxExponent
}

// toAny makes of a value what the library validates. Numbers are in canonical
// form, which is short.
func toAny(v fingerprint.Value) any {
	switch v.Type() {
	case fingerprint.Bool:
		return v.Bool()
	case fingerprint.Number:
		return json.Number(fingerprint.AppendCanonical(nil, v))
	case fingerprint.String:
		return v.Text()
	case fingerprint.Array:
		items := make([]any, 0, v.Len())
		for _, item := range v.Items() {
			items = append(items, toAny(item))
		}
		return items
	case fingerprint.Object:
		members := make(map[string]any, v.Len())
		for name, m := range v.Members() {
			members[name] = toAny(m)
		}
		return members
	}
	return nil
}

// toValue is the way back, for parts of a schema.
func toValue(v any) (fingerprint.Value, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return fingerprint.Value{}, err
	}
	return fingerprint.Parse(text)
}

// lookup follows the tokens of a pointer; what they do not lead to is null.
func lookup(v fingerprint.Value, tokens []string) fingerprint.Value {
	for _, t := range tokens {
		next, ok := v.Get(t)
		if i, err := strconv.Atoi(t); err == nil && v.Type() == fingerprint.Array && 0 <= i && i < v.Len() {
			next, ok = v.Item(i), true
		}
		if !ok {
			return fingerprint.Value{}
		}
		v = next
	}
	return v
}
