package generator

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// childDir names the variable that makes this test binary a generator process.
const childDir = "GENERATOR_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		srv, err := New(dir, nil)
		if err == nil {
			var l net.Listener
			if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
				fmt.Printf("http://%s\n", l.Addr())
				err = http.Serve(l, srv)
			}
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// startProcess runs a generator in a process of its own and returns its URL.
func startProcess(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(line)
}

// Killed at random moments under load, the service keeps what it acknowledged,
// and in the end every key has been executed once.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	body := strings.TrimSuffix(weekJSON, "}") + `,"width":320}`
	const rounds, workers, perWorker = 10, 4, 6
	var mu sync.Mutex
	acknowledged := map[string]imageAnswer{}
	keys := map[string]bool{}
	for round := range rounds {
		cmd, url := startProcess(t, dir)
		s := &service{t: t, url: url}
		for key, first := range acknowledged {
			if r := s.post(key, body); r.image != first || r.header.Get("Idempotency-Replayed") != "true" {
				t.Fatalf("round %d: %s is %s, was %+v", round, key, r.body, first)
			}
		}
		kill := rand.IntN(workers * perWorker) // after so many answers
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := range perWorker {
					key := fmt.Sprintf("%d-%d-%d", round, w, i)
					mu.Lock()
					keys[key] = true
					mu.Unlock()
					r, err := s.send(t.Context(), "POST", "/images", body, "Idempotency-Key", key)
					if err != nil || r.status != http.StatusCreated {
						return // no answer: unknown
					}
					mu.Lock()
					acknowledged[key] = r.image
					if kill--; kill == 0 {
						cmd.Process.Kill()
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		cmd.Process.Kill()
		cmd.Wait()
	}
	if len(acknowledged) == 0 || len(acknowledged) == len(keys) {
		t.Fatalf("%d of %d keys acknowledged: the kills hit nothing", len(acknowledged), len(keys))
	}
	s := start(t, dir, nil)
	for key := range keys {
		r := s.post(key, body)
		r.want(t, http.StatusCreated, "")
		if first, ok := acknowledged[key]; ok && r.image != first {
			t.Errorf("%s is %s, was %+v", key, r.body, first)
		}
		if pic := s.do("GET", r.image.ImageURL, ""); pic.status != http.StatusOK || pic.header.Get("ETag") != `"`+r.image.SHA256+`"` {
			t.Errorf("picture of %s: %d", key, pic.status)
		}
	}
	s.wantStats(len(keys))
}

func TestOneServerPerDirectory(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, nil)
	if _, err := New(dir, nil); !errors.Is(err, ErrInUse) {
		t.Errorf("a second server: %v", err)
	}
	s.srv.Close()
	start(t, dir, nil)
}

// What a crash leaves behind is swept, and not counted.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"tmp-123", "orphan.png"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, dir, nil)
	s.wantStats(0)
	s.do("GET", "/images/orphan.png", "").want(t, http.StatusNotFound, "image-not-found")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "lock" {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestDamagedStorage(t *testing.T) {
	for name, damage := range map[string]func(dir, id string) error{
		"picture missing": func(dir, id string) error { return os.Remove(filepath.Join(dir, id+".png")) },
		"record broken":   func(dir, id string) error { return os.WriteFile(filepath.Join(dir, id+".json"), []byte("{"), 0o600) },
		"record renamed": func(dir, id string) error {
			return os.Rename(filepath.Join(dir, id+".json"), filepath.Join(dir, "x.json"))
		},
	} {
		dir := t.TempDir()
		s := start(t, dir, nil)
		r := s.post("k", weekJSON)
		s.srv.Close()
		if err := damage(dir, r.image.ImageID); err != nil {
			t.Fatal(err)
		}
		if srv, err := New(dir, nil); err == nil {
			srv.Close()
			t.Errorf("%s: opened", name)
		}
		// A failed open leaves no lock.
		if _, err := New(dir, nil); errors.Is(err, ErrInUse) {
			t.Errorf("%s: still locked", name)
		}
	}
}

// A storage that fails is an error, counts nothing, and does not block its key.
func TestStorageFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, dir, nil)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	s.post("k", weekJSON).want(t, http.StatusInternalServerError, "storage")
	s.wantStats(0)
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	r := s.post("k", weekJSON)
	r.want(t, http.StatusCreated, "")
	s.wantStats(1)
	if err := os.Remove(filepath.Join(dir, r.image.ImageID+".png")); err != nil {
		t.Fatal(err)
	}
	s.do("GET", r.image.ImageURL, "").want(t, http.StatusInternalServerError, "storage")
}
