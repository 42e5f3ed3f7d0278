package httpapi

import (
	"strconv"
	"strings"
	"time"
)

// preferredWait reads the preference "wait" of RFC 7240 from the lines of Prefer.
// The first one counts, as the RFC says, and whatever can't be read is as if it
// were not there. A longer wait than [MaxWait] is that one.
func preferredWait(lines []string) (wait time.Duration, there bool) {
	for _, line := range lines {
		for preference := range elements(line, ',') {
			name, value := "", ""
			for part := range elements(preference, ';') {
				name, value, _ = strings.Cut(part, "=")
				break // what follows are parameters; wait has none
			}
			if !strings.EqualFold(strings.Trim(name, " \t"), "wait") {
				continue
			}
			return seconds(word(strings.Trim(value, " \t")))
		}
	}
	return 0, false
}

// elements cuts a header value at a separator that is outside quoted strings.
func elements(s string, separator byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start, quoted := 0, false
		for i := 0; i < len(s); i++ {
			switch {
			case quoted && s[i] == '\\':
				i++
			case s[i] == '"':
				quoted = !quoted
			case s[i] == separator && !quoted:
				if !yield(s[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(s[start:])
	}
}

// word undoes the quotes of a quoted string; a token stays as it is.
func word(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	var b strings.Builder
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '\\' && i+1 < len(s)-1 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// seconds reads delta-seconds: digits only, any number of them.
func seconds(s string) (time.Duration, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > uint64(MaxWait/time.Second) {
		return MaxWait, true // too many digits is a long time too
	}
	return time.Duration(n) * time.Second, true
}
