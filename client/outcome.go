package client

import (
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/httpapi/problem"
)

// An Outcome is what is known of an intent. It is a [Settled], a [Rejected] or an
// [Unconfirmed], and nothing else.
type Outcome interface {
	outcome()
}

// Settled says that the operation has reached its end, which never changes again.
type Settled struct {
	// Operation says how it ended: its State is Succeeded, Failed or Abandoned. From
	// a Semel server it is the record there, without parameters. For other APIs it
	// is made here, with the answer's body as Result where that is JSON.
	Operation semel.Operation
	// Answer is the answer that settled it, with as much of its body as was kept.
	// Nil where none was needed: the outcome was found by a look-up, or in an earlier
	// run.
	Answer *contract.Answer
}

// Rejected says that the intent was refused and that nothing happened: no
// transmission of it was recorded, and none is on its way.
type Rejected struct {
	// Problem says why. For APIs that do not speak problem+json it is made of the
	// status. Where it is Retryable (credentials were refused), the intent is kept
	// as it is, and [Client.Submit] sends it again.
	Problem problem.Problem
	// Answer is the answer that refused it; nil where it came in an earlier run.
	Answer *contract.Answer
}

// Unconfirmed says that nobody knows yet how it ends, or whether it happened. It is
// no failure. The intent stays in the journal.
type Unconfirmed struct {
	// Since is when the first transmission began that may have arrived; zero where
	// certainly none did.
	Since time.Time
	// Attempts counts the transmissions so far, in all runs.
	Attempts int
	// Next is what to do.
	Next Next
	// Reason says in words why it ended here.
	Reason string
	// Operation is what the other side has told last; nil where it never said that
	// it has it.
	Operation *semel.Operation
	// Problem is the last refusal, where it says nothing about the outcome; may be
	// nil.
	Problem *problem.Problem
	// Evidence is what everything together proves.
	Evidence contract.Evidence
}

func (Settled) outcome()     {}
func (Rejected) outcome()    {}
func (Unconfirmed) outcome() {}

// Next is what to do about an intent that is unconfirmed.
type Next string

// The next steps.
const (
	// NextSubmit: certainly nothing has happened so far. [Client.Submit] or
	// [Client.Resume] sends it.
	NextSubmit Next = "submit"
	// NextAsk: it may have happened. Submit or Resume looks it up, and sends the same
	// again where that is safe.
	NextAsk Next = "ask"
	// NextWait: the other side has it and is at work. Submit, Wait or Resume goes on
	// waiting.
	NextWait Next = "wait"
	// NextSignIn: credentials were refused. Then as NextAsk.
	NextSignIn Next = "sign_in"
	// NextPerson: nothing here can find it out. Somebody has to ask at the other
	// side; afterwards Submit or Resume may learn of it, or [Client.Forget] ends it.
	NextPerson Next = "person"
)

// decided reports whether an outcome is final.
func decided(o Outcome) bool {
	switch o := o.(type) {
	case Settled:
		return true
	case Rejected:
		return !o.Problem.Retryable
	}
	return false
}
