package lab_test

import (
	"context"
	"fmt"
	"log"

	"github.com/semel-dev/semel/lab"
)

// One interruption, with what protects from it and without.
func Example() {
	scenarios, err := lab.Scenarios("lost-answer")
	if err != nil {
		log.Fatal(err)
	}
	for _, unsafe := range []bool{false, true} {
		results, err := lab.Run(context.Background(), scenarios, &lab.RunOptions{Unsafe: unsafe})
		if err != nil {
			log.Fatal(err)
		}
		r := results[0]
		fmt.Printf("unsafe %v: %d sends, %d operations, %d effects: %v\n", unsafe, r.Sends, r.Operations, r.Effects, r.Pass)
	}
	// Output:
	// unsafe false: 2 sends, 1 operations, 1 effects: true
	// unsafe true: 2 sends, 2 operations, 2 effects: false
}
