package history

import (
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// A What is a kind of event.
type What string

// The events.
const (
	Sent     What = "sent"     // a caller sent a request
	Answered What = "answered" // the caller read an answer
	Silent   What = "silent"   // the caller got none: a cut, a timeout
	Effect   What = "effect"   // it happened outside
	Told     What = "told"     // a durable client said what it knows of an intent
	Final    What = "final"    // what is on record in the end
)

// An Event is one thing that happened. Which fields are set depends on What.
type Event struct {
	What What      `json:"what"`
	At   time.Time `json:"at,omitzero"`
	// By is who: a client, a worker. It is for people.
	By  string    `json:"by,omitempty"`
	Key semel.Key `json:"key"`

	// Intent is what somebody wanted, where it is known: all keys under which it was
	// asked for have the same.
	Intent string `json:"intent,omitempty"`

	// Verb is "PUT", "GET" or "DELETE", of a request and of what became of it;
	// Attempt joins the two. [Linearizable] knows further ones.
	Verb    string `json:"verb,omitempty"`
	Attempt string `json:"attempt,omitempty"`
	// Content stands for the parameters of a PUT: equal for equal requests.
	Content string `json:"content,omitempty"`

	// Operation is what an answer told, or what is on record; nil where there is none.
	Operation *semel.Operation `json:"operation,omitempty"`
	// Code is the code of an answer that is an error.
	Code semel.Code `json:"code,omitempty"`
	// Revision is the one that a change was decided on, or an answer spoke of without
	// the operation.
	Revision int64 `json:"revision,omitempty"`
	// Outcome is what was told, in a Told.
	Outcome Outcome `json:"outcome,omitempty"`
	// History is that of the record, in a Final; nil where nobody has asked for it.
	History *semel.History `json:"history,omitempty"`
}

// An Outcome is what a durable client knows of an intent.
type Outcome string

// The outcomes.
const (
	Settled     Outcome = "settled"     // it has ended, as Operation says
	Rejected    Outcome = "rejected"    // it was refused, and nothing happened
	Unconfirmed Outcome = "unconfirmed" // nobody knows yet
	Unsent      Outcome = "unsent"      // nobody knows yet, but certainly nothing has arrived so far
)

// A Promise is what is to be expected of a kind.
type Promise struct {
	// Unknown: an outcome of this kind may stay unknown, since the external service
	// can neither be called again nor asked.
	Unknown bool `json:"unknown,omitempty"`
	// Twice: a second effect is possible, and known to be. Only for a queryable
	// service with a sender that was stopped and woke up; see docs/guarantees.md.
	Twice bool `json:"twice,omitempty"`
}

// A History is a recording, in the order in which it was recorded.
type History struct {
	// Kinds says what to expect, by kind. A kind that is not there promises most.
	Kinds  map[string]Promise `json:"kinds,omitempty"`
	Events []Event            `json:"events"`
}

// Write writes the history as JSON, to be looked at or judged again later.
func (h History) Write(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	return out.Encode(h)
}

// Of returns the events of one operation, in their order.
func (h History) Of(key semel.Key) []Event {
	var events []Event
	for _, e := range h.Events {
		if e.Key == key {
			events = append(events, e)
		}
	}
	return events
}

// A Recorder takes events down. The zero Recorder is empty; it is safe for
// concurrent use.
type Recorder struct {
	mu     sync.Mutex
	events []Event
}

// Add takes one event down.
func (r *Recorder) Add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// History returns what was taken down so far.
func (r *Recorder) History(kinds map[string]Promise) History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return History{Kinds: kinds, Events: slices.Clone(r.events)}
}
