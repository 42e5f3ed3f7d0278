package notes_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/semel-dev/semel/lab"
)

// The note table, over real HTTP: how often the client sent, how many notes were
// saved, what the caller gets. `semel lab notes` prints it too.
func Example() {
	for _, r := range table() {
		fmt.Printf("%d sends, %d saved, %s: %s\n", r.Sends, r.Effects, r.Title, r.Visible)
	}
	// Output:
	// 2 sends, 2 saved, a note: the answer is lost; the client makes a new key for each try (the mistake): note 2
	// 2 sends, 1 saved, a note: the answer is lost; the client has made the key before its first try: note 1
	// 2 sends, 2 saved, a note: the user saves the same text twice, and means it: note 1, note 2
	// 2 sends, 1 saved, a note: the same key comes again with another title: note 1, then refused
	// 2 sends, 1 saved, a note: both answers are lost: error
	// 2 sends, 2 saved, a note: the answer is lost; the service does not deduplicate (the mistake): note 2
	// 2 sends, 1 saved, a note: control: the request is lost before the write: note 1
}

// Each row is as it should be, the key of each send included.
func TestNoteTable(t *testing.T) {
	for _, r := range table() {
		if !r.Pass {
			t.Errorf("%s: %+v, expected %s", r.Scenario, r.Counts, r.Expected)
		}
	}
}

func table() []lab.Result {
	rows, err := lab.Scenarios("notes")
	if err != nil {
		log.Fatal(err)
	}
	results, err := lab.Run(context.Background(), rows, nil)
	if err != nil {
		log.Fatal(err)
	}
	return results
}
