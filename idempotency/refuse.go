package idempotency

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/httpapi/problem"
)

// codeUnsupported never travels: it is semel.CodeInvalid with the contract's answer
// for a key on a method that does not honour one.
const codeUnsupported semel.Code = "unsupported-key"

// refuse answers what is neither run nor replayed, as the contract says. a, if not
// nil, is the request, to name what differs from the recorded one.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error, a *asked) {
	e := *semel.AsError("idempotency", err)
	if e.Code == semel.CodeMismatch && e.Operation != nil && a != nil {
		e.Fields = h.differing(e.Operation.Params, a)
	}
	match := h.match(&e)
	if e.Code == codeMissing || e.Code == codeUnsupported {
		e.Code = semel.CodeInvalid
	}
	p := problem.Of(&e)
	if match.Status != 0 {
		p.Status = match.Status
	}
	if title, ok := titles[e.Code]; ok {
		p.Title = title
	}
	if !h.retryAfter(e.Code) {
		p.RetryAfter = 0
	}
	p.Operation = bare(e.Operation)
	if match.Header != "" {
		w.Header().Set(match.Header, match.Value)
	}
	if h.opts.Refuse != nil {
		h.opts.Refuse(w, r, p)
		return
	}
	at := match.At
	if at == "" && len(h.offer.Answers.CodeAt) > 0 {
		at = h.offer.Answers.CodeAt[0]
	}
	if at == "" || at == "/code" || !strings.HasPrefix(at, "/") {
		if match.Code != "" {
			p.Code = semel.Code(match.Code)
		}
		problem.Write(w, p)
		return
	}
	writeIn(w, p, at, match.Code)
}

// titles say "key" where the table of all codes says "operation".
var titles = map[semel.Code]string{
	semel.CodeMismatch:   "This key was used for a different request.",
	semel.CodeInProgress: "The first request with this key is still running.",
	semel.CodeAbandoned:  "This was given up and will not run.",
	semel.CodeExpired:    "This key is older than what is remembered.",
}

// match is the contract's answer for an error, with what the draft says where the
// contract says nothing.
func (h *Handler) match(e *semel.Error) contract.Match {
	or := func(m contract.Match, status int) contract.Match {
		if m.Status == 0 {
			m.Status = status
		}
		return m
	}
	switch e.Code {
	case codeMissing:
		return or(h.offer.Use.Missing, http.StatusBadRequest)
	case codeUnsupported:
		return or(h.offer.Use.Unsupported, http.StatusNotImplemented)
	case semel.CodeMismatch:
		return or(h.offer.Mismatch.Answer, http.StatusUnprocessableEntity)
	case semel.CodeInProgress:
		return or(h.offer.InProgress.Answer, http.StatusConflict)
	case semel.CodeExpired:
		return or(h.offer.Retention.Refusal, http.StatusGone)
	case semel.CodeOutcomeUnknown:
		m := h.offer.InProgress.InDoubt
		if m == (contract.Match{}) && h.offer.Stored.ServerErrors == contract.ServerErrorReplayed {
			// The contract repeats a server error. Its bytes are not kept, since it is
			// no outcome; its status is.
			m.Status = serverError(e.Operation)
		}
		return or(m, http.StatusConflict)
	}
	return contract.Match{}
}

// serverError is the status that the handler answered with, or 500 if it did not.
func serverError(op *semel.Operation) int {
	if op != nil && op.Failure != nil {
		if text, ok := strings.CutPrefix(op.Failure.Code, "http-"); ok {
			if status, err := strconv.Atoi(text); err == nil && status >= 500 && status < 600 {
				return status
			}
		}
	}
	return http.StatusInternalServerError
}

// retryAfter reports whether such a refusal passes by itself.
func (h *Handler) retryAfter(c semel.Code) bool {
	switch c {
	case semel.CodeInProgress, semel.CodeTooMany, semel.CodeRetryTransaction, semel.CodeUnavailable:
		return true
	}
	return false
}

// bare is a record without what was asked and answered.
func bare(op *semel.Operation) *semel.Operation {
	if op == nil || op.State == semel.None {
		return nil
	}
	b := *op
	b.Params, b.Result, b.Failure = nil, nil, nil
	return &b
}

// writeIn answers in an error form that is not ours: the code stands where the
// contract says, and the sentences beside it.
func writeIn(w http.ResponseWriter, p problem.Problem, at, code string) {
	if code == "" {
		code = string(p.Code)
	}
	steps := strings.Split(strings.TrimPrefix(at, "/"), "/")
	var body any = map[string]any{steps[len(steps)-1]: code, "message": p.Detail, "doc_url": p.Type, "hint": p.Hint}
	for i := len(steps) - 2; i >= 0; i-- {
		body = map[string]any{steps[i]: body}
	}
	text, err := json.Marshal(body)
	if err != nil {
		text = []byte("{}")
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Del("Content-Length")
	h.Del("ETag")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", problem.RetryAfter(p.RetryAfter))
	}
	w.WriteHeader(p.Status)
	w.Write(append(text, '\n'))
}

// notKept answers a repeat whose first answer is done and not kept: with its
// status, the headers that are not about its body, and a problem that says so.
func (h *Handler) notKept(w http.ResponseWriter, r *http.Request, a *Answer) {
	for name, lines := range a.Header {
		if !strings.HasPrefix(name, "Content-") && name != "Etag" && name != "Last-Modified" && name != "Accept-Ranges" {
			w.Header()[name] = slices.Clone(lines)
		}
	}
	why := map[string]string{
		"too-large": "its answer was too large to keep",
		"hijacked":  "its answer went over a connection of its own",
		"found-out": "its answer was lost, and it was found out later that it is done",
	}[a.NotKept]
	p := problem.Problem{
		Type: docs + string(CodeAnswerNotKept), Title: "This is done; its answer is not kept.", Status: max(a.Status, http.StatusOK),
		Detail: fmt.Sprintf("the first request with this key was answered with %d, and %s", a.Status, why),
		Code:   CodeAnswerNotKept, Recorded: semel.RecordedYes,
		Hint: "it will not run again; look at the resource itself",
	}
	if h.opts.Refuse != nil {
		h.opts.Refuse(w, r, p)
		return
	}
	problem.Write(w, p)
}

// docs is where the codes that only this package has are explained.
const docs = "https://github.com/semel-dev/semel/blob/main/idempotency/answers.md#"
