package fingerprint_test

import (
	"fmt"

	"github.com/semel-dev/semel/fingerprint"
)

// The same request, written twice, has one fingerprint.
func ExampleOf() {
	first, _ := fingerprint.Of("payment", []byte(`{"to":"acme","amount":12.5}`))
	retry, _ := fingerprint.Of("payment", []byte(` { "amount": 1.250e1, "to": "\u0061cme" } `))
	other, _ := fingerprint.Of("payment", []byte(`{"to":"acme","amount":12.51}`))
	fmt.Println(first)
	fmt.Println(first == retry, first == other)
	// Output:
	// v1:sha256:323eeebf7e3e14adac482d57254c015be68470a8a64bc6f2e676c71a96debe4a
	// true false
}

func ExampleCanonical() {
	text, _ := fingerprint.Canonical([]byte(`{"b": [1.0, 1e21, 9007199254740993], "a": "\u00e9"}`))
	fmt.Printf("%s\n", text)
	// Output: {"a":"é","b":[1,1e+21,9007199254740993]}
}

// Two readers could see two different payments here.
func ExampleParse() {
	_, err := fingerprint.Parse([]byte(`{"amount":1,"amount":1000}`))
	fmt.Println(err)
	// Output: byte 12: duplicate member name: "amount"
}

func ExampleDiffer() {
	a, _ := fingerprint.Parse([]byte(`{"to":"acme","lines":[{"sku":"A-1","n":1}]}`))
	b, _ := fingerprint.Parse([]byte(`{"to":"acme","lines":[{"sku":"A-1","n":2},{"sku":"A-2","n":1}],"gift":true}`))
	fmt.Println(fingerprint.Differ(a, b))
	// Output: [/gift /lines/0/n /lines/1]
}

// A time stamp in the request must not turn its retry into another request.
func ExampleProjection() {
	p, err := fingerprint.NewProjection(nil, []string{"/sent_at", "/lines/*/trace_id"})
	if err != nil {
		fmt.Println(err)
		return
	}
	v, _ := fingerprint.Parse([]byte(`{"lines":[{"sku":"A-1","trace_id":"x"}],"sent_at":"10:00"}`))
	fmt.Printf("%s\n", fingerprint.AppendCanonical(nil, p.Apply(v)))
	// Output: {"lines":[{"sku":"A-1"}]}
}

// The fingerprint of any HTTP request: which fields it has is up to the caller.
func ExampleBuilder() {
	body, err := fingerprint.Parse([]byte(`{"amount": 12.50}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	b := fingerprint.NewBuilder("http-request")
	b.Add("method", "POST")
	b.Add("path", "/payments")
	b.Add("query", "")
	b.Add("header content-type", "application/json")
	b.JSON("body", body) // or b.Raw, for a body that is not JSON
	fmt.Println(b.Sum())
	// Output: v1:sha256:525ebbed3c843bfe8b7efa497bed89b81d10f0b34adf8282e5ff509739d9ab6c
}
