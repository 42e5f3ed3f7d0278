package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/httpapi/problem"
)

// An API is the other side: what it promises about repeats, and how to speak to it.
// [Semel] and [HTTP] make one; its fields may be set before it is given to [New],
// and not afterwards.
type API struct {
	// Name says whose intents these are, where several clients share a journal.
	// Defaults to the contract's name.
	Name string
	// Contract is what the API promises about repeats.
	Contract contract.Contract
	// Submit transmits the request of an intent once, and says what that proves; see
	// [contract.Contract.Classify]. It must not repeat it. ctx ends it in time. It may
	// be called by several goroutines for different intents.
	Submit func(ctx context.Context, in Intent) Sent
	// LookUp asks once what became of an intent, without sending it. Needed where,
	// and only where, the contract has a look-up. The intent comes without its body.
	LookUp func(ctx context.Context, in Intent) Seen

	prepare func(*Intent) error // completes an intent; nil for nothing
	semel   *semelAPI           // nil for other APIs
}

// Sent is what came of one transmission.
type Sent struct {
	// Proof is what it proves. Its WaitAtLeast is how long to wait before the next.
	Proof contract.Proof
	// Result becomes the operation's result where Proof says applied; JSON, or nil.
	Result json.RawMessage
	// Answer is the answer, if one is to be handed on; may be nil.
	Answer *contract.Answer
	// AttemptID names the transmission in logs; may be empty.
	AttemptID string

	operation *semel.Operation
	etag      string
	problem   *problem.Problem
}

// Seen is what came of one look-up.
type Seen struct {
	// Found is what was found. Empty counts as [contract.FoundNoAnswer]. Say
	// [contract.FoundNothing] only for an answer that says so; what it proves is
	// decided by the contract.
	Found contract.Found
	// Result becomes the operation's result where it has succeeded; JSON, or nil.
	Result json.RawMessage
	// Failure is the reason where it has failed; may be nil.
	Failure *semel.Failure
	// WaitAtLeast is how long to wait before the next look-up, if that was said.
	WaitAtLeast time.Duration

	operation *semel.Operation
	etag      string
	unchanged bool // it is as it was
	problem   *problem.Problem
}

// check completes the API.
func (a *API) check() error {
	if err := a.Contract.Validate(); err != nil {
		return invalid("the contract can't be used: %v", err)
	}
	if a.Name == "" {
		a.Name = a.Contract.Name
	}
	switch {
	case a.Name == "":
		return invalid("the API needs a name, or a contract that has one")
	case a.Submit == nil:
		return invalid("the API has no Submit")
	case a.LookUp == nil && a.Contract.LookUp.By != "":
		return invalid("contract %q has a look-up, so LookUp must be given", a.Contract.Name)
	case a.LookUp != nil && a.Contract.LookUp.By == "":
		return invalid("LookUp is given, and contract %q has none: let it say what \"not found\" proves", a.Contract.Name)
	}
	return nil
}

// complete fills an intent in, and refuses one that can't be sent.
func (a *API) complete(in Intent) (Intent, error) {
	if in.ID == "" {
		in.ID = semel.NewID()
	}
	in.FirstSent = time.Time{}
	in.AcceptUntil = in.AcceptUntil.UTC()
	if !semel.ValidID(in.ID) {
		return in, invalid("the ID is not an operation ID: 1 to 128 of A-Z a-z 0-9 . _ ~ -")
	}
	if !semel.ValidName(in.Kind) {
		return in, invalid("the kind is not a kind's name: 1 to 64 of a-z 0-9 . _ -")
	}
	if a.prepare != nil {
		if err := a.prepare(&in); err != nil {
			return in, err
		}
	}
	if in.Key == "" {
		in.Key = in.ID
	}
	return in, nil
}

// request is what the contract must know of an intent's request.
func (a *API) request(in *Intent) contract.Request {
	method := in.Method
	if method == "" { // of a Submit that is no HTTP; it changes something
		method = http.MethodPost
	}
	return contract.Request{Method: method, Keyed: a.Contract.Carrier.In != "", Replayable: true}
}
