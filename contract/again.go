package contract

import "strings"

// MaySendAgain reports whether a request whose outcome is unknown may be sent once more without the danger of a second
// effect, and says why or why not. It looks at the request alone; [Contract.Again] looks at what has been observed too,
// and [Contract.Recover] at the time that has passed.
//
// A request may be sent again when its bytes can be had again, and either its method is repeatable by the API's
// contract (GET, HEAD, OPTIONS and TRACE always are), or it carries a key that an idempotent contract honours on its
// method.
func (c Contract) MaySendAgain(r Request) (ok bool, why string) {
	switch {
	case !r.Replayable:
		return false, "its body cannot be sent a second time"
	case c.repeatable(r.Method):
		return true, "the method may be repeated by itself"
	case !r.Keyed:
		return false, "it carries no key"
	case !c.Honours(r.Method):
		return false, "the contract does not honour a key on " + strings.ToUpper(r.Method)
	case !c.Shape().Idempotent:
		return false, "the contract does not protect a repeat"
	}
	return true, "it carries a key, and under the contract a repeat has no second effect"
}

// repeatable reports whether the method may be repeated without a key.
func (c Contract) repeatable(method string) bool {
	return hasMethod([]string{"GET", "HEAD", "OPTIONS", "TRACE"}, method) || hasMethod(c.Use.Repeatable, method)
}

// Again reports whether a request should be sent once more after what has been observed, and says why or why not. It
// is what a transport asks between two attempts; how long to wait in between is the caller's matter.
//
// What is settled is not sent again, nor what was refused. What certainly had no effect may be sent again whenever its
// bytes can be had. Anything else needs [Contract.MaySendAgain], and answers that do not say that it is useless.
func (c Contract) Again(r Request, e Evidence) (ok bool, why string) {
	switch e.Outcome() {
	case OutcomeApplied:
		return false, "it is done"
	case OutcomeRefused:
		return false, "it was definitely refused"
	case OutcomeNotApplied, OutcomeNone:
		if !r.Replayable {
			return false, "its body cannot be sent a second time"
		}
		if e.Last.Again == AgainNo {
			return false, "the other side has asked not to be called again"
		}
		return true, "certainly nothing has happened so far"
	}
	if ok, why := c.MaySendAgain(r); !ok {
		return false, "it may have happened, and " + why
	}
	if c.repeatable(r.Method) {
		return true, "the method may be repeated by itself"
	}
	if why := c.whyNotAgain(e); why != "" {
		return false, why
	}
	return true, "it may have happened, and under the same key a repeat has no second effect"
}
