package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// rivalEnv tells a test binary that it is a process of [RunProcesses]: it holds
// the number of goroutines and, after a space, the database.
const rivalEnv = "SEMEL_STORETEST_RIVAL"

// rivalKeys is how many operations the processes all want to create.
const rivalKeys = 1000

// Rival belongs into TestMain, before m.Run. In a process that [RunProcesses] has
// started it opens the store, plays its part and ends the process; everywhere else
// it returns at once.
func Rival(open func(database string) (semel.Store, error)) {
	part, ok := os.LookupEnv(rivalEnv)
	if !ok {
		return
	}
	var goroutines int
	number, database, _ := strings.Cut(part, " ")
	fmt.Sscan(number, &goroutines)
	if err := rival(open, database, goroutines); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// rival creates the same operations as its rivals, each in all of its goroutines,
// then claims until nothing is left. It prints what it created and what it claimed.
func rival(open func(string) (semel.Store, error), database string, goroutines int) error {
	ctx := context.Background()
	fmt.Println("ready")
	io.ReadAll(os.Stdin) // the start
	store, err := open(database)
	if err != nil {
		return err
	}
	defer store.Close()
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "note"}}})
	if err != nil {
		return err
	}
	defer ledger.Close()
	failed := make(chan error, goroutines)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for id := range rivalKeys {
				acc, err := ledger.Accept(ctx, semel.Request{Key: semel.Key{Account: fmt.Sprintf("acc-%d", id%10), Kind: "note", ID: fmt.Sprintf("id-%d", id)}})
				if err != nil {
					failed <- err
					return
				}
				if !acc.Replayed {
					fmt.Printf("created %d\n", id)
				}
			}
		})
	}
	all.Wait()
	close(failed)
	if err := <-failed; err != nil {
		return err
	}
	for {
		got, err := store.Claim(ctx, semel.ClaimRequest{Worker: "w", Max: 20, Kinds: []semel.ClaimKind{{Kind: "note", Lease: time.Hour, BeginNow: true}}})
		if err != nil || len(got) == 0 {
			return err
		}
		for _, c := range got {
			fmt.Printf("claimed %s\n", c.Operation.Key.ID)
		}
	}
}

// RunProcesses has two processes open one new, empty database at the same moment
// and create the same 1,000 operations, each of them in so many goroutines of each
// process at once: there are 1,000 operations with their work afterwards, each is
// leased once, and nobody has seen an error. The test binary is both processes: its
// TestMain calls [Rival].
func RunProcesses(t *testing.T, database string, goroutines int, open func(database string) (semel.Store, error)) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	said := map[string]int{}
	var starts []io.Closer
	for range 2 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", rivalEnv, goroutines, database))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() || lines.Text() != "ready" {
			t.Fatalf("a process said %q: does TestMain call Rival?", lines.Text())
		}
		starts = append(starts, in)
		all.Go(func() {
			for lines.Scan() {
				mu.Lock()
				said[lines.Text()]++
				mu.Unlock()
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("a process ended with %v", err)
			}
		})
	}
	for _, in := range starts {
		in.Close()
	}
	all.Wait()
	if len(said) != 2*rivalKeys {
		t.Errorf("%d different lines, want %d created and %d claimed", len(said), rivalKeys, rivalKeys)
	}
	for line, times := range said {
		if times != 1 {
			t.Errorf("%q was said %d times", line, times)
		}
	}
	store, err := open(database)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	stats, err := store.Stats(context.Background())
	if err != nil || stats.Kinds[0].States[semel.Processing] != rivalKeys {
		t.Errorf("stats: %+v, %v", stats, err)
	}
}
