package semel_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// Go code in the documents stands, line by line, in a file that is compiled and
// run as a test: an example_test.go, or a program of its own.
func TestCodeInDocsIsRun(t *testing.T) {
	var sources strings.Builder
	var docs []string
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case strings.HasSuffix(file, ".md"):
			docs = append(docs, file)
		case strings.HasSuffix(file, ".go") && (strings.HasSuffix(file, "_test.go") || strings.HasPrefix(filepath.ToSlash(file), "examples/")):
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			sources.WriteString(flat(string(text)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range goBlock.FindAllStringSubmatch(string(text), -1) {
			blocks++
			if !strings.Contains(sources.String(), flat(block[1])) {
				t.Errorf("%s shows code that no test runs:\n%s", doc, block[1])
			}
		}
	}
	if blocks == 0 {
		t.Error("no document shows any code")
	}
}

// flat takes away indentation and blank lines.
func flat(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

var fence = regexp.MustCompile("(?s)```.*?```")

// The Chinese documents keep step with the English ones: as many headings, at the
// same levels, as many rows, and the same commands and code.
func TestTranslationsKeepStep(t *testing.T) {
	for _, name := range []string{"README", "docs/guarantees"} {
		english, err := os.ReadFile(name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		chinese, err := os.ReadFile(name + ".zh-CN.md")
		if err != nil {
			t.Fatal(err)
		}
		for what, of := range map[string]func(string) string{
			"code":     func(s string) string { return strings.Join(fence.FindAllString(s, -1), "\n") },
			"headings": func(s string) string { return levels(s, "#") },
			"rows":     func(s string) string { return levels(s, "|") },
			"items":    func(s string) string { return levels(s, "-") },
		} {
			if en, zh := of(string(english)), of(string(chinese)); en != zh {
				t.Errorf("%s: the %s differ:\n%s\nand\n%s", name, what, en, zh)
			}
		}
	}
}

// levels is the shape of a document: of the lines that begin with mark, how often
// it is repeated there.
func levels(text, mark string) string {
	var b strings.Builder
	for line := range strings.Lines(fence.ReplaceAllString(text, "")) {
		if n := len(line) - len(strings.TrimLeft(line, mark)); n > 0 {
			b.WriteString(strings.Repeat(mark, n) + "\n")
		}
	}
	return b.String()
}

// Every library that is chosen, not only brought along, has a line that says why.
func TestLibrariesAreDecided(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := os.ReadFile("docs/decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(mod)) {
		path, _, ok := strings.Cut(strings.TrimSpace(line), " v")
		if !ok || strings.Contains(line, "// indirect") {
			continue
		}
		found++
		// Modules of one project have one line.
		for _, project := range []string{"go.opentelemetry.io/otel", "github.com/chromedp"} {
			if strings.HasPrefix(path, project) {
				path = project
			}
		}
		if !strings.Contains(string(decisions), path) {
			t.Errorf("docs/decisions/README.md says nothing of %s", path)
		}
	}
	if found < 10 {
		t.Errorf("go.mod has %d libraries: is it read?", found)
	}
}
