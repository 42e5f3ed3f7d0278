package contract

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// meaning is what an answer means once it has been matched.
type meaning string

const (
	meansMismatch    meaning = "mismatch"
	meansInProgress  meaning = "in progress"
	meansInDoubt     meaning = "in doubt"
	meansExpired     meaning = "expired"
	meansApplied     meaning = "applied"
	meansNothing     meaning = "nothing happened"
	meansRefusedLate meaning = "refused after look-up"
	meansRefused     meaning = "refused"
)

// needsKey reports whether such an answer only exists because of the key.
func (m meaning) needsKey() bool {
	switch m {
	case meansMismatch, meansInProgress, meansInDoubt, meansExpired:
		return true
	}
	return false
}

// group is all the answers of one meaning, with the path of each in the JSON.
type group struct {
	means  meaning
	one    Match
	oneAt  string
	many   []Match
	manyAt string
}

// groups lists every answer that the contract describes, in the order in which they are tried.
func (c *Contract) groups() [8]group {
	return [8]group{
		{meansMismatch, c.Mismatch.Answer, "mismatch.answer", c.Mismatch.Also, "mismatch.also"},
		{meansInProgress, c.InProgress.Answer, "in_progress.answer", c.InProgress.Also, "in_progress.also"},
		{meansInDoubt, c.InProgress.InDoubt, "in_progress.in_doubt", nil, ""},
		{meansExpired, c.Retention.Refusal, "retention.refusal", nil, ""},
		{meansApplied, Match{}, "", c.Answers.Applied, "answers.applied"},
		{meansNothing, Match{}, "", c.Answers.NothingHappened, "answers.nothing_happened"},
		{meansRefusedLate, Match{}, "", c.Answers.RefusedAfterLookUp, "answers.refused_after_look_up"},
		{meansRefused, Match{}, "", c.Answers.Refused, "answers.refused"},
	}
}

// find returns what the answer means under the contract. A match with a code or a header is more exact than one with
// a bare status, and is tried first.
func (c *Contract) find(s *seen, keyed, exact bool) (meaning, Match) {
	for _, g := range c.groups() {
		if g.means.needsKey() && !keyed {
			continue
		}
		if g.one.exact() == exact && s.is(g.one) {
			return g.means, g.one
		}
		for _, m := range g.many {
			if m.exact() == exact && s.is(m) {
				return g.means, m
			}
		}
	}
	return "", Match{}
}

// exact reports whether the match asks for more than a status.
func (m Match) exact() bool { return m.Code != "" || m.Header != "" }

// seen is an answer, with what has been read in its body so far.
type seen struct {
	answer *Answer
	codeAt []string
	parsed bool
	body   any // the decoded body, nil where it is no JSON
}

func (c *Contract) see(a *Answer) *seen { return &seen{answer: a, codeAt: c.Answers.CodeAt} }

// code returns the machine code at the place, or at the first of the contract's usual places that has one.
func (s *seen) code(at string) string {
	if at != "" {
		code, _ := s.text(at)
		return code
	}
	for _, p := range s.codeAt {
		if code, ok := s.text(p); ok {
			return code
		}
	}
	return ""
}

// text returns what stands at one place of the body. JSON is decoded when it is needed for the first time.
func (s *seen) text(at string) (string, bool) {
	if name, ok := xmlElement(at); ok {
		return textIn(s.answer.Body, name)
	}
	if !s.parsed {
		s.parsed = true
		dec := json.NewDecoder(bytes.NewReader(s.answer.Body))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) == nil {
			s.body = v
		}
	}
	return textAt(s.body, at)
}

// xmlElement returns the name in "<Name>".
func xmlElement(at string) (string, bool) {
	if len(at) < 3 || at[0] != '<' || at[len(at)-1] != '>' {
		return "", false
	}
	return at[1 : len(at)-1], true
}

// textIn returns the text of the first XML element of that name.
func textIn(body []byte, name string) (string, bool) {
	dec := xml.NewDecoder(bytes.NewReader(body))
	for {
		token, err := dec.Token()
		if err != nil {
			return "", false
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == name {
			var text string
			err := dec.DecodeElement(&text, &start)
			return text, err == nil && text != ""
		}
	}
}

// is reports whether the answer matches.
func (s *seen) is(m Match) bool {
	switch {
	case m.Status != 0 && m.Status != s.answer.Status:
		return false
	case !m.exact():
		return !bareStatusProvesNothing(m.Status)
	case m.Header != "" && !(Mark{Header: m.Header, Value: m.Value}).on(s.answer):
		return false
	}
	return m.Code == "" || s.code(m.At) == m.Code
}

// bareStatusProvesNothing reports whether a status alone can never stand for the API's own word: anybody on the way
// may have given it, or it is the API's way of saying that it does not know.
func bareStatusProvesNothing(status int) bool {
	switch status {
	case 0, 500, 502, 503, 504:
		return true
	}
	return false
}

// words names the answer by its status, and by its code where a contract knows one.
func (s *seen) words(m Match) string {
	if m.Code != "" {
		return strconv.Itoa(s.answer.Status) + " " + m.Code
	}
	return strconv.Itoa(s.answer.Status)
}

// on reports whether the answer bears the mark.
func (m Mark) on(a *Answer) bool {
	if m.Header == "" {
		return false
	}
	for _, v := range a.Header[http.CanonicalHeaderKey(m.Header)] {
		if m.Value == "" || strings.EqualFold(strings.TrimSpace(v), m.Value) {
			return true
		}
	}
	return false
}

func (g AgainSign) read(a *Answer) string {
	switch {
	case g.Header == "":
	case g.No != "" && (Mark{g.Header, g.No}).on(a):
		return AgainNo
	case g.Yes != "" && (Mark{g.Header, g.Yes}).on(a):
		return AgainYes
	}
	return ""
}

// textAt returns the string, number or boolean under a JSON Pointer, as text.
func textAt(v any, pointer string) (string, bool) {
	if !strings.HasPrefix(pointer, "/") {
		return "", false
	}
	for step := range strings.SplitSeq(pointer[1:], "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return "", false
			}
			v = at[i]
		default:
			return "", false
		}
	}
	switch at := v.(type) {
	case string:
		return at, at != ""
	case json.Number:
		return at.String(), true
	case bool:
		return strconv.FormatBool(at), true
	}
	return "", false
}

// MarshalJSON writes a Match that only names a status as the bare number.
func (m Match) MarshalJSON() ([]byte, error) {
	if m == (Match{Status: m.Status}) && m.Status != 0 {
		return []byte(strconv.Itoa(m.Status)), nil
	}
	type plain Match
	return json.Marshal(plain(m))
}

// UnmarshalJSON reads a bare number as the Match that only names this status. It refuses members it does not know.
func (m *Match) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '{' {
		var status int
		if err := json.Unmarshal(data, &status); err != nil {
			return errors.New("an answer is a status (409) or an object with status, code, at, header, value")
		}
		*m = Match{Status: status}
		return nil
	}
	type plain Match
	var p plain
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return err
	}
	*m = Match(p)
	return nil
}
