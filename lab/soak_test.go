package lab

import (
	"testing"
	"time"
)

// Nodes and workers are killed while many clients ask: no duplicate, nothing lost,
// nothing stuck.
func TestSoak(t *testing.T) {
	onBoth(t, func(t *testing.T, store string) {
		o := &SoakOptions{Store: store, For: 16 * time.Second, Seed: 1}
		if full {
			o.For = 10 * time.Minute
		}
		r, err := Soak(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Log("\n" + r.String())
		if !r.Pass || r.Nodes != 3 || r.Kills < 3 || r.Operations < 20 || r.Unanswered == 0 {
			t.Errorf("%+v", r)
		}
	})
}
