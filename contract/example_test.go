package contract_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"time"

	"github.com/semel-dev/semel/contract"
)

// A payment is sent, and its answer is lost. What now?
func Example() {
	stripe, err := contract.Preset(contract.StripeV1)
	if err != nil {
		panic(err)
	}
	request := contract.Request{Method: "POST", Keyed: true, Replayable: true}

	// The request went out, and no answer came: nobody knows.
	lost := stripe.Classify(request, contract.Wire{Going: contract.Begun, Failure: contract.FailedTimeout}, nil)
	evidence := contract.Fold(lost)
	fmt.Println(evidence.Outcome())

	// Half a minute later the network is down. That says nothing of the first request.
	down := stripe.Classify(request, contract.Wire{Going: contract.NotBegun, Failure: contract.FailedDial}, nil)
	evidence = evidence.Add(down)
	fmt.Println(down.Proves, "but", evidence.Outcome())

	// Inside the day for which Stripe keeps the key, the same call may be made again. Afterwards only a person can tell.
	for _, age := range []time.Duration{time.Minute, 25 * time.Hour} {
		d := stripe.Recover(contract.Situation{Evidence: evidence, Age: age, Margin: time.Minute})
		fmt.Println(d.Step)
	}

	// The answer to the repeat settles it.
	replayed := &contract.Answer{Status: 200, Header: http.Header{"Idempotent-Replayed": {"true"}}}
	evidence = evidence.Add(stripe.Classify(request, contract.Wire{Going: contract.Begun, Arrival: contract.ArrivedComplete}, replayed))
	fmt.Println(evidence.Outcome())
	// Output:
	// unknown
	// not_sent but unknown
	// call_again
	// reconcile
	// applied
}

// A contract of one's own is written over a preset, in the configuration file.
func ExampleParse() {
	c, err := contract.Parse([]byte(`{
		"preset": "ietf",
		"name": "orders",
		"retention": {"minimum": "30d"},
		"look_up": {"by": "key", "consistent_after": "2s", "absent_after": "1m"}
	}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Name, c.Shape())
	fmt.Println(c.CheckBudget(31 * 24 * time.Hour))
	// Output:
	// orders idempotent+queryable
	// retention.minimum: the key is kept for 30d, and the retry budget is 31d; retry for at most 30d, or correct the retention if the API keeps keys longer
}

// The facts of the wire come from a tracer and the call's error.
func ExampleWireFrom() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler) // the request arrives, and the connection breaks
	}))
	defer server.Close()

	var tracer contract.Tracer
	req, _ := http.NewRequest("POST", server.URL, io.NopCloser(strings.NewReader(`{"amount":1}`)))
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), tracer.ClientTrace()))
	_, err := server.Client().Do(req)

	wire := contract.WireFrom(err, tracer.Facts())
	opaque, _ := contract.Preset(contract.Opaque)
	proof := opaque.Classify(contract.Request{Method: "POST"}, wire, nil)
	fmt.Println(wire.Going, wire.Sends, proof.Proves)
	fmt.Println(opaque.Recover(contract.Situation{Evidence: contract.Fold(proof)}).Step)
	// Output:
	// begun 1 unknown
	// reconcile
}

// A contract in plain words.
func ExampleContract_Words() {
	c, _ := contract.Preset(contract.Queryable)
	fmt.Println(c.Words())
	// Output:
	// Queryable service: it must not be called again blindly, but it can be looked up.
	// The key travels in the header Idempotency-Key.
	// It does not say how long a key is kept, so nothing may be called again.
	// Definite rejections: 400, 401, 402, 403, 404, 405, 406, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 426, 428, 431, 451.
	// It is looked up by the key (GET …/{key}); what happened shows after 1s at the latest; not found proves that it never happened from 1m after the last possible arrival.
}
