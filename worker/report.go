package worker

import (
	"encoding/json"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

// A Report is the evidence of one execution, as it is stored: what was done and
// what was seen. Later executions read it to know what is proven so far.
type Report struct {
	// Did is what the execution did: one of the Did… words.
	Did string `json:"did"`
	// Contract names the contract that it went by.
	Contract string `json:"contract,omitempty"`
	// Key is the key at the external service, for whoever looks there.
	Key string `json:"key,omitempty"`
	// Proof is what a call or a look-up proved.
	Proof *contract.Proof `json:"proof,omitempty"`
	// Wire is what was seen of a call's transmission.
	Wire *contract.Wire `json:"wire,omitempty"`
	// Sends is how often a request that may change something went out. More than
	// one is somebody's hidden retry.
	Sends int `json:"sends,omitempty"`
	// Bytes is how much of an answer's body was read.
	Bytes int64 `json:"bytes,omitempty"`
	// Found is what a look-up found, Status the status of its answer, Note why it
	// can't tell.
	Found  contract.Found `json:"found,omitempty"`
	Status int            `json:"status,omitempty"`
	Note   string         `json:"note,omitempty"`
	// Panicked says that the effect panicked.
	Panicked bool `json:"panicked,omitempty"`
	// TookMS is how long the call or the look-up took, in milliseconds.
	TookMS int64 `json:"took_ms,omitempty"`
	// Next says what follows, and why.
	Next string `json:"next,omitempty"`
}

// What an execution did.
const (
	DidCall     = "call"
	DidLookUp   = "look_up"
	DidHandBack = "hand_back" // nothing: it gave the work back before it began
	DidDecide   = "decide"    // nothing outside: what was known before decided
)

func (r Report) json() json.RawMessage {
	raw, _ := json.Marshal(r) // plain data: cannot fail
	return raw
}

// An Observation is what an execution saw when it acted. One of Call and LookUp
// is set.
type Observation struct {
	Call   *effect.Result
	LookUp *effect.LookUpResult
	// Sent is when a look-up was sent, counted like [Facts.Held].
	Sent time.Duration
	// Took is how long it took.
	Took time.Duration
}

// reportOf reads what an earlier execution left behind. An execution that began
// and left nothing that can be read may have done anything.
func reportOf(x semel.Execution) Report {
	begun := !x.BegunAt.IsZero()
	var r Report
	readable := !x.EndedAt.IsZero() && json.Unmarshal(x.Evidence, &r) == nil && r.Did != ""
	switch {
	case readable && begun && r.Did == DidHandBack:
		r.Proof = &contract.Proof{Proves: contract.NotSent, Reach: contract.ReachThis, Cause: causeHandedBack,
			Reason: "the worker gave the work back before it sent anything"}
	case readable && !begun, readable && r.Proof != nil && !(x.InDoubt() && outcomeOf(*r.Proof) != semel.Unknown):
	case begun:
		p := contract.NoReport()
		switch x.Outcome {
		case semel.Refused:
			p = contract.Proof{Proves: contract.Refused, Reach: contract.ReachThis, Cause: contract.CauseRejected, Reason: "recorded as refused"}
		case semel.NotApplied:
			p = contract.Proof{Proves: contract.NotApplied, Reach: contract.ReachThis, Cause: contract.CauseTurnedAway, Reason: "recorded as not applied"}
		}
		r = Report{Did: DidCall, Proof: &p}
	}
	return r
}

const causeHandedBack contract.Cause = "handed_back"
