package contract

import "fmt"

// namedMatch is a Match with its path in the JSON.
type namedMatch struct {
	field string
	match Match
	means meaning
}

// matches lists every answer that the contract describes.
func (c *Contract) matches() []namedMatch {
	var all []namedMatch
	for _, g := range c.groups() {
		if g.one != (Match{}) {
			all = append(all, namedMatch{g.oneAt, g.one, g.means})
		}
		for i, m := range g.many {
			all = append(all, namedMatch{fmt.Sprintf("%s[%d]", g.manyAt, i), m, g.means})
		}
	}
	return all
}

// validateAnswers checks every answer by itself, and then that no answer means two things.
func (c Contract) validateAnswers(v *validator) {
	for i, p := range c.Answers.CodeAt {
		v.place(fmt.Sprintf("answers.code_at[%d]", i), p)
	}
	if c.Answers.CodeIn2xx && len(c.Answers.CodeAt) == 0 {
		v.add("answers.code_at", "it is missing", "say where the code stands inside a successful answer")
	}
	all := c.matches()
	for _, m := range all {
		c.validateMatch(v, m)
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.match == b.match && a.means != b.means {
				v.add(b.field, "the same answer stands under "+a.field, "tell them apart by a code, or leave one out")
			}
		}
	}
	for _, m := range []namedMatch{{"use.missing", c.Use.Missing, ""}, {"use.unsupported", c.Use.Unsupported, ""}} {
		if m.match != (Match{}) {
			c.validateMatch(v, m)
		}
	}
}

func (c Contract) validateMatch(v *validator, m namedMatch) {
	status := m.match.Status
	if status != 0 && (status < 200 || status > 599) {
		v.add(m.field, fmt.Sprintf("%d is no status of an answer", status), "write a number from 200 to 599")
		return
	}
	v.header(m.field+".header", m.match.Header)
	v.place(m.field+".at", m.match.At)
	if m.match.Code == "" && m.match.Header == "" {
		switch status {
		case 0:
			v.add(m.field, "it says nothing", "give it a status, a code or a header")
		case 500:
			v.add(m.field, "a bare 500 may come after the effect", "add the code or header by which the API says more")
		case 502, 503, 504:
			v.add(m.field, fmt.Sprintf("a bare %d may come from anybody on the way", status), "add a code or a header that only the API itself gives")
		}
	}
	if m.match.Code != "" && m.match.At == "" && len(c.Answers.CodeAt) == 0 {
		v.add(m.field, "nobody knows where the code stands", `add answers.code_at, as in ["/error/code"]`)
	}
	if status/100 == 2 && m.match.Code == "" && m.match.Header == "" && m.means != meansApplied {
		v.add(m.field, "a bare 2xx is a success", "add the code by which it is told from one")
	}
}
