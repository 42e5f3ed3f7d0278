// Package problem is the error form of Semel's HTTP interface: RFC 9457
// problem+json with a few members of its own.
//
//	{
//	  "type": "https://github.com/semel-dev/semel/blob/main/httpapi/problem/problems.md#fingerprint-mismatch",
//	  "title": "This operation ID was used for a different request.",
//	  "status": 409,
//	  "detail": "this operation ID was used for a different request; the recorded operation is unchanged",
//	  "code": "fingerprint-mismatch",
//	  "retryable": false,
//	  "recorded": "no",
//	  "hint": "a changed request is a new operation: give it a new ID",
//	  "differing_fields": ["/width"],
//	  "operation": { … }
//	}
//
// A program decides by three members: code (what it is), retryable (may the same
// identity be sent again, unchanged?) and recorded (has this request recorded its
// operation: "yes", "no", or "unknown"?). The rest is for people.
//
// Servers write with [Write]; clients read with [Decode] and [Problem.Err]. Both
// take every fact that goes with a code from [semel.Code.Info], so the two ends
// can't disagree. File problems.md beside this one is generated from that table,
// and is where "type" points to.
package problem

import (
	"bytes"
	"encoding/json"
	"math"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/semel-dev/semel"
)

// MediaType is the content type of a problem.
const MediaType = "application/problem+json"

// TypeBase and the code together are the "type" of a problem.
const TypeBase = "https://github.com/semel-dev/semel/blob/main/httpapi/problem/problems.md#"

// A Problem is one answer that is an error. It is plain data.
type Problem struct {
	// Type is [TypeBase] with the code, Title the code's short sentence.
	Type  string `json:"type"`
	Title string `json:"title"`
	// Status is the HTTP status. It is the code's own, except where the interface
	// says otherwise: a mismatch is 422 on POST, and a request that reaches no
	// route, the wrong method or the wrong media type is [semel.CodeInvalid] with
	// 404, 405, 408 or 415.
	Status int `json:"status"`
	// Detail says what is wrong this time. It holds no secrets.
	Detail string `json:"detail,omitempty"`
	// Instance names this occurrence; Semel's own server leaves it out, so that
	// equal refusals are equal bytes.
	Instance string     `json:"instance,omitempty"`
	Code     semel.Code `json:"code"`
	// Retryable: may the same identity be sent again, unchanged?
	Retryable bool `json:"retryable"`
	// Recorded: is the operation of this request recorded?
	Recorded semel.Recorded `json:"recorded"`
	// Hint says what to do.
	Hint string `json:"hint,omitempty"`
	// Operation is the record, where there is one and the asker may see it.
	Operation *semel.Operation `json:"operation,omitempty"`
	// DifferingFields are JSON Pointers, at most 20, without values.
	DifferingFields []string `json:"differing_fields,omitempty"`
	// RetentionSeconds is how long operations of this kind are remembered.
	RetentionSeconds int64 `json:"retention_seconds,omitempty"`

	// RetryAfter travels as the header of that name, in whole seconds.
	RetryAfter time.Duration `json:"-"`
}

// Of tells an error as a problem. An error that is no [semel.Error] becomes
// [semel.CodeInternal], and nothing of its text is told. Of(nil) is that too: it
// is a mistake in the program.
func Of(err error) Problem {
	e := semel.AsError("", err)
	if e == nil {
		e = &semel.Error{Code: semel.CodeInternal}
	}
	info := e.Code.Info()
	p := Problem{
		Type: TypeBase + string(e.Code), Title: info.Title, Status: info.Status, Detail: e.Msg, Code: e.Code,
		Retryable: info.Retryable, Recorded: e.WasRecorded(), Hint: e.Hint, Operation: e.Operation,
		DifferingFields: e.Fields, RetentionSeconds: int64(e.Retention / time.Second), RetryAfter: e.RetryAfter,
	}
	if p.RetryAfter <= 0 && waits(e.Code) {
		p.RetryAfter = time.Second
	}
	return p
}

// waits says which refusals pass by themselves, so that an answer always says
// when to come back.
func waits(c semel.Code) bool {
	switch c {
	case semel.CodeInProgress, semel.CodeTooMany, semel.CodeRetryTransaction, semel.CodeUnavailable:
		return true
	}
	return false
}

// Error makes a Problem an error.
func (p Problem) Error() string { return p.Err().Error() }

// Err tells the problem as the error that it was made from. A code that this
// release does not know is kept, and what is known of it is Recorded.
func (p Problem) Err() *semel.Error {
	e := &semel.Error{
		Code: p.Code, Msg: p.Detail, Hint: p.Hint, Recorded: p.Recorded, Operation: p.Operation,
		Fields: p.DifferingFields, RetryAfter: p.RetryAfter, Retention: time.Duration(p.RetentionSeconds) * time.Second,
	}
	if p.Operation != nil {
		e.Key = p.Operation.Key
	}
	return e
}

// Marshal returns the JSON text of p.
func (p Problem) Marshal() []byte {
	text, err := encode(p)
	if err != nil && p.Operation != nil {
		// A record whose bytes are not JSON must not cost the answer.
		bare := *p.Operation
		bare.Params, bare.Result = nil, nil
		p.Operation = &bare
		text, err = encode(p)
	}
	if err != nil {
		text, _ = encode(Of(&semel.Error{Code: semel.CodeInternal}))
	}
	return text
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // it is not HTML, and "<" in a sentence should stay readable
	err := enc.Encode(v)
	return b.Bytes(), err
}

// Write answers with p: status, Content-Type, Cache-Control and, where the
// problem says when to come back, Retry-After.
func Write(w http.ResponseWriter, p Problem) {
	h := w.Header()
	h.Set("Content-Type", MediaType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Del("Content-Length")
	h.Del("ETag")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", RetryAfter(p.RetryAfter))
	}
	w.WriteHeader(p.Status)
	w.Write(p.Marshal())
}

// RetryAfter writes a waiting time as the header's value: whole seconds, rounded
// up, at least 1.
func RetryAfter(d time.Duration) string {
	return strconv.FormatInt(int64(max(1, math.Ceil(d.Seconds()))), 10)
}

// Decode reads an answer. It reports false unless the answer is problem+json with
// a code: then it comes from something in between, such as a proxy, and proves
// nothing about the operation.
func Decode(status int, header http.Header, body []byte) (Problem, bool) {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || media != MediaType {
		return Problem{}, false
	}
	var p Problem
	if json.Unmarshal(body, &p) != nil || p.Code == "" {
		return Problem{}, false
	}
	p.Status = status
	switch p.Recorded {
	case semel.RecordedYes, semel.RecordedNo:
	default:
		p.Recorded = semel.RecordedUnknown
	}
	if n, err := strconv.Atoi(header.Get("Retry-After")); err == nil && n > 0 {
		p.RetryAfter = time.Duration(min(n, 1<<30)) * time.Second
	}
	return p, true
}
