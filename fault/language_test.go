package fault

import (
	"errors"
	"strings"
	"testing"
)

// The language names every fault and everything that a rule can be told.
func TestLanguage(t *testing.T) {
	text := Language()
	for _, wrong := range []string{"nonsense", "delay nonsense=1", "status nonsense=1", "duplicate nonsense=1", "cut-after nonsense=1"} {
		var e *ParseError
		if _, err := ParseRules(wrong); !errors.As(err, &e) || len(e.Allowed) == 0 {
			t.Fatalf("%q: %v", wrong, err)
		}
		for _, word := range e.Allowed {
			word = strings.TrimSuffix(word, "=")
			if !strings.Contains(text, "\n  "+word+" ") && !strings.Contains(text, "\n  "+word+"=") && !strings.Contains(text, " "+word+"=") {
				t.Errorf("it has no %q", word)
			}
		}
	}
	if strings.Contains(text, "\n//") || strings.Contains(text, "\t") || strings.Contains(text, "# What") {
		t.Errorf("it is not plain text:\n%s", text)
	}
}
