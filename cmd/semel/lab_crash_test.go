package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/semel-dev/semel/lab"
)

// One JSON object for each cell: every point where a worker may die, under every
// promise of the external service.
func TestLabCrashJSON(t *testing.T) {
	out, log, status := labCommand(t, "crash", "--json", "--rounds", "1", "--parallel", "3")
	if status != 0 || log != "" {
		t.Errorf("status %d: %s", status, log)
	}
	points, shapes, cells := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var c lab.Cell
		err := d.Decode(&c)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		finals := 0
		for _, n := range c.States {
			finals += n
		}
		if c.Store != "sqlite" || c.Rounds != 1 || finals != 1 || c.Most > 1 || c.Effects != c.Most || c.Expected == "" || !c.Pass || len(c.Wrong) > 0 {
			t.Errorf("%+v", c)
		}
		points[c.Point], shapes[c.Shape], cells[c.Shape+" "+c.Point] = true, true, true
	}
	if len(shapes) != 3 || len(points) < 6 || len(cells) != len(shapes)*len(points) {
		t.Errorf("%d cells, of %d promises and %d points:\n%s", len(cells), len(shapes), len(points), out)
	}
}
