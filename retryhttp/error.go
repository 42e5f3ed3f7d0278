package retryhttp

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-dev/semel/contract"
)

// An Error is every error of a [Transport]. It says what is known of the request,
// and never that it failed where nobody knows. Its text holds method, host, counts
// and reasons: no path, query, key, header or body.
//
// It unwraps to its cause: [context.Canceled] and [context.DeadlineExceeded] where
// the caller gave up or a deadline passed, or what the network said.
type Error struct {
	// Method and Host are those of the request.
	Method, Host string
	// Report is what is known of the call.
	Report
	// Answer is the last answer, where it is not the answer to the whole call: it
	// says that nothing happened, and an earlier transmission may have done it. At
	// most 64 KiB of its body are kept. Otherwise nil.
	Answer *contract.Answer
	// Err is the cause; nil where Answer is set.
	Err error
}

// Sentinels for [errors.Is].
var (
	// ErrUnconfirmed is an [Error] in state [Unconfirmed]: it may have happened.
	ErrUnconfirmed = errors.New("unconfirmed: it may have happened")
	// ErrNotSent is an [Error] in state [NotSent]: certainly nothing happened through
	// this call.
	ErrNotSent = errors.New("not sent: nothing happened")
)

// Error says what is known, since when, and why there was no further attempt.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "retryhttp: %s %s: %s", e.Method, e.Host, e.State())
	if e.State() == Unconfirmed && !readsOnly(e.Method) {
		b.WriteString(", it may have happened")
	}
	fmt.Fprintf(&b, " (%s, %s", count(e.Attempts, "attempt"), count(e.Sends, "send"))
	if !e.Since.IsZero() {
		b.WriteString(" since " + e.Since.UTC().Format(time.RFC3339))
	}
	b.WriteString(")")
	if reason := e.Evidence.Last.Reason; reason != "" {
		b.WriteString("; last: " + reason)
	}
	if e.Stopped != "" && e.Stopped != StopSettled {
		b.WriteString("; stopped: " + string(e.Stopped))
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the sentinel of the error's state.
func (e *Error) Is(target error) bool {
	return target == ErrUnconfirmed && e.State() == Unconfirmed || target == ErrNotSent && e.State() == NotSent
}

// Timeout reports whether the cause is a timeout, as [net.Error] has it.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// Temporary is false: what could be tried again has been. It makes an Error a
// [net.Error].
func (e *Error) Temporary() bool { return false }

// fail makes the error of a call.
func (c *call) fail(answer *contract.Answer, stop Stop, err error) *Error {
	c.report.Stopped = stop
	e := &Error{Method: c.req.Method, Report: c.report, Answer: answer, Err: err}
	if e.Method == "" {
		e.Method = "GET"
	}
	if c.req.URL != nil {
		e.Host = c.req.URL.Host
	}
	return e
}
