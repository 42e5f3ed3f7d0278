package lab

import (
	"maps"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/internal/expect"
	"github.com/semel-dev/semel/lab/service"
)

// crashMatrix: one worker is killed at each point of an execution; see [Crash], which
// does so more often and tells of each cell.
func crashMatrix() []Scenario {
	var all []Scenario
	for _, p := range plain {
		e := Expect{Sends: len(Points), Operations: len(Points)}
		seen := map[semel.State]bool{}
		for _, point := range Points {
			w := expect.AfterDeath(p == service.Opaque, expect.Point(point))
			e.Effects, e.Most = e.Effects+w.Least, e.Most+w.Most
			for _, state := range w.States {
				seen[state] = true
			}
		}
		e.Visible = wordsOf(seen)
		all = append(all, Scenario{
			Name:   "crash-matrix-" + string(p),
			Group:  "crash-matrix",
			Title:  "a worker dies at each point of an execution in turn (" + string(p) + " service)",
			Expect: e,
			run:    func(s *stage) (Counts, error) { return crashMatrixUnder(s, p) },
		})
	}
	return all
}

func crashMatrixUnder(s *stage, p service.Promise) (c Counts, err error) {
	m := &matrix{stage: s, promises: []service.Promise{p}, o: CrashOptions{Rounds: 1, Parallel: 3, Progress: func(int, int) {}}}
	cells, err := m.run()
	if err != nil {
		return c, err
	}
	seen := map[semel.State]bool{}
	for _, cell := range cells {
		c.Sends += cell.Rounds
		c.Effects += cell.Effects
		for state, n := range cell.States {
			c.Operations += n
			seen[state] = true
		}
		for _, wrong := range cell.Wrong {
			c.complain("%s: %s", cell.Point, wrong)
		}
	}
	c.Visible = wordsOf(seen)
	return c, nil
}

func wordsOf(states map[semel.State]bool) string {
	var words []string
	for _, state := range slices.Sorted(maps.Keys(states)) {
		words = append(words, string(state))
	}
	return strings.Join(words, " or ")
}
