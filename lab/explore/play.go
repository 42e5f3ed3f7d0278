package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/history"
)

// play runs the script, then lets workers work until everything is settled or
// nobody can tell, and writes down what is on record.
func (w *world) play(ctx context.Context) {
	switch w.schedule.Script {
	case "direct":
		w.direct(ctx)
		return
	case "submit", "two", "changed", "abandon", "expire":
		w.plain(ctx)
	default:
		w.durable(ctx)
	}
	for _, arrive := range w.strays {
		arrive()
	}
	w.work(ctx)
	w.final(ctx)
}

// plain are the scripts of callers without a client.
func (w *world) plain(ctx context.Context) {
	key := w.newKey()
	switch w.schedule.Script {
	case "submit":
		w.insist(ctx, key)
	case "two":
		w.put(ctx, key, "one", "one")
		w.turn(ctx)
		w.insist(ctx, key)
	case "changed":
		w.insist(ctx, key)
		w.turn(ctx)
		w.put(ctx, key, "two", "two")
	case "abandon":
		if !w.put(ctx, key, "one", "one") {
			w.remove(ctx, key)
		}
		w.put(ctx, key, "one", "one")
	case "expire":
		w.insist(ctx, key)
	}
	w.work(ctx)
	if w.schedule.Script == "expire" {
		w.forgetAll(ctx, 3)
		w.put(ctx, key, "one", "one")
		w.work(ctx)
	}
	w.put(ctx, key, "one", "one") // a late retry
	w.work(ctx)
}

// insist asks until there is an answer: by looking up, then by asking again.
func (w *world) insist(ctx context.Context, key semel.Key) {
	for range 4 {
		if w.put(ctx, key, "one", "one") || w.get(ctx, key) {
			return
		}
		w.advance(2 * time.Second)
	}
}

// forgetAll lets the retention pass, and forgets what may be forgotten: the first
// purge strips, the next deletes.
func (w *world) forgetAll(ctx context.Context, purges int) {
	w.advance(retention + time.Hour)
	for range purges {
		w.purge(ctx)
	}
}

// work gives workers their turns while there is something to do.
func (w *world) work(ctx context.Context) {
	for range 100 {
		if w.err != nil || !w.open(ctx) && len(w.delayed) == 0 {
			return
		}
		w.turn(ctx)
		w.advance(5 * time.Second)
	}
}

// turnIfOpen gives a worker a turn if there is work for it, now or later.
func (w *world) turnIfOpen(ctx context.Context) {
	if w.open(ctx) {
		w.turn(ctx)
	}
}

// open reports whether there is work left. Nobody but the scheduler sees that.
func (w *world) open(ctx context.Context) bool {
	for _, found := range w.look(ctx) {
		if op := found.Operation; op != nil && !op.Expired && !op.State.Settled() && op.State != semel.NeedsReconciliation {
			return true
		}
	}
	return false
}

func (w *world) look(ctx context.Context) []semel.Found {
	found, err := w.base.store.Get(ctx, w.keys)
	if err != nil {
		w.err = err
	}
	return found
}

// final writes down what is on record.
func (w *world) final(ctx context.Context) {
	for i, found := range w.look(ctx) {
		e := history.Event{What: history.Final, Key: w.keys[i]}
		past, err := w.base.store.History(ctx, e.Key)
		if err != nil {
			w.err = err
		}
		switch op := found.Operation; {
		case op == nil && found.PastHorizon, op != nil && op.Expired && op.State != semel.Abandoned:
			e.Code = semel.CodeExpired
		default:
			e.Operation, e.History = op, &past
		}
		w.add(e)
	}
}

// purge forgets, at some node.
func (w *world) purge(ctx context.Context) {
	p := w.node(ctx)
	if w.err != nil {
		return
	}
	keys := slices.Clone(w.keys)
	p.key = keys[0]
	told := w.calling("PURGE", keys, 0)
	p.ledger.Purge(ctx)
	for i := range keys {
		told(i, nil, nil)
	}
}

// calling notes that a process of ours begins a call about each of the keys, and
// returns what notes how it ended.
func (w *world) calling(verb string, keys []semel.Key, revision int64) (told func(i int, op *semel.Operation, err error)) {
	events := make([]history.Event, len(keys))
	for i, key := range keys {
		w.calls++
		events[i] = history.Event{What: history.Sent, Verb: verb, Key: key, Attempt: fmt.Sprint(w.calls), Revision: revision}
		w.add(events[i])
	}
	return func(i int, op *semel.Operation, err error) {
		e := events[i]
		e.What, e.Operation = history.Answered, op
		if err != nil {
			known := semel.AsError(verb, err)
			e.Code, e.Operation = known.Code, known.Operation
		}
		w.add(e)
	}
}

// resolve is an operator who finds out at the service what has become of what
// needs reconciliation, and says so. It reports whether there was anything.
func (w *world) resolve(ctx context.Context) (any bool) {
	for len(w.delayed) > 0 {
		w.advance(5 * time.Second)
	}
	for i, found := range w.look(ctx) {
		op := found.Operation
		if op == nil || op.State != semel.NeedsReconciliation {
			continue
		}
		any = true
		verdict := semel.Resolution{Verdict: "not_applied", Then: "retry", Evidence: "their books"}
		if w.service.total() > 0 {
			verdict = semel.Resolution{Verdict: "applied", Evidence: "their books", Result: json.RawMessage(`{"done":true}`)}
		}
		body, err := json.Marshal(verdict)
		if err != nil {
			w.err = err
			return false
		}
		key := w.keys[i]
		header := http.Header{"Content-Type": {"application/json"}, "If-Match": {strconv.Quote(strconv.FormatInt(op.Revision, 10))}}
		for range 3 {
			if _, ok := w.ask(ctx, "operator", http.MethodPut, "/v1/operator/operations/"+key.Account+"/"+key.Kind+"/"+key.ID+"/resolution", header.Clone(), string(body)); ok {
				break
			}
		}
	}
	return any
}
