package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/examples/menuexport/generator"
	"github.com/semel-dev/semel/httpapi"
)

// An opaque operation whose answer is lost needs reconciliation; an operator
// finds it in the list, looks, and resolves it, all by the command.
func TestOperatorResolvesByCommand(t *testing.T) {
	_, generatorURL := startGenerator(t, generator.Opaque)
	file, token := writeConfig(t, generatorURL, "opaque")
	operator := httpapi.NewToken()
	appendTo(t, file, fmt.Sprintf("operators: [{name: kim, hash: %q, accounts: [acme]}]\n", httpapi.HashToken(operator)))
	server := start(t, &syncBuffer{}, nil, []string{"serve", "--config", file}, "api")
	defer server.kill()
	base := server.lines["api"]

	faults, err := ask(t, http.DefaultClient, "PUT", generatorURL+"/faults", "", `{"fail_next":"lose_answer"}`)
	if err != nil || faults.StatusCode != 200 {
		t.Fatal(faults, err)
	}
	faults.Body.Close()
	resp, err := ask(t, &http.Client{Timeout: time.Minute}, "PUT", base+"/v1/operations/menu-export/lost", token, smallMenu, "Prefer", "wait=30")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()

	env := []string{"SEMEL_SERVER=" + base, "SEMEL_TOKEN=" + operator}
	op := func(want int, args ...string) string {
		t.Helper()
		out, log, code := toEnd(t, env, append([]string{"op"}, args...)...)
		if code != want {
			t.Errorf("%v: exit %d, want %d:\n%s%s", args, code, want, out, log)
		}
		return out + log
	}
	contains := func(text string, parts ...string) {
		t.Helper()
		says(t, "op", text, parts...)
	}
	contains(op(0, "list", "--account", "acme", "--state", "needs_reconciliation"), "acme/menu-export/lost")
	contains(op(0, "get", "acme/menu-export/lost"), "needs_reconciliation", "executions  1")
	contains(op(0, "history", "acme/menu-export/lost"), "execution 1", "unknown")
	contains(op(1, "get", "other/menu-export/lost"), "operation-not-found")
	contains(op(2, "resolve", "acme/menu-export/lost", "--verdict", "applied"), "--evidence")
	contains(op(1, "resolve", "acme/menu-export/lost", "--verdict", "maybe", "--evidence", "x"), "invalid-operation")
	contains(op(1, "resolve", "acme/menu-export/lost", "--verdict", "applied", "--evidence", "x", "--revision", "1"), "stale-revision")

	// The answer to the verdict is lost: it may have been recorded, and the way to
	// find out is said. Said again like that, it is answered from the record.
	proxy := start(t, &syncBuffer{}, nil, []string{"proxy", "--to", base, "--fault", "lose-answer count=1 method=PUT"}, "proxy", "control")
	defer proxy.kill()
	verdict := []string{"resolve", "acme/menu-export/lost", "--verdict", "applied", "--evidence", "the picture is there", "--result", `{"seen":true}`}
	lost := op(1, append(verdict, "--server", proxy.lines["proxy"])...)
	contains(lost, "unconfirmed", "it may have been recorded", "Run the same command again with --revision ")
	revision := regexp.MustCompile(`--revision (\d+)`).FindStringSubmatch(lost)
	if revision == nil {
		t.Fatal(lost)
	}
	contains(op(0, append(verdict, "--revision", revision[1])...), "succeeded", `{"seen":true}`)
	if history := op(0, "history", "acme/menu-export/lost"); strings.Count(history, "verdict") != 1 {
		t.Errorf("not one verdict:\n%s", history)
	}
	contains(op(1, append(verdict, "--evidence", "again")...), "not-reconcilable", "no verdict was recorded", "semel op history acme/menu-export/lost")
	contains(op(0, "history", "acme/menu-export/lost", "--json"), `"by":"kim"`)
	contains(op(2, "get", "nonsense"), "neither KIND/ID nor ACCOUNT/KIND/ID")
}

// A redirection is not followed: DELETE and PUT would become GET, and the look-up's
// answer would pass for that of a call which was never made.
func TestOpRefusesARedirection(t *testing.T) {
	file, token := writeConfig(t, "http://127.0.0.1:1", "opaque")
	edit(t, file, "database:", "worker: {off: true}\ndatabase:")
	operator := httpapi.NewToken()
	appendTo(t, file, fmt.Sprintf("operators: [{name: kim, hash: %q, accounts: [acme]}]\n", httpapi.HashToken(operator)))
	server := start(t, &syncBuffer{}, nil, []string{"serve", "--config", file}, "api")
	defer server.kill()
	base := server.lines["api"]
	resp, err := ask(t, http.DefaultClient, "PUT", base+"/v1/operations/menu-export/waits", token, smallMenu)
	if err != nil || resp.StatusCode != 201 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	for _, status := range []int{301, 303, 308} {
		for _, to := range []string{base, ""} {
			door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if to != "" {
					w.Header().Set("Location", to+r.URL.RequestURI())
				}
				w.WriteHeader(status)
			}))
			for _, c := range []struct{ args, token, undone string }{
				{"list", token, "nothing was changed"},
				{"abandon menu-export/waits", token, "nothing was abandoned"},
				{"resolve acme/menu-export/waits --verdict applied --evidence x --revision 1", operator, "no verdict was recorded"},
			} {
				out, log, code := toEnd(t, []string{"SEMEL_SERVER=" + door.URL, "SEMEL_TOKEN=" + c.token}, append([]string{"op"}, strings.Fields(c.args)...)...)
				if code != 1 || out != "" {
					t.Errorf("%d, %s: exit %d: %s", status, c.args, code, out)
				}
				where := ""
				if to != "" {
					where = ` and sends on to "` + to + `"`
				}
				says(t, c.args, log, fmt.Sprintf("%s (SEMEL_SERVER) answers \"%d %s\"%s: give the server's final URL\n%s", door.URL, status, http.StatusText(status), where, c.undone))
			}
			door.Close()
		}
	}
	out, log, code := toEnd(t, []string{"SEMEL_SERVER=" + base, "SEMEL_TOKEN=" + token}, "op", "get", "menu-export/waits")
	if code != 0 || !strings.Contains(out, "accepted") {
		t.Errorf("exit %d: %s%s", code, out, log)
	}
}

// Who is refused reads in an operator's words which token it was, what was not done,
// and which flag or variable to change.
func TestOperatorIsRefusedInItsOwnWords(t *testing.T) {
	file, token := writeConfig(t, "http://127.0.0.1:1", "opaque")
	operator := httpapi.NewToken()
	appendTo(t, file, fmt.Sprintf("operators: [{name: kim, hash: %q, accounts: [acme]}]\n", httpapi.HashToken(operator)))
	server := start(t, &syncBuffer{}, nil, []string{"serve", "--config", file}, "api")
	defer server.kill()
	base := server.lines["api"]
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	unknown := write("unknown", httpapi.NewToken()+"\n")
	const resolve = "resolve acme/order/1 --verdict applied --evidence x"
	for _, c := range []struct {
		args, server, token string
		want                []string
	}{
		{"list", base, httpapi.NewToken(), []string{"unauthenticated: the server " + base + " (SEMEL_SERVER) does not know the token in SEMEL_TOKEN, or the token has expired\nnothing was changed; ", "set SEMEL_TOKEN, or say --token-file FILE"}},
		{resolve + " --token-file " + unknown, base, "", []string{"the token in " + unknown + " (--token-file)", "\nno verdict was recorded; "}},
		{"list --account acme", base, token, []string{"forbidden: the token in SEMEL_TOKEN is an account's, and this is for operators\nnothing was changed; use an operator's token"}},
		{resolve, base, token, []string{"forbidden: the token in SEMEL_TOKEN is an account's", "\nno verdict was recorded; "}},
		{"list", base, operator, []string{"forbidden: the token in SEMEL_TOKEN is an operator's without an account of its own\nnothing was changed; name the account"}},
		{"abandon order/1", base, operator, []string{"forbidden: the token in SEMEL_TOKEN is an operator's without an account of its own", "\nnothing was abandoned; use a token of the account"}},
		{"get acme/order/1", base, operator, []string{"operation-not-found: there is no acme/order/1 on " + base, "or the token in SEMEL_TOKEN may not see it\nnothing was changed; `semel op list --account '*'`"}},
		{"get menu-export/1", base, token, []string{"operation-not-found: there is no menu-export/1 on ", "ACCOUNT/KIND/ID"}},
		{"get menu-export/1", other.URL, token, []string{other.URL + " (SEMEL_SERVER) answers \"404 Not Found\", but not as a Semel server does"}},
		{"list", base + "/api", token, []string{"does not know this command\nnothing was changed; is that its address, without a path"}},
		{resolve + " --server http://127.0.0.1:1", base, operator, []string{"no server is reached at http://127.0.0.1:1 (--server), so nothing was done: "}},
		{"list --server 127.0.0.1:8787", base, operator, []string{`--server: "127.0.0.1:8787" is not the URL of a server: write it as in http://127.0.0.1:8787; nothing was asked`}},
		{"list --state lost", base, token, []string{"invalid-operation: ", "needs_reconciliation"}},
		{"list", base, "", []string{"there is no token: set SEMEL_TOKEN, or say --token-file FILE; nothing was asked"}},
		{"list --token-file " + write("empty", "\n"), base, token, []string{"empty (--token-file) holds no token", "nothing was asked"}},
		{"list --token-file " + write("words", "two words"), base, token, []string{"words (--token-file) holds no token"}},
		{"list --token-file " + filepath.Join(dir, "missing"), base, token, []string{"--token-file: open ", "nothing was asked"}},
	} {
		out, log, status := toEnd(t, []string{"SEMEL_SERVER=" + c.server, "SEMEL_TOKEN=" + c.token}, append([]string{"op"}, strings.Fields(c.args)...)...)
		if status != 1 || out != "" {
			t.Errorf("%s: status %d, %s", c.args, status, out)
		}
		says(t, c.args, log, c.want...)
		for _, word := range []string{"Authorization", "Bearer", "header", "credential", "If-Match", "/v1/"} {
			if strings.Contains(log, word) {
				t.Errorf("%s: %q is no word of an operator's:\n%s", c.args, word, log)
			}
		}
		if c.token != "" && strings.Contains(log, c.token) {
			t.Errorf("%s: it shows the token:\n%s", c.args, log)
		}
	}
}
