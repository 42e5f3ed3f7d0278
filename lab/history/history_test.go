package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

var key = semel.Key{Account: "acme", Kind: "order", ID: "1"}

func sent(attempt, content string) Event {
	return Event{What: Sent, Key: key, Verb: "PUT", Attempt: attempt, Content: content}
}

func told(attempt string, revision int64, state semel.State, result string) Event {
	return Event{What: Answered, Key: key, Verb: "PUT", Attempt: attempt, Operation: op(revision, state, result)}
}

func op(revision int64, state semel.State, result string) *semel.Operation {
	o := &semel.Operation{Key: key, State: state, Revision: revision, Fingerprint: "f"}
	if result != "" {
		o.Result = json.RawMessage(result)
	}
	return o
}

func end(o *semel.Operation, executions ...semel.Execution) Event {
	return Event{What: Final, Key: key, Operation: o, History: &semel.History{Executions: executions}}
}

func begun(token int64, outcome semel.Outcome) semel.Execution {
	return semel.Execution{Token: token, BegunAt: time.UnixMilli(1), Outcome: outcome}
}

var effect = Event{What: Effect, Key: key}

// said is what a client says.
func said(outcome Outcome, o *semel.Operation) Event {
	return Event{What: Told, Key: key, Outcome: outcome, Operation: o}
}

func by(who string, e Event) Event { e.By = who; return e }

func meant(intent string, e Event) Event { e.Intent = intent; return e }

// other is the same under another key.
func other(e Event) Event { e.Key.ID = "2"; return e }

// Each case breaks one promise, and only that one.
func TestEachRuleFindsWhatBreaksIt(t *testing.T) {
	good := []Event{sent("a", "1"), {What: Silent, Key: key, Verb: "PUT", Attempt: "a"}, effect, sent("b", "1"),
		told("b", 2, semel.Processing, ""), told("b", 3, semel.Succeeded, "{}"), end(op(3, semel.Succeeded, "{}"), begun(1, semel.Applied))}
	for _, c := range []struct {
		rule   string
		events []Event
	}{
		{"", good},
		{"", []Event{sent("a", "1"), end(nil)}},
		{"", []Event{sent("a", "1"), effect, end(op(3, semel.NeedsReconciliation, ""), begun(1, ""))}},
		{"one effect", []Event{sent("a", "1"), effect, effect, end(op(3, semel.NeedsReconciliation, ""), begun(1, ""))}},
		{"asked for", []Event{effect, sent("a", "1")}},
		{"asked for", []Event{sent("a", "1"), effect, end(op(3, semel.Succeeded, "{}"), semel.Execution{Token: 1})}},
		{"truth", []Event{sent("a", "1"), end(op(3, semel.Succeeded, "{}"), begun(1, semel.Applied))}},
		{"truth", []Event{sent("a", "1"), effect, end(op(3, semel.Failed, ""), begun(1, semel.Refused))}},
		{"truth", []Event{sent("a", "1"), effect, end(op(3, semel.Abandoned, ""), begun(1, semel.Refused))}},
		{"settled stays", []Event{sent("a", "1"), effect, told("a", 3, semel.Failed, ""), end(op(4, semel.Succeeded, "{}"), begun(1, semel.Applied))}},
		{"settled stays", []Event{sent("a", "1"), effect, told("a", 4, semel.Processing, ""), told("a", 3, semel.Succeeded, "{}")}},
		{"settled stays", []Event{sent("a", "1"), effect, told("a", 3, semel.Succeeded, "{}"), told("a", 4, semel.Succeeded, "1")}},
		{"answers", []Event{sent("a", "1"), told("a", 2, semel.Accepted, ""), told("a", 2, semel.Processing, "")}},
		{"answers", []Event{sent("a", "1"), told("a", 9, semel.Processing, ""), effect, end(op(3, semel.NeedsReconciliation, ""), begun(1, ""))}},
		{"nothing lost", []Event{sent("a", "1"), told("a", 1, semel.Accepted, ""), end(nil)}},
		{"one meaning", []Event{sent("a", "1"), sent("b", "2"), told("a", 1, semel.Accepted, ""), told("b", 1, semel.Accepted, "")}},
		{"unknown", []Event{sent("a", "1"), end(op(3, semel.NeedsReconciliation, ""), begun(1, semel.Refused))}},
		{"nothing stuck", []Event{sent("a", "1"), end(op(3, semel.Processing, ""), begun(1, ""))}},
		{"one outcome", []Event{sent("a", "1"), effect, end(op(3, semel.Succeeded, "{}"), begun(1, semel.Applied), begun(2, semel.Applied))}},
		{"one outcome", []Event{sent("a", "1"), effect, end(op(3, semel.Succeeded, "{}"), begun(2, semel.Applied), begun(2, semel.NotApplied))}},
		{"", []Event{sent("a", "1"), effect, said(Unconfirmed, nil), end(op(3, semel.Succeeded, "{}"), begun(1, semel.Applied)), said(Settled, op(3, semel.Succeeded, "{}"))}},
		{"", []Event{sent("a", "1"), by("other", sent("b", "2")), effect, said(Rejected, nil)}},
		{"told", []Event{sent("a", "1"), effect, said(Unconfirmed, nil), end(op(3, semel.Succeeded, "{}"), begun(1, semel.Applied))}},
		{"told", []Event{sent("a", "1"), effect, said(Unsent, nil), end(op(3, semel.NeedsReconciliation, ""), begun(1, ""))}},
		{"told", []Event{sent("a", "1"), said(Rejected, nil), effect, end(op(3, semel.NeedsReconciliation, ""), begun(1, ""))}},
		{"told", []Event{sent("a", "1"), effect, said(Settled, op(0, semel.Abandoned, "")), end(op(3, semel.NeedsReconciliation, ""), begun(1, ""))}},
		{"told", []Event{sent("a", "1"), said(Settled, op(0, semel.Succeeded, "")), end(op(3, semel.Failed, ""), begun(1, semel.Refused))}},
		{"one intent", []Event{meant("it", sent("a", "1")), meant("it", effect), meant("it", other(sent("b", "1"))), meant("it", other(effect))}},
	} {
		h := History{Kinds: map[string]Promise{"order": {Unknown: true}}, Events: c.events}
		broken := map[string]bool{}
		for _, v := range Check(h) {
			broken[v.Rule] = true
		}
		want := map[string]bool{}
		if c.rule != "" {
			want[c.rule] = true
		}
		if fmt.Sprint(broken) != fmt.Sprint(want) {
			t.Errorf("%q: broken are %v: %v", c.rule, broken, Check(h))
		}
	}
}

// What a kind is known for changes what is expected of it.
func TestPromises(t *testing.T) {
	twice := []Event{sent("a", "1"), effect, effect, end(op(3, semel.Succeeded, "{}"), begun(1, ""), begun(2, semel.Applied))}
	unknown := []Event{sent("a", "1"), effect, end(op(3, semel.NeedsReconciliation, ""), begun(1, ""))}
	for _, c := range []struct {
		promise Promise
		events  []Event
		want    int
	}{
		{Promise{}, twice, 2}, {Promise{Twice: true}, twice, 0},
		{Promise{}, unknown, 1}, {Promise{Unknown: true}, unknown, 0},
	} {
		if got := Check(History{map[string]Promise{"order": c.promise}, c.events}); len(got) != c.want {
			t.Errorf("%+v: %v", c.promise, got)
		}
	}
}

// Every rule stands in the manual, with the same words.
func TestTheManualHasEveryRule(t *testing.T) {
	manual, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Rules() {
		if line := fmt.Sprintf("//\t%-20s %s\n", r.Name, r.Says); !strings.Contains(string(manual), line) {
			t.Errorf("doc.go has no line %q", line)
		}
	}
}

// A history may be judged again later.
func TestAHistorySurvivesJSON(t *testing.T) {
	h := History{Kinds: map[string]Promise{"order": {Twice: true}}, Events: []Event{sent("a", "1"), effect, effect, end(nil)}}
	var text bytes.Buffer
	if err := h.Write(&text); err != nil {
		t.Fatal(err)
	}
	var again History
	if err := json.Unmarshal(text.Bytes(), &again); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(Check(h)) != fmt.Sprint(Check(again)) || len(again.Of(key)) != 4 {
		t.Errorf("%+v", again)
	}
}
