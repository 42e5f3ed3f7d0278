package fault

import (
	_ "embed"
	"strings"
)

//go:embed doc.go
var manual string

// Language is the part of this manual that says how rules are written, as plain
// text: for programs whose users have no Go.
func Language() string {
	_, text, _ := strings.Cut(manual, "// # Rules\n//\n")
	text, _, _ = strings.Cut(text, "//\n// # ")
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimPrefix(line, "//"), " ")
		b.WriteString(strings.Replace(line, "\t", "  ", 1))
	}
	return strings.TrimRight(b.String(), "\n")
}
