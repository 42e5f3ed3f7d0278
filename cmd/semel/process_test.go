package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/semel-dev/semel/examples/menuexport/generator"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/internal/pgtest"
)

// TestMain lets the test binary be the command: tests start it as a process.
func TestMain(m *testing.M) {
	if os.Getenv("SEMEL_TEST_COMMAND") != "" {
		main()
	}
	os.Exit(pgtest.Main(m))
}

// A process is the command, running.
type process struct {
	cmd *exec.Cmd
	log *syncBuffer
	// lines are what it printed as "name: value".
	lines map[string]string
}

// start runs the command and waits until it has printed a line for each name.
func start(t *testing.T, log *syncBuffer, env []string, args []string, names ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(append(os.Environ(), "SEMEL_TEST_COMMAND=1"), env...)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, log: log, lines: map[string]string{}}
	in := bufio.NewScanner(out)
	for len(p.lines) < len(names) && in.Scan() {
		if name, value, ok := strings.Cut(in.Text(), ": "); ok {
			p.lines[name] = value
		}
	}
	for _, name := range names {
		if p.lines[name] == "" {
			cmd.Process.Kill()
			cmd.Wait()
			t.Fatalf("%v printed no %q; its log:\n%s", args, name, log)
		}
	}
	go func() {
		for in.Scan() { // what it prints later must not block it
		}
	}()
	return p
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// syncBuffer keeps a log that a process writes while a test reads.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// startGenerator runs the image generator in this process, over a real socket.
func startGenerator(t *testing.T, contract generator.Contract) (*generator.Server, string) {
	t.Helper()
	gen, err := generator.New(t.TempDir(), &generator.Options{Contract: contract})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gen)
	t.Cleanup(func() {
		gen.Close()
		server.Close()
	})
	return gen, server.URL
}

// writeConfig writes a configuration with one account, acme, and returns its file
// and the account's token. The server listens where a free port is found.
func writeConfig(t *testing.T, generatorURL, contract string) (file, token string) {
	t.Helper()
	token = httpapi.NewToken()
	file = filepath.Join(t.TempDir(), "semel.yaml")
	schema, err := filepath.Abs("../../examples/menuexport/menu.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`
listen: 127.0.0.1:0
database: semel.db
accounts:
  acme:
    tokens: [{name: test, hash: %q}]
  other:
    tokens: [{name: test, hash: %q}]
kinds:
  menu-export:
    schema_file: %s
    contract: %s
    timeout: 2s
    lease: 3s
    http:
      url: %s/images
`, httpapi.HashToken(token), httpapi.HashToken(token+"-other"), schema, contract, generatorURL)
	// A path is relative to the configuration's folder unless absolute.
	rel, err := filepath.Rel(filepath.Dir(file), schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, schema, rel, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, token
}

// appendTo adds to a file.
func appendTo(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func ask(t *testing.T, client *http.Client, method, url, token, body string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return client.Do(req)
}
