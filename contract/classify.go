package contract

import (
	"fmt"
	"strconv"
	"strings"
)

// Classify says what one transmission proves. It looks at what was seen on the wire and at the answer, never at the
// status alone; a is nil where no answer arrived. The result is a pure function of its arguments.
//
//   - A complete answer counts, whatever became of the connection afterwards. So does one that we stopped reading on
//     purpose. An answer that broke off is unknown.
//   - Without an answer, "not sent" is proven only when no byte began to go out, or when the server said in HTTP/2's
//     own words that it did not look at the request.
//   - Where the transport sent more than once within the call, only what speaks for the key is believed.
//   - Everything else is unknown.
func (c Contract) Classify(r Request, w Wire, a *Answer) Proof {
	p := c.classify(r, w, a)
	p.Sends = w.Sends
	if w.Sends > 1 && p.Reach == ReachThis && p.Proves != InProgressNow && p.Proves != Unknown {
		p.Reason = fmt.Sprintf("the transport sent the request %d times within one call, and this covers only the last: %s",
			w.Sends, p.Reason)
		p.Proves, p.Cause = Unknown, CauseHiddenSends
	}
	return p
}

func (c Contract) classify(r Request, w Wire, a *Answer) Proof {
	if a != nil && (w.Arrival == ArrivedComplete || w.Arrival == ArrivedLimited) {
		return c.classifyAnswer(r, a)
	}
	if w.Arrival != ArrivedNothing {
		p := Proof{Proves: Unknown, Reach: ReachThis, Cause: CauseCutAnswer,
			Reason: "an answer began and broke off, so the request had arrived"}
		if a != nil {
			p.Status = a.Status
		}
		return p
	}
	return classifyWire(w)
}

// classifyWire says what a transmission without any answer proves.
func classifyWire(w Wire) Proof {
	p := Proof{Proves: Unknown, Reach: ReachThis, Cause: Cause(w.Failure)}
	if p.Cause == "" {
		p.Cause = Cause(FailedOtherwise)
	}
	switch {
	case w.Going == NotBegun, w.Failure.beforeConnection() && w.Going != Begun:
		p.Proves = NotSent
		p.Reason = "nothing happened, no byte of the request went out: " + w.Failure.words()
	case w.Failure == FailedRefused, w.Failure == FailedGoAway:
		p.Proves = NotSent
		p.Reason = "nothing happened: " + w.Failure.words()
	default:
		p.Reason = "there is no answer, and the request may have arrived: " + w.Failure.words()
	}
	return p
}

// beforeConnection reports whether the transmission failed before a connection was there. Where an earlier send of the
// same call did go out (a hidden re-send, a redirect), such a failure of the last one proves nothing.
func (f Failure) beforeConnection() bool {
	switch f {
	case FailedDial, FailedDNS, FailedTLS, FailedNoConn, FailedUnwritten:
		return true
	}
	return false
}

func (f Failure) words() string {
	if w, ok := failureWords[f]; ok {
		return w
	}
	return "nobody can say how it failed"
}

var failureWords = map[Failure]string{
	FailedDial:      "the connection was refused or the host was not reached",
	FailedDNS:       "the host's name was not resolved",
	FailedTLS:       "the TLS handshake failed",
	FailedNoConn:    "no connection was got",
	FailedRefused:   "the server refused the HTTP/2 stream without looking at it",
	FailedGoAway:    "the server closed the HTTP/2 connection before it looked at this stream",
	FailedUnwritten: "the connection was gone before the first byte",
	FailedTimeout:   "a deadline passed",
	FailedReset:     "the connection or the stream was reset",
	FailedEOF:       "the connection ended where an answer was due",
	FailedCancelled: "the caller gave up",
	FailedMalformed: "what arrived was no HTTP answer",
	FailedOtherwise: "it failed in a way that says nothing",
}

// classifyAnswer says what a complete answer proves. What the contract says about keys is believed only where the
// request carried one in a way that the contract honours. An exact match comes first, then the API's own mark of a
// transient answer, then bare statuses, then 2xx; what is left is unknown.
func (c *Contract) classifyAnswer(r Request, a *Answer) Proof {
	s := c.see(a)
	keyed := r.Keyed && c.Honours(r.Method)
	p := Proof{Reach: ReachThis, Status: a.Status, Again: c.Answers.Again.read(a), Replayed: keyed && c.Replay.Marker.on(a)}
	means, match := c.find(s, keyed, true)
	transient := means == "" && keyed && a.Status >= 300 && c.Stored.Transient.on(a)
	if means == "" && !transient {
		means, match = c.find(s, keyed, false)
	}
	p.Code = match.Code
	switch {
	case means != "":
		c.classifyMatch(means, s.words(match), keyed, &p)
	case transient && a.Status/100 == 4:
		p.Proves, p.Cause = NotApplied, CauseTransient
		p.Reason = "answered with " + s.words(match) + ", marked as transient: the key is not used up"
	case transient:
		p.Proves, p.Cause = Unknown, CauseTransient
		p.Reason = "answered with " + s.words(match) + ", marked as transient: it may have happened, and the key still holds"
	case a.Status/100 == 2 && !(c.Answers.CodeIn2xx && s.code("") != ""):
		p.Proves, p.Reach, p.Cause = Applied, ReachKey, CauseSuccess
		p.Reason = "answered with " + s.words(match)
	default:
		classifyRest(a.Status, &p)
	}
	return p
}

// classifyMatch says what an answer proves that the contract describes.
func (c *Contract) classifyMatch(means meaning, answer string, keyed bool, p *Proof) {
	switch means {
	case meansMismatch:
		p.Proves, p.Cause = Refused, CauseMismatch
		p.Reason = "answered with " + answer + ": the key is known, but for another request"
	case meansInProgress:
		p.Proves, p.Cause = InProgressNow, CauseInProgress
		p.Reason = "answered with " + answer + ": the first request with this key is still running"
	case meansInDoubt:
		p.Proves, p.Cause = Unknown, CauseInDoubt
		p.Reason = "answered with " + answer + ": the other side knows the key, and does not know the outcome either"
	case meansExpired:
		p.Proves, p.Cause = Refused, CauseExpired
		p.Reason = "answered with " + answer + ": the key is no longer kept and is refused for that, which says nothing of earlier sends"
	case meansApplied:
		p.Proves, p.Reach, p.Cause = Applied, ReachKey, CauseSuccess
		p.Reason = "answered with " + answer + ", which by contract is a success"
	case meansNothing:
		p.Proves, p.Cause = NotApplied, CauseTurnedAway
		p.Reason = "turned away with " + answer + ": by contract nothing happened"
	case meansRefusedLate, meansRefused:
		p.Proves, p.Cause = Refused, CauseRejected
		p.Reason = "rejected with " + answer
		switch {
		case p.Replayed:
			p.Reach = ReachKey
			p.Reason += ", from the record of this key"
		case means == meansRefusedLate && keyed:
			p.Reach = ReachEarlier
			if c.Keeps(p.Status) {
				p.Reach = ReachKey
			}
			p.Reason += ", after the key had been looked up"
		}
	}
}

// classifyRest handles what the contract does not describe. All of it is unknown; the cause matters for what may be
// done next.
func classifyRest(status int, p *Proof) {
	answer := strconv.Itoa(status)
	p.Proves, p.Cause = Unknown, CauseUnlisted
	switch {
	case p.Replayed:
		p.Final = true
		if status >= 500 {
			p.Cause = CauseServerError
		}
		p.Reason = "a stored " + answer + " came back: asking again brings the same, and it does not say what happened"
	case status == 502, status == 503, status == 504:
		p.Cause = CauseIntermediary
		p.Reason = "a " + answer + " may come from anybody on the way: the request may have arrived"
	case status >= 500:
		p.Cause = CauseServerError
		p.Reason = "a server error (" + answer + ") may come after the effect"
	default:
		p.Reason = "the contract does not say what " + answer + " proves"
	}
}

// Honours reports whether the contract honours a key on the method.
func (c Contract) Honours(method string) bool {
	if c.Carrier.In == "" {
		return false
	}
	return len(c.Use.Methods) == 0 || hasMethod(c.Use.Methods, method)
}

// Keeps reports whether an answer with this status, given once the execution had begun, is stored under the key and
// comes back for a repeat.
func (c Contract) Keeps(status int) bool {
	for _, s := range c.Stored.Except {
		if s == status {
			return false
		}
	}
	switch c.Stored.Outcomes {
	case StoresEvery, StoresPermanent:
		return true
	case StoresDefinite:
		return status >= 200 && status < 300 || status >= 400 && status < 500
	case StoresSuccess, StoresState:
		return status >= 200 && status < 300
	}
	return false
}

// ClassifyLookUp says what the result of a look-up proves. sinceDoubt is the time between the last possible end of the
// latest doubtful transmission and the moment at which the look-up was sent; negative means that the transmission may
// have been on its way still.
//
// "Not found" proves that nothing happened only from [LookUp.AbsentAfter] on. A failure that was found is a definite
// refusal.
func (c Contract) ClassifyLookUp(f Found, sinceDoubt Duration) Proof {
	switch f {
	case FoundSucceeded:
		return Proof{Proves: Applied, Reach: ReachKey, Cause: CauseFound, Reason: "a look-up found it done"}
	case FoundFailed:
		return Proof{Proves: Refused, Reach: ReachKey, Cause: CauseFoundFailed, Reason: "a look-up found it failed"}
	case FoundPending:
		return Proof{Proves: InProgressNow, Reach: ReachThis, Cause: CauseFoundPending, Reason: "a look-up found it still running"}
	case FoundNothing:
		if after := c.LookUp.AbsentAfter; after > 0 && sinceDoubt >= after {
			return Proof{Proves: NotApplied, Reach: ReachEarlier, Cause: CauseAbsent,
				Reason: fmt.Sprintf("a look-up did not find it, %s after it could last have arrived; by contract that is proof from %s on", sinceDoubt, after)}
		}
		return Proof{Proves: Unknown, Reach: ReachThis, Cause: CauseAbsentSoFar,
			Reason: "a look-up did not find it, which proves nothing yet: " + c.LookUp.absenceWords()}
	}
	return Proof{Proves: Unknown, Reach: ReachThis, Cause: CauseLookUpNoAnswer, Reason: "a look-up could not tell"}
}

func (l LookUp) absenceWords() string {
	if l.AbsentAfter > 0 {
		return fmt.Sprintf("it counts from %s after the last possible arrival", l.AbsentAfter)
	}
	return "the contract never takes it as proof"
}

func hasMethod(list []string, method string) bool {
	if method == "" {
		method = "GET" // as net/http has it
	}
	for _, m := range list {
		if strings.EqualFold(m, method) {
			return true
		}
	}
	return false
}
