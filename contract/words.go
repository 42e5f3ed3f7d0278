package contract

import (
	"fmt"
	"strconv"
	"strings"
)

// Words tells the contract in plain English, one sentence to a line, for the console, for GET /v1/kinds and for the
// documentation. What the contract does not say is left out, except for the points on which recovery turns.
func (c Contract) Words() string {
	lines := []string{c.headline()}
	for _, say := range []func(Contract) string{
		sayCarrier, sayKey, sayUse, sayScope, sayRetention, sayCompare, sayMismatch, sayInProgress, sayReplay, sayStored,
		sayServerErrors, sayTransient, sayAnswers, sayLookUp, sayCancel, saySuccessor,
	} {
		if s := say(c); s != "" {
			lines = append(lines, s)
		}
	}
	return strings.Join(lines, "\n")
}

// headline says what the contract comes down to.
func (c Contract) headline() string {
	name := c.Title
	if name == "" {
		name = "This API"
	}
	shape := c.Shape()
	switch {
	case shape.Idempotent && shape.Queryable:
		return name + ": it may be called again with the same key, and it can be looked up."
	case shape.Idempotent:
		return name + ": it may be called again with the same key."
	case shape.Queryable:
		return name + ": it must not be called again blindly, but it can be looked up."
	}
	return name + ": it can neither be called again nor looked up; once a request may have arrived and no answer came, a person has to find out."
}

func sayCarrier(c Contract) string {
	if c.Carrier.In == "" {
		return ""
	}
	s := "The key travels in " + c.Carrier.Place.words()
	for _, p := range c.Carrier.Or {
		s += ", or in " + p.words()
	}
	if c.Carrier.FirstSent != "" {
		s += "; the header " + c.Carrier.FirstSent + " carries the time of the first transmission"
	}
	return s + "."
}

func (p Place) words() string {
	switch p.In {
	case InHeader:
		return "the header " + p.Name
	case InBody:
		return "the body at " + p.Name
	case InQuery:
		return "the query parameter " + p.Name
	case InDirective:
		return "the directive " + p.Name
	}
	return "the URL as {" + p.Name + "}"
}

func sayKey(c Contract) string {
	k := c.Key
	var parts []string
	if k.Form == KeyUUID {
		parts = append(parts, "a UUID")
		if k.UUIDVersion != 0 {
			parts[0] += " of version " + strconv.Itoa(k.UUIDVersion)
		}
	}
	unit := k.Unit
	if unit == "" {
		unit = Characters
	}
	switch {
	case k.MinLength > 0 && k.MaxLength > 0:
		parts = append(parts, fmt.Sprintf("%d to %d %s", k.MinLength, k.MaxLength, unit))
	case k.MaxLength > 0:
		parts = append(parts, fmt.Sprintf("at most %d %s", k.MaxLength, unit))
	case k.MinLength > 0:
		parts = append(parts, fmt.Sprintf("at least %d %s", k.MinLength, unit))
	}
	if k.Charset != "" {
		parts = append(parts, "made of "+charsetWords[k.Charset])
	}
	switch k.Quoting {
	case Quoted:
		parts = append(parts, "in quotes")
	case Either:
		parts = append(parts, "with or without quotes")
	}
	if len(parts) == 0 {
		return ""
	}
	return "A key is " + strings.Join(parts, ", ") + "."
}

var charsetWords = map[Charset]string{
	Digits: "digits", Hex: "hexadecimal digits", Alphanumeric: "letters and digits",
	URLSafe: "letters, digits and . _ ~ -", VisibleASCII: "visible ASCII", ASCII: "printable ASCII",
}

func sayUse(c Contract) string {
	var s []string
	if len(c.Use.Methods) > 0 {
		s = append(s, "A key counts on "+strings.Join(c.Use.Methods, ", ")+".")
	}
	switch c.Use.Required {
	case Required:
		s = append(s, "It is required"+c.Use.Missing.inWords(" (without it: ", ")")+".")
	case Sometimes:
		s = append(s, "Some operations require it"+c.Use.Missing.inWords(" (without it: ", ")")+".")
	}
	switch c.Use.Elsewhere {
	case ElsewhereIgnored:
		s = append(s, "Elsewhere it is ignored.")
	case ElsewhereRefused:
		s = append(s, "Elsewhere it is refused"+c.Use.Unsupported.inWords(" with ", "")+".")
	}
	if len(c.Use.Repeatable) > 0 {
		s = append(s, strings.Join(c.Use.Repeatable, ", ")+" may be repeated without a key.")
	}
	return strings.Join(s, " ")
}

// inWords returns the match between two texts, or nothing for the zero Match.
func (m Match) inWords(before, after string) string {
	if m == (Match{}) {
		return ""
	}
	var parts []string
	if m.Status != 0 {
		parts = append(parts, strconv.Itoa(m.Status))
	}
	if m.Code != "" && m.At != "" {
		parts = append(parts, m.At+" "+m.Code)
	} else if m.Code != "" {
		parts = append(parts, m.Code)
	}
	if m.Header != "" {
		parts = append(parts, strings.TrimSpace("with "+m.Header+" "+m.Value))
	}
	return before + strings.Join(parts, " ") + after
}

func wordsOf(list []Match) string {
	words := make([]string, len(list))
	for i, m := range list {
		words[i] = m.inWords("", "")
	}
	return strings.Join(words, ", ")
}

func sayScope(c Contract) string {
	if len(c.Scope.Within) == 0 {
		return ""
	}
	words := make([]string, len(c.Scope.Within))
	for i, w := range c.Scope.Within {
		words[i] = strings.ReplaceAll(string(w), "_", " ")
	}
	return "A key is unique within its " + strings.Join(words, " and ") + "."
}

func sayRetention(c Contract) string {
	r := c.Retention
	if r.After == AfterKeptForEver {
		return "A key is kept for ever."
	}
	if r.Minimum == 0 {
		if c.Carrier.In == "" {
			return ""
		}
		return "It does not say how long a key is kept, so nothing may be called again."
	}
	s := "A key is kept for at least " + r.Minimum.String()
	if r.HardEnd > 0 {
		s += " and at most " + r.HardEnd.String()
	}
	switch r.From {
	case FromFirstSend:
		s += " from the first transmission"
	case FromCompletion:
		s += " from the end of the first execution"
	}
	switch r.After {
	case AfterRunsAgain:
		return s + "; afterwards a request with it is a new one and runs again."
	case AfterRefused:
		return s + "; afterwards a request with it is refused" + r.Refusal.inWords(" with ", "") + " and never run."
	}
	return s + "; it does not say what happens afterwards."
}

func sayCompare(c Contract) string {
	if len(c.Compare.What) == 0 {
		return ""
	}
	words := make([]string, len(c.Compare.What))
	for i, w := range c.Compare.What {
		words[i] = strings.ReplaceAll(string(w), "_", " ")
		switch w {
		case ComparePaths:
			words[i] = "the members " + strings.Join(c.Compare.Paths, ", ")
		case CompareHeaders:
			words[i] = "the headers " + strings.Join(c.Compare.Headers, ", ")
		case CompareNothing:
			return "A repeat is compared with the first request in nothing."
		}
	}
	return "A repeat is compared with the first request in: " + strings.Join(words, ", ") + "."
}

func sayMismatch(c Contract) string {
	switch c.Mismatch.Do {
	case MismatchRefused:
		all := c.Mismatch.Also
		if c.Mismatch.Answer != (Match{}) {
			all = append([]Match{c.Mismatch.Answer}, all...)
		}
		if len(all) == 0 {
			return "The same key with another request is refused."
		}
		return "The same key with another request is refused with " + wordsOf(all) + "."
	case MismatchReplayed:
		return "Take care: the same key with another request silently gets the first answer."
	case MismatchExecuted:
		return "Take care: the same key with another request silently runs."
	}
	return ""
}

func sayInProgress(c Contract) string {
	var s string
	switch c.InProgress.Do {
	case ConcurrentRefused:
		s = "While the first request runs, a second is refused" + c.InProgress.Answer.inWords(" with ", "") + ": wait and ask again."
	case ConcurrentWaits:
		s = "While the first request runs, a second waits for its answer."
	case ConcurrentAnswered:
		s = "While the first request runs, a second is told how things stand."
	case ConcurrentUnspecified:
		s = "While the first request runs, a second may fail in any way."
	case ConcurrentRuns:
		s = "Take care: while the first request runs, a second runs too."
	}
	after := map[AfterCrash]string{
		CrashBlocksUntilExpiry: "After a crash of the API, it answers so until the key expires.",
		CrashRunsAgain:         "After a crash of the API, a repeat runs again.",
		CrashResumes:           "After a crash of the API, a repeat takes the work up again.",
		CrashInDoubt:           "When the API itself does not know the outcome, it says so" + c.InProgress.InDoubt.inWords(" with ", "") + ".",
	}[c.InProgress.AfterCrash]
	return strings.TrimSpace(s + " " + after)
}

func sayReplay(c Contract) string {
	s := map[ReplayForm]string{
		ReplayBytes:   "A repeat gets the first answer, byte for byte",
		ReplayObject:  "A repeat gets the object as it was made",
		ReplayCurrent: "A repeat gets the object as it is now",
		ReplayResumed: "A repeat takes failed work up again and gets an updated answer",
	}[c.Replay.Form]
	if s == "" {
		return ""
	}
	if m := c.Replay.Marker; m.Header != "" {
		s += ", marked by " + strings.TrimSuffix(m.Header+": "+m.Value, ": ")
	}
	return s + "."
}

func sayStored(c Contract) string {
	s := map[Outcomes]string{
		StoresEvery:     "Every answer is stored",
		StoresDefinite:  "Successes and rejections are stored",
		StoresSuccess:   "Only successes are stored",
		StoresPermanent: "Every answer is stored that is not marked as transient",
		StoresState:     "No answer is stored: the object itself is the record",
	}[c.Stored.Outcomes]
	if s == "" {
		return ""
	}
	if len(c.Stored.Except) > 0 {
		words := make([]string, len(c.Stored.Except))
		for i, status := range c.Stored.Except {
			words[i] = strconv.Itoa(status)
		}
		s += ", except " + strings.Join(words, ", ")
	}
	if c.Stored.OnlyOnceBegun {
		s += ", once the execution has begun"
	}
	return s + "."
}

func sayServerErrors(c Contract) string {
	switch c.Stored.ServerErrors {
	case ServerErrorReplayed:
		return "A server error is stored too: calling again is harmless, and brings the same."
	case ServerErrorResumed:
		return "After a server error a repeat has no second effect."
	case ServerErrorReleased:
		return "A server error frees the key: Semel does not call again after one, since it might have had its effect."
	}
	if c.Shape().Idempotent {
		return "It does not say what a repeat does after a server error, so Semel does not call again after one."
	}
	return ""
}

func sayTransient(c Contract) string {
	m := c.Stored.Transient
	if m.Header == "" {
		return ""
	}
	return "An answer with " + strings.TrimSuffix(m.Header+": "+m.Value, ": ") + " does not use the key up."
}

func sayAnswers(c Contract) string {
	var s []string
	if len(c.Answers.Refused) > 0 {
		s = append(s, "Definite rejections: "+wordsOf(c.Answers.Refused)+".")
	}
	if len(c.Answers.RefusedAfterLookUp) > 0 {
		s = append(s, "Rejections given only after the key was looked up: "+wordsOf(c.Answers.RefusedAfterLookUp)+".")
	}
	if len(c.Answers.NothingHappened) > 0 {
		s = append(s, "Nothing happened, and it may be sent again later: "+wordsOf(c.Answers.NothingHappened)+".")
	}
	if len(c.Answers.Applied) > 0 {
		s = append(s, "Successes besides 2xx: "+wordsOf(c.Answers.Applied)+".")
	}
	if c.Answers.CodeIn2xx {
		s = append(s, "A 2xx that carries a code is no success.")
	}
	return strings.Join(s, " ")
}

func sayLookUp(c Contract) string {
	l := c.LookUp
	if l.By == "" {
		return ""
	}
	s := "It is looked up by " + map[LookUpBy]string{
		ByKey: "the key", ByListFilter: "a list filtered by the key", ByNaturalKey: "something in the request that is unique by itself",
	}[l.By]
	if l.Request != "" {
		s += " (" + l.Request + ")"
	}
	if l.ConsistentAfter > 0 {
		s += "; what happened shows after " + l.ConsistentAfter.String() + " at the latest"
	}
	if l.AbsentAfter > 0 {
		return s + "; not found proves that it never happened from " + l.AbsentAfter.String() + " after the last possible arrival."
	}
	return s + "; not found never proves anything."
}

func sayCancel(c Contract) string {
	how := ""
	if c.Cancel.Request != "" {
		how = " (" + c.Cancel.Request + ")"
	}
	switch c.Cancel.Leaves {
	case CancelBlocks:
		return "Whatever a key did can be cancelled by the key" + how + "; afterwards a late request with it is refused, which is a proof of absence."
	case CancelUndoes:
		return "Whatever a key did can be cancelled by the key" + how + "; a late request with it may still run afterwards."
	}
	return ""
}

func saySuccessor(c Contract) string {
	switch c.Successor.Rule {
	case SuccessorNever:
		return "A new key never takes over from an old one."
	case SuccessorAfterRefusal:
		return "A new key may take over only once the old one was definitely refused."
	case SuccessorAdvised:
		return "Take care: its documentation advises a new key after an error, which after an unknown outcome makes a second effect. Semel never does it."
	}
	return ""
}
