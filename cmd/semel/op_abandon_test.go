package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/semel-dev/semel/examples/menuexport/generator"
)

// What waits is given up, and what never came is kept from coming: neither runs,
// however late it is sent. What has run can't be abandoned.
func TestAbandonByCommand(t *testing.T) {
	gen, generatorURL := startGenerator(t, generator.Idempotent)
	file, token := writeConfig(t, generatorURL, "idempotent")
	idle := filepath.Join(filepath.Dir(file), "idle.yaml") // the same database, and nobody who executes
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(idle, append(text, "worker: {off: true}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	server := start(t, &syncBuffer{}, nil, []string{"serve", "--config", idle}, "api")
	defer func() { server.kill() }()
	put := func(id string) (int, string) {
		t.Helper()
		resp, err := ask(t, http.DefaultClient, "PUT", server.lines["api"]+"/v1/operations/menu-export/"+id, token, smallMenu, "Prefer", "wait=30")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var answer struct{ Code, State string }
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, answer.Code + answer.State
	}
	op := func(want int, args ...string) string {
		t.Helper()
		out, log, status := toEnd(t, []string{"SEMEL_SERVER=" + server.lines["api"], "SEMEL_TOKEN=" + token}, append([]string{"op"}, args...)...)
		if status != want {
			t.Errorf("%v: status %d, want %d:\n%s%s", args, status, want, out, log)
		}
		return out + log
	}
	resp, err := ask(t, http.DefaultClient, "PUT", server.lines["api"]+"/v1/operations/menu-export/waits", token, smallMenu)
	if err != nil || resp.StatusCode != 201 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	for _, id := range []string{"waits", "never-came"} {
		for range 2 { // a repeat finds it done
			says(t, id, op(0, "abandon", "menu-export/"+id), "acme/menu-export/"+id, "abandoned", "executions  0")
		}
	}
	server.kill()
	server = start(t, &syncBuffer{}, nil, []string{"serve", "--config", file}, "api")
	for _, id := range []string{"waits", "never-came"} {
		if status, said := put(id); status != 409 || said != "operation-abandoned" {
			t.Errorf("%s, sent late: %d %s", id, status, said)
		}
	}
	if status, said := put("runs"); status != 201 || said != "succeeded" {
		t.Fatalf("%d %s", status, said)
	}
	says(t, "what has run", op(1, "abandon", "menu-export/runs"), "already-started", "nothing was abandoned")
	says(t, "what has run", op(0, "get", "menu-export/runs"), "succeeded")
	says(t, "of an account", op(2, "abandon", "acme/menu-export/waits"), "abandoning is the account's own matter")
	if n := generatorCount(t, gen); n != 1 {
		t.Errorf("%d effects of the one that was to run", n)
	}
}
