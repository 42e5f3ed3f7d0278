package client

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/retryhttp"
)

// intentRole is a program with two intents: it takes up what an earlier run has left,
// and then does what is not done yet. It dies at the step of that number, by SIGKILL.
func intentRole() {
	dieAt, _ := strconv.ParseInt(os.Getenv("SEMEL_CLIENT_DIE"), 10, 64)
	verbose := os.Getenv("SEMEL_CLIENT_STEPS") != ""
	var steps atomic.Int64
	step = func(name string) {
		n := steps.Add(1)
		if verbose {
			fmt.Println("step", name)
		}
		if n == dieAt {
			killSelf()
		}
	}
	fail := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	j, err := OpenJournal(os.Getenv("SEMEL_CLIENT_JOURNAL"), nil)
	fail(err)
	api, err := Semel(os.Getenv("SEMEL_CLIENT_URL"), &SemelOptions{Authorize: Bearer(os.Getenv("SEMEL_CLIENT_TOKEN")), Transport: &http.Transport{}})
	fail(err)
	c, err := New(api, j, &Options{Budget: time.Minute, Backoff: retryhttp.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond}})
	fail(err)
	ctx := context.Background()
	taken := map[string]bool{}
	fail(c.Resume(ctx, func(e Entry, out Outcome) error {
		taken[e.ID] = true
		tell(e.ID, out)
		return nil
	}))
	for i, id := range strings.Split(os.Getenv("SEMEL_CLIENT_IDS"), ",") {
		in := Intent{ID: id, Kind: "export", Body: []byte(`{"marker":"<` + id + `>"}`)}
		if taken[id] {
			continue
		}
		if i == 0 {
			out, err := c.Do(ctx, in)
			fail(err)
			tell(id, out)
			continue
		}
		_, err := c.Begin(ctx, in)
		fail(err)
		out, err := c.Submit(ctx, id)
		fail(err)
		tell(id, out)
		fail(c.Forget(ctx, id))
	}
	fail(j.Close())
}

func tell(id string, out Outcome) {
	if s, ok := out.(Settled); ok {
		fmt.Println("settled", id, s.Operation.State)
		return
	}
	fmt.Printf("%T %s %+v\n", out, id, out)
}

// steps are the lines of a program about its steps.
func stepsOf(p *program) (steps []string) {
	for line := p.line(); line != ""; line = p.line() {
		if name, ok := strings.CutPrefix(line, "step "); ok {
			steps = append(steps, name)
		} else if !strings.HasPrefix(line, "settled") {
			p.Errorf("the program says: %s", line)
		}
	}
	p.cmd.Wait()
	return steps
}

// The client is killed at every step between the beginning and the end of its
// intents, whatever the network does meanwhile, and while the server has a request of
// it; then it is started once more. There is one operation and one effect for each
// intent, and the journal is empty.
func TestKilledAtEveryStep(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	files := 0
	// play runs a program with two intents, dying as told, and then once more.
	play := func(what string, die func(start func(env ...string) *program)) {
		files++
		path, ids := filepath.Join(dir, fmt.Sprintf("%d.db", files)), []string{semel.NewID(), semel.NewID()}
		start := func(env ...string) *program {
			return startRole(t, "intent", append(env, "SEMEL_CLIENT_JOURNAL="+path, "SEMEL_CLIENT_URL="+w.http.URL,
				"SEMEL_CLIENT_TOKEN="+w.token, "SEMEL_CLIENT_IDS="+strings.Join(ids, ","))...)
		}
		die(start)
		last := start()
		stepsOf(last)
		if !last.cmd.ProcessState.Success() {
			t.Fatalf("%s: %v\n%s", what, last.cmd.ProcessState, &last.err)
		}
		for _, id := range ids {
			if s, n := w.state("export", id), w.ran(id); s != semel.Succeeded || n != 1 {
				t.Errorf("%s: state %q, %d effects", what, s, n)
			}
		}
		checkLeft(t, path, ids)
	}
	random := rand.New(rand.NewPCG(3, 4))
	dieAt := func(start func(...string) *program, n int) (killed bool) {
		p := start("SEMEL_CLIENT_DIE=" + strconv.Itoa(n))
		stepsOf(p)
		return p.cmd.ProcessState.ExitCode() == -1
	}
	rounds, every, held := 0, 1, 5
	if testing.Short() {
		every, held = 10, 1 // and each fault begins elsewhere
	}
	for i, rules := range [][]string{
		nil,
		{"lose-answer method=PUT nth=1"},
		{"cut-before method=PUT nth=1", "lose-answer method=PUT nth=2", "cut-before method=GET nth=1"},
		{"cut-after method=PUT every=2 count=2", "cut-after path=**/events bytes=0 count=1"},
	} {
		w.rules(rules...)
		var steps []string
		play("not killed", func(start func(...string) *program) { steps = stepsOf(start("SEMEL_CLIENT_STEPS=1")) })
		if len(steps) < 30 {
			t.Fatalf("only %d steps: %v", len(steps), steps)
		}
		// How often it looks is up to the clocks, but not what comes before the first look.
		sent, kills, tries := 1+slices.Index(steps, "sent"), 0, 0
		for n := 1 + i*every/4; n <= len(steps); n += every {
			tries++
			w.rules(rules...)
			play(fmt.Sprintf("%v, killed at step %d, %q", rules, n, steps[n-1]), func(start func(...string) *program) {
				if dieAt(start, n) {
					kills++
				} else if n <= sent {
					t.Errorf("%v: it was not killed at step %d of %d", rules, n, len(steps))
				}
				for random.IntN(3) == 0 { // what comes after is killed, too, now and then
					dieAt(start, 1+random.IntN(25))
				}
			})
			rounds++
		}
		if sent == 0 || 2*kills < tries {
			t.Errorf("%v: killed %d times in %d rounds; %v", rules, kills, tries, steps)
		}
	}
	for _, at := range []string{"before", "after"} {
		for range held {
			// The server has the request, and keeps it until the client is dead.
			w.rules("hold method=PUT count=1 at=" + at)
			play("killed while the server had its request, "+at, func(start func(...string) *program) {
				p := start()
				if err := w.faults.WaitHeld(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				p.kill()
				w.faults.Release()
			})
			rounds++
		}
	}
	if rounds < 100 && !testing.Short() {
		t.Errorf("%d rounds", rounds)
	}
	t.Logf("killed in %d rounds", rounds)
}

// checkLeft checks what is left of a journal of which everything is done: nothing.
func checkLeft(t *testing.T, path string, ids []string) {
	t.Helper()
	j, err := OpenJournal(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	empty(t, j)
	j.Close()
	checkFile(t, path)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if bytes.Contains(raw, []byte("<"+id+">")) {
			t.Errorf("the body of %s is still in the file", id)
		}
	}
	if files, _ := filepath.Glob(path + ".*"); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}
