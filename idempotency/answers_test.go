package idempotency_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
)

var tableCode = regexp.MustCompile("(?m)^\\|[^|]*\\|[^|]*\\| `([a-z-]+)`")

// answers.md has a row for every code that the package makes, and its own one has
// the heading that "type" points to.
func TestEveryCodeIsListed(t *testing.T) {
	text, err := os.ReadFile("answers.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[semel.Code]bool{}
	for _, row := range tableCode.FindAllStringSubmatch(string(text), -1) {
		listed[semel.Code(row[1])] = true
	}
	all := append(semel.Codes(), idempotency.CodeAnswerNotKept)
	for code := range listed {
		if code != "code" && !slices.Contains(all, code) { // that is the heading
			t.Errorf("%s is no code", code)
		}
	}
	for name, code := range map[string]semel.Code{
		"CodeInvalid": semel.CodeInvalid, "CodeUnauthenticated": semel.CodeUnauthenticated, "CodeInProgress": semel.CodeInProgress,
		"CodeOutcomeUnknown": semel.CodeOutcomeUnknown, "CodeAbandoned": semel.CodeAbandoned, "CodeExpired": semel.CodeExpired,
		"CodeTooLarge": semel.CodeTooLarge, "CodeMismatch": semel.CodeMismatch, "CodeTooMany": semel.CodeTooMany,
		"CodeRetryTransaction": semel.CodeRetryTransaction, "CodeInternal": semel.CodeInternal, "CodeUnavailable": semel.CodeUnavailable, "CodeAnswerNotKept": idempotency.CodeAnswerNotKept,
	} {
		if !listed[code] {
			t.Errorf("%s (%s) has no row in answers.md", code, name)
		}
	}
	if slices.Contains(semel.Codes(), idempotency.CodeAnswerNotKept) || !strings.Contains(string(text), "\n## "+string(idempotency.CodeAnswerNotKept)+"\n") {
		t.Errorf("%s is not explained as this package's own", idempotency.CodeAnswerNotKept)
	}
}
