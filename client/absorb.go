package client

import (
	"net/http"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/httpapi/problem"
)

// What is heard goes into the record here, and nowhere else. Nothing in this file
// waits, sends or stores.

// mark notes that a transmission is about to begin. It is written before the first
// byte goes out, so that after a crash one knows that it may have arrived.
func (r *record) mark(now time.Time, limit time.Duration) {
	if r.FirstSent.IsZero() {
		r.FirstSent = now.UTC()
	}
	r.Attempts++
	r.Open, r.LastSent, r.DoubtUntil = true, now.UTC(), now.Add(limit).UTC()
}

// unmark takes a mark back of a transmission that certainly has not begun.
func (r *record) unmark() {
	r.Open = false
	if r.Attempts--; r.Attempts == 0 {
		r.FirstSent = time.Time{}
	}
}

// adopt takes a record over from whoever had it before: a transmission without a
// recorded end may have arrived.
func (r *record) adopt() {
	if !r.Open {
		return
	}
	r.fold(contract.NoReport())
}

// fold adds the proof of the transmission that was marked.
func (r *record) fold(p contract.Proof) {
	r.Open = false
	r.Evidence = r.Evidence.Add(p)
	if r.Since.IsZero() && (r.Evidence.Open > 0 || p.Proves == contract.Applied) {
		r.Since = r.LastSent
	}
}

// takeSent takes in what came of a transmission.
func (r *record) takeSent(s *Sent, now time.Time) {
	p := s.Proof
	if p.Proves == contract.Refused && p.Reach != contract.ReachKey && credentialsRefused(s) {
		// It speaks of the credentials, not of the request: nothing happened, and the
		// same may be sent again with others.
		p.Proves = contract.NotApplied
	}
	if s.operation != nil && !r.see(s.operation, s.etag) {
		s.problem = otherAccount()
		p = contract.Proof{Proves: contract.Unknown, Reach: contract.ReachThis, Cause: contract.CauseUnlisted, Status: p.Status,
			Reason: "the credentials belong to another account than before"}
	}
	r.DoubtUntil = now.UTC()
	r.fold(p)
	switch {
	case p.Proves == contract.Applied:
		r.Problem = nil
		if s.operation == nil && r.Operation == nil {
			r.Operation = r.made(semel.Succeeded, now)
			r.Operation.Result = s.Result
		}
	case s.problem != nil:
		r.Problem = bare(s.problem)
	case s.Answer != nil && (p.Proves == contract.Refused || p.Proves == contract.NotApplied):
		r.Problem = problemOf(s.Answer.Status)
	}
}

// takeSeen takes in what came of a look-up that was sent at that time.
func (r *record) takeSeen(c *contract.Contract, s *Seen, sent, now time.Time) {
	if s.unchanged {
		return
	}
	if s.operation != nil && !r.see(s.operation, s.etag) {
		s.problem, s.Found = otherAccount(), contract.FoundNoAnswer
	}
	if s.problem != nil && s.Found != contract.FoundNothing {
		r.Problem = bare(s.problem)
		if s.problem.Code == semel.CodeExpired {
			r.Evidence.Expired = true
		}
	}
	found := s.Found
	if found == "" {
		found = contract.FoundNoAnswer
	}
	if r.Evidence.Outcome() == contract.OutcomeApplied && found != contract.FoundSucceeded {
		return // it was recorded once; what a look-up does not show now changes nothing
	}
	r.Evidence = r.Evidence.Add(c.ClassifyLookUp(found, contract.Duration(sent.Sub(r.DoubtUntil))))
	switch {
	case s.operation != nil, r.Operation != nil:
	case found == contract.FoundSucceeded:
		r.Operation = r.made(semel.Succeeded, now)
		r.Operation.Result = s.Result
	case found == contract.FoundFailed:
		r.Operation = r.made(semel.Failed, now)
		if r.Operation.Failure = s.Failure; s.Failure == nil {
			r.Operation.Failure = &semel.Failure{Code: "failed"}
		}
	}
}

// takeAbandoned takes in what came of asking to abandon it. That is no transmission
// of the request, so it proves something only where the operation comes back.
func (r *record) takeAbandoned(s *Sent) (tooLate *semel.Error) {
	if s.problem != nil {
		r.Problem = bare(s.problem)
		if s.problem.Code == semel.CodeExpired {
			r.Evidence.Expired = true
		}
	}
	if s.operation == nil {
		return nil
	}
	if !r.see(s.operation, s.etag) {
		r.Problem, s.problem = otherAccount(), otherAccount()
		return nil
	}
	r.Evidence = r.Evidence.Add(contract.Proof{Proves: contract.Applied, Reach: contract.ReachKey, Cause: contract.CauseFound,
		Reason: "the server has a record of it"})
	if s.problem != nil && s.problem.Code == semel.CodeAlreadyStarted {
		r.Abandon = false
		return s.problem.Err()
	}
	return nil
}

// see takes in the operation, unless a newer one is known. It reports false where it
// belongs to another account.
func (r *record) see(op *semel.Operation, etag string) bool {
	if r.foreign = r.Account != "" && op.Key.Account != r.Account; r.foreign {
		return false
	}
	r.Account = op.Key.Account
	if r.Operation != nil && op.Revision < r.Operation.Revision {
		return true
	}
	own := *op
	own.Params = nil
	r.Operation, r.ETag = &own, etag
	return true
}

// end closes the record by what is known. Its body is no longer needed.
func (r *record) end(e ended) {
	r.Ended, r.Open = e, false
	if e == endedRejected && r.Problem == nil {
		r.Problem = problemOf(r.Evidence.Last.Status)
	}
}

// neverHappens makes the operation of an intent that was given up before anything
// of it had arrived anywhere.
func (r *record) neverHappens(now time.Time) {
	r.Operation = r.made(semel.Abandoned, now)
}

// made is an operation of an API that has none of its own.
func (r *record) made(s semel.State, now time.Time) *semel.Operation {
	return &semel.Operation{Key: r.key(), State: s, Attempts: r.Attempts, Revision: 1, CreatedAt: r.Begun.UTC(), UpdatedAt: now.UTC()}
}

// credentialsRefused reports whether an answer is about who asks.
func credentialsRefused(s *Sent) bool {
	if s.problem != nil && s.problem.Code == semel.CodeUnauthenticated {
		return true
	}
	status := s.Proof.Status
	return status == http.StatusUnauthorized || status == http.StatusProxyAuthRequired
}

// problemOf makes a problem of a refusal that did not come as one.
func problemOf(status int) *problem.Problem {
	return &problem.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: "refused",
		Retryable: status == http.StatusUnauthorized || status == http.StatusProxyAuthRequired, Recorded: semel.RecordedNo}
}

// bare is a problem as it is kept: without an operation, which may be another one's.
func bare(p *problem.Problem) *problem.Problem {
	own := *p
	own.Operation = nil
	return &own
}

func otherAccount() *problem.Problem {
	p := problem.Of(&semel.Error{Code: semel.CodeForbidden, Msg: "the credentials belong to another account than the intent"})
	return &p
}
