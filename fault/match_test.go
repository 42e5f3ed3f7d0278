package fault

import (
	"fmt"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

func readFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	return string(b)
}

// hits returns which of n events the rules catch: the number of the rule for
// each, 0 for none.
func hits(in *Injector, n int) []int {
	got := make([]int, n)
	for i := range got {
		if r := in.pick(func(*Rule) bool { return true }); r != nil {
			got[i] = r.Code - 400
		}
	}
	return got
}

func TestCounting(t *testing.T) {
	for _, tt := range []struct {
		rules []string
		want  []int
	}{
		{[]string{"status code=401"}, []int{1, 1, 1, 1, 1, 1}},
		{[]string{"status code=401 nth=3"}, []int{0, 0, 1, 0, 0, 0}},
		{[]string{"status code=401 after=1 count=1"}, []int{0, 1, 0, 0, 0, 0}},
		{[]string{"status code=401 every=3"}, []int{0, 0, 1, 0, 0, 1}},
		{[]string{"status code=401 after=1 every=2"}, []int{0, 0, 1, 0, 1, 0}},
		{[]string{"status code=401 after=1 every=2 count=1"}, []int{0, 0, 1, 0, 0, 0}},
		// Each rule counts everything that it selects.
		{[]string{"status code=401 nth=1", "status code=402 nth=2"}, []int{1, 2, 0, 0, 0, 0}},
		// The first that is due wins, and the other is not used up.
		{[]string{"status code=401 count=2", "status code=402 count=2"}, []int{1, 1, 2, 2, 0, 0}},
	} {
		in := newInjector(httpForm, rulesOf(tt.rules...))
		if got := hits(in, 6); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v: %v, want %v", tt.rules, got, tt.want)
		}
	}
}

func TestChance(t *testing.T) {
	in := newInjector(httpForm, rulesOf("status code=401 prob=0.25 seed=7"))
	first := hits(in, 10_000)
	must(t, in.SetRules(MustRule("status code=401 prob=0.25 seed=7")))
	if !reflect.DeepEqual(first, hits(in, 10_000)) {
		t.Error("the same seed hits other numbers")
	}
	must(t, in.SetRules(MustRule("status code=401 prob=0.25 seed=8")))
	if reflect.DeepEqual(first, hits(in, 10_000)) {
		t.Error("another seed hits the same numbers")
	}
	n := 0
	for _, h := range first {
		n += h
	}
	if n < 2300 || n > 2700 {
		t.Errorf("%d of 10,000 for a chance of 0.25", n)
	}
}

// However many requests come at once, a rule is applied exactly as often as
// its counters say.
func TestCountingIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		after, every, count := rapid.IntRange(0, 20).Draw(t, "after"), rapid.IntRange(1, 5).Draw(t, "every"), rapid.IntRange(1, 50).Draw(t, "count")
		workers, each := rapid.IntRange(1, 8).Draw(t, "workers"), rapid.IntRange(1, 50).Draw(t, "each")
		in := newInjector(httpForm, []Rule{MustRule(fmt.Sprintf("hold after=%d every=%d count=%d", after, every, count))})
		var applied atomic.Int64
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for range each {
					if in.pick(func(*Rule) bool { return true }) != nil {
						applied.Add(1)
					}
				}
			})
		}
		all.Wait()
		want := min(count, max(0, workers*each-after)/every)
		st := in.Rules()[0]
		if int(applied.Load()) != want || st.Applied != want || st.Seen != workers*each {
			t.Fatalf("applied %d, counted %+v, want %d", applied.Load(), st, want)
		}
	})
}

// A failed SetRules leaves the old rules and their counters.
func TestSetRulesKeepsOld(t *testing.T) {
	in := newInjector(httpForm, rulesOf("hold"))
	hits(in, 3)
	if err := in.SetRules(Rule{Fault: Delay}); err == nil {
		t.Error("an invalid rule was accepted")
	}
	if st := in.Rules(); len(st) != 1 || st[0].Seen != 3 {
		t.Errorf("%+v", st)
	}
}
