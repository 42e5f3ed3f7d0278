package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A request for a menu, as a client may write it.
type request struct {
	title        string
	days         []string // JSON
	theme, width string   // JSON, or nothing
}

var requests = rapid.Custom(func(t *rapid.T) request {
	text := func(label string, n int) string {
		s, _ := json.Marshal(rapid.StringOfN(rapid.SampledFrom([]rune("a周é😀\"\n")), 1, n, -1).Draw(t, label))
		return string(s)
	}
	r := request{title: text("title", 80)}
	for range rapid.IntRange(1, 7).Draw(t, "days") {
		var dishes []string
		for range rapid.IntRange(1, 3).Draw(t, "dishes") {
			dishes = append(dishes, text("dish", 60))
		}
		day, list := `"day":`+text("day", 20), `"dishes":[`+strings.Join(dishes, ", ")+`]`
		if rapid.Bool().Draw(t, "dishes first") {
			day, list = list, day
		}
		r.days = append(r.days, "{"+day+","+list+"}")
	}
	r.theme = rapid.SampledFrom([]string{"", `"light"`, `"dark"`}).Draw(t, "theme")
	r.width = rapid.SampledFrom([]string{"", "800", "8e2", "800.0", "320", "2400", "1234"}).Draw(t, "width")
	return r
})

// meaning is what the service has to do, defaults included.
func (r request) meaning() string {
	theme, width := r.theme, r.width
	if theme == "" {
		theme = `"light"`
	}
	if width == "" || strings.HasPrefix(width, "8") {
		width = "800"
	}
	var days any
	_ = json.Unmarshal([]byte("["+strings.Join(r.days, ",")+"]"), &days)
	return fmt.Sprint(r.title, theme, width, days)
}

func (r request) write(t *rapid.T) []byte {
	members := []string{`"title":` + r.title, `"days":[` + strings.Join(r.days, ",") + `]`}
	if r.theme != "" {
		members = append(members, `"theme" : `+r.theme)
	}
	if r.width != "" {
		members = append(members, `"width":`+r.width)
	}
	doc := []byte("{" + strings.Join(rapid.Permutation(members).Draw(t, "order"), ",") + "}")
	if rapid.Bool().Draw(t, "indented") {
		var buf bytes.Buffer
		_ = json.Indent(&buf, doc, "", "  ")
		doc = buf.Bytes()
	}
	return doc
}

// Two requests have one fingerprint exactly when they mean the same, and Differ
// agrees. What is stored normalizes to itself.
func TestSameFingerprintIsSameMeaning(t *testing.T) {
	c := compile(t, menuExport, nil)
	rapid.Check(t, func(t *rapid.T) {
		a := requests.Draw(t, "a")
		b := a
		switch rapid.IntRange(0, 3).Draw(t, "what") {
		case 0:
			b.width, b.theme = requests.Draw(t, "b").width, requests.Draw(t, "b").theme
		case 1:
			b.days = slices.Clone(a.days[:rapid.IntRange(1, len(a.days)).Draw(t, "fewer")])
		case 2:
			b = requests.Draw(t, "b")
		}
		sentA, sentB := a.write(t), b.write(t)
		storedA, printA, errA := c.Normalize(sentA)
		_, printB, errB := c.Normalize(sentB)
		if errA != nil || errB != nil {
			t.Fatalf("%s, %s: %v, %v", sentA, sentB, errA, errB)
		}
		same := a.meaning() == b.meaning()
		if (printA == printB) != same {
			t.Fatalf("%s and %s: fingerprints equal is %t", sentA, sentB, printA == printB)
		}
		if differ := c.Differ(storedA, sentB); (len(differ) == 0) != same {
			t.Fatalf("%s and %s: differ in %q", sentA, sentB, differ)
		}
		again, printAgain, err := c.Normalize(storedA)
		if err != nil || printAgain != printA || !bytes.Equal(again, storedA) {
			t.Fatalf("%s became %s, %v", storedA, again, err)
		}
	})
}
