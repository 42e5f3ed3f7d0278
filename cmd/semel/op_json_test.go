package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/examples/menuexport/generator"
	"github.com/semel-dev/semel/httpapi"
)

// With --json, standard output is one JSON value, as the HTTP interface has it, and
// nothing else. A refusal leaves it empty.
func TestOpJSON(t *testing.T) {
	_, generatorURL := startGenerator(t, generator.Opaque)
	file, token := writeConfig(t, generatorURL, "opaque")
	edit(t, file, "timeout: 2s", "timeout: 1m") // no answer in time would be one that is lost
	edit(t, file, "lease: 3s", "lease: 3m")
	operator := httpapi.NewToken()
	appendTo(t, file, fmt.Sprintf("operators: [{name: kim, hash: %q, accounts: [acme]}]\n", httpapi.HashToken(operator)))
	server := start(t, &syncBuffer{}, nil, []string{"serve", "--config", file}, "api")
	defer server.kill()
	base := server.lines["api"]
	for _, step := range [][3]string{
		{generatorURL + "/faults", "", `{"fail_next":"lose_answer"}`},
		{base + "/v1/operations/menu-export/lost", token, smallMenu},
		{base + "/v1/operations/menu-export/done", token, smallMenu},
	} {
		resp, err := ask(t, &http.Client{Timeout: time.Minute}, "PUT", step[0], step[1], step[2], "Prefer", "wait=30")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	op := func(want int, into any, args ...string) {
		t.Helper()
		out, log, status := toEnd(t, []string{"SEMEL_SERVER=" + base, "SEMEL_TOKEN=" + operator}, append([]string{"op", "--json"}, args...)...)
		if status != want || want == 0 && log != "" {
			t.Errorf("%v: status %d, want %d: %s", args, status, want, log)
		}
		if into == nil {
			if out != "" {
				t.Errorf("%v: on standard output:\n%s", args, out)
			}
			return
		}
		d := json.NewDecoder(bytes.NewReader([]byte(out)))
		if err := d.Decode(into); err != nil {
			t.Fatalf("%v: %v:\n%s", args, err, out)
		}
		if _, err := d.Token(); err != io.EOF {
			t.Errorf("%v: more than one value:\n%s", args, out)
		}
	}
	type page struct{ Operations []semel.Operation }
	var all, open page
	op(0, &all, "list", "--account", "acme")
	op(0, &open, "list", "--account", "acme", "--state", "needs_reconciliation")
	if len(all.Operations) != 2 || len(open.Operations) != 1 || open.Operations[0].Key.ID != "lost" {
		t.Fatalf("all %+v, of which open %+v", all.Operations, open.Operations)
	}
	var before, resolved, after semel.Operation
	op(0, &before, "get", "acme/menu-export/lost")
	if before.Key != open.Operations[0].Key || before.State != semel.NeedsReconciliation || before.Failure == nil || before.Revision == 0 {
		t.Errorf("%+v", before)
	}
	op(1, nil, "get", "acme/menu-export/missing")
	op(1, nil, "resolve", "acme/menu-export/lost", "--verdict", "maybe", "--evidence", "x")
	op(0, &resolved, "resolve", "acme/menu-export/lost", "--verdict", "applied", "--evidence", "seen", "--result", `{"seen":true}`,
		"--revision", fmt.Sprint(before.Revision))
	if resolved.State != semel.Succeeded || string(resolved.Result) != `{"seen":true}` || resolved.Revision != before.Revision+1 {
		t.Errorf("%+v", resolved)
	}
	op(0, &after, "get", "acme/menu-export/lost")
	if after.Revision != resolved.Revision || after.State != resolved.State {
		t.Errorf("%+v after %+v", after, resolved)
	}
	var history semel.History
	op(0, &history, "history", "acme/menu-export/lost")
	if len(history.Executions) != 1 || len(history.Verdicts) != 1 || history.Verdicts[0].By != "kim" {
		t.Errorf("%+v", history)
	}
}
