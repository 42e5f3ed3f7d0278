package semel_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
)

var update = flag.Bool("update", false, "write docs/states.md")

func TestStatesDocIsCurrent(t *testing.T) {
	want := statesDoc()
	if *update {
		if err := os.WriteFile("docs/states.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/states.md is stale: run `go test . -run TestStatesDocIsCurrent -update`")
	}
}

func statesDoc() string {
	var b strings.Builder
	b.WriteString("# States\n\nGenerated from the transition table in `state.go`; what is not here cannot happen.\n\n```mermaid\nstateDiagram-v2\n")
	name := func(s semel.State) string {
		if s == semel.None {
			return "[*]"
		}
		return string(s)
	}
	for _, tr := range semel.Transitions() {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", name(tr.From), name(tr.To), tr.Event)
	}
	for _, s := range []semel.State{semel.Succeeded, semel.Failed, semel.Abandoned} {
		fmt.Fprintf(&b, "    %s --> [*]\n", s)
	}
	b.WriteString("```\n\n| from | event | to | when |\n|---|---|---|---|\n")
	for _, tr := range semel.Transitions() {
		from := string(tr.From)
		if tr.From == semel.None {
			from = "(none)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", from, tr.Event, tr.To, tr.When)
	}
	return b.String()
}

func TestSettledStatesHaveNoWayOut(t *testing.T) {
	for _, tr := range semel.Transitions() {
		if tr.From.Settled() {
			t.Errorf("%s is settled, but %s leads to %s", tr.From, tr.Event, tr.To)
		}
	}
}

func TestNothingIsReportedFailedFromUnknown(t *testing.T) {
	for _, tr := range semel.Transitions() {
		if tr.To == semel.Failed && (tr.Event == semel.EventUnknown || tr.Event == semel.EventUnresolvable) {
			t.Errorf("%s turns unknown into failed", tr.Event)
		}
	}
}

func TestEveryStateIsReachedAndLeft(t *testing.T) {
	into, out := map[semel.State]bool{}, map[semel.State]bool{}
	for _, tr := range semel.Transitions() {
		into[tr.To], out[tr.From] = true, true
	}
	for s := range into {
		if !s.Settled() && !out[s] {
			t.Errorf("%s can't be left", s)
		}
	}
	for _, s := range []semel.State{semel.Accepted, semel.Processing, semel.Succeeded, semel.Failed, semel.NeedsReconciliation, semel.Abandoned} {
		if !s.Valid() || !into[s] {
			t.Errorf("%s can't be reached", s)
		}
	}
}

func TestNextRefusesWhatIsNotInTheTable(t *testing.T) {
	if _, err := semel.Succeeded.Next(semel.EventClaim); err == nil {
		t.Error("a settled operation was claimed")
	}
	if s, err := semel.Accepted.Next(semel.EventClaim); err != nil || s != semel.Processing {
		t.Errorf("accepted + claim = %s, %v", s, err)
	}
}
