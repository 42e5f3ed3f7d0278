package history

import (
	"testing"

	"github.com/semel-dev/semel"
)

// sentAs is a call of that verb, and what it was told.
func sentAs(verb, attempt string, revision int64) Event {
	return Event{What: Sent, Key: key, Verb: verb, Attempt: attempt, Revision: revision}
}

func toldAs(verb, attempt string, o *semel.Operation, code semel.Code) Event {
	return Event{What: Answered, Key: key, Verb: verb, Attempt: attempt, Operation: o, Code: code}
}

// Rules look at revisions; only Linearizable looks at the order of calls.
func TestLinearizable(t *testing.T) {
	accepted, processing, succeeded := op(1, semel.Accepted, ""), op(2, semel.Processing, ""), op(3, semel.Succeeded, "{}")
	life := []Event{sent("a", "1"), told("a", 1, semel.Accepted, ""), sentAs("CLAIM", "c", 0), toldAs("CLAIM", "c", processing, ""), effect,
		sentAs("FINISH", "f", 2), toldAs("FINISH", "f", succeeded, "")}
	is := end(succeeded, begun(1, semel.Applied))
	look := func(o *semel.Operation, code semel.Code) []Event {
		return []Event{sentAs("GET", "g", 0), toldAs("GET", "g", o, code)}
	}
	over := func(parts ...[]Event) (all []Event) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return append(all, is)
	}
	for _, c := range []struct {
		name   string
		ok     bool
		events []Event
	}{
		{"a life", true, over(life, look(succeeded, ""))},
		{"a stale look-up", false, over(life, look(accepted, ""))},
		{"a stale answer that says so little", false, over(life, look(nil, semel.CodeNotFound))},
		{"a look-up that was asked before, and read later", true, over([]Event{sentAs("GET", "g", 0)}, life, []Event{toldAs("GET", "g", accepted, "")})},
		{"a repeat answered from a cache", false, over(life, []Event{sent("b", "1"), told("b", 2, semel.Processing, "")})},
		{"another request answered as a repeat", false, over(life, []Event{sent("b", "2"), told("b", 3, semel.Succeeded, "{}")})},
		{"a write under an old lease", false, over(life[:4], []Event{sentAs("CLAIM", "d", 0), toldAs("CLAIM", "d", op(3, semel.Processing, ""), "")},
			[]Event{sentAs("FINISH", "f", 2), toldAs("FINISH", "f", op(4, semel.Succeeded, "{}"), "")})},
		{"an acceptance without an answer, seen later", true, over([]Event{sent("a", "1"), {What: Silent, Key: key, Verb: "PUT", Attempt: "a"}},
			look(nil, semel.CodeNotFound), life[2:])},
		{"nobody has asked for it", false, over(life[2:])},
		{"abandoned, and claimed all the same", false, over([]Event{sentAs("DELETE", "d", 0), toldAs("DELETE", "d", op(1, semel.Abandoned, ""), "")}, life[2:])},
		{"forgotten before it was settled", false, []Event{sent("a", "1"), told("a", 1, semel.Accepted, ""), sentAs("PURGE", "p", 0),
			toldAs("PURGE", "p", nil, ""), sentAs("GET", "g", 0), toldAs("GET", "g", nil, semel.CodeExpired)}},
		{"forgotten afterwards", true, append(life[:len(life):len(life)], sentAs("PURGE", "p", 0), toldAs("PURGE", "p", nil, ""),
			sent("b", "1"), toldAs("PUT", "b", nil, semel.CodeExpired))},
		{"resolved under a revision that has passed", false, []Event{sent("a", "1"), told("a", 1, semel.Accepted, ""),
			sentAs("RESOLVE", "r", 2), toldAs("RESOLVE", "r", op(2, semel.Succeeded, "{}"), "")}},
	} {
		found := Linearizable(History{Events: c.events})
		if (len(found) == 0) != c.ok {
			t.Errorf("%s: %v", c.name, found)
		}
	}
	stale := History{Kinds: map[string]Promise{"order": {Unknown: true}}, Events: over(life, look(accepted, ""))}
	if found := Check(stale); len(found) > 0 {
		t.Errorf("a rule finds the stale look-up, too: %v", found)
	}
}
