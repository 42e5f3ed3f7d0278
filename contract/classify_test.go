package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
)

var (
	goings   = []contract.Going{"", contract.NotBegun, contract.Begun}
	arrivals = []contract.Arrival{contract.ArrivedNothing, contract.ArrivedCut, contract.ArrivedLimited, contract.ArrivedComplete}
	failures = []contract.Failure{"", contract.FailedDial, contract.FailedDNS, contract.FailedTLS, contract.FailedNoConn, contract.FailedRefused,
		contract.FailedGoAway, contract.FailedUnwritten, contract.FailedTimeout, contract.FailedReset, contract.FailedEOF,
		contract.FailedCancelled, contract.FailedMalformed, contract.FailedOtherwise, "something new"}
	methods = []string{"POST", "PATCH", "PUT", "GET", ""}
)

// everyContract returns all the contracts of these tests: presets, other APIs, and the one that says nothing.
func everyContract() []contract.Contract {
	all := append(contract.Presets(), contract.Contract{Name: "zero"})
	for _, api := range otherAPIs {
		all = append(all, api.make())
	}
	return all
}

// everyAnswer returns an answer of every status, plain and with everything that any contract could react to.
func everyAnswer() []*contract.Answer {
	bodies := []string{"", `{}`, `not json`, `{"code":"in-progress","recorded":"no"}`,
		`{"error":{"code":"idempotency_key_in_use","type":"idempotency_error"}}`, `<Response><Code>RequestLimitExceeded</Code></Response>`}
	headers := []http.Header{nil, {"Idempotent-Replayed": {"true"}}, {"Idempotency-Replayed": {"true"}},
		{"Transient-Error": {"true"}, "Stripe-Should-Retry": {"true"}}, {"Repeatability-Result": {"rejected"}}}
	var all []*contract.Answer
	for _, status := range []int{200, 201, 202, 204, 206, 301, 303, 304, 307, 400, 401, 402, 403, 404, 405, 408, 409, 410, 412, 413, 415, 417,
		418, 421, 422, 423, 424, 425, 426, 428, 429, 431, 451, 499, 500, 501, 502, 503, 504, 505, 507, 511, 520, 599, 999} {
		for _, b := range bodies {
			for _, h := range headers {
				all = append(all, &contract.Answer{Status: status, Header: h, Body: []byte(b)})
			}
		}
	}
	return all
}

// The table of section 5, row by row.
func TestWhatIsObservedAndWhatItProves(t *testing.T) {
	stripe, _ := contract.Preset(contract.StripeV1)
	opaque, _ := contract.Preset(contract.Opaque)
	post := contract.Request{Method: "POST", Keyed: true, Replayable: true}
	answer := func(status int) *contract.Answer { return &contract.Answer{Status: status} }
	nothing := func(g contract.Going, f contract.Failure) contract.Wire {
		return contract.Wire{Going: g, Sends: 1, Failure: f}
	}
	tests := []struct {
		observed string
		c        contract.Contract
		w        contract.Wire
		a        *contract.Answer
		proves   contract.Proves
	}{
		{"dial failed", stripe, nothing(contract.NotBegun, contract.FailedDial), nil, contract.NotSent},
		{"DNS failed", stripe, nothing(contract.NotBegun, contract.FailedDNS), nil, contract.NotSent},
		{"TLS failed", stripe, nothing(contract.NotBegun, contract.FailedTLS), nil, contract.NotSent},
		{"no connection was got", stripe, nothing(contract.NotBegun, contract.FailedNoConn), nil, contract.NotSent},
		{"timeout before a connection", stripe, nothing(contract.NotBegun, contract.FailedTimeout), nil, contract.NotSent},
		{"cancelled before a connection", stripe, nothing(contract.NotBegun, contract.FailedCancelled), nil, contract.NotSent},
		{"REFUSED_STREAM", stripe, nothing(contract.Begun, contract.FailedRefused), nil, contract.NotSent},
		{"GOAWAY below ours", stripe, nothing(contract.Begun, contract.FailedGoAway), nil, contract.NotSent},
		{"a rejection that the contract calls definite", opaque, complete, answer(422), contract.Refused},
		{"401", stripe, complete, answer(401), contract.Refused},
		{"429 by contract", stripe, complete, answer(429), contract.NotApplied},
		{"429 without the contract's word", opaque, complete, answer(429), contract.Unknown},
		{"502", stripe, complete, answer(502), contract.Unknown},
		{"503", stripe, complete, answer(503), contract.Unknown},
		{"504", stripe, complete, answer(504), contract.Unknown},
		{"500", stripe, complete, answer(500), contract.Unknown},
		{"timeout", stripe, nothing(contract.Begun, contract.FailedTimeout), nil, contract.Unknown},
		{"reset", stripe, nothing(contract.Begun, contract.FailedReset), nil, contract.Unknown},
		{"EOF", stripe, nothing(contract.Begun, contract.FailedEOF), nil, contract.Unknown},
		{"a dial error after an earlier send of the same call", stripe, nothing(contract.Begun, contract.FailedDial), nil, contract.Unknown},
		{"409 in progress", stripe, complete, &contract.Answer{Status: 409, Body: []byte(`{"error":{"code":"idempotency_key_in_use"}}`)}, contract.InProgressNow},
		{"a complete answer, then a reset", stripe, contract.Wire{Going: contract.Begun, Sends: 1, Failure: contract.FailedReset, Arrival: contract.ArrivedComplete}, answer(201), contract.Applied},
		{"an answer that we stopped reading", stripe, contract.Wire{Going: contract.Begun, Sends: 1, Arrival: contract.ArrivedLimited}, answer(201), contract.Applied},
		{"an answer that broke off", stripe, contract.Wire{Going: contract.Begun, Sends: 1, Failure: contract.FailedReset, Arrival: contract.ArrivedCut}, answer(201), contract.Unknown},
		{"a rejection that broke off", stripe, contract.Wire{Going: contract.Begun, Sends: 1, Failure: contract.FailedReset, Arrival: contract.ArrivedCut}, answer(401), contract.Unknown},
		{"nothing is known", stripe, contract.Wire{}, nil, contract.Unknown},
	}
	for _, tt := range tests {
		p := tt.c.Classify(post, tt.w, tt.a)
		if p.Proves != tt.proves {
			t.Errorf("%s proves %s (%s), want %s", tt.observed, p.Proves, p.Reason, tt.proves)
		}
	}
}

// wireProves is what the facts of the wire prove where no answer counts, written down a second time.
func wireProves(w contract.Wire) contract.Proves {
	notSent := false
	switch w.Failure {
	case contract.FailedDial, contract.FailedDNS, contract.FailedTLS, contract.FailedNoConn, contract.FailedUnwritten:
		notSent = w.Going != contract.Begun
	case contract.FailedRefused, contract.FailedGoAway:
		notSent = true
	}
	notSent = notSent || w.Going == contract.NotBegun
	if notSent && w.Sends <= 1 && w.Arrival == contract.ArrivedNothing {
		return contract.NotSent
	}
	return contract.Unknown
}

// The whole cross product of the wire, under every contract, for every request.
func TestEveryWire(t *testing.T) {
	n := 0
	for _, c := range everyContract() {
		for _, r := range everyRequest() {
			for _, w := range everyWire() {
				n++
				var a *contract.Answer
				if w.Arrival != contract.ArrivedNothing {
					a = &contract.Answer{Status: 201}
				}
				p := c.Classify(r, w, a)
				want := wireProves(w)
				if w.Arrival == contract.ArrivedComplete || w.Arrival == contract.ArrivedLimited {
					want = contract.Applied
				}
				if p.Proves != want {
					t.Fatalf("%s %+v %+v proves %s, want %s", c.Name, r, w, p.Proves, want)
				}
				checkProof(t, c, r, w, a, p)
				// An answer that is claimed but not there changes nothing.
				if q := c.Classify(r, w, nil); q.Proves != wireProves(w) && w.Arrival == contract.ArrivedNothing || q.Proves == contract.Applied {
					t.Fatalf("%s %+v %+v without an answer proves %s", c.Name, r, w, q.Proves)
				}
			}
		}
	}
	t.Logf("%d combinations", n)
}

// Every answer, under every contract, for every request: the laws that hold for all of them.
func TestEveryAnswer(t *testing.T) {
	n := 0
	broken := complete
	broken.Failure = contract.FailedReset
	twice := complete
	twice.Sends = 2
	for _, c := range everyContract() {
		for _, r := range everyRequest() {
			for _, a := range everyAnswer() {
				n++
				p := c.Classify(r, complete, a)
				checkProof(t, c, r, complete, a, p)
				if q := c.Classify(r, broken, a); q != p {
					t.Fatalf("%s %+v %d: a reset after the complete answer changes the proof from %+v to %+v", c.Name, r, a.Status, p, q)
				}
				q := c.Classify(r, twice, a)
				checkProof(t, c, r, twice, a, q)
				if p.Reach == contract.ReachThis && p.Proves != contract.InProgressNow && q.Proves != contract.Unknown {
					t.Fatalf("%s %+v %d: covers the last of two sends only, and yet proves %s", c.Name, r, a.Status, q.Proves)
				}
				if p.Reach != contract.ReachThis && q.Proves != p.Proves {
					t.Fatalf("%s %+v %d: reaches beyond its send, and yet is lost with two of them", c.Name, r, a.Status)
				}
			}
		}
	}
	t.Logf("%d combinations", n)
}

func everyRequest() []contract.Request {
	var all []contract.Request
	for _, m := range methods {
		for _, keyed := range []bool{true, false} {
			all = append(all, contract.Request{Method: m, Keyed: keyed, Replayable: keyed})
		}
	}
	return all
}

func everyWire() []contract.Wire {
	var all []contract.Wire
	for _, g := range goings {
		for _, f := range failures {
			for _, a := range arrivals {
				for sends := range 3 {
					all = append(all, contract.Wire{Going: g, Sends: sends, Failure: f, Arrival: a})
				}
			}
		}
	}
	return all
}

// checkProof holds one proof against the laws.
func checkProof(t *testing.T, c contract.Contract, r contract.Request, w contract.Wire, a *contract.Answer, p contract.Proof) {
	t.Helper()
	fail := func(law string) {
		t.Helper()
		t.Fatalf("%s\n%s %+v %+v %+v\n%+v", law, c.Name, r, w, a, p)
	}
	keyed := r.Keyed && c.Honours(r.Method)
	switch p.Proves {
	case contract.NotSent, contract.NotApplied, contract.Refused, contract.Applied, contract.InProgressNow, contract.Unknown:
	default:
		fail("a proof says one of six things")
	}
	if p.Reason == "" || p.Cause == "" || p.Reach == "" {
		fail("a proof says why, and how far it goes")
	}
	if p.Reach != contract.ReachThis && p.Proves != contract.Applied && p.Proves != contract.Refused {
		fail("only an answer for the key reaches beyond its transmission")
	}
	if p.Proves == contract.Refused && p.Reach != contract.ReachThis && !keyed {
		fail("without a key no refusal speaks for other transmissions")
	}
	if !keyed && (p.Proves == contract.InProgressNow || p.Cause == contract.CauseMismatch || p.Cause == contract.CauseExpired || p.Replayed) {
		fail("without a key that the contract honours, nothing is said about one")
	}
	if a == nil || p.Cause == contract.CauseHiddenSends {
		return
	}
	plain := len(a.Header) == 0 && (len(a.Body) == 0 || string(a.Body) == "{}")
	switch {
	case plain && a.Status >= 500 && a.Status != 501 && p.Proves != contract.Unknown:
		fail("a bare server error proves nothing")
	case a.Status/100 == 3 && p.Proves != contract.Unknown:
		fail("a redirect proves nothing here")
	case plain && a.Status/100 == 2 && w.Arrival == contract.ArrivedComplete && p.Proves != contract.Applied:
		fail("a complete success is one")
	case a.Status/100 != 2 && p.Proves == contract.Applied:
		fail("no contract of these tests calls this a success")
	case c.Name == "zero" && a.Status/100 != 2 && p.Proves != contract.Unknown:
		fail("a contract that says nothing makes no rejection definite")
	case p.Final && p.Proves != contract.Unknown:
		fail("only an unknown outcome is final in the sense that asking again is useless")
	}
}

// A bare status that anybody on the way may have given is never taken for the API's word, whatever the contract says.
func TestBareServerErrorsAreNeverBelieved(t *testing.T) {
	for _, status := range []int{500, 502, 503, 504} {
		c := contract.Contract{
			Carrier: contract.Carrier{Place: contract.Place{In: contract.InHeader, Name: "K"}},
			Answers: contract.Answers{
				Applied:            []contract.Match{{Status: status}},
				NothingHappened:    []contract.Match{{Status: status}},
				Refused:            []contract.Match{{Status: status}},
				RefusedAfterLookUp: []contract.Match{{Status: status}},
			},
			InProgress: contract.InProgress{Answer: contract.Match{Status: status}},
			Mismatch:   contract.Mismatch{Answer: contract.Match{Status: status}},
		}
		p := c.Classify(contract.Request{Method: "POST", Keyed: true}, complete, &contract.Answer{Status: status})
		if p.Proves != contract.Unknown {
			t.Errorf("a bare %d proves %s", status, p.Proves)
		}
		if c.Validate() == nil {
			t.Errorf("a contract that believes a bare %d is valid", status)
		}
	}
}

// An exact match counts before a bare status, in whichever list they stand.
func TestExactMatchesComeFirst(t *testing.T) {
	c, err := contract.Parse([]byte(`{"preset":"ietf","answers":{"code_at":["/code"],"refused":[{"status":422,"code":"refused"},400]}}`))
	if err != nil {
		t.Fatal(err)
	}
	checkSamples(t, c, []sample{
		{"422 refused", 422, nil, `{"code":"refused"}`, contract.Refused, this, contract.CauseRejected},
		{"422", 422, nil, `{}`, contract.Refused, this, contract.CauseMismatch},
	})
}

// Errors inside successful answers (GraphQL and its like).
func TestCodesInsideSuccess(t *testing.T) {
	at := "/errors/0/extensions/code"
	c := contract.Contract{
		Name:       "graphql",
		Carrier:    contract.Carrier{Place: contract.Place{In: contract.InDirective, Name: "@idempotent(key)"}},
		Retention:  contract.Retention{Minimum: contract.Duration(time.Hour), After: contract.AfterRunsAgain},
		Mismatch:   contract.Mismatch{Do: contract.MismatchRefused, Answer: contract.Match{Status: 200, Code: "KEY_PARAMETER_MISMATCH"}},
		InProgress: contract.InProgress{Do: contract.ConcurrentRefused, Answer: contract.Match{Status: 200, Code: "CONCURRENT_REQUEST"}},
		Answers: contract.Answers{CodeAt: []string{at}, CodeIn2xx: true,
			Applied:         []contract.Match{{Status: 200, Code: "ALREADY_DONE"}, {Status: 303}},
			NothingHappened: []contract.Match{{Status: 200, Code: "THROTTLED"}},
			Refused:         []contract.Match{{Status: 200, Code: "BAD_USER_INPUT"}}},
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	body := func(code string) string { return fmt.Sprintf(`{"errors":[{"extensions":{"code":%q}}]}`, code) }
	checkSamples(t, c, []sample{
		{"success", 200, nil, `{"data":{}}`, contract.Applied, key, contract.CauseSuccess},
		{"mismatch", 200, nil, body("KEY_PARAMETER_MISMATCH"), contract.Refused, this, contract.CauseMismatch},
		{"in progress", 200, nil, body("CONCURRENT_REQUEST"), contract.InProgressNow, this, contract.CauseInProgress},
		{"throttled", 200, nil, body("THROTTLED"), contract.NotApplied, this, contract.CauseTurnedAway},
		{"rejected", 200, nil, body("BAD_USER_INPUT"), contract.Refused, this, contract.CauseRejected},
		{"already done", 200, nil, body("ALREADY_DONE"), contract.Applied, key, contract.CauseSuccess},
		{"an unknown code", 200, nil, body("NEW"), contract.Unknown, this, contract.CauseUnlisted},
		{"303", 303, nil, "", contract.Applied, key, contract.CauseSuccess},
	})
}

// No reason holds anything that came from the answer, except codes which the contract itself names.
func TestReasonsHoldNothingForeign(t *testing.T) {
	const secret = "s3cr3t"
	for _, c := range everyContract() {
		for _, status := range []int{200, 400, 402, 409, 422, 500, 503} {
			a := &contract.Answer{Status: status, Header: http.Header{"Idempotent-Replayed": {secret}},
				Body: fmt.Appendf(nil, `{"code":%q,"type":%[1]q,"name":%[1]q,"errorCode":%[1]q,"error":{"code":%[1]q,"type":%[1]q,"status":%[1]q}}`, secret)}
			p := c.Classify(contract.Request{Method: "POST", Keyed: true}, complete, a)
			if strings.Contains(fmt.Sprintf("%+v", p), secret) {
				t.Errorf("%s, %d: %+v", c.Name, status, p)
			}
		}
	}
}

func TestAgainSign(t *testing.T) {
	c, _ := contract.Preset(contract.StripeV1)
	for value, want := range map[string]string{"true": contract.AgainYes, "false": contract.AgainNo, "": "", "maybe": ""} {
		p := c.Classify(contract.Request{Method: "POST", Keyed: true}, complete, &contract.Answer{Status: 500, Header: header("Stripe-Should-Retry", value)})
		if p.Again != want {
			t.Errorf("%q says %q, want %q", value, p.Again, want)
		}
	}
}

func TestLookUpProves(t *testing.T) {
	q, _ := contract.Preset(contract.Queryable)
	never := ec2()
	minute := contract.Duration(time.Minute)
	tests := []struct {
		c      contract.Contract
		found  contract.Found
		since  contract.Duration
		proves contract.Proves
		reach  contract.Reach
	}{
		{q, contract.FoundSucceeded, -minute, contract.Applied, key},
		{q, contract.FoundFailed, 0, contract.Refused, key},
		{q, contract.FoundPending, 0, contract.InProgressNow, this},
		{q, contract.FoundNoAnswer, 2 * minute, contract.Unknown, this},
		{q, contract.FoundNothing, minute - 1, contract.Unknown, this},
		{q, contract.FoundNothing, -minute, contract.Unknown, this},
		{q, contract.FoundNothing, minute, contract.NotApplied, earlier},
		{never, contract.FoundNothing, 1000 * minute, contract.Unknown, this},
		{q, "", minute, contract.Unknown, this},
	}
	for _, tt := range tests {
		p := tt.c.ClassifyLookUp(tt.found, tt.since)
		if p.Proves != tt.proves || p.Reach != tt.reach {
			t.Errorf("%s: %q after %s proves %s/%s, want %s/%s", tt.c.Name, tt.found, tt.since, p.Proves, p.Reach, tt.proves, tt.reach)
		}
	}
}

func TestKeeps(t *testing.T) {
	c := contract.Contract{Stored: contract.Stored{Outcomes: contract.StoresDefinite, Except: []int{408, 409, 425, 429}}}
	for status, want := range map[int]bool{200: true, 204: true, 302: false, 400: true, 404: true, 408: false, 409: false, 425: false, 429: false, 500: false, 503: false} {
		if c.Keeps(status) != want {
			t.Errorf("keeps %d: %v, want %v", status, !want, want)
		}
	}
	if (contract.Contract{}).Keeps(200) {
		t.Error("a contract that says nothing keeps nothing")
	}
}
