package client

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/httpapi/problem"
)

// An Intent is one thing that is to be done once, and the request that asks for it.
type Intent struct {
	// ID is the operation ID. Give one where it follows from something of your own,
	// or where it has to stand in the body. Beginning the same intent twice is the
	// same intent; another request under a known ID is refused. Defaults to a fresh
	// one.
	ID string `json:"id"`
	// Kind says what is to be done.
	Kind string `json:"kind"`
	// Note is the caller's own reference, such as the number of a cart. It is kept,
	// and never sent. Defaults to none.
	Note string `json:"note,omitempty"`
	// Body is the request's body: for a Semel server the parameters. These bytes, and
	// no others, are sent every time.
	Body []byte `json:"-"`
	// ContentType is the body's. Defaults to "application/json".
	ContentType string `json:"content_type,omitempty"`
	// Method and URL say where the request goes. For a Semel server they follow from
	// kind and ID. The URL must hold no credentials. Method defaults to POST.
	Method string `json:"method,omitempty"`
	URL    string `json:"url,omitempty"`
	// Key is the key that the API gets to see. Where the contract has it in the path,
	// the body or a directive, it must stand there already. Defaults to the ID where
	// the contract's grammar takes it, and else to one made of kind and ID.
	Key string `json:"key,omitempty"`
	// AcceptUntil asks a Semel server to refuse the operation after that time of its
	// clock, unless it is recorded already. Defaults to no limit.
	AcceptUntil time.Time `json:"accept_until,omitzero"`
	// FirstSent is when the first transmission began. The client sets it.
	FirstSent time.Time `json:"first_sent,omitzero"`
}

// An Entry is an intent as it stands in the journal.
type Entry struct {
	// Intent comes without its body.
	Intent
	// Begun is when it was written down.
	Begun time.Time
	// Attempts counts its transmissions so far.
	Attempts int
	// Abandoned says that [Client.Abandon] was asked for.
	Abandoned bool
	// Outcome is what is known. It is [Unconfirmed] for what was never sent.
	Outcome Outcome
}

// record is what stands in the journal, beside the body.
type record struct {
	Version int `json:"v"`
	Intent
	BodySum string `json:"body_sum,omitempty"`
	// API and Account say who may send it.
	API     string `json:"api"`
	Account string `json:"account,omitempty"`

	Begun    time.Time `json:"begun"`
	Attempts int       `json:"attempts,omitempty"`
	// Open: a transmission was about to begin, and nothing is recorded of its end.
	Open bool `json:"open,omitempty"`
	// LastSent is when the latest transmission began, and DoubtUntil when it was
	// over, or must have been.
	LastSent   time.Time `json:"last_sent,omitzero"`
	DoubtUntil time.Time `json:"doubt_until,omitzero"`
	// Since is when the first transmission began that may have arrived.
	Since    time.Time         `json:"since,omitzero"`
	Evidence contract.Evidence `json:"evidence,omitzero"`
	// Abandon: it shall never happen.
	Abandon bool `json:"abandon,omitempty"`
	// Operation is what the other side has told, without parameters.
	Operation *semel.Operation `json:"operation,omitempty"`
	ETag      string           `json:"etag,omitempty"`
	// Problem is the latest refusal.
	Problem *problem.Problem `json:"problem,omitempty"`
	Ended   ended            `json:"ended,omitempty"`
	// Owner is the client that works on it.
	Owner string `json:"owner,omitempty"`
	// Seen is the latest time of this machine's clock that was written here.
	Seen time.Time `json:"seen"`

	foreign bool  // the latest answer was about another account's operation
	clock   Clock // of the client that has it; nil for this machine's
}

// ended says how a record has ended; empty means that it has not.
type ended string

const (
	endedSettled  ended = "settled"  // by Operation
	endedRejected ended = "rejected" // by Problem
)

const recordVersion = 1

func newRecord(in Intent, api *API, now time.Time) *record {
	r := &record{Version: recordVersion, Intent: in, BodySum: sumOf(in.Body), API: api.Name, Begun: now, Seen: now}
	r.Body = nil
	if api.semel != nil {
		r.Account = api.semel.account
	}
	return r
}

// sumOf is what is kept of a body for ever: enough to know it again.
func sumOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func (r *record) encode() ([]byte, error) { return json.Marshal(r) }

func decodeRecord(id string, state []byte) (*record, error) {
	damaged := func(what string, err error) error {
		return &semel.Error{Op: "journal", Code: semel.CodeInternal, Msg: "the record of " + id + " can't be used: " + what, Err: err}
	}
	var r record
	if err := json.Unmarshal(state, &r); err != nil {
		return nil, damaged("it is not JSON of a record", err)
	}
	switch {
	case r.Version != recordVersion:
		return nil, damaged(fmt.Sprintf("it has version %d, and this release knows version %d", r.Version, recordVersion), nil)
	case r.ID != id:
		return nil, damaged("it is another intent's", nil)
	case r.Ended == endedSettled && r.Operation == nil, r.Ended == endedRejected && r.Problem == nil,
		r.Ended != "" && r.Ended != endedSettled && r.Ended != endedRejected:
		return nil, damaged("it does not say how it ended", nil)
	}
	return &r, nil
}

// same reports whether an intent is the one that the record was made of.
func (r *record) same(in Intent) bool {
	return r.Kind == in.Kind && r.Method == in.Method && r.URL == in.URL && r.Key == in.Key &&
		r.ContentType == in.ContentType && r.BodySum == sumOf(in.Body)
}

// now is the client's clock, which never goes back behind what the record has seen.
func (r *record) now() time.Time {
	clock := r.clock
	if clock == nil {
		clock = machineClock{}
	}
	now := clock.Now()
	if now.Before(r.Seen) {
		return r.Seen
	}
	return now
}

func (r *record) key() semel.Key { return semel.Key{Account: r.Account, Kind: r.Kind, ID: r.ID} }

func (r *record) entry() Entry {
	return Entry{Intent: r.Intent, Begun: r.Begun, Attempts: r.Attempts, Abandoned: r.Abandon, Outcome: r.outcome(nil)}
}

// outcome is what the record says. Of an undecided one it is [Unconfirmed] with
// what Submit would do next.
func (r *record) outcome(answer *contract.Answer) Outcome {
	switch r.Ended {
	case endedSettled:
		return Settled{Operation: *r.Operation, Answer: answer}
	case endedRejected:
		return Rejected{Problem: *r.Problem, Answer: answer}
	}
	return r.unconfirmed(r.next(), "")
}

func (r *record) unconfirmed(next Next, reason string) Unconfirmed {
	u := Unconfirmed{Since: r.Since, Attempts: r.Attempts, Next: next, Reason: reason, Operation: r.Operation, Problem: r.Problem, Evidence: r.Evidence}
	if r.Open && u.Since.IsZero() {
		u.Since = r.LastSent
	}
	return u
}

// next is what to do about the record where nothing more is known.
func (r *record) next() Next {
	switch {
	case r.Operation != nil && r.Operation.State == semel.NeedsReconciliation:
		return NextPerson
	case r.Operation != nil:
		return NextWait
	case !r.mayHaveHappened():
		return NextSubmit
	}
	return NextAsk
}

// mayHaveHappened reports whether a transmission may have arrived and done something.
func (r *record) mayHaveHappened() bool {
	switch r.Evidence.Outcome() {
	case contract.OutcomeNone, contract.OutcomeNotApplied, contract.OutcomeRefused:
		return r.Open
	}
	return true
}
