package idempotency_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/idempotency"
)

// What the middleware answers proves, by its own contract, what is the case: the
// client and the middleware read the same data.
func TestContractIsKept(t *testing.T) {
	c := idempotency.DefaultContract()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if !c.Shape().Idempotent {
		t.Error("it is not idempotent by its own words")
	}
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(func(o *idempotency.Options, _ *database) { o.MaxAnswer, o.MaxBody = 1000, 1000 })
		status, notApplied := 201, false
		entered, leave := make(chan bool), make(chan bool)
		block := false
		n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
			if block {
				entered <- true
				<-leave
			}
			if notApplied {
				idempotency.NotApplied(r.Context())
			}
			w.WriteHeader(status)
		})
		request := contract.Request{Method: "POST", Keyed: true, Replayable: true}
		proves := func(a answer) contract.Proof {
			t.Helper()
			if a.err != nil {
				t.Fatal(a.err)
			}
			return c.Classify(request, contract.Wire{Going: contract.Begun, Arrival: contract.ArrivedComplete},
				&contract.Answer{Status: a.status, Header: a.header, Body: []byte(a.body)})
		}
		expect := func(what string, a answer, want contract.Proves) {
			t.Helper()
			if got := proves(a); got.Proves != want {
				t.Errorf("%s: %s proves %s (%s), want %s", what, a, got.Proves, got.Reason, want)
			}
		}
		key := newKey()
		expect("a success", n.send("POST", "/orders", key, `{}`), contract.Applied)
		expect("its replay", n.send("POST", "/orders", key, `{}`), contract.Applied)
		expect("a mismatch", n.send("POST", "/orders", key, `{"x":1}`), contract.Refused)
		expect("no key", n.send("POST", "/orders", "", `{}`), contract.Refused)
		expect("too large", n.send("POST", "/orders", newKey(), strings.Repeat("x", 1001)), contract.Refused)
		status = 422
		key = newKey()
		expect("a refusal", n.send("POST", "/orders", key, `{}`), contract.Refused)
		expect("its replay", n.send("POST", "/orders", key, `{}`), contract.Refused)
		status = 500
		key = newKey()
		expect("a server error", n.send("POST", "/orders", key, `{}`), contract.Unknown)
		expect("outcome-unknown", n.send("POST", "/orders", key, `{}`), contract.Unknown)
		if p := proves(n.send("POST", "/orders", key, `{}`)); p.Cause != contract.CauseInDoubt {
			t.Errorf("outcome-unknown is told as %s", p.Cause)
		}
		status, notApplied = 503, true
		if p := proves(n.send("POST", "/orders", newKey(), `{}`)); p.Proves == contract.Applied || p.Proves == contract.Refused {
			t.Errorf("not applied: %+v", p)
		}
		notApplied, status, block = false, 201, true
		key = newKey()
		var first sync.WaitGroup
		first.Go(func() { n.send("POST", "/orders", key, `{}`) })
		<-entered
		expect("in progress", n.send("POST", "/orders", key, `{}`), contract.InProgressNow)
		leave <- true
		first.Wait()
		block = false
		n.store.fail(func(string) bool { return true })
		expect("the store is down", n.send("POST", "/orders", newKey(), `{}`), contract.NotApplied)
		n.store.fail(nil)
	})
}

// With its preset the answers are Stripe's.
func TestStripe(t *testing.T) {
	c, err := contract.Preset(contract.StripeV1)
	if err != nil {
		t.Fatal(err)
	}
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(func(o *idempotency.Options, _ *database) { o.Contract = &c })
		status, runs := 200, 0
		entered, leave := make(chan bool), make(chan bool)
		block := false
		run := func(w http.ResponseWriter, r *http.Request) {
			runs++
			if block {
				entered <- true
				<-leave
			}
			w.WriteHeader(status)
			w.Write([]byte(`{"id":"ch_1"}`))
		}
		n.handle("POST /orders", run)
		n.handle("POST /refunds", run)

		if a := n.send("POST", "/orders", "", `{}`); a.status != 200 || runs != 1 {
			t.Errorf("without a key: %s", a)
		}
		key := newKey()
		n.send("POST", "/orders", key, `{}`)
		if a := n.send("POST", "/orders", key, `{}`); a.status != 200 || a.header.Get("Idempotent-Replayed") != "true" || a.header.Get("Idempotency-Replayed") != "" || a.body != `{"id":"ch_1"}` {
			t.Errorf("a replay: %s", a)
		}
		for what, a := range map[string]answer{"other parameters": n.send("POST", "/orders", key, `{"amount":2}`), "another endpoint": n.send("POST", "/refunds", key, `{}`)} {
			if a.status != 400 || !strings.Contains(a.body, `{"error":{`) || !strings.Contains(a.body, `"type":"idempotency_error"`) || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %s", what, a)
			}
		}
		block = true
		key = newKey()
		var first sync.WaitGroup
		first.Go(func() { n.send("POST", "/orders", key, `{}`) })
		<-entered
		if a := n.send("POST", "/orders", key, `{}`); a.status != 409 || !strings.Contains(a.body, `"code":"idempotency_key_in_use"`) {
			t.Errorf("in progress: %s", a)
		}
		leave <- true
		first.Wait()
		block = false
		status, runs = 503, 0
		key = newKey()
		n.send("POST", "/orders", key, `{}`)
		if a := n.send("POST", "/orders", key, `{}`); a.status != 503 || runs != 1 || !strings.Contains(a.body, `{"error":{`) {
			t.Errorf("a server error again: %s after %d runs", a, runs)
		}
		if op := n.operation(idempotency.AllRoutes, key); op.State != semel.NeedsReconciliation {
			t.Errorf("a server error is recorded as %s", op.State)
		}
		if a := n.send("POST", "/orders", strings.Repeat("k", 256), `{}`); a.status != 400 || !strings.Contains(a.body, `{"error":{`) {
			t.Errorf("a long key: %s", a)
		}
	})
}

// Contracts that promise what is not offered are refused with the field's name.
func TestOffers(t *testing.T) {
	for name, field := range map[string]string{contract.IETF: "", contract.StripeV1: "", contract.Azure: "carrier", contract.AIP155: "carrier.in",
		contract.Increase: "replay.form", contract.Semel: "carrier.in", contract.Idempotent: "stored.server_errors", contract.Opaque: "carrier.in"} {
		c, err := contract.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		err = (&idempotency.Options{Account: account, Contract: &c}).Validate()
		if (err == nil) != (field == "") || err != nil && !strings.Contains(err.Error(), field+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := idempotency.DefaultContract()
	c.Replay.Headers = append(c.Replay.Headers, "set-cookie")
	if err := (&idempotency.Options{Account: account, Contract: &c}).Validate(); err == nil || !strings.Contains(err.Error(), "Set-Cookie") && !strings.Contains(err.Error(), "set-cookie") {
		t.Errorf("cookies can be replayed: %v", err)
	}
}
