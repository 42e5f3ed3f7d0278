package schema_test

import (
	"errors"
	"fmt"

	"github.com/semel-dev/semel/schema"
)

const payment = `{
	"type": "object", "additionalProperties": false, "required": ["to", "amount"],
	"properties": {
		"to": {"type": "string", "minLength": 1},
		"amount": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.01},
		"currency": {"enum": ["EUR", "USD"], "default": "EUR"},
		"sent_at": {"type": "string"}
	}
}`

// A retry that spells out a default, and carries a new time stamp, is the same
// payment.
func ExampleCompile() {
	canon, err := schema.Compile("payment", []byte(payment), &schema.Options{Exclude: []string{"/sent_at"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	params, first, _ := canon.Normalize([]byte(`{"to":"acme","amount":12.50,"sent_at":"10:00:00"}`))
	_, retry, _ := canon.Normalize([]byte(`{"sent_at":"10:00:07","currency":"EUR","amount":12.5,"to":"acme"}`))
	fmt.Printf("%s\n", params)
	fmt.Println(first == retry)
	// Output:
	// {"amount":12.5,"currency":"EUR","sent_at":"10:00:00","to":"acme"}
	// true
}

// Errors say where, and what to change.
func ExampleError() {
	canon, err := schema.Compile("payment", []byte(payment), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _, err = canon.Normalize([]byte(`{"amount":12.505,"currency":"GBP","too":"acme"}`))
	var bad *schema.Error
	if errors.As(err, &bad) {
		for _, v := range bad.Violations {
			fmt.Printf("%s %s\n", v.Pointer, v.Message)
		}
	}
	// Output:
	// /amount must be a multiple of 0.01
	// /currency must be one of "EUR", "USD"
	// /to is missing, and required
	// /too is not a known member; remove it or correct its name
}

// The same identity with another request: the answer names the fields.
func ExampleCanon_Differ() {
	canon, err := schema.Compile("payment", []byte(payment), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	stored, _, _ := canon.Normalize([]byte(`{"to":"acme","amount":12.50}`))
	fmt.Println(canon.Differ(stored, []byte(`{"to":"acme","amount":13,"currency":"EUR"}`)))
	// Output: [/amount]
}

// Today's schema has another default. The retry of an old request is compared
// under the definition that was stored with it.
func ExampleRecompile() {
	old, _ := schema.Compile("menu-export", []byte(`{"properties":{"width":{"default":800}}}`), nil)
	definition := old.Definition() // stored with the operation, like its fingerprint
	_, accepted, _ := old.Normalize([]byte(`{}`))

	today, _ := schema.Compile("menu-export", []byte(`{"properties":{"width":{"default":1024}}}`), nil)
	then, err := schema.Recompile("menu-export", definition)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, underToday, _ := today.Normalize([]byte(`{"width":800}`))
	_, underThen, _ := then.Normalize([]byte(`{"width":800}`))
	fmt.Println(underToday == accepted, underThen == accepted)
	// Output: false true
}

// A kind whose parameters can be any JSON document.
func ExampleJSON() {
	params, _, _ := schema.JSON("note").Normalize([]byte(`{ "text": "buy milk", "n": 1.0 }`))
	fmt.Printf("%s\n", params)
	// Output: {"n":1,"text":"buy milk"}
}
