package lab

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A table is text in columns. The first row is the head.
type table struct {
	rows  [][]string
	right []bool // columns of numbers
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) widths() []int {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

func (t *table) pad(i int, cell string, width int) string {
	space := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
	if t.right[i] {
		return space + cell
	}
	return cell + space
}

// text writes the table for a terminal.
func (t *table) text(w io.Writer) error {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		var line []string
		for i, cell := range row {
			line = append(line, t.pad(i, cell, widths[i]))
		}
		b.WriteString(strings.TrimRight(strings.Join(line, "  "), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// markdown writes the table for a document.
func (t *table) markdown(w io.Writer) error {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.rows[0])
	var rule []string
	for _, right := range t.right {
		rule = append(rule, map[bool]string{true: "--:", false: "---"}[right])
	}
	line(rule)
	for _, row := range t.rows[1:] {
		line(row)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func verdictWord(pass bool) string {
	if pass {
		return "yes"
	}
	return "NO"
}

// WriteTable writes results as a table for people, and below it what was expected
// where a result is not as it should be.
func WriteTable(w io.Writer, results []Result) error {
	t := table{right: []bool{false, true, true, true, false, false, false}}
	t.add("scenario", "sends", "operations", "effects", "the user sees", "as it should be", "what happens")
	for _, r := range results {
		t.add(r.Scenario, strconv.Itoa(r.Sends), strconv.Itoa(r.Operations), strconv.Itoa(r.Effects), r.Visible, verdictWord(r.Pass), r.Title)
	}
	if err := t.text(w); err != nil {
		return err
	}
	for _, r := range results {
		if r.Pass {
			continue
		}
		fmt.Fprintf(w, "\n%s: expected %s\n", r.Scenario, r.Expected)
		for _, wrong := range r.Wrong {
			fmt.Fprintf(w, "  %s\n", wrong)
		}
	}
	return nil
}

// WriteMarkdown writes results as a table for a document.
func WriteMarkdown(w io.Writer, results []Result) error {
	t := table{right: []bool{false, true, true, true, false, false}}
	t.add("what happens", "sends", "operations", "effects", "the user sees", "as it should be")
	for _, r := range results {
		t.add(r.Title, strconv.Itoa(r.Sends), strconv.Itoa(r.Operations), strconv.Itoa(r.Effects), r.Visible, verdictWord(r.Pass))
	}
	return t.markdown(w)
}
