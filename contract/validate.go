package contract

import (
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// A FieldError says what is wrong with one field of a contract.
type FieldError struct {
	// Field is the field's path in the JSON, for example "retention.minimum" or "answers.refused[2]".
	Field string
	// Problem says what is wrong.
	Problem string
	// Fix says what to write instead.
	Fix string
}

// Error returns field, problem and fix in one line.
func (e *FieldError) Error() string {
	return e.Field + ": " + e.Problem + "; " + e.Fix
}

// Validate reports everything that is wrong with the contract: words that are not in a list, fields that contradict
// each other, answers that could mean two things, and claims which no API can make. The error joins one [*FieldError]
// for each; nil means that the contract can be used.
func (c Contract) Validate() error {
	v := &validator{}
	c.validateKey(v)
	c.validateUse(v)
	c.validateTime(v)
	c.validateWords(v)
	c.validateAnswers(v)
	return errors.Join(v.errs...)
}

// CheckBudget reports whether the contract can carry a retry budget: the longest time between the first transmission
// of an operation and its last repeat. It fails when the API may forget the key within that time, because the last
// repeats could then have a second effect. Contracts that are not idempotent carry any budget: under them nothing is
// repeated.
func (c Contract) CheckBudget(budget time.Duration) error {
	if !c.Shape().Idempotent || c.Retention.After == AfterKeptForEver || budget <= c.Retention.Minimum.D() {
		return nil
	}
	return &FieldError{
		Field:   "retention.minimum",
		Problem: fmt.Sprintf("the key is kept for %s, and the retry budget is %s", c.Retention.Minimum, Duration(budget)),
		Fix:     fmt.Sprintf("retry for at most %s, or correct the retention if the API keeps keys longer", c.Retention.Minimum),
	}
}

type validator struct{ errs []error }

func (v *validator) add(field, problem, fix string) {
	v.errs = append(v.errs, &FieldError{field, problem, fix})
}

// oneOf checks a word against the list of its kind. The empty word always passes: it says nothing.
func oneOf[T ~string](v *validator, field string, got T, allowed ...T) {
	if got == "" || slices.Contains(allowed, got) {
		return
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	v.add(field, fmt.Sprintf("%q is not known", string(got)), "write one of "+strings.Join(words, ", "))
}

func (v *validator) header(field, name string) {
	if name != "" && !validHeader(name) {
		v.add(field, fmt.Sprintf("%q is no header name", name), "write a name such as Idempotency-Key")
	}
}

// validHeader reports whether name is a token of RFC 9110.
func validHeader(name string) bool {
	for _, r := range name {
		if !(Alphanumeric.has(r) || strings.ContainsRune("!#$%&'*+-.^_`|~", r)) {
			return false
		}
	}
	return textproto.CanonicalMIMEHeaderKey(name) != ""
}

func (v *validator) pointer(field, p string) {
	if p != "" && p[0] != '/' {
		v.add(field, fmt.Sprintf("%q is no JSON Pointer", p), `write it with a slash in front, as in "/error/code"`)
	}
}

// place checks where a machine code stands.
func (v *validator) place(field, p string) {
	if _, element := xmlElement(p); p != "" && p[0] != '/' && !element {
		v.add(field, fmt.Sprintf("%q is neither a JSON Pointer nor an XML element", p), `write it as in "/error/code" or "<Code>"`)
	}
}

func (v *validator) span(field string, d Duration) {
	if d < 0 {
		v.add(field, "a time span cannot be negative", "leave it out if it is not known")
	}
}

func (v *validator) methods(field string, methods []string) {
	for i, m := range methods {
		if m == "" || m != strings.ToUpper(m) || !validHeader(m) {
			v.add(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("%q is no method", m), "write it in capitals, as in POST")
		}
	}
}

func (c Contract) validateKey(v *validator) {
	places := append([]Place{c.Carrier.Place}, c.Carrier.Or...)
	for i, p := range places {
		field := "carrier"
		if i > 0 {
			field = fmt.Sprintf("carrier.or[%d]", i-1)
		}
		oneOf(v, field+".in", p.In, InHeader, InBody, InQuery, InDirective, InPath)
		switch {
		case p.In == "" && (p.Name != "" || i > 0):
			v.add(field+".in", "it is missing", "say where the key travels: header, body, query, directive or path")
		case p.In != "" && p.Name == "":
			v.add(field+".name", "it is missing", "name the header, JSON Pointer, parameter, directive or path variable")
		case p.In == InHeader:
			v.header(field+".name", p.Name)
		case p.In == InBody:
			v.pointer(field+".name", p.Name)
		}
	}
	if c.Carrier.In == "" && len(c.Carrier.Or) > 0 {
		v.add("carrier.in", "there is another place, but no first one", "put the first place into carrier itself")
	}
	v.header("carrier.first_sent", c.Carrier.FirstSent)
	v.header("carrier.client", c.Carrier.Client)
	if c.Carrier.FirstSent != "" && c.Carrier.In != InHeader {
		v.add("carrier.first_sent", "it dates a key in a header", `set carrier.in to "header", or leave it out`)
	}
	k := c.Key
	oneOf(v, "key.form", k.Form, KeyText, KeyUUID)
	oneOf(v, "key.charset", k.Charset, Digits, Hex, Alphanumeric, URLSafe, VisibleASCII, ASCII)
	oneOf(v, "key.unit", k.Unit, Characters, Bytes)
	oneOf(v, "key.quoting", k.Quoting, Bare, Quoted, Either)
	if k.MinLength < 0 || k.MaxLength < 0 || k.MaxLength > 0 && k.MinLength > k.MaxLength {
		v.add("key.max_length", "the lengths leave no room", "give a max_length that is at least min_length")
		return
	}
	if k.UUIDVersion != 0 && k.Form != KeyUUID {
		v.add("key.uuid_version", "it needs a UUID", `set key.form to "uuid"`)
	}
	if c.Carrier.In == "" {
		return
	}
	if _, err := k.FormatKey("probe"); err != nil {
		v.add("key", err.Error(), "correct the grammar: Semel must be able to make a key for it")
	}
}

func (c Contract) validateUse(v *validator) {
	v.methods("use.methods", c.Use.Methods)
	v.methods("use.repeatable", c.Use.Repeatable)
	oneOf(v, "use.required", c.Use.Required, Optional, Required, Sometimes)
	oneOf(v, "use.elsewhere", c.Use.Elsewhere, ElsewhereIgnored, ElsewhereRefused)
	for i, s := range c.Scope.Within {
		oneOf(v, fmt.Sprintf("scope.within[%d]", i), s, ByAccount, ByMode, ByClient, ByEndpoint, ByMethod, ByObjectType,
			ByKind, ByLocation, ByRegion, ByZone, ByAPIVersion)
	}
}

func (c Contract) validateTime(v *validator) {
	r := c.Retention
	oneOf(v, "retention.from", r.From, FromFirstSend, FromCompletion)
	oneOf(v, "retention.after", r.After, AfterRunsAgain, AfterRefused, AfterKeptForEver)
	v.span("retention.minimum", r.Minimum)
	v.span("retention.hard_end", r.HardEnd)
	if r.HardEnd > 0 && r.HardEnd < r.Minimum {
		v.add("retention.hard_end", "it comes before the minimum", "a key is certainly gone only after the time for which it is kept")
	}
	if r.After == AfterKeptForEver && (r.HardEnd > 0 || r.Minimum > 0) {
		v.add("retention.after", "a key that is kept for ever has no minimum and no end", "leave out minimum and hard_end, or correct after")
	}
	if r.Refusal != (Match{}) && r.After != AfterRefused {
		v.add("retention.refusal", "there is an answer for a refusal that never comes", `set retention.after to "refused"`)
	}
	v.span("in_progress.ask_again_after", c.InProgress.AskAgainAfter)
	v.span("look_up.consistent_after", c.LookUp.ConsistentAfter)
	v.span("look_up.absent_after", c.LookUp.AbsentAfter)
	oneOf(v, "look_up.by", c.LookUp.By, ByKey, ByListFilter, ByNaturalKey)
	if c.LookUp.By == "" && c.LookUp != (LookUp{}) {
		v.add("look_up.by", "it is missing", "say what is looked up by: key, list_filter or natural_key")
	}
	if a := c.LookUp.AbsentAfter; a > 0 && a < c.LookUp.ConsistentAfter {
		v.add("look_up.absent_after", "it comes before a finished operation is sure to be visible", "give at least consistent_after")
	}
}

func (c Contract) validateWords(v *validator) {
	for i, w := range c.Compare.What {
		field := fmt.Sprintf("compare.what[%d]", i)
		oneOf(v, field, w, CompareRawBody, CompareCanonicalBody, ComparePaths, CompareMethod, ComparePath, CompareQuery,
			CompareHeaders, CompareParameters, CompareNothing)
		if w == CompareNothing && len(c.Compare.What) > 1 {
			v.add(field, "nothing and something cannot both be compared", "let it stand alone")
		}
	}
	for i, p := range c.Compare.Paths {
		v.pointer(fmt.Sprintf("compare.paths[%d]", i), p)
	}
	if (len(c.Compare.Paths) > 0) != slices.Contains(c.Compare.What, ComparePaths) {
		v.add("compare.paths", "paths and compare.what disagree", `list the paths, and "paths" in compare.what`)
	}
	oneOf(v, "mismatch.do", c.Mismatch.Do, MismatchRefused, MismatchReplayed, MismatchExecuted)
	if c.Mismatch.Answer != (Match{}) && c.Mismatch.Do != MismatchRefused {
		v.add("mismatch.answer", "there is an answer for a refusal that never comes", `set mismatch.do to "refused"`)
	}
	oneOf(v, "in_progress.do", c.InProgress.Do, ConcurrentRefused, ConcurrentWaits, ConcurrentAnswered, ConcurrentUnspecified, ConcurrentRuns)
	oneOf(v, "in_progress.after_crash", c.InProgress.AfterCrash, CrashBlocksUntilExpiry, CrashRunsAgain, CrashResumes, CrashInDoubt)
	if c.InProgress.Answer != (Match{}) && c.InProgress.Do != ConcurrentRefused {
		v.add("in_progress.answer", "there is an answer for a refusal that never comes", `set in_progress.do to "refused"`)
	}
	oneOf(v, "replay.form", c.Replay.Form, ReplayBytes, ReplayObject, ReplayCurrent, ReplayResumed)
	oneOf(v, "stored.outcomes", c.Stored.Outcomes, StoresEvery, StoresDefinite, StoresSuccess, StoresPermanent, StoresState)
	oneOf(v, "stored.server_errors", c.Stored.ServerErrors, ServerErrorReplayed, ServerErrorResumed, ServerErrorReleased)
	if c.Stored.Outcomes == StoresPermanent && c.Stored.Transient.Header == "" {
		v.add("stored.transient", "it is missing", "name the header that marks a transient answer")
	}
	v.header("stored.transient.header", c.Stored.Transient.Header)
	v.header("replay.marker.header", c.Replay.Marker.Header)
	v.header("answers.again.header", c.Answers.Again.Header)
	oneOf(v, "cancel.leaves", c.Cancel.Leaves, CancelBlocks, CancelUndoes)
	oneOf(v, "successor.rule", c.Successor.Rule, SuccessorNever, SuccessorAfterRefusal, SuccessorAdvised)
}
