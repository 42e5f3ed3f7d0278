package idempotency

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// Codes that this package adds to those of [semel.Code]. They are not in
// [semel.Codes], whose every code has one status; file answers.md lists all that a
// client of this package can meet.
const (
	// codeMissing never travels: it is semel.CodeInvalid with the contract's answer
	// for a missing key.
	codeMissing semel.Code = "missing-key"
	// CodeAnswerNotKept: it is done, but its answer was too large to keep, or went
	// out as a stream, or a person or a look-up has found out without it.
	CodeAnswerNotKept semel.Code = "answer-not-kept"
)

// DefaultContract is what a [Handler] offers unless it is told otherwise: draft 07
// of the Idempotency-Key header, with everything said that the draft leaves open.
// It may be changed and given to [Options.Contract]; and a client can read it, for
// it says what every answer proves.
func DefaultContract() contract.Contract {
	c, err := contract.Preset(contract.IETF)
	if err != nil {
		panic(err) // it is built in
	}
	code := func(c semel.Code) contract.Match { return contract.Match{Status: c.Info().Status, Code: string(c)} }
	c.Name, c.Title = "idempotency-key", "Idempotency-Key, as package idempotency offers it"
	c.Use.Required, c.Use.Missing, c.Use.Elsewhere = contract.Required, code(semel.CodeInvalid), contract.ElsewhereIgnored
	c.Scope.Within = []contract.ScopePart{contract.ByAccount, contract.ByMethod, contract.ByEndpoint}
	c.Retention = contract.Retention{Minimum: contract.Duration(semel.DefaultRetention), From: contract.FromCompletion,
		After: contract.AfterRefused, Refusal: code(semel.CodeExpired)}
	c.Compare = contract.Compare{What: []contract.Compared{contract.CompareMethod, contract.ComparePath,
		contract.CompareQuery, contract.CompareCanonicalBody}}
	c.Mismatch.Answer = contract.Match{Status: http.StatusUnprocessableEntity, Code: string(semel.CodeMismatch)}
	c.InProgress = contract.InProgress{Do: contract.ConcurrentRefused, Answer: code(semel.CodeInProgress), RetryAfter: true,
		AfterCrash: contract.CrashInDoubt, InDoubt: code(semel.CodeOutcomeUnknown)}
	c.Replay = contract.Replay{Form: contract.ReplayBytes, Marker: contract.Mark{Header: "Idempotency-Replayed", Value: "true"},
		Headers: slices.Clone(keptHeaders)}
	c.Stored = contract.Stored{Outcomes: contract.StoresDefinite, Except: []int{408, 409, 425, 429}, OnlyOnceBegun: true,
		Transient: contract.Mark{Header: "Idempotency-Outcome", Value: "not-applied"}}
	c.Answers.CodeAt = []string{"/code"}
	c.Answers.NothingHappened = []contract.Match{
		{Status: http.StatusTooManyRequests, Code: string(semel.CodeTooMany)},
		{Status: http.StatusServiceUnavailable, Code: string(semel.RecordedNo), At: "/recorded"},
	}
	// A mismatch is told by its code, so any other 422 is the handler's own.
	c.Answers.Refused = append(c.Answers.Refused, contract.Match{Status: http.StatusUnprocessableEntity})
	c.Answers.RefusedAfterLookUp = []contract.Match{code(semel.CodeAbandoned)}
	return c
}

// keptHeaders is the allow-list of the default contract.
var keptHeaders = []string{
	"Accept-Patch", "Accept-Ranges", "Allow", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language",
	"Content-Location", "Content-Range", "Content-Security-Policy", "Content-Type", "Deprecation", "Digest", "ETag", "Expires",
	"Last-Modified", "Link", "Location", "Preference-Applied", "Repr-Digest", "Content-Digest", "Sunset", "Vary",
	"X-Content-Type-Options",
}

// neverKept are the headers that no allow-list can name: they speak of one
// connection, one moment or one credential.
var neverKept = []string{
	"Age", "Alt-Svc", "Authentication-Info", "Authorization", "Clear-Site-Data", "Connection", "Content-Length", "Date", "Keep-Alive",
	"Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Proxy-Connection", "Ratelimit", "Ratelimit-Limit",
	"Ratelimit-Policy", "Ratelimit-Remaining", "Ratelimit-Reset", "Retry-After", "Server-Timing", "Set-Cookie", "Set-Cookie2", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Www-Authenticate", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
}

// checkOffer reports what a contract promises that a [Handler] can't keep, or will
// not offer.
func checkOffer(c contract.Contract, transactional bool) error {
	errs := []error{c.Validate()}
	no := func(field, format string, args ...any) {
		errs = append(errs, &contract.FieldError{Field: field, Problem: fmt.Sprintf(format, args...), Fix: "change or remove it"})
	}
	for i, p := range append([]contract.Place{c.Carrier.Place}, c.Carrier.Or...) {
		if p.In != contract.InHeader && i == 0 {
			no("carrier.in", "this middleware reads keys from headers")
		}
	}
	if c.Carrier.FirstSent != "" || c.Carrier.Client != "" {
		no("carrier", "further headers beside the key are not read")
	}
	for _, s := range c.Scope.Within {
		if s != contract.ByAccount && s != contract.ByMode && s != contract.ByMethod && s != contract.ByEndpoint {
			no("scope.within", "%q is no part of a scope here; make it part of the account", s)
		}
	}
	if c.Mismatch.Do == contract.MismatchExecuted {
		no("mismatch.do", "a changed request is never run under an old key")
	}
	if c.InProgress.Do == contract.ConcurrentRuns {
		no("in_progress.do", "a second request never runs beside the first")
	}
	if a := c.InProgress.AfterCrash; a == contract.CrashRunsAgain || a == contract.CrashResumes {
		no("in_progress.after_crash", "what may have happened is never run again blindly")
	}
	if f := c.Replay.Form; f != "" && f != contract.ReplayBytes {
		no("replay.form", "a repeat gets the stored answer, byte for byte")
	}
	for _, name := range c.Replay.Headers {
		if slices.Contains(neverKept, http.CanonicalHeaderKey(name)) {
			no("replay.headers", "%s is never replayed", name)
		}
	}
	if c.Stored.Outcomes == contract.StoresState || c.Stored.Outcomes == "" {
		no("stored.outcomes", "say which answers are stored")
	}
	if e := c.Stored.ServerErrors; !transactional && (e == contract.ServerErrorReleased || e == contract.ServerErrorResumed) {
		no("stored.server_errors", "after a server error the effect may have happened; only a transaction can release the key")
	}
	return errors.Join(errs...)
}

// final reports whether an answer with this status uses the key up. A redirection
// counts as a success here: it is how forms are answered.
func (h *Handler) final(status int) bool {
	if status >= 300 && status < 400 && !slices.Contains(h.offer.Stored.Except, status) {
		return h.offer.Keeps(http.StatusOK)
	}
	return h.offer.Keeps(status)
}

func (h *Handler) scopedBy(part contract.ScopePart) bool {
	return slices.Contains(h.offer.Scope.Within, part)
}
