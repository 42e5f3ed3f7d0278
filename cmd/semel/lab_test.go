package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// labCommand runs `semel lab` as a process, whose own processes are this binary too.
func labCommand(t *testing.T, args ...string) (out, log string, status int) {
	t.Helper()
	return toEnd(t, nil, append([]string{"lab"}, args...)...)
}

// One JSON object for each scenario, and the status says whether all is well.
func TestLabJSON(t *testing.T) {
	for _, c := range []struct {
		args    []string
		status  int
		effects int
		pass    bool
	}{
		{[]string{"--json", "lost-answer"}, 0, 1, true},
		{[]string{"--unsafe", "lost-answer", "--json"}, 1, 2, false},
		{[]string{"lost-answer", "--json"}, 0, 1, true},
	} {
		out, log, status := labCommand(t, c.args...)
		var r map[string]any
		if err := json.Unmarshal([]byte(out), &r); err != nil || status != c.status {
			t.Fatalf("%v: status %d, %v: %s %s", c.args, status, err, out, log)
		}
		for _, member := range []string{"scenario", "sends", "operations", "effects", "visible", "expected", "pass"} {
			if _, ok := r[member]; !ok {
				t.Errorf("%v: no %q in %s", c.args, member, out)
			}
		}
		if r["scenario"] != "lost-answer" || r["effects"] != float64(c.effects) || r["pass"] != c.pass {
			t.Errorf("%v: %s", c.args, out)
		}
	}
}

func TestLabText(t *testing.T) {
	out, log, status := labCommand(t, "--unsafe", "lost-answer")
	if status != 1 || !strings.Contains(out, "unsafe: the client makes a new ID for each attempt") || !strings.Contains(out, "NO") {
		t.Errorf("status %d: %s %s", status, out, log)
	}
	out, _, status = labCommand(t, "list")
	if status != 0 || !strings.Contains(out, "worker-dies-opaque") {
		t.Errorf("status %d: %s", status, out)
	}
	out, log, status = labCommand(t, "notes")
	if status != 0 || strings.Count(out, "notes-") != 7 || strings.Contains(out, "lost-answer") {
		t.Errorf("status %d: %s %s", status, out, log)
	}
	out, log, status = labCommand(t, "--unsafe", "notes")
	if status != 1 || strings.Count(out, ", unsafe: ") != 3 || strings.Count(out, "NO") != 3 {
		t.Errorf("status %d: %s %s", status, out, log)
	}
	_, log, status = labCommand(t, "no-such-thing")
	if status != 1 || !strings.Contains(log, "lost-answer") {
		t.Errorf("status %d: %s", status, log)
	}
	out, _, status = labCommand(t, "soak", "--for", "2s", "--seed", "5", "--json")
	if status != 0 || !strings.Contains(out, `"seed":5`) || !strings.Contains(out, `"duplicates":0`) {
		t.Errorf("status %d: %s", status, out)
	}
}

// Roles are for the lab's own use.
func TestLabRolesAreHidden(t *testing.T) {
	var text bytes.Buffer
	usage(&text)
	if strings.Contains(text.String(), "lab-node") {
		t.Error("the roles are shown")
	}
}
