package lab

import (
	"fmt"
	"slices"
	"strings"
)

// scenarios are all there are, in the order of the table. Each has a file.
func scenarios() []Scenario {
	return slices.Concat(
		[]Scenario{lostAnswer, twoAtOnce, changedRequest, reload, expired},
		workerDies(),
		crashMatrix(),
		outlivedLease(),
		[]Scenario{shortRetention, storm, fairness},
		noteTable(),
	)
}

// Scenarios returns the scenarios of these names or groups, or all of them; the
// error names those that there are.
func Scenarios(names ...string) ([]Scenario, error) {
	all := scenarios()
	if len(names) == 0 {
		return all, nil
	}
	var some []Scenario
	for _, name := range names {
		before := len(some)
		for _, s := range all {
			if s.Name == name || s.Group == name {
				some = append(some, s)
			}
		}
		if len(some) == before {
			return nil, fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(known(all), ", "))
		}
	}
	return some, nil
}

// known are all names, and each group before the first of its scenarios.
func known(all []Scenario) []string {
	var names []string
	for _, s := range all {
		if s.Group != "" && !slices.Contains(names, s.Group) {
			names = append(names, s.Group)
		}
		names = append(names, s.Name)
	}
	return names
}
