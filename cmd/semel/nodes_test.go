package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/examples/menuexport/generator"
	"github.com/semel-dev/semel/internal/pgtest"
)

// Two servers share a PostgreSQL database. Many callers, half of them at each, ask
// for the same 1,000 operations: each is accepted once and happens once, and nobody
// is told of an error.
func TestTwoNodes(t *testing.T) {
	callers := 20
	if os.Getenv("SEMEL_SOAK") != "" {
		callers = 200
	}
	const operations = 1000
	gen, generatorURL := startGenerator(t, generator.Idempotent)
	file, token := writeConfig(t, generatorURL, "idempotent")
	edit(t, file, "database: semel.db", fmt.Sprintf("database: %q", pgtest.Database(t)))
	edit(t, file, "accounts:\n", "limits: {pending: 2000, new_per_second: 100000, burst: 100000, looks_per_second: 1000000}\naccounts:\n")
	var nodes [2]string
	log := &syncBuffer{}
	for i := range nodes {
		node := start(t, log, nil, []string{"serve", "--config", file}, "api")
		t.Cleanup(node.kill)
		nodes[i] = node.lines["api"]
	}

	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	var created, refused atomic.Int64
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			for id := range operations {
				url := fmt.Sprintf("%s/v1/operations/menu-export/id-%d", nodes[n%2], id)
				resp, err := ask(t, client, "PUT", url, token, smallMenu)
				if err != nil {
					t.Errorf("PUT %s: %v", url, err)
					return
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				switch resp.StatusCode {
				case 201:
					created.Add(1)
				case 200:
				default:
					if refused.Add(1) == 1 {
						t.Errorf("PUT %s: %s %s", url, resp.Status, body)
					}
				}
			}
		})
	}
	all.Wait()
	for id := range operations {
		resp, err := ask(t, client, "PUT", fmt.Sprintf("%s/v1/operations/menu-export/id-%d", nodes[id%2], id), token, smallMenu, "Prefer", "wait=60")
		if err != nil {
			t.Fatal(err)
		}
		var op semel.Operation
		json.NewDecoder(resp.Body).Decode(&op)
		resp.Body.Close()
		if op.State != semel.Succeeded {
			t.Fatalf("id-%d is %q: %+v", id, op.State, op.Failure)
		}
	}
	if created.Load() != operations || refused.Load() != 0 || generatorCount(t, gen) != operations {
		t.Errorf("%d callers of %d operations: %d were answered with 201, %d with an error; %d effects",
			callers, operations, created.Load(), refused.Load(), generatorCount(t, gen))
	}
}

// edit changes one place of a file.
func edit(t *testing.T, file, from, to string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), from); n != 1 {
		t.Fatalf("%s has %d places with %q", file, n, from)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
