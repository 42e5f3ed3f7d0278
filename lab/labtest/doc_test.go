package labtest_test

import (
	"os"
	"strings"
	"testing"
)

// The code in the package comment stands in the example that is run.
func TestPackageCommentIsRun(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("charge_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(doc), "//\tfunc TestCharge")
	code, _, end := strings.Cut("//\tfunc TestCharge"+code, "//\n")
	code = strings.ReplaceAll(code, "//\t", "")
	if !ok || !end || !strings.Contains(string(example), code) {
		t.Errorf("this is not in charge_test.go:\n%s", code)
	}
}
