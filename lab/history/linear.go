package history

import (
	"fmt"
	"maps"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/semel-dev/semel"
)

// Linearizable checks that every operation behaves as one row that is read and
// changed at single moments: each call takes effect at some moment between its
// sending and its answer, and each answer is what the row was at that moment. So no
// answer is older than one that somebody had before the question was asked, which
// no other rule looks at.
//
// It needs a recording of everything that changes an operation, and so it is no
// [Rule]. Besides the requests of callers, that are the calls of our own processes,
// each as a Sent and an Answered with an Attempt of its own: "CLAIM", "BEGIN",
// "FINISH" (Revision is that of the lease), "RESOLVE" (Revision is the one that the
// person had seen) and "PURGE". A call without an answer, or with
// [semel.CodeUnavailable], may take effect at any later time, or never.
func Linearizable(h History) []Violation {
	byKey := map[semel.Key][]porcupine.Operation{}
	for key, calls := range callsOf(h.Events) {
		for _, c := range calls {
			byKey[key] = append(byKey[key], porcupine.Operation{Input: c, Call: int64(c.from), Return: int64(c.to)})
		}
	}
	var found []Violation
	for _, key := range slices.SortedFunc(maps.Keys(byKey), semel.Key.Compare) {
		if !porcupine.CheckOperations(rowModel, byKey[key]) {
			found = append(found, Violation{"linearizable", key, "no order of the calls explains what they were told:" + describe(byKey[key])})
		}
	}
	return found
}

// A call is a request with what became of it. Unknown: nobody knows whether, and
// when, it takes effect.
type call struct {
	asked, told Event
	unknown     bool
	from, to    int // places in the recording
}

// callsOf joins requests and answers, by key.
func callsOf(events []Event) map[semel.Key][]*call {
	calls := map[semel.Key][]*call{}
	open := map[string]*call{} // by key and attempt
	for i, e := range events {
		name := e.Key.String() + " " + e.Attempt
		switch e.What {
		case Sent:
			open[name] = &call{asked: e, from: i, to: len(events), unknown: true}
			calls[e.Key] = append(calls[e.Key], open[name])
		case Answered:
			if c := open[name]; c != nil && e.Code != semel.CodeUnavailable {
				c.told, c.to, c.unknown = e, i, false
			}
		case Final:
			e.Verb = "GET"
			calls[e.Key] = append(calls[e.Key], &call{asked: e, told: e, from: i, to: i})
		}
	}
	return calls
}

// A row is what is on record of one operation. Of what a call without an answer has
// written, the revision is known, and the rest is learnt when it is read.
type row struct {
	there    bool
	expired  bool // nobody remembers it, or will remember it
	content  string
	revision int64
	state    semel.State // "" where it is not known
	look     string      // "" where it is not known
}

var rowModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{row{}} },
	Step: func(state, input, _ any) []any {
		var next []any
		for _, r := range state.(row).after(input.(*call)) {
			next = append(next, r)
		}
		return next
	},
}).ToModel()

// after returns what the row may be after a call; nothing where the call can't have
// been told that.
func (r row) after(c *call) []row {
	change := changes[c.asked.Verb]
	if change == nil {
		return []row{r}
	}
	if c.unknown {
		return append(change(r, c), r)
	}
	return r.explain(c, change(r, c))
}

// explain returns what fits to what the call was told: the row as it is, or as the
// call has made it.
func (r row) explain(c *call, made []row) []row {
	told := c.told
	switch op := told.Operation; {
	case c.asked.Verb == "PURGE":
		return append(made, r)
	case told.Code == semel.CodeExpired:
		return only(r.expired, r)
	case told.Code == semel.CodeNotFound, op == nil && told.What == Final:
		return only(!r.there && !r.expired, r)
	case told.Code == semel.CodeLeaseLost:
		return r.late(op)
	case told.Code == semel.CodeMismatch:
		return only(r.there && r.content != c.asked.Content, r)
	case told.Code == semel.CodeAbandoned:
		return only(r.there && (r.state == semel.Abandoned || r.state == ""), r)
	case op == nil && told.Revision > 0: // it is as it was
		return only(r.there && r.revision == told.Revision, r)
	case op == nil: // it says nothing of the operation
		return []row{r}
	case told.Code != "":
		return r.read(op)
	}
	var next []row
	for _, m := range made {
		next = append(next, m.read(told.Operation)...)
	}
	if c.asked.Verb == "PUT" && r.content != c.asked.Content {
		return next // another request is never answered as a repeat
	}
	return append(next, r.read(told.Operation)...)
}

// read returns the row where the operation may be what it is, with what is learnt.
func (r row) read(op *semel.Operation) []row {
	if !r.there || r.expired && op.State != semel.Abandoned || r.revision != op.Revision || r.state != "" && r.state != op.State || r.look != "" && r.look != look(op) {
		return nil
	}
	r.state, r.look = op.State, look(op)
	return []row{r}
}

// late is what a result may have done that came too late: nothing, or a flag.
func (r row) late(op *semel.Operation) []row {
	flagged := r
	flagged.revision++
	if op == nil {
		return []row{r, flagged}
	}
	return append(r.read(op), flagged.read(op)...)
}

func only(ok bool, r row) []row {
	if ok {
		return []row{r}
	}
	return nil
}

// changes are what calls may make of a row, by verb.
var changes = map[string]func(row, *call) []row{
	"GET": func(row, *call) []row { return nil },
	"PUT": func(r row, c *call) []row {
		if r.there || r.expired {
			return nil
		}
		return []row{{there: true, content: c.asked.Content, revision: 1, state: semel.Accepted}}
	},
	"DELETE": func(r row, _ *call) []row {
		if !r.there && !r.expired {
			return []row{{there: true, revision: 1, state: semel.Abandoned}}
		}
		return r.written(semel.Abandoned, semel.Accepted)
	},
	"CLAIM": func(r row, _ *call) []row { return r.written(semel.Processing, semel.Accepted, semel.Processing) },
	"BEGIN": func(r row, c *call) []row {
		if r.revision != c.asked.Revision {
			return nil
		}
		return r.written(semel.Processing, semel.Processing)
	},
	"FINISH": func(r row, c *call) []row {
		if r.revision != c.asked.Revision {
			return nil
		}
		return r.written("", semel.Processing)
	},
	"RESOLVE": func(r row, c *call) []row {
		if r.revision != c.asked.Revision {
			return nil
		}
		return r.written("", semel.NeedsReconciliation)
	},
	"PURGE": func(r row, _ *call) []row {
		if r.there && r.state != "" && !r.state.Settled() {
			return nil
		}
		gone := r
		gone.expired = true
		return []row{gone}
	},
}

// written is the row after a change to that state, if it may be in one of these.
func (r row) written(to semel.State, from ...semel.State) []row {
	if !r.there || r.expired || r.state != "" && !slices.Contains(from, r.state) {
		return nil
	}
	r.revision, r.state, r.look = r.revision+1, to, ""
	return []row{r}
}

// describe writes the calls down, as far as they say something of the row.
func describe(calls []porcupine.Operation) string {
	text := ""
	for _, o := range calls {
		c := o.Input.(*call)
		switch op := c.told.Operation; {
		case c.unknown:
			text += fmt.Sprintf(" %s without an answer;", c.asked.Verb)
		case op != nil:
			text += fmt.Sprintf(" %s: %s revision %d, %s;", c.asked.Verb, c.told.Code, op.Revision, op.State)
		case c.asked.Verb != "CLAIM" && c.asked.Verb != "PURGE":
			text += fmt.Sprintf(" %s: %s;", c.asked.Verb, c.told.Code)
		}
	}
	return text
}
