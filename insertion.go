package semel

import (
	"fmt"
	"slices"
	"time"
)

// Validate refuses, with [CodeInvalid], what no ledger asks a store for.
func (in Insertion) Validate() error {
	invalid := func(msg string) error {
		return &Error{Op: "insert", Code: CodeInvalid, Key: in.Key, Recorded: RecordedNo, Msg: msg}
	}
	if err := in.Key.Validate(); err != nil {
		return err
	}
	switch in.State {
	case Accepted, Abandoned:
		if in.Begun != nil {
			return invalid("only an operation in processing can have begun")
		}
	case Processing:
		if in.Begun == nil {
			return invalid("an operation in processing needs an execution")
		}
	default:
		return invalid(fmt.Sprintf("an operation can't begin as %q", in.State))
	}
	return nil
}

// Operation is the operation that a store makes of the insertion at that time. It
// shares no memory with it.
func (in Insertion) Operation(at, expiresAt time.Time) *Operation {
	op := &Operation{Key: in.Key, State: in.State, AsSent: in.AsSent, Fingerprint: in.Fingerprint,
		SchemaVersion: in.SchemaVersion, Params: slices.Clone(in.Params), Request: slices.Clone(in.Request),
		Revision: 1, Owner: in.Owner, CreatedAt: at, UpdatedAt: at, ExpiresAt: expiresAt}
	if in.AttemptID != "" {
		op.Attempts = 1
	}
	if in.Begun != nil {
		op.Token, op.Executions = 1, 1
	}
	return op
}
