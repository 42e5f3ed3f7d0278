package client

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
)

// One record per request, with identity, attempt, times, state and category, and
// nothing else. That no secret is among them is checked for every test's world.
func TestLogs(t *testing.T) {
	w := newWorld(t)
	w.rules("lose-answer method=PUT count=1", "cut-before method=GET count=1")
	in := intent("export")
	out, err := w.client(nil, nil).Do(t.Context(), in)
	is[Settled](t, out, err)
	want := []string{"account", "attempt", "attempt_id", "category", "duration", "kind", "level", "msg", "operation_id", "start", "state", "time"}
	var told []string
	for line := range strings.Lines(w.logs.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(fields)); !slices.Equal(got, want) || fields["operation_id"] != in.ID {
			t.Errorf("fields %v in %s", got, line)
		}
		told = append(told, strings.TrimPrefix(fields["msg"].(string), "client: ")+" "+fields["state"].(string))
	}
	if got := strings.Join(told, ", "); !strings.HasPrefix(got, "sent unknown, looked up cannot_tell, sent applied") {
		t.Errorf("told: %s", got)
	}
}

// Each transmission has an ID of its own, and the server records them.
func TestAttemptIDs(t *testing.T) {
	w := newWorld(t)
	w.rules("lose-answer method=PUT count=3", "status-before method=GET code=502 count=3")
	in := intent("export")
	out, err := w.client(nil, nil).Do(t.Context(), in)
	is[Settled](t, out, err)
	if err := w.ledger.Close(); err != nil { // what is recorded is written now
		t.Fatal(err)
	}
	h, err := w.store.History(t.Context(), semel.Key{Account: "acme", Kind: "export", ID: in.ID})
	ids := map[string]bool{}
	for _, a := range h.Attempts {
		ids[a.ID] = true
	}
	if err != nil || len(h.Attempts) != 4 || len(ids) != 4 {
		t.Errorf("%d attempts with %d IDs, %v", len(h.Attempts), len(ids), err)
	}
}
