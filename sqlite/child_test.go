package sqlite_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlite"
	"github.com/semel-dev/semel/storetest"
)

// The test binary plays other processes, too: SEMEL_SQLITE_CHILD names the role,
// its arguments follow after a space.
func TestMain(m *testing.M) {
	role, arg, _ := strings.Cut(os.Getenv("SEMEL_SQLITE_CHILD"), " ")
	switch role {
	case "":
		storetest.Rival(openStore)
		os.Exit(m.Run())
	case "insert":
		childInsert(arg)
	}
}

func openStore(path string) (semel.Store, error) {
	return sqlite.Open(context.Background(), path, &sqlite.Options{LockTimeout: time.Minute}) // on a busy machine
}

// child starts another process and returns what it prints.
func child(t *testing.T, role, arg string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SEMEL_SQLITE_CHILD="+role+" "+arg)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func childStore(path string) *sqlite.Store {
	store, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return store
}

// childInsert inserts for ever, from four goroutines, and prints each ID that was
// acknowledged, in one write.
func childInsert(path string) {
	store := childStore(path)
	var mu sync.Mutex
	for n := range 4 {
		go func() {
			for {
				var batch []semel.Insertion
				for range 1 + n*3 {
					batch = append(batch, semel.Insertion{Key: semel.Key{Account: fmt.Sprintf("acc-%d", n), Kind: "note", ID: rand.Text()},
						State: semel.Accepted, Params: params, Owner: rand.Text()})
				}
				out, err := store.Insert(context.Background(), batch)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				var lines strings.Builder
				for _, o := range out {
					fmt.Fprintf(&lines, "%s %s\n", o.Operation.Key.Account, o.Operation.Key.ID)
				}
				mu.Lock()
				os.Stdout.WriteString(lines.String())
				mu.Unlock()
			}
		}()
	}
	select {}
}

// What was acknowledged survives kill -9 at any moment, with its work row.
func TestDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	var acknowledged []semel.Key
	for round := range 8 {
		cmd, lines := child(t, "insert", path)
		want := len(acknowledged) + 40 + round*37
		for len(acknowledged) < want && lines.Scan() {
			acknowledged = append(acknowledged, keyOf(lines.Text()))
		}
		if err := cmd.Process.Kill(); err != nil { // SIGKILL
			t.Fatal(err)
		}
		for lines.Scan() { // what it had printed before it died
			acknowledged = append(acknowledged, keyOf(lines.Text()))
		}
		cmd.Wait()
		checkAcknowledged(t, path, acknowledged)
	}
}

func keyOf(line string) semel.Key {
	account, id, _ := strings.Cut(line, " ")
	return semel.Key{Account: account, Kind: "note", ID: id}
}

func checkAcknowledged(t *testing.T, path string, keys []semel.Key) {
	t.Helper()
	store, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	found, err := store.Get(ctx, keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range found {
		if f.Operation == nil {
			t.Fatalf("%s was acknowledged and is gone (%d of %d)", keys[i], i, len(keys))
		}
	}
	stats, err := store.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	pending, err := store.Pending(ctx, []string{"acc-0", "acc-1", "acc-2", "acc-3"}, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if n := pending[0] + pending[1] + pending[2] + pending[3]; int64(n) != stats.Kinds[0].States[semel.Accepted] || n < len(keys) {
		t.Fatalf("%d work rows for %v operations, %d acknowledged", n, stats.Kinds[0].States, len(keys))
	}
}

func TestProcesses(t *testing.T) {
	storetest.RunProcesses(t, filepath.Join(t.TempDir(), "semel.db"), 20, openStore)
}
