package effect

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// A Result is how a call ended. Make one with [Applied], [Refused], [NotApplied]
// or [Unknown], or set Proof to what the contract says of an answer
// ([contract.Contract.Classify]). The zero Result is unknown.
type Result struct {
	// Proof is what the call has proven.
	Proof contract.Proof
	// Output is the operation's result, as JSON, where the proof is "applied".
	Output json.RawMessage
	// Failure is the reason for everything else; the account may read it. Defaults
	// to the proof's reason.
	Failure *semel.Failure
	// Wire is what was seen of the transmission, where somebody looked.
	Wire *contract.Wire
	// Sends is how often a request that may change something went out.
	Sends int
	// Bytes is how much of an answer's body was read.
	Bytes int64
	// Panicked says that the effect panicked.
	Panicked bool
}

// Causes of proofs that effects in Go give.
const (
	CauseEffect contract.Cause = "effect" // the effect says so
	CausePanic  contract.Cause = "panic"  // the effect panicked
)

// Applied says that the effect happened. The output is the operation's result: a
// json.RawMessage, or a value that is marshalled.
func Applied(output any) Result {
	r := Result{Proof: contract.Proof{Proves: contract.Applied, Reach: contract.ReachKey, Cause: CauseEffect, Reason: "the effect says that it is done"}}
	raw, ok := output.(json.RawMessage)
	if !ok && output != nil {
		var err error
		if raw, err = json.Marshal(output); err != nil {
			raw = Omitted{Why: OmittedNotJSON}.JSON()
		}
	}
	r.Output = raw
	return r
}

// Refused says that the other side refused this call for good, and that nothing
// happened through it. Code and message become the operation's failure.
func Refused(code, message string) Result {
	return ended(contract.Refused, code, message)
}

// NotApplied says that certainly nothing happened through this call, and that
// trying again makes sense.
func NotApplied(code, message string) Result {
	return ended(contract.NotApplied, code, message)
}

// Unknown says that it may have happened.
func Unknown(code, message string) Result {
	return ended(contract.Unknown, code, message)
}

func ended(p contract.Proves, code, message string) Result {
	return Result{
		Proof:   contract.Proof{Proves: p, Reach: contract.ReachThis, Cause: CauseEffect, Reason: "the effect says so: " + code},
		Failure: &semel.Failure{Code: code, Message: message},
	}
}

// ForKey says that the other side looked the key up before it answered: had an
// earlier call with this key had its effect, it would have said so. Without it a
// refusal proves nothing about earlier calls.
func (r Result) ForKey() Result {
	if r.Proof.Proves == contract.Refused || r.Proof.Proves == contract.NotApplied {
		r.Proof.Reach = contract.ReachEarlier
	}
	return r
}

// After asks for a wait of at least d before anything else is sent.
func (r Result) After(d time.Duration) Result {
	r.Proof.WaitAtLeast = d
	return r
}

// A LookUpResult is what a look-up found.
type LookUpResult struct {
	// Found is what the external service says. Empty counts as "cannot tell".
	Found contract.Found
	// Output is the operation's result, as JSON, where it was found done.
	Output json.RawMessage
	// Failure is the reason where it was found failed.
	Failure *semel.Failure
	// Status is the status of the answer, zero where there was none.
	Status int
	// Note says in words why nothing can be told; no parameters, results, secrets.
	Note string
	// WaitAtLeast is how long the other side asks us to wait.
	WaitAtLeast time.Duration
	// Panicked says that the look-up panicked.
	Panicked bool
}

// MaxOutput is the largest result of an operation, in bytes.
const MaxOutput = 1 << 20

// Omitted is the result of an operation whose effect happened and whose answer
// could not be kept. It is stored as {"omitted":{"why":…}}.
type Omitted struct {
	// Why is one of the Omitted… words.
	Why string `json:"why"`
	// Status is the answer's status.
	Status int `json:"status,omitempty"`
	// MediaType is the answer's media type.
	MediaType string `json:"media_type,omitempty"`
	// Bytes is how many bytes were read.
	Bytes int64 `json:"bytes,omitempty"`
}

// Why an answer is not kept.
const (
	OmittedTooLarge = "too-large"
	OmittedNotJSON  = "not-json"
	OmittedEmpty    = "empty"
)

// JSON returns the result.
func (o Omitted) JSON() json.RawMessage {
	raw, _ := json.Marshal(map[string]Omitted{"omitted": o}) // strings and numbers only: cannot fail
	return raw
}

// keepable returns output, or what stands in for it where it can't be stored.
func keepable(output json.RawMessage) json.RawMessage {
	switch {
	case len(output) == 0:
		return nil
	case len(output) > MaxOutput:
		return Omitted{Why: OmittedTooLarge, Bytes: int64(len(output))}.JSON()
	case !json.Valid(output) || !utf8.Valid(output):
		return Omitted{Why: OmittedNotJSON, Bytes: int64(len(output))}.JSON()
	}
	return output
}
