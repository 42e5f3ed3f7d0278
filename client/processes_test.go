package client

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// resumeRole is a program that takes up what is in a journal, as soon as it is told to.
func resumeRole() {
	j, err := OpenJournal(os.Getenv("SEMEL_CLIENT_JOURNAL"), &JournalOptions{Wait: time.Minute}) // four of them, on a slow disk
	if err != nil {
		fmt.Println("error", err)
		return
	}
	api, err := Semel(os.Getenv("SEMEL_CLIENT_URL"), &SemelOptions{Authorize: Bearer(os.Getenv("SEMEL_CLIENT_TOKEN")), Transport: &http.Transport{}})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	c, err := New(api, j, nil)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
	err = c.Resume(context.Background(), func(e Entry, out Outcome) error {
		tell(e.ID, out)
		return nil
	})
	if err != nil {
		fmt.Println("error", err)
	}
	j.Close()
}

// Several processes with one journal: each intent is sent once, by one of them.
func TestProcessesWithOneJournal(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "intents.db")
	const intents, processes = 12, 4
	c := w.client(openJournal(t, path), nil)
	for range intents {
		if _, err := c.Begin(t.Context(), intent("export")); err != nil {
			t.Fatal(err)
		}
	}
	var programs []*program
	for range processes {
		p := startRole(t, "resume", "SEMEL_CLIENT_JOURNAL="+path, "SEMEL_CLIENT_URL="+w.http.URL, "SEMEL_CLIENT_TOKEN="+w.token)
		if line := p.line(); line != "ready" {
			t.Fatal(line)
		}
		programs = append(programs, p)
	}
	for _, p := range programs {
		p.stdin.Write([]byte("\n"))
	}
	taken := map[string]int{}
	for _, p := range programs {
		for line := p.line(); line != ""; line = p.line() {
			id, ok := strings.CutPrefix(line, "settled ")
			if !ok {
				t.Errorf("a program says: %s", line)
			}
			taken[id]++
		}
		p.cmd.Wait()
	}
	// One that was busy when everybody else was done is left to its client; here
	// nobody was killed, so nothing is.
	empty(t, c.journal)
	puts := map[string]int{}
	for _, e := range w.faults.Log() {
		if e.Method == http.MethodPut {
			puts[e.Path]++
		}
	}
	if len(taken) != intents || len(puts) != intents {
		t.Errorf("%d outcomes taken, %d intents sent; want %d", len(taken), len(puts), intents)
	}
	for id, n := range taken {
		if n != 1 {
			t.Errorf("%s was taken %d times", id, n)
		}
	}
	for path, n := range puts {
		if n != 1 {
			t.Errorf("%s was sent %d times", path, n)
		}
	}
}

// A process that is stopped keeps what it works on. When it is killed, another one
// takes over at once.
func TestTakingOver(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "intents.db")
	in := intent("export")
	c := w.client(openJournal(t, path), nil)
	if _, err := c.Begin(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.rules("hold method=PUT at=before count=1")
	p := startRole(t, "resume", "SEMEL_CLIENT_JOURNAL="+path, "SEMEL_CLIENT_URL="+w.http.URL, "SEMEL_CLIENT_TOKEN="+w.token)
	p.line()
	p.stdin.Write([]byte("\n"))
	if err := w.faults.WaitHeld(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	stopProcess(t, p.cmd.Process)
	if out, err := c.Submit(t.Context(), in.ID); out != nil || semel.AsError("", err).Code != semel.CodeInProgress {
		t.Errorf("%+v, %v", out, err)
	}
	p.kill()
	w.faults.Release() // the request of the dead one arrives now
	out, err := c.Submit(t.Context(), in.ID)
	if s := is[Settled](t, out, err); s.Operation.State != semel.Succeeded {
		t.Errorf("%+v", s)
	}
	if n := w.ran(in.ID); n != 1 {
		t.Errorf("%d effects", n)
	}
}
