package fault

import "unicode/utf8"

// glob reports whether s matches pattern: ? is one character, * a run of
// characters that does not contain stop, ** any run. With stop 0, * and **
// are the same. It takes time proportional to len(pattern)*len(s).
func glob(pattern, s string, stop byte) bool {
	// ok[j] says whether the pattern read so far matches s[:j].
	ok := make([]bool, len(s)+1)
	ok[0] = true
	for i := 0; i < len(pattern); {
		next := make([]bool, len(s)+1)
		switch pattern[i] {
		case '*':
			wide := i+1 < len(pattern) && pattern[i+1] == '*'
			reached := false
			for j := range next {
				if j > 0 && !wide && stop != 0 && s[j-1] == stop {
					reached = false
				}
				reached = reached || ok[j]
				next[j] = reached
			}
			if i++; wide {
				i++
			}
		case '?':
			for j := 0; j < len(s); {
				_, size := utf8.DecodeRuneInString(s[j:])
				next[j+size] = ok[j] && s[j] != stop
				j += size
			}
			i++
		default:
			for j := range len(s) {
				next[j+1] = ok[j] && s[j] == pattern[i]
			}
			i++
		}
		ok = next
	}
	return ok[len(s)]
}
