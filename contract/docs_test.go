package contract_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
)

var update = flag.Bool("update", false, "write docs/contracts.md anew")

//go:generate go test -run TestDocsAreCurrent -update

const docsPage = "../docs/contracts.md"

// The page is made from the data, so it cannot promise what the code does not do.
func TestDocsAreCurrent(t *testing.T) {
	page := contractsPage(t)
	if *update {
		if err := os.WriteFile(docsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page {
		t.Errorf("docs/contracts.md is stale: run go generate ./contract")
	}
}

// docsContract is the contract that the page shows as an example.
const docsContract = `{
  "preset": "ietf",
  "name": "orders",
  "carrier": {"in": "header", "name": "X-Request-Key"},
  "key": {"form": "uuid", "uuid_version": 4, "quoting": "bare"},
  "retention": {"minimum": "30d", "after": "refused", "refusal": 410},
  "replay": {"marker": {"header": "X-Replayed", "value": "true"}},
  "stored": {"outcomes": "success_and_refusal", "server_errors": "resumed"},
  "answers": {
    "code_at": ["/error/code"],
    "nothing_happened": [429, {"status": 503, "code": "maintenance"}],
    "refused": [400, 401, 403, 404, {"status": 409, "code": "out_of_stock"}]
  },
  "look_up": {"by": "key", "request": "GET /orders?request_key={key}", "consistent_after": "2s", "absent_after": "1m"}
}`

func contractsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString(docsIntro)
	b.WriteString("\n## What an observation proves\n\n")
	observations(&b)
	b.WriteString(docsEvidence)
	recoveries(t, &b)
	b.WriteString("\n## Writing a contract\n\n")
	c, err := contract.Parse([]byte(docsContract))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, docsWriting, docsContract, bullets(c.Words()))
	reference(t, &b)
	b.WriteString("\n## The presets\n\n| name | shape | whose |\n|---|---|---|\n")
	for _, c := range contract.Presets() {
		fmt.Fprintf(&b, "| [`%s`](#%[1]s) | %s | %s |\n", c.Name, c.Shape(), c.Title)
	}
	for _, c := range contract.Presets() {
		presetSection(&b, c)
	}
	return b.String()
}

func bullets(words string) string {
	return "- " + strings.ReplaceAll(escape(words), "\n", "\n- ")
}

// escape keeps braces and angle brackets of templates from being read as markup.
func escape(s string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "|", "\\|").Replace(s)
}

// observations writes the table of what the wire and an answer prove, each line by asking Classify.
func observations(b *strings.Builder) {
	stripe, _ := contract.Preset(contract.StripeV1)
	opaque, _ := contract.Preset(contract.Opaque)
	wire := func(g contract.Going, f contract.Failure) contract.Wire {
		return contract.Wire{Going: g, Sends: 1, Failure: f}
	}
	twice := complete
	twice.Sends = 2
	reset := complete
	reset.Failure = contract.FailedReset
	cut := contract.Wire{Going: contract.Begun, Sends: 1, Failure: contract.FailedReset, Arrival: contract.ArrivedCut}
	limited := contract.Wire{Going: contract.Begun, Sends: 1, Arrival: contract.ArrivedLimited}
	answer := func(status int) *contract.Answer { return &contract.Answer{Status: status} }
	b.WriteString("| observed | under | proves |\n|---|---|---|\n")
	for _, row := range []struct {
		observed string
		c        contract.Contract
		w        contract.Wire
		a        *contract.Answer
	}{
		{"dial failed", opaque, wire(contract.NotBegun, contract.FailedDial), nil},
		{"name not resolved", opaque, wire(contract.NotBegun, contract.FailedDNS), nil},
		{"TLS handshake failed", opaque, wire(contract.NotBegun, contract.FailedTLS), nil},
		{"no connection was got", opaque, wire(contract.NotBegun, contract.FailedNoConn), nil},
		{"HTTP/2 REFUSED_STREAM", opaque, wire(contract.Begun, contract.FailedRefused), nil},
		{"HTTP/2 GOAWAY whose last stream ID is below ours", opaque, wire(contract.Begun, contract.FailedGoAway), nil},
		{"timeout before a connection was there", opaque, wire(contract.NotBegun, contract.FailedTimeout), nil},
		{"timeout after the request began to go out", opaque, wire(contract.Begun, contract.FailedTimeout), nil},
		{"reset after it", opaque, wire(contract.Begun, contract.FailedReset), nil},
		{"end of the connection after it", opaque, wire(contract.Begun, contract.FailedEOF), nil},
		{"dial failed, after an earlier send of the same call (a hidden re-send)", opaque, wire(contract.Begun, contract.FailedDial), nil},
		{"an answer that broke off", opaque, cut, answer(201)},
		{"a complete 201", opaque, complete, answer(201)},
		{"a complete 201, then a reset", opaque, reset, answer(201)},
		{"a 201 that we stopped reading (too large, a stream)", opaque, limited, answer(201)},
		{"400", opaque, complete, answer(400)},
		{"400, after two sends within the call", opaque, twice, answer(400)},
		{"429", opaque, complete, answer(429)},
		{"429", stripe, complete, answer(429)},
		{"500", stripe, complete, answer(500)},
		{"502, 503, 504", stripe, complete, answer(503)},
	} {
		p := row.c.Classify(contract.Request{Method: "POST", Keyed: true}, row.w, row.a)
		fmt.Fprintf(b, "| %s | `%s` | %s: %s |\n", row.observed, row.c.Name, provesWords[p.Proves], p.Reason)
	}
}

var provesWords = map[contract.Proves]string{
	contract.NotSent:       "**not sent**",
	contract.NotApplied:    "**not applied**",
	contract.Refused:       "**refused**",
	contract.Applied:       "**applied**",
	contract.InProgressNow: "**in progress**",
	contract.Unknown:       "**unknown**",
}

// recoveries writes what Recover does in the situations that matter.
func recoveries(t *testing.T, b *strings.Builder) {
	fold := contract.Fold
	b.WriteString("| situation | under | next | because |\n|---|---|---|---|\n")
	for _, row := range []struct {
		situation, preset string
		s                 contract.Situation
	}{
		{"no execution has begun", contract.Opaque, contract.Situation{NotBegun: true}},
		{"a dial error, and nothing else", contract.Opaque, contract.Situation{Evidence: fold(unsent)}},
		{"a timeout, then a dial error", contract.Opaque, contract.Situation{Evidence: fold(lost, unsent)}},
		{"a timeout, an hour ago", contract.StripeV1, contract.Situation{Evidence: fold(lost), Age: time.Hour, Margin: time.Minute}},
		{"a timeout, a day ago", contract.StripeV1, contract.Situation{Evidence: fold(lost), Age: 24 * time.Hour, Margin: time.Minute}},
		{"a timeout, then a 401", contract.StripeV1, contract.Situation{Evidence: fold(lost, rejected), Age: time.Minute}},
		{"in progress, a moment ago", contract.StripeV1, contract.Situation{Evidence: fold(running), Age: time.Minute}},
		{"a 500", contract.StripeV1, contract.Situation{Evidence: fold(serverError), Age: time.Minute}},
		{"a 500 that is replayed", contract.StripeV1, contract.Situation{Evidence: fold(serverError, stored500), Age: time.Minute}},
		{"a 500", contract.Azure, contract.Situation{Evidence: fold(serverError), Age: time.Minute}},
		{"a timeout", contract.Queryable, contract.Situation{Evidence: fold(lost)}},
		{"a timeout; looked up, not found, 20 s after it could last have arrived", contract.Queryable, contract.Situation{Evidence: fold(lost), Found: contract.FoundNothing, LookUps: 6, SinceDoubt: 20 * time.Second}},
		{"a timeout; looked up, not found, 60 s after it could last have arrived", contract.Queryable, contract.Situation{
			Evidence: fold(lost, preset(t, contract.Queryable).ClassifyLookUp(contract.FoundNothing, contract.Duration(time.Minute)))}},
		{"a timeout", contract.Opaque, contract.Situation{Evidence: fold(lost)}},
		{"begun, and the worker died", contract.Opaque, contract.Situation{Evidence: fold(contract.NoReport())}},
	} {
		d := preset(t, row.preset).Recover(row.s)
		step := strings.ReplaceAll(string(d.Step), "_", " ")
		if d.Wait > 0 {
			step += " " + d.Wait.String()
		}
		fmt.Fprintf(b, "| %s | `%s` | **%s** | %s |\n", row.situation, row.preset, step, escape(d.Reason))
	}
}

func presetSection(b *strings.Builder, c contract.Contract) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n", c.Name, bullets(c.Words()))
	b.WriteString("\nWhat its answers prove, for a POST with a key:\n\n| answer | proves | about |\n|---|---|---|\n")
	for _, s := range presetSamples[c.Name] {
		p := c.Classify(contract.Request{Method: "POST", Keyed: true, Replayable: true}, complete, s.answer())
		fmt.Fprintf(b, "| %s | %s | %s |\n", escape(s.says), provesWords[p.Proves], reachWords[p.Reach])
	}
	b.WriteString("\nSources:\n\n| field | from |\n|---|---|\n")
	for _, s := range contract.Sources(c.Name) {
		mark := ""
		if s.Unverified {
			mark = "**unverified**: "
		}
		fmt.Fprintf(b, "| `%s` | %s%s |\n", s.Field, mark, escape(s.From))
	}
}

var reachWords = map[contract.Reach]string{
	contract.ReachThis:    "this transmission",
	contract.ReachEarlier: "this one and all before it",
	contract.ReachKey:     "every transmission under the key",
}
