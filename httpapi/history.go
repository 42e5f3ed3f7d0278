package httpapi

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// A historyView is a history in which each execution also tells what the contract
// says that it began under.
type historyView struct {
	Attempts   []semel.Attempt `json:"attempts"`
	Executions []executionView `json:"executions"`
	Verdicts   []semel.Verdict `json:"verdicts"`
}

type executionView struct {
	semel.Execution
	// Promise is absent where the stored contract can't be read, or is a name only.
	Promise *promiseView `json:"promise,omitempty"`
}

// A promiseView is what a contract says about repeats, so that a reader needs no
// rules of its own to know what an execution may rely on.
type promiseView struct {
	Words string         `json:"words"`
	Shape contract.Shape `json:"shape"`
	// KeepsSeconds is how long after the first transmission a repeat under the same
	// key has no second effect.
	KeepsSeconds int64 `json:"keeps_seconds,omitempty"`
	KeepsForEver bool  `json:"keeps_for_ever,omitempty"`
	// AbsentAfterSeconds is how long after the last possible arrival "not found" is
	// a proof.
	AbsentAfterSeconds int64 `json:"absent_after_seconds,omitempty"`
}

// viewHistory has arrays where there is nothing, not null.
func viewHistory(h semel.History) historyView {
	v := historyView{Attempts: h.Attempts, Executions: []executionView{}, Verdicts: h.Verdicts}
	if v.Attempts == nil {
		v.Attempts = []semel.Attempt{}
	}
	if v.Verdicts == nil {
		v.Verdicts = []semel.Verdict{}
	}
	for _, x := range h.Executions {
		v.Executions = append(v.Executions, executionView{x, viewPromise(x.Contract)})
	}
	return v
}

func viewPromise(text string) *promiseView {
	var c contract.Contract
	if json.Unmarshal([]byte(text), &c) != nil || c.Name != "" && reflect.DeepEqual(c, contract.Contract{Name: c.Name}) {
		return nil
	}
	p := &promiseView{Words: c.Words(), Shape: c.Shape(), AbsentAfterSeconds: wholeSeconds(c.LookUp.AbsentAfter)}
	if p.Shape.Idempotent {
		if p.KeepsForEver = c.Retention.After == contract.AfterKeptForEver; !p.KeepsForEver {
			p.KeepsSeconds = wholeSeconds(c.Retention.Minimum)
		}
	}
	return p
}

func wholeSeconds(d contract.Duration) int64 { return int64(d.D() / time.Second) }
