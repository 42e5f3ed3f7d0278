package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/semel-dev/semel"
)

func openJournal(t testing.TB, path string) Journal {
	t.Helper()
	j, err := OpenJournal(path, &JournalOptions{Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func put(t testing.TB, j Journal, id, state, body string) {
	t.Helper()
	err := j.Update(t.Context(), id, func(*Record) (*Record, error) {
		r := &Record{State: []byte(state)}
		if body != "" {
			r.Body = []byte(body)
		}
		return r, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, j Journal, id string) (got *Record) {
	t.Helper()
	if err := j.Update(t.Context(), id, func(r *Record) (*Record, error) { got = r.clone(); return r, nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

// Every journal does what the interface says.
func TestJournals(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) Journal{
		"memory": func(*testing.T) Journal { return NewMemoryJournal() },
		"file":   func(t *testing.T) Journal { return openJournal(t, filepath.Join(t.TempDir(), "sub", "intents.db")) },
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t)
			if !semel.ValidID(j.Session()) || !j.Alive(j.Session()) || j.Alive(semel.NewID()) || j.Alive("../../etc/passwd") {
				t.Error("sessions are confused")
			}
			if get(t, j, "a") != nil {
				t.Error("something is there")
			}
			put(t, j, "a", "1", "body")
			put(t, j, "b", "2", "")
			if r := get(t, j, "a"); string(r.State) != "1" || string(r.Body) != "body" {
				t.Errorf("%q", r)
			}
			boom := errors.New("boom")
			err := j.Update(t.Context(), "a", func(r *Record) (*Record, error) { r.State[0], r.Body = 'x', nil; return r, boom })
			if !errors.Is(err, boom) {
				t.Error(err)
			}
			if r := get(t, j, "a"); string(r.State) != "1" || string(r.Body) != "body" {
				t.Errorf("an error has changed it: %q", r)
			}
			put(t, j, "a", "3", "")
			if r := get(t, j, "a"); string(r.State) != "3" || r.Body != nil {
				t.Errorf("%q", r)
			}
			all, err := j.List(t.Context())
			if err != nil || len(all) != 2 || string(all["a"]) != "3" || string(all["b"]) != "2" {
				t.Errorf("%q, %v", all, err)
			}
			for _, id := range []string{"a", "b", "c"} {
				if err := j.Update(t.Context(), id, func(*Record) (*Record, error) { return nil, nil }); err != nil {
					t.Error(err)
				}
			}
			empty(t, j)
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if err := j.Update(gone, "a", func(r *Record) (*Record, error) { return r, nil }); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}

			// Read and write are one: nothing is lost between them.
			var together sync.WaitGroup
			for range 8 {
				together.Go(func() {
					for range 20 {
						if err := j.Update(t.Context(), "n", func(r *Record) (*Record, error) {
							if r == nil {
								r = &Record{}
							}
							return &Record{State: append(r.State, 'x')}, nil
						}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			together.Wait()
			if r := get(t, j, "n"); len(r.State) != 160 {
				t.Errorf("%d of 160 changes are there", len(r.State))
			}
		})
	}
}

func TestJournalFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a[b]*", "intents.db")
	j := openJournal(t, path)
	put(t, j, "a", "1", "body")
	if runtime.GOOS != "windows" {
		filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
			info, _ := d.Info()
			if err == nil && !d.IsDir() && info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", file, info.Mode().Perm())
			}
			return err
		})
	}
	again := openJournal(t, path) // the same process, or another one
	if r := get(t, again, "a"); string(r.State) != "1" {
		t.Errorf("%q", r)
	}
	if !again.Alive(j.Session()) || !j.Alive(again.Session()) {
		t.Error("a living session is taken for dead")
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if again.Alive(j.Session()) {
		t.Error("a closed session is taken for living")
	}
	if err := j.Update(t.Context(), "a", func(r *Record) (*Record, error) { return r, nil }); !errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("a closed journal: %v", err)
	}
	again.Close()
	left, _ := os.ReadDir(filepath.Dir(path))
	if len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		openJournal(t, path)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode().Perm(), err)
		}
	}
}

func TestNoJournal(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, bytes.Repeat([]byte("no database. "), 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(text, nil); !errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("a text file: %v", err)
	}
	held, err := bbolt.Open(filepath.Join(dir, "held.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	_, err = OpenJournal(filepath.Join(dir, "held.db"), &JournalOptions{Wait: time.Millisecond})
	var e *semel.Error
	if !errors.As(err, &e) || e.Code != semel.CodeUnavailable || e.Recorded != semel.RecordedNo || e.Hint == "" {
		t.Errorf("a file that is held: %v", err)
	}
}

// What was erased is nowhere in the file any more, whatever else was written
// meanwhile, and whatever its size.
func TestErased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "intents.db")
	j := openJournal(t, path)
	random := rand.New(rand.NewPCG(1, 2))
	marker := func(i int) string { return fmt.Sprintf("<marker-%d>", i) }
	there := map[int]bool{}
	const rounds = 60
	for i := range rounds {
		body := strings.Repeat(marker(i), 1+random.IntN(1<<random.IntN(12)))
		put(t, j, fmt.Sprint(i), "begun", body)
		there[i] = true
		put(t, j, fmt.Sprint(i), "marked", body)
		for k := range there {
			if random.IntN(3) == 0 {
				put(t, j, fmt.Sprint(k), "settled", "")
				delete(there, k)
			}
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for k := range i + 1 {
			if got := bytes.Contains(raw, []byte(marker(k))); got != there[k] {
				t.Fatalf("round %d: the body of %d is in the file: %v; want %v", i, k, got, there[k])
			}
		}
	}
	checkFile(t, path)
}

// checkFile has bbolt check the whole file.
func checkFile(t testing.TB, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Minute, PreLoadFreelist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Error(err)
		}
		return nil
	})
}

// holdRole is a program that takes an intent in a journal for itself, says so, and
// lives until its input ends.
func holdRole() {
	j, err := OpenJournal(os.Getenv("SEMEL_CLIENT_JOURNAL"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(j.Session())
	bufio.NewReader(os.Stdin).ReadString('\n')
}

// A session lives as long as its process, and not longer. A process that is only
// stopped lives.
func TestSessionsOfProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "intents.db")
	j := openJournal(t, path)
	p := startRole(t, "hold", "SEMEL_CLIENT_JOURNAL="+path)
	session := p.line()
	if !semel.ValidID(session) {
		t.Fatalf("it says %q", session)
	}
	alive := func() (alive bool) {
		j.Update(t.Context(), "x", func(*Record) (*Record, error) { alive = j.Alive(session); return nil, nil })
		return alive
	}
	if !alive() {
		t.Fatal("a living process is taken for dead")
	}
	stopProcess(t, p.cmd.Process)
	if !alive() {
		t.Fatal("a stopped process is taken for dead")
	}
	p.kill()
	if alive() {
		t.Fatal("a killed process is taken for living")
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// program is this test binary in another role.
type program struct {
	testing.TB
	cmd   *exec.Cmd
	out   *bufio.Reader
	stdin io.Writer
	err   bytes.Buffer
}

func startRole(t testing.TB, role string, env ...string) *program {
	t.Helper()
	p := &program{TB: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), append(env, "SEMEL_CLIENT_ROLE="+role)...)
	p.cmd.Stderr = &p.err
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	t.Cleanup(p.kill)
	return p
}

// line reads what the program says next; "" at the end.
func (p *program) line() string {
	text, _ := p.out.ReadString('\n')
	return strings.TrimSpace(text)
}

// kill ends the program with SIGKILL, where it has not ended yet.
func (p *program) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}
