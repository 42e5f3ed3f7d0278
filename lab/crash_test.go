package lab

import (
	"bytes"
	"testing"
)

// A worker dies at each point, under each promise, on both stores.
func TestCrashMatrix(t *testing.T) {
	onBoth(t, func(t *testing.T, store string) {
		o := &CrashOptions{Store: store, Rounds: 3}
		if full {
			o.Rounds = 100
		}
		cells, err := Crash(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		WriteCells(&text, cells)
		t.Log("\n" + text.String())
		if len(cells) != len(plain)*len(Points) {
			t.Errorf("%d cells", len(cells))
		}
		for _, c := range cells {
			if !c.Pass || c.Rounds != o.Rounds {
				t.Errorf("%s, %s: %v", c.Shape, c.Point, c.Wrong)
			}
		}
	})
}
