package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// toEnd runs the command as a process, to its end.
func toEnd(t *testing.T, env []string, args ...string) (out, log string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), "SEMEL_TEST_COMMAND=1"), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// says reports what of parts is not in the text.
func says(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q is not in:\n%s", what, part, text)
		}
	}
}

// Every command, and every part of one, says how it is called, what it does, and
// what its exit codes mean; on standard output, for it was asked for.
func TestHelp(t *testing.T) {
	flag := map[string]string{"serve": "--config FILE", "demo": "--data DIR", "proxy": "--fault RULE", "migrate": "--config FILE", "token": "--name TEXT",
		"op": "--token-file FILE", "op list": "--account TEXT", "op get": "--server URL", "op history": "--json", "op abandon": "--server URL", "op resolve": "--evidence TEXT",
		"lab": "--unsafe NAME", "lab crash": "--rounds N", "lab soak": "--for TIME", "lab explore": "--replay SCHEDULE", "lab list": "", "version": ""}
	for _, c := range commands() {
		if _, ok := manuals[c.name]; !ok {
			t.Errorf("nothing is said of %s", c.name)
		}
	}
	for name := range manuals {
		want, ok := flag[name]
		if !ok {
			t.Errorf("say here which flag %s has", name)
		}
		for _, args := range [][]string{append(strings.Fields(name), "-h"), append([]string{"help"}, strings.Fields(name)...)} {
			out, log, status := toEnd(t, nil, args...)
			if status != 0 || log != "" || !strings.HasPrefix(out, "usage: semel "+name) {
				t.Errorf("%v: status %d\n%s%s", args, status, out, log)
			}
			says(t, name, out, "\nIt ", ".\n", "exit codes: 0 ", want)
		}
	}
	out, _, _ := toEnd(t, nil, "op", "get", "-h")
	if strings.Contains(out, "--evidence") || strings.Contains(out, "--size") {
		t.Errorf("op get is said to have flags of others:\n%s", out)
	}
}

// A wrong call says what is wrong, that nothing was done, and how to call.
func TestWrongCalls(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"lab crash --round 3", "there is no flag -round"},
		{"lab crash --rounds some", `"some" is not a whole number: --rounds N: how often`},
		{"lab soak --for 3", `"3" is not a time such as 90s or 10m: --for TIME: how long`},
		{"lab soak --seed x", `"x" is not a whole number: --seed N`},
		{"lab explore --depth 3", "--depth is 1 or 2"},
		{"lab explore --shapes round", "one of idempotent, queryable, opaque"},
		{"lab explore --replay nonsense", "--replay: "},
		{"lab list lost-answer", `"lost-answer" is one word too many`},
		{"lab crash --rounds 0", "--rounds is at least 1"},
		{"lab soak --nodes 0", "--nodes is at least 1"},
		{"lab soak --for -1s", "--for and --kill-every are more than nothing"},
		{"lab --parallel -3 lost-answer", "--parallel is at least 1"},
		{"proxy --to nonsense", `--to: "nonsense" is none of http://host`},
		{"serve", "--config FILE is missing"},
		{"migrate", "--config FILE is missing"},
		{"migrate --config", "--config FILE has no value: the configuration FILE"},
		{"proxy --to http://127.0.0.1:1 --fault lose", `unknown fault "lose"`},
		{"op", "say what to do"},
		{"op gett order/1", `there is no "gett"`},
		{"op get", "say which operation"},
		{"op list order/1", `"order/1" is one word too many`},
		{"op resolve a/b/c --verdict applied --evidence x --result {", "--result is not JSON"},
	} {
		args := strings.Fields(c.args)
		out, log, status := toEnd(t, nil, args...)
		if status != 2 || out != "" {
			t.Errorf("%s: status %d, %q", c.args, status, out)
		}
		says(t, c.args, log, "semel "+args[0], c.want, "\nnothing was done\nusage: semel "+args[0], "-h` says more")
	}
}
