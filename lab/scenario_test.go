package lab

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/pgtest"
)

// full says that tests run at the size of `make soak`.
var full = os.Getenv("SEMEL_SOAK") != ""

// onBoth runs a test on both stores.
func onBoth(t *testing.T, f func(t *testing.T, store string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel() // most of the time is spent waiting for leases to end
		f(t, "sqlite")
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f(t, pgtest.Database(t))
	})
}

// Every scenario ends as it should, on both stores.
func TestScenarios(t *testing.T) {
	all, err := Scenarios()
	if err != nil {
		t.Fatal(err)
	}
	onBoth(t, func(t *testing.T, store string) {
		results, err := Run(t.Context(), all, &RunOptions{Store: store, Full: full})
		if err != nil {
			t.Error(err)
		}
		var text bytes.Buffer
		WriteTable(&text, results)
		t.Log("\n" + text.String())
		for _, r := range results {
			if !r.Pass {
				t.Errorf("%s: %+v, expected %s", r.Scenario, r.Counts, r.Expected)
			}
			if len(r.Notes) > 0 {
				t.Logf("%s: %s; it took %s", r.Scenario, strings.Join(r.Notes, "; "), time.Duration(r.TookMS)*time.Millisecond)
			}
		}
	})
}

// Without what protects it, each shows what goes wrong: the lab would notice.
func TestUnsafeVariants(t *testing.T) {
	var broken []Scenario
	for _, s := range scenarios() {
		if s.Unsafe != "" {
			broken = append(broken, s)
		}
	}
	results, err := Run(t.Context(), broken, &RunOptions{Unsafe: true})
	if err != nil {
		t.Error(err)
	}
	for _, r := range results {
		t.Logf("%s: %d operations, %d effects, %s; expected %s", r.Scenario, r.Operations, r.Effects, r.Visible, r.Expected)
		if r.Pass {
			t.Errorf("%s: nothing went wrong", r.Scenario)
		}
		if twice := r.Scenario != "changed-request"; twice && r.Effects < 2 {
			t.Errorf("%s: there is no duplicate: %+v", r.Scenario, r.Counts)
		}
	}
	if len(broken) < 12 {
		t.Errorf("only %d scenarios have an unsafe variant", len(broken))
	}
}

// readmeTable returns the section of a README that has the lab's table.
func readmeTable(t *testing.T, file, heading string) string {
	readme, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(readme), heading)
	if !ok {
		t.Fatalf("%s has no section %q", file, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// The table in the Chinese README has the same counts.
func TestTablesOfBothReadmesAgree(t *testing.T) {
	counts := regexp.MustCompile(`\| \d+ \| \d+ \| \d+ \|`)
	english := counts.FindAllString(readmeTable(t, "../README.md", "## What happens when"), -1)
	chinese := counts.FindAllString(readmeTable(t, "../README.zh-CN.md", "## 当……时会发生什么"), -1)
	if len(english) == 0 || !slices.Equal(english, chinese) {
		t.Errorf("the counts differ:\n%q\n%q", english, chinese)
	}
}

// The table in the README has every scenario, in the lab's own words, and its numbers
// are such that the lab would pass them.
func TestReadmeHasTheTable(t *testing.T) {
	section := readmeTable(t, "../README.md", "## What happens when")
	rows := 0
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| ") {
			rows++
		}
	}
	if want := len(scenarios()) + 2; rows != want {
		t.Errorf("the table has %d lines, want %d; make it with `semel lab --markdown`", rows, want)
	}
	for _, s := range scenarios() {
		row := "| " + s.Title + " | "
		_, rest, ok := strings.Cut(section, row)
		rest, _, _ = strings.Cut(rest, "\n")
		columns := strings.Split(rest, " | ")
		if !ok || len(columns) != 5 || columns[4] != "yes |" {
			t.Errorf("no row %q … %q", row, rest)
			continue
		}
		c := Counts{Visible: columns[3]}
		for i, n := range []*int{&c.Sends, &c.Operations, &c.Effects} {
			*n, _ = strconv.Atoi(columns[i])
		}
		if r := judge(s, false, c, 0); !r.Pass {
			t.Errorf("row %q … %q; expected %s", row, rest, r.Expected)
		}
	}
}

// A scenario passes only if everything is as expected.
func TestJudge(t *testing.T) {
	s := Scenario{Name: "s", Expect: Expect{Operations: 1, Effects: 1, Most: 2, Visible: "succeeded"}}
	good := Counts{Operations: 1, Effects: 1, Visible: "succeeded"}
	for _, c := range []struct {
		change func(*Counts)
		pass   bool
	}{
		{func(*Counts) {}, true},
		{func(c *Counts) { c.Effects = 2 }, true},
		{func(c *Counts) { c.Effects = 3 }, false},
		{func(c *Counts) { c.Effects = 0 }, false},
		{func(c *Counts) { c.Operations = 2 }, false},
		{func(c *Counts) { c.Visible = "failed" }, false},
		{func(c *Counts) { c.complain("what else") }, false},
		{func(c *Counts) { c.Expect = &Expect{Operations: 1, Visible: "succeeded"} }, false},
		{func(c *Counts) {
			c.Sends, c.Expect = 2, &Expect{Sends: 2, Operations: 1, Effects: 1, Most: 1, Visible: "succeeded"}
		}, true},
		{func(c *Counts) {
			c.Sends, c.Expect = 3, &Expect{Sends: 2, Operations: 1, Effects: 1, Most: 1, Visible: "succeeded"}
		}, false},
	} {
		counts := good
		c.change(&counts)
		if r := judge(s, false, counts, time.Second); r.Pass != c.pass {
			t.Errorf("%+v: %v", counts, r.Pass)
		}
	}
	if text := s.Expect.String(); text != "1 operation, 1 to 2 effects, succeeded" {
		t.Error(text)
	}
}

func TestWrongNames(t *testing.T) {
	if _, err := Scenarios("lost-anser"); err == nil || !strings.Contains(err.Error(), "lost-answer") {
		t.Error(err)
	}
	some, err := Scenarios("storm", "reload")
	if err != nil || len(some) != 2 || some[0].Name != "storm" {
		t.Error(some, err)
	}
	if group, err := Scenarios("notes", "lost-answer"); err != nil || len(group) != 8 || group[6].Group != "notes" || group[7].Name != "lost-answer" {
		t.Error(group, err)
	}
	if _, err := Run(t.Context(), []Scenario{reload}, &RunOptions{Unsafe: true, Store: "postgres://127.0.0.1:1/nothing?connect_timeout=1"}); err == nil {
		t.Error("a database that is not there")
	}
	if _, err := Run(t.Context(), []Scenario{fairness}, &RunOptions{Unsafe: true}); err == nil || !strings.Contains(err.Error(), "no unsafe variant") {
		t.Error(err)
	}
}

func TestTables(t *testing.T) {
	results := []Result{
		{Scenario: "a", Title: "what happens", Counts: Counts{Sends: 2, Operations: 1, Effects: 1, Visible: "succeeded"}, Pass: true},
		{Scenario: "longer", Title: "something else", Counts: Counts{Sends: 10, Operations: 2, Effects: 2, Visible: "größer", Wrong: []string{"odd"}}, Expected: "1 operation"},
	}
	var text, markdown bytes.Buffer
	WriteTable(&text, results)
	WriteMarkdown(&markdown, results)
	if want := `scenario  sends  operations  effects  the user sees  as it should be  what happens
a             2           1        1  succeeded      yes              what happens
longer       10           2        2  größer         NO               something else

longer: expected 1 operation
  odd
`; text.String() != want {
		t.Errorf("%s", text.String())
	}
	if want := `| what happens | sends | operations | effects | the user sees | as it should be |
| --- | --: | --: | --: | --- | --- |
| what happens | 2 | 1 | 1 | succeeded | yes |
| something else | 10 | 2 | 2 | größer | NO |
`; markdown.String() != want {
		t.Errorf("%s", markdown.String())
	}
}
