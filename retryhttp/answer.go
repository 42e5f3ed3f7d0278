package retryhttp

import (
	"io"
	"net/http"
	"time"

	"github.com/semel-dev/semel/contract"
)

const (
	// lookLimit is how much of an answer is read for the sake of a machine code, and
	// kept in an error.
	lookLimit = 64 << 10
	// drainTime is how long an answer is drained at most.
	drainTime = 250 * time.Millisecond
)

// bodyNeeds says for which answers a contract needs the body.
type bodyNeeds struct{ success, other bool }

func needsOf(c *contract.Contract) bodyNeeds {
	need := bodyNeeds{success: c.Answers.CodeIn2xx}
	add := func(list ...contract.Match) {
		for _, m := range list {
			if m.Code == "" {
				continue
			}
			if m.Status == 0 || m.Status/100 == 2 {
				need.success = true
			}
			if m.Status/100 != 2 {
				need.other = true
			}
		}
	}
	add(c.Mismatch.Answer, c.InProgress.Answer, c.InProgress.InDoubt, c.Retention.Refusal)
	for _, list := range [][]contract.Match{c.Mismatch.Also, c.InProgress.Also, c.Answers.Applied,
		c.Answers.NothingHappened, c.Answers.RefusedAfterLookUp, c.Answers.Refused} {
		add(list...)
	}
	return need
}

// look reads the beginning of the answer's body where the contract needs it, or the
// caller wants it.
func (a *attempt) look() {
	c := a.call
	success := a.resp.StatusCode/100 == 2
	switch {
	case c.whole:
		a.read(c.wholeLimit)
	case success && c.reads.success, c.reads.other && a.resp.StatusCode >= 300:
		a.read(lookLimit)
	}
}

// read reads up to limit bytes of the body, and one more to see whether it ends.
func (a *attempt) read(limit int64) {
	if a.head != nil || a.full || a.cut != nil || a.resp.Body == nil || a.resp.Body == http.NoBody {
		return
	}
	head, err := io.ReadAll(io.LimitReader(a.resp.Body, limit+1))
	a.head = head
	switch {
	case err != nil:
		a.cut = a.explain(err)
	case int64(len(head)) <= limit:
		a.full = true
	}
}

// arrival says how much of the answer has arrived so far.
func (a *attempt) arrival() contract.Arrival {
	switch {
	case a.cut != nil:
		return contract.ArrivedCut
	case a.full, a.resp.Body == nil, a.resp.Body == http.NoBody:
		return contract.ArrivedComplete
	}
	return contract.ArrivedLimited
}

// drop gives the answer up, whose body can no longer be read.
func (a *attempt) drop() {
	if a.resp.Body == nil || a.resp.Body == http.NoBody {
		a.full = true
		return
	}
	if a.cut == nil {
		a.cut = timeoutError{a.limit}
	}
}

// deliver hands the answer to the caller. Its context ends with the body, and not
// before.
func (a *attempt) deliver() {
	if a.resp.Body == nil || a.resp.Body == http.NoBody {
		a.cancel()
		return
	}
	a.body = answerBody{attempt: a, rest: a.resp.Body}
	a.resp.Body = &a.body
}

// answerBody is the body of an answer: what was read of it already, then the rest.
type answerBody struct {
	attempt *attempt
	rest    io.ReadCloser
}

func (b *answerBody) Read(p []byte) (int, error) {
	a := b.attempt
	if len(a.head) > 0 {
		n := copy(p, a.head)
		a.head = a.head[n:]
		return n, nil
	}
	if a.cut != nil {
		return 0, a.cut
	}
	n, err := b.rest.Read(p)
	if err != nil {
		a.cancel()
	}
	return n, err
}

func (b *answerBody) Close() error {
	err := b.rest.Close()
	b.attempt.cancel()
	return err
}

// discard drains an answer that is not returned, as far as that is cheap, and lets
// go of everything that the attempt holds.
func (a *attempt) discard(limit int64) {
	if a.resp != nil && a.resp.Body != nil {
		if a.cut == nil && !a.full && a.resp.Body != http.NoBody {
			enough := time.AfterFunc(drainTime, a.cancel)
			io.CopyN(io.Discard, a.resp.Body, limit)
			enough.Stop()
		}
		a.resp.Body.Close()
	}
	a.cancel()
}

// keep returns the answer as far as it fits into an error, and discards the rest.
func (a *attempt) keep() *contract.Answer {
	enough := time.AfterFunc(drainTime, a.cancel)
	a.read(lookLimit)
	enough.Stop()
	answer := &contract.Answer{Status: a.resp.StatusCode, Header: a.resp.Header, Body: a.head[:min(len(a.head), lookLimit)]}
	a.discard(a.call.t.opts.DrainLimit)
	return answer
}
