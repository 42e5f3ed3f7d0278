package history

import (
	"fmt"
	"slices"

	"github.com/semel-dev/semel"
)

// toldTruly checks what clients say of an intent against what is so.
func toldTruly(_ Promise, events []Event) (found []string) {
	last, ended := final(events)
	latest := map[string]Event{} // by client
	effects := 0
	for i, e := range events {
		if e.What == Effect {
			effects++
		}
		if e.What != Told {
			continue
		}
		latest[e.By] = e
		switch {
		case e.Outcome == Settled:
			found = append(found, settledTruly(events, e, last, ended)...)
		case e.Outcome == Unsent && effects > 0 && alone(events[:i], e.By):
			found = append(found, "a client says that nothing has arrived, and it has happened")
		case e.Outcome == Rejected && count(events, Effect) > 0 && alone(events, e.By):
			found = append(found, fmt.Sprintf("a client says that it was rejected (%s), and it has happened", e.Code))
		}
	}
	if !ended || last.Operation == nil || !last.Operation.State.Settled() {
		return found
	}
	for by, e := range latest {
		if e.Outcome == Unconfirmed || e.Outcome == Unsent {
			found = append(found, fmt.Sprintf("client %q ends with %q, and it is %s", by, e.Outcome, last.Operation.State))
		}
	}
	slices.Sort(found)
	return found
}

// settledTruly compares a settled outcome with effects and record.
func settledTruly(events []Event, e, last Event, ended bool) (found []string) {
	n, op := count(events, Effect), e.Operation
	if op == nil || !op.State.Settled() || (op.State == semel.Succeeded) != (n > 0) {
		found = append(found, fmt.Sprintf("a client says that it is settled as %s, with %d effects", stateOf(op), n))
	}
	if !ended || last.Operation == nil || op == nil {
		return found
	}
	if is := last.Operation; is.State != op.State || is.Revision == op.Revision && look(is) != look(op) {
		found = append(found, fmt.Sprintf("a client says that it is settled as %s, and it is %s", look(op), look(is)))
	}
	return found
}

func stateOf(op *semel.Operation) semel.State {
	if op == nil {
		return semel.None
	}
	return op.State
}

// alone reports whether nobody else has asked for it: what happened, happened at
// this client's request.
func alone(events []Event, by string) bool {
	return !slices.ContainsFunc(events, func(e Event) bool { return e.What == Sent && e.Verb == "PUT" && e.By != by })
}
