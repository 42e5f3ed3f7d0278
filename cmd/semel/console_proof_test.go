//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/schema"
)

// What can still be proven of an operation is said by the contract that its
// execution began under; and where the kind has another one today, that is said.
func TestConsoleTellsWhatCanBeProven(t *testing.T) {
	o := openOffice(t)
	// begun makes an operation that began under this contract, whose worker is gone:
	// as a server leaves it that ran with another configuration.
	begun := func(id, contract string, lease time.Duration) {
		t.Helper()
		if _, err := o.Ledger.Accept(t.Context(), semel.Request{Key: semel.Key{Account: "acme", Kind: "order", ID: id}, Params: []byte(`{"status":500,"answer":{}}`),
			Begun: &semel.Begun{Worker: "gone", Contract: contract, Lease: lease}}); err != nil {
			t.Fatal(err)
		}
	}
	const keyed = `{"title":"The old service","carrier":{"in":"header","name":"Idempotency-Key"},"retention":{"minimum":%q}}`
	begun("keyed", fmt.Sprintf(keyed, "24h"), time.Hour)
	begun("for-ever", `{"title":"The old service","carrier":{"in":"header","name":"Idempotency-Key"},"retention":{"after":"kept_for_ever"}}`, time.Hour)
	begun("found", `{"title":"The old service","look_up":{"by":"key","absent_after":"90s"}}`, time.Hour)
	begun("perhaps-found", `{"title":"The old service","look_up":{"by":"key"}}`, time.Hour)
	begun("forgotten", fmt.Sprintf(keyed, "1ms"), time.Millisecond)
	o.twiceBegun("first-opaque", `{"title":"The old service"}`, fmt.Sprintf(keyed, "24h"))
	o.twiceBegun("first-keyed", fmt.Sprintf(keyed, "24h"), `{"title":"The old service"}`)
	o.until("acme/order/forgotten", func(op semel.Operation) bool { return op.State == semel.NeedsReconciliation })
	o.furnish()

	const maybe, reconcile = "It may have happened. It is being worked on", "It may have happened, and nothing more is tried by itself"
	const safe = "By its contract, a repeat under the same key has no second effect"
	const opaque = "Its contract allows neither a repeat nor a look-up: without an answer, no further call can tell."
	p := o.enter(browse(t, o.demoProcess, "en"), o.everything)
	for _, c := range []struct {
		id    string
		shows []string // in what can be proven
		under string   // of the contract that is shown, empty for that of today
	}{
		{"keyed", []string{maybe, safe + " until at least "}, "The old service: it may be called again with the same key."},
		{"for-ever", []string{maybe, safe + "."}, "The old service: it may be called again with the same key."},
		{"found", []string{maybe, "“not found” is one only after the last call can no longer arrive, and another 90 s."}, "The old service: it must not be called again blindly, but it can be looked up."},
		{"perhaps-found", []string{maybe, "“not found” is none."}, "The old service: it must not be called again blindly"},
		{"forgotten", []string{reconcile, safe + " until at least ", ". After that, a repeat could have a second effect, and proves nothing."}, "The old service: it may be called again with the same key."},
		{"lost-1", []string{reconcile, opaque, "the contract does not protect a repeat"}, ""},
		{"resolved", []string{"A person decided, by the evidence below; no call has proven it."}, ""},
		{"done-1", []string{"It is settled; nothing is left to find out.", "settled: "}, ""},
		{"abandoned", []string{"It was abandoned before it began: it never happened, and a late request is refused."}, ""},
	} {
		p.view("operation/acme/order/"+c.id, "#proof")
		p.wait(`document.querySelector("h1 .id").textContent == %q`, c.id)
		said := p.text("#proof")
		for _, want := range c.shows {
			if !strings.Contains(said, want) {
				t.Errorf("%s: it does not say %q:\n%s", c.id, want, said)
			}
		}
		for _, other := range []string{maybe, reconcile, opaque, "By its contract", "can be looked up"} {
			if strings.Contains(said, other) && !strings.Contains(strings.Join(c.shows, "\n"), other) && !(other == "can be looked up" && strings.Contains(c.id, "found")) {
				t.Errorf("%s: it says %q:\n%s", c.id, other, said)
			}
		}
		shown, differs := p.text("#contract .words"), js[bool](p, `!!document.querySelector("#contract .differs")`)
		switch {
		case c.under != "" && (!strings.Contains(shown, c.under) || !differs || !strings.Contains(p.text("#contract"), "Execution 1 began under this contract:")):
			t.Errorf("%s: of the contract it says\n%s", c.id, p.text("#contract"))
		case c.under == "" && (!strings.Contains(shown, "it can neither be called again nor looked up") || differs):
			t.Errorf("%s: of the contract it says\n%s", c.id, p.text("#contract"))
		}
	}
	// Where two are in doubt, the first one's contract counts: the second one went by it.
	p.expected = append(p.expected, "404") // this server no longer has the kind
	for id, want := range map[string][2]string{"first-opaque": {opaque, safe}, "first-keyed": {safe + " until at least ", opaque}} {
		p.view("operation/acme/retired/"+id, "#proof")
		p.wait(`document.querySelector("h1 .id").textContent == %q`, id)
		if said := p.text("#proof"); !strings.Contains(said, reconcile) || !strings.Contains(said, want[0]) || strings.Contains(said, want[1]) {
			t.Errorf("%s: it says\n%s", id, said)
		}
	}
	p.view("operation/acme/order/keyed", "#proof")
	p.click("#contract summary")
	p.wait(`document.querySelector("#contract details .words").innerText.includes("it can neither be called again nor looked up")`)
	p.click("#language")
	p.wait(`document.querySelector("#contract .differs").textContent.startsWith("该类型目前的说法不同") && document.querySelector("#proof").textContent.includes("至少到")`)
}

// twiceBegun makes an operation of another server's kind, with two executions in
// doubt: one under each contract, the first one's worker gone.
func (o *office) twiceBegun(id, first, second string) {
	o.t.Helper()
	ctx := o.t.Context()
	other, err := semel.New(ctx, o.Store, &semel.Options{Kinds: []semel.Kind{{Name: "retired", Canon: schema.JSON("retired")}}})
	if err != nil {
		o.t.Fatal(err)
	}
	if _, err := other.Accept(ctx, semel.Request{Key: semel.Key{Account: "acme", Kind: "retired", ID: id}, Params: []byte(`{}`),
		Begun: &semel.Begun{Worker: "gone", Contract: first, Lease: time.Millisecond}}); err != nil {
		o.t.Fatal(err)
	}
	var leases []semel.Lease
	for len(leases) == 0 { // until the first lease has ended
		if leases, err = other.Claim(ctx, semel.ClaimRequest{Worker: "next", Max: 1, Kinds: []semel.ClaimKind{{Kind: "retired", Lease: time.Hour, Contract: second}}}); err != nil {
			o.t.Fatal(err)
		}
	}
	lease, err := other.Begin(ctx, leases[0])
	if err == nil {
		_, err = other.Finish(ctx, lease, semel.Ending{Outcome: semel.Unknown})
	}
	if err != nil {
		o.t.Fatal(err)
	}
}
