package semel

import (
	"errors"
	"net/http"
	"strings"
	"time"
)

// A Code names one kind of error. Codes are stable: they are the last part of
// the "type" of a problem+json answer, and what programs decide by.
type Code string

// The codes. [Code.Info] has the facts of each. Package idempotency adds one that
// has no status of its own, answer-not-kept.
const (
	CodeInvalid          Code = "invalid-operation"
	CodeUnauthenticated  Code = "unauthenticated"
	CodeForbidden        Code = "forbidden"
	CodeUnknownKind      Code = "unknown-kind"
	CodeNotFound         Code = "operation-not-found"
	CodeMismatch         Code = "fingerprint-mismatch"
	CodeAbandoned        Code = "operation-abandoned"
	CodeAlreadyStarted   Code = "already-started"
	CodeInProgress       Code = "in-progress"
	CodeOutcomeUnknown   Code = "outcome-unknown"
	CodeNotReconcilable  Code = "not-reconcilable"
	CodeExpired          Code = "operation-expired"
	CodeDeadlinePassed   Code = "accept-deadline-passed"
	CodeStaleRevision    Code = "stale-revision"
	CodeTooLarge         Code = "too-large"
	CodeRevisionRequired Code = "revision-required"
	CodeTooMany          Code = "too-many-requests"
	CodeLeaseLost        Code = "lease-lost"
	CodeRetryTransaction Code = "retry-transaction"
	CodeUnavailable      Code = "store-unavailable"
	CodeInternal         Code = "internal"
)

// Recorded says what became of a request that was answered with an error.
type Recorded string

// The three answers to "was it recorded?".
const (
	RecordedYes     Recorded = "yes"
	RecordedNo      Recorded = "no"
	RecordedUnknown Recorded = "unknown"
)

// CodeInfo is what is always true of a code. The server answers by it, and the
// client reads answers by it.
type CodeInfo struct {
	// Status is the HTTP status.
	Status int
	// Retryable: may the same identity be sent again, unchanged?
	Retryable bool
	// Recorded: has this request recorded its operation? "no" says nothing of
	// earlier requests with the same key.
	Recorded Recorded
	// Title is one short sentence for people.
	Title string
}

var codes = map[Code]CodeInfo{
	CodeInvalid:          {http.StatusBadRequest, false, RecordedNo, "The request is not valid."},
	CodeUnauthenticated:  {http.StatusUnauthorized, true, RecordedNo, "Sign in first."},
	CodeForbidden:        {http.StatusForbidden, false, RecordedNo, "This credential may not do that."},
	CodeUnknownKind:      {http.StatusNotFound, false, RecordedNo, "There is no such kind of operation."},
	CodeNotFound:         {http.StatusNotFound, true, RecordedNo, "There is no such operation."},
	CodeMismatch:         {http.StatusConflict, false, RecordedNo, "This operation ID was used for a different request."},
	CodeAbandoned:        {http.StatusConflict, false, RecordedNo, "This operation was abandoned and will not run."},
	CodeAlreadyStarted:   {http.StatusConflict, false, RecordedYes, "The operation has begun; it can no longer be abandoned."},
	CodeInProgress:       {http.StatusConflict, true, RecordedUnknown, "The same operation is being recorded right now."},
	CodeOutcomeUnknown:   {http.StatusConflict, false, RecordedYes, "Nobody knows yet whether this happened."},
	CodeNotReconcilable:  {http.StatusConflict, false, RecordedYes, "The operation does not need reconciliation."},
	CodeExpired:          {http.StatusGone, false, RecordedUnknown, "This operation is older than what is remembered."},
	CodeDeadlinePassed:   {http.StatusPreconditionFailed, false, RecordedNo, "The accept deadline has passed."},
	CodeStaleRevision:    {http.StatusPreconditionFailed, false, RecordedYes, "The operation has changed meanwhile."},
	CodeTooLarge:         {http.StatusRequestEntityTooLarge, false, RecordedNo, "The request is too large."},
	CodeRevisionRequired: {http.StatusPreconditionRequired, false, RecordedYes, "Say which revision you have seen."},
	CodeTooMany:          {http.StatusTooManyRequests, true, RecordedNo, "Too many requests."},
	CodeLeaseLost:        {http.StatusConflict, false, RecordedYes, "The lease is no longer yours."},
	CodeRetryTransaction: {http.StatusServiceUnavailable, true, RecordedNo, "The transaction lost a race; run it again."},
	CodeUnavailable:      {http.StatusServiceUnavailable, true, RecordedUnknown, "The store can't be reached."},
	CodeInternal:         {http.StatusInternalServerError, true, RecordedUnknown, "Something is wrong in this program."},
}

// Codes returns every code there is.
func Codes() []Code {
	all := make([]Code, 0, len(codes))
	for c := range codes {
		all = append(all, c)
	}
	return all
}

// Info returns the facts of c; for a code that is not ours, those of [CodeInternal].
func (c Code) Info() CodeInfo {
	if info, ok := codes[c]; ok {
		return info
	}
	return codes[CodeInternal]
}

// An Error is every error that this module returns. Compare with [errors.Is]
// against a sentinel such as [ErrNotFound], which looks at the code alone.
type Error struct {
	// Op is the method that failed, such as "accept".
	Op string
	// Code is the stable name.
	Code Code
	// Key is the operation concerned, if there is one.
	Key Key
	// Msg says what is wrong. It never holds parameters, results or secrets.
	Msg string
	// Hint says what to do about it; may be empty.
	Hint string
	// Recorded replaces the code's own answer when it is known better.
	Recorded Recorded
	// Operation is the record, where one is known and may be seen.
	Operation *Operation
	// Fields are JSON Pointers to the differing fields of a [CodeMismatch], at
	// most 20, without values.
	Fields []string
	// RetryAfter is how long to wait before the next try; zero says nothing.
	RetryAfter time.Duration
	// Retention is how long operations of this kind are remembered ([CodeExpired]).
	Retention time.Duration
	// Err is the cause; may be nil.
	Err error
}

// One sentinel per code that a caller may want to test for.
var (
	ErrInvalid          = &Error{Code: CodeInvalid}
	ErrUnauthenticated  = &Error{Code: CodeUnauthenticated}
	ErrForbidden        = &Error{Code: CodeForbidden}
	ErrUnknownKind      = &Error{Code: CodeUnknownKind}
	ErrNotFound         = &Error{Code: CodeNotFound}
	ErrMismatch         = &Error{Code: CodeMismatch}
	ErrAbandoned        = &Error{Code: CodeAbandoned}
	ErrAlreadyStarted   = &Error{Code: CodeAlreadyStarted}
	ErrInProgress       = &Error{Code: CodeInProgress}
	ErrOutcomeUnknown   = &Error{Code: CodeOutcomeUnknown}
	ErrNotReconcilable  = &Error{Code: CodeNotReconcilable}
	ErrExpired          = &Error{Code: CodeExpired}
	ErrDeadlinePassed   = &Error{Code: CodeDeadlinePassed}
	ErrStaleRevision    = &Error{Code: CodeStaleRevision}
	ErrTooLarge         = &Error{Code: CodeTooLarge}
	ErrTooMany          = &Error{Code: CodeTooMany}
	ErrLeaseLost        = &Error{Code: CodeLeaseLost}
	ErrRetryTransaction = &Error{Code: CodeRetryTransaction}
	ErrUnavailable      = &Error{Code: CodeUnavailable}
)

// Error returns "semel: op key: message: cause".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("semel: ")
	if e.Op != "" {
		b.WriteString(e.Op + " ")
	}
	if e.Key.ID != "" {
		b.WriteString(e.Key.String() + " ")
	}
	b.WriteString(string(e.Code))
	if e.Msg != "" {
		b.WriteString(": " + e.Msg)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// WasRecorded returns what is known of the record: the error's own answer, or
// else the code's.
func (e *Error) WasRecorded() Recorded {
	if e.Recorded != "" {
		return e.Recorded
	}
	return e.Code.Info().Recorded
}

// AsError returns err as an *Error: itself if it is or wraps one, else wrapped as
// [CodeInternal]; nil for nil. A cancelled or expired context is
// [CodeUnavailable], since the caller left before the answer.
func AsError(op string, err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	code := CodeInternal
	if isContextError(err) {
		code = CodeUnavailable
	}
	return &Error{Op: op, Code: code, Err: err}
}
