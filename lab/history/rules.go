package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
)

// A Violation is a promise that was not kept.
type Violation struct {
	Rule string    `json:"rule"`
	Key  semel.Key `json:"key"`
	Text string    `json:"text"`
}

// String returns "rule: key: text".
func (v Violation) String() string { return v.Rule + ": " + v.Key.String() + ": " + v.Text }

// A Rule is one promise. Check is pure: it looks at one operation's events.
type Rule struct {
	Name string
	// Says is the promise in words.
	Says  string
	Check func(Promise, []Event) []string
}

var rules = []Rule{
	{"one effect", "an operation has at most one effect outside", oneEffect},
	{"asked for", "there is no effect that nobody asked for, or that was not begun on record", askedFor},
	{"truth", "succeeded is exactly one effect, failed and abandoned are none", truth},
	{"settled stays", "a settled operation never looks different again", settledStays},
	{"answers", "every answer is what the record says, or once said", answers},
	{"nothing lost", "what was acknowledged is on record", nothingLost},
	{"one meaning", "a key never stands for two different requests", oneMeaning},
	{"unknown", "needs_reconciliation only where the contract has nothing better, and an execution is in doubt", unknownOnlyWhere},
	{"nothing stuck", "in the end every operation is settled, or needs reconciliation", nothingStuck},
	{"one outcome", "an operation has at most one applied outcome, and each execution a token of its own", oneOutcome},
	{"told", "what a client says of an intent is so, and in the end it says how it has ended", toldTruly},
}

// oneIntent is the rule that looks at all keys of an intent.
var oneIntent = Rule{"one intent", "an intent has at most one effect, whatever keys it was asked for under", func(p Promise, events []Event) []string {
	if n := count(events, Effect); n > 1 && !p.Twice {
		return []string{fmt.Sprintf("%d effects under %d keys", n, len(keysOf(events)))}
	}
	return nil
}}

// Rules returns every rule.
func Rules() []Rule { return append(slices.Clone(rules), oneIntent) }

// Check judges a history by every rule; nil means that all promises were kept.
// Violations come by key, then in the order of the rules.
func Check(h History) []Violation {
	byKey := map[semel.Key][]Event{}
	for _, e := range h.Events {
		byKey[e.Key] = append(byKey[e.Key], e)
	}
	var all []Violation
	for _, key := range slices.SortedFunc(maps.Keys(byKey), semel.Key.Compare) {
		for _, rule := range rules {
			for _, text := range rule.Check(h.Kinds[key.Kind], byKey[key]) {
				all = append(all, Violation{rule.Name, key, text})
			}
		}
	}
	return append(all, checkIntents(h)...)
}

// checkIntents looks at intents that came under several keys.
func checkIntents(h History) (found []Violation) {
	byIntent := map[string][]Event{}
	for _, e := range h.Events {
		if e.Intent != "" {
			byIntent[e.Intent] = append(byIntent[e.Intent], e)
		}
	}
	for _, intent := range slices.Sorted(maps.Keys(byIntent)) {
		events := byIntent[intent]
		if keys := keysOf(events); len(keys) > 1 {
			for _, text := range oneIntent.Check(h.Kinds[keys[0].Kind], events) {
				found = append(found, Violation{oneIntent.Name, keys[0], text})
			}
		}
	}
	return found
}

// keysOf returns the keys of events, in the order in which they came.
func keysOf(events []Event) (keys []semel.Key) {
	for _, e := range events {
		if !slices.Contains(keys, e.Key) {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// Report writes violations as lines, at most so many, and says how many are left.
func Report(violations []Violation, most int) string {
	var b strings.Builder
	for i, v := range violations {
		if i == most {
			fmt.Fprintf(&b, "… and %d more\n", len(violations)-most)
			break
		}
		b.WriteString(v.String() + "\n")
	}
	return b.String()
}

func count(events []Event, what What) int {
	n := 0
	for _, e := range events {
		if e.What == what {
			n++
		}
	}
	return n
}

// final returns what is on record in the end; ok is false where nobody looked.
func final(events []Event) (e Event, ok bool) {
	for _, e := range slices.Backward(events) {
		if e.What == Final {
			return e, true
		}
	}
	return Event{}, false
}

func oneEffect(p Promise, events []Event) []string {
	if n := count(events, Effect); n > 1 && !p.Twice {
		return []string{fmt.Sprintf("%d effects", n)}
	}
	return nil
}

func askedFor(_ Promise, events []Event) []string {
	var found []string
	asked := false
	for _, e := range events {
		asked = asked || e.What == Sent && e.Verb == "PUT"
		if e.What == Effect && !asked {
			found = append(found, "an effect before anybody asked for it")
		}
	}
	last, ok := final(events)
	if ok && last.History != nil && count(events, Effect) > 0 {
		begun := func(x semel.Execution) bool { return !x.BegunAt.IsZero() }
		if !slices.ContainsFunc(last.History.Executions, begun) {
			found = append(found, "an effect, and no execution has begun")
		}
	}
	return found
}

func truth(p Promise, events []Event) []string {
	last, ok := final(events)
	if !ok || last.Operation == nil {
		return nil
	}
	n := count(events, Effect)
	switch state := last.Operation.State; {
	case state == semel.Succeeded && n == 0, state == semel.Succeeded && n > 1 && !p.Twice,
		(state == semel.Failed || state == semel.Abandoned || state == semel.Accepted) && n > 0:
		return []string{fmt.Sprintf("it is %s, with %d effects", state, n)}
	}
	return nil
}

// look is what must not change about an operation of one revision.
func look(op *semel.Operation) string {
	failure := ""
	if op.Failure != nil {
		failure = op.Failure.Code
	}
	return fmt.Sprintf("%s, result %s, failure %q", op.State, op.Result, failure)
}

func settledStays(_ Promise, events []Event) []string {
	var first *semel.Operation // the settled one of the lowest revision
	for _, e := range events {
		if op := e.Operation; e.What != Told && op != nil && op.State.Settled() && (first == nil || op.Revision < first.Revision) {
			first = op
		}
	}
	if first == nil {
		return nil
	}
	var found []string
	for _, e := range events {
		if op := e.Operation; e.What != Told && op != nil && op.Revision >= first.Revision && look(op) != look(first) {
			found = append(found, fmt.Sprintf("revision %d was %s; revision %d is %s", first.Revision, look(first), op.Revision, look(op)))
		}
	}
	return found
}

func answers(_ Promise, events []Event) []string {
	byRevision := map[int64]*semel.Operation{}
	last, ended := final(events)
	var found []string
	for _, e := range events {
		op := e.Operation
		if op == nil || e.What == Told { // what a client says may be its own
			continue
		}
		if same := byRevision[op.Revision]; same == nil {
			byRevision[op.Revision] = op
		} else if look(same) != look(op) || same.Fingerprint != op.Fingerprint {
			found = append(found, fmt.Sprintf("revision %d was told as %s and as %s", op.Revision, look(same), look(op)))
		}
		if ended && last.Operation != nil && op.Revision > last.Operation.Revision {
			found = append(found, fmt.Sprintf("revision %d was told, and the record is at %d", op.Revision, last.Operation.Revision))
		}
	}
	return found
}

func nothingLost(_ Promise, events []Event) []string {
	last, ended := final(events)
	if !ended || last.Operation != nil || last.Code == semel.CodeExpired {
		return nil
	}
	for _, e := range events {
		if e.What == Answered && e.Operation != nil && e.Code == "" {
			return []string{"it was acknowledged, and is not on record"}
		}
	}
	return nil
}

// oneMeaning: of requests with different content, one at most was accepted.
func oneMeaning(_ Promise, events []Event) []string {
	content := map[string]string{} // by attempt
	for _, e := range events {
		if e.What == Sent && e.Verb == "PUT" {
			content[e.Attempt] = e.Content
		}
	}
	accepted := map[string]bool{}
	for _, e := range events {
		if c, put := content[e.Attempt]; put && e.What == Answered && e.Operation != nil && e.Code == "" {
			accepted[c] = true
		}
	}
	if len(accepted) > 1 {
		return []string{fmt.Sprintf("accepted as %s", strings.Join(slices.Sorted(maps.Keys(accepted)), " and as "))}
	}
	return nil
}

func unknownOnlyWhere(p Promise, events []Event) []string {
	last, ok := final(events)
	if !ok || last.Operation == nil || last.Operation.State != semel.NeedsReconciliation {
		return nil
	}
	var found []string
	if !p.Unknown {
		found = append(found, "it needs reconciliation, although its contract can tell")
	}
	if last.History != nil && !slices.ContainsFunc(last.History.Executions, semel.Execution.InDoubt) {
		found = append(found, "it needs reconciliation, and no execution is in doubt")
	}
	return found
}

func nothingStuck(_ Promise, events []Event) []string {
	last, ok := final(events)
	if !ok || last.Operation == nil {
		return nil
	}
	if s := last.Operation.State; !s.Settled() && s != semel.NeedsReconciliation {
		return []string{"it is still " + string(s)}
	}
	return nil
}

func oneOutcome(_ Promise, events []Event) []string {
	last, ok := final(events)
	if !ok || last.History == nil {
		return nil
	}
	var found []string
	applied, token := 0, int64(0)
	for _, x := range last.History.Executions {
		if x.Outcome == semel.Applied {
			applied++
		}
		if x.Token <= token {
			found = append(found, fmt.Sprintf("execution %d follows execution %d", x.Token, token))
		}
		token = x.Token
	}
	if applied > 1 {
		found = append(found, fmt.Sprintf("%d applied outcomes", applied))
	}
	return found
}
