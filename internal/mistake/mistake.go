// Package mistake makes deliberate mistakes, to see that a test finds them. A
// mistake is laid over the source while a test is compiled; no file is changed.
package mistake

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Mistake is one that somebody could make, as a change of the source.
type Mistake struct {
	// Name says what is wrong.
	Name string
	// File is the file that has it, from the module's root.
	File string
	// Edits are what is there and what is put in its place, in turns. Each stands in
	// the file once.
	Edits []string
}

// Root is the folder of the module that the test belongs to.
func Root(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// Source returns the file with the mistake in it. A file that no longer has the
// places fails the test: then the mistake has to be said anew.
func (m Mistake) Source(t testing.TB) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(Root(t), m.File))
	if err != nil {
		t.Fatal(err)
	}
	wrong := string(source)
	for i := 0; i < len(m.Edits); i += 2 {
		if n := strings.Count(wrong, m.Edits[i]); n != 1 {
			t.Fatalf("%s has %d places with %q: say the mistake anew", m.File, n, m.Edits[i])
		}
		wrong = strings.Replace(wrong, m.Edits[i], m.Edits[i+1], 1)
	}
	return wrong
}

// Compile compiles the test of a package, from the module's root ("./sqlite"), with
// the mistake in it, and returns the program.
func (m Mistake) Compile(t testing.TB, pkg string) string {
	t.Helper()
	root, dir := Root(t), t.TempDir()
	changed, overlay, program := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mistake.test")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.File): changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{changed: []byte(m.Source(t)), overlay: text} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", program, pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the mistake does not compile: %v\n%s", err, out)
	}
	return program
}
