package history_test

import (
	"fmt"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/history"
)

// A caller that makes a new key for each attempt, and a caller that does not.
func Example() {
	key := semel.Key{Account: "acme", Kind: "order", ID: "1"}
	var rec history.Recorder
	rec.Add(history.Event{What: history.Sent, Verb: "PUT", Key: key, Attempt: "first", Content: "amount 5"})
	rec.Add(history.Event{What: history.Effect, Key: key})
	rec.Add(history.Event{What: history.Silent, Verb: "PUT", Key: key, Attempt: "first"})
	rec.Add(history.Event{What: history.Effect, Key: key})
	fmt.Print(history.Report(history.Check(rec.History(nil)), 10))
	// Output:
	// one effect: acme/order/1: 2 effects
}
