package fault

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ParseError says where a rule is wrong, what is allowed there, and what was
// perhaps meant.
type ParseError struct {
	Line       int      // from 1
	Column     int      // from 1, in bytes
	Text       string   // the rule
	Msg        string   // what is wrong
	Allowed    []string // what may stand there; empty where it is not a list
	Suggestion string   // the closest of Allowed, or ""
}

// Error is one line: place, fault, suggestion, and what is allowed.
func (e *ParseError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "line %d, column %d: %s", e.Line, e.Column, e.Msg)
	if e.Suggestion != "" {
		fmt.Fprintf(&b, "; did you mean %s?", e.Suggestion)
	}
	if len(e.Allowed) > 0 {
		fmt.Fprintf(&b, " (allowed: %s)", strings.Join(e.Allowed, ", "))
	}
	return b.String()
}

// ParseRules reads one rule per line. Empty lines and lines that begin with #
// are skipped. The error is a [*ParseError].
func ParseRules(text string) ([]Rule, error) {
	var rules []Rule
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		r, err := parseLine(strings.TrimSuffix(line, "\r"), n)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// ParseRule reads one rule, as the package comment describes it. The error is
// a [*ParseError].
func ParseRule(text string) (Rule, error) { return parseLine(text, 1) }

// MustRule is [ParseRule] for rules that are written in the program. It panics
// where the rule is wrong.
func MustRule(text string) Rule {
	r, err := ParseRule(text)
	if err != nil {
		panic("fault: " + err.Error())
	}
	return r
}

// parser walks over one rule.
type parser struct {
	text string
	line int
	pos  int
	rule Rule
	spec spec
	seen map[string]bool
}

func parseLine(text string, line int) (Rule, error) {
	p := &parser{text: text, line: line, seen: map[string]bool{}}
	if err := p.fault(); err != nil {
		return Rule{}, err
	}
	for {
		p.space()
		if p.pos == len(p.text) {
			break
		}
		if err := p.pair(); err != nil {
			return Rule{}, err
		}
	}
	if err := p.rule.Validate(); err != nil {
		return Rule{}, p.fail(len(p.text), strings.TrimPrefix(err.Error(), "fault: "), nil, "")
	}
	return p.rule, nil
}

func (p *parser) fail(pos int, msg string, allowed []string, got string) *ParseError {
	return &ParseError{
		Line: p.line, Column: pos + 1, Text: p.text, Msg: msg,
		Allowed: allowed, Suggestion: closest(got, allowed),
	}
}

func (p *parser) space() {
	for p.pos < len(p.text) && (p.text[p.pos] == ' ' || p.text[p.pos] == '\t') {
		p.pos++
	}
}

// word takes what runs up to white space or one of stop.
func (p *parser) word(stop string) string {
	start := p.pos
	for p.pos < len(p.text) {
		c, size := utf8.DecodeRuneInString(p.text[p.pos:])
		if unicode.IsSpace(c) || strings.ContainsRune(stop, c) {
			break
		}
		p.pos += size
	}
	return p.text[start:p.pos]
}

func (p *parser) fault() error {
	p.space()
	start := p.pos
	name := p.word("")
	var all []string
	for _, s := range specs {
		all = append(all, string(s.fault))
	}
	s, ok := specOf(Fault(name))
	switch {
	case name == "":
		return p.fail(start, "a rule begins with a fault", all, "")
	case !ok:
		return p.fail(start, fmt.Sprintf("unknown fault %q", name), all, name)
	}
	p.rule.Fault, p.spec = s.fault, s
	return nil
}

func (p *parser) pair() error {
	start := p.pos
	name := p.word("=\"")
	allowed := slices.Concat(p.spec.params, selectors)
	if name == "" {
		next, _ := utf8.DecodeRuneInString(p.text[start:])
		return p.fail(start, fmt.Sprintf("a name is missing before %q", next), allowed, "")
	}
	if !slices.Contains(allowed, name) {
		msg := fmt.Sprintf("%s takes no %q", p.rule.Fault, name)
		return p.fail(start, msg, allowed, name)
	}
	if p.pos == len(p.text) || p.text[p.pos] != '=' {
		return p.fail(p.pos, fmt.Sprintf("%s needs a value: %s=…", name, name), nil, "")
	}
	p.pos++
	if p.seen[name] && name != "header" {
		return p.fail(start, name+" is given twice", nil, "")
	}
	p.seen[name] = true
	valueAt := p.pos
	value, err := p.value(name)
	if err != nil {
		return err
	}
	if msg, choices := p.set(name, value); msg != "" {
		return p.fail(valueAt, msg, choices, value)
	}
	return nil
}

func (p *parser) value(name string) (string, error) {
	start := p.pos
	if start < len(p.text) && p.text[start] == '"' {
		quoted, err := strconv.QuotedPrefix(p.text[start:])
		if err != nil {
			return "", p.fail(start, "the quoted value of "+name+" does not end, or holds a wrong escape", nil, "")
		}
		p.pos += len(quoted)
		if p.pos < len(p.text) && p.text[p.pos] != ' ' && p.text[p.pos] != '\t' {
			return "", p.fail(p.pos, "a space is missing after the quoted value of "+name, nil, "")
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return "", p.fail(start, "the quoted value of "+name+" is not valid", nil, "")
		}
		if value == "" {
			return "", p.fail(start, name+" is empty", nil, "")
		}
		return value, nil
	}
	value := p.word("\"")
	if p.pos < len(p.text) && p.text[p.pos] == '"' {
		return "", p.fail(p.pos, "a quote inside the value of "+name+"; quote the whole value", nil, "")
	}
	if value == "" {
		return "", p.fail(start, name+" is empty", nil, "")
	}
	return value, nil
}

// set stores one value. It returns what is wrong with it, and the choices
// where there is a list of them.
func (p *parser) set(name, value string) (msg string, choices []string) {
	r := &p.rule
	switch name {
	case "code":
		return p.setCode(value)
	case "bytes":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return "bytes is a whole number, 0 or more", nil
		}
		if r.Bytes = n; n == 0 {
			r.Bytes = HeaderOnly
		}
	case "for":
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return "for is a time above 0, such as 500ms or 2s", nil
		}
		r.For = d
	case "at":
		if r.At = At(value); r.At != Before && r.At != After {
			return fmt.Sprintf("at cannot be %q", value), []string{"before", "after"}
		}
	case "parallel":
		if r.Parallel = value == "true"; value != "true" && value != "false" {
			return fmt.Sprintf("parallel cannot be %q", value), []string{"true", "false"}
		}
	case "answer":
		if r.Second = value == "second"; value != "first" && value != "second" {
			return fmt.Sprintf("answer cannot be %q", value), []string{"first", "second"}
		}
	case "path":
		r.Path = value
	case "method":
		return p.setMethod(value), nil
	case "host":
		r.Host = value
	case "header":
		return p.setHeader(value), nil
	case "contains":
		r.Contains = value
	default:
		return p.setCount(name, value), nil
	}
	return "", nil
}

func (p *parser) setCode(value string) (string, []string) {
	if p.rule.Fault == ResetStream {
		p.rule.StreamCode = strings.ToUpper(value)
		if !slices.Contains(streamCodes(), p.rule.StreamCode) {
			return fmt.Sprintf("unknown HTTP/2 error code %q", value), streamCodes()
		}
		return "", nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 400 || n > 599 {
		return "code is a status between 400 and 599", nil
	}
	p.rule.Code = n
	return "", nil
}

func (p *parser) setMethod(value string) string {
	p.rule.Method = strings.ToUpper(value)
	for m := range strings.SplitSeq(p.rule.Method, ",") {
		if !isToken(m) {
			return fmt.Sprintf("%q is not a method", m)
		}
	}
	return ""
}

func (p *parser) setHeader(value string) string {
	name, glob, hasValue := strings.Cut(value, ":")
	name, glob = strings.TrimSpace(name), strings.TrimSpace(glob)
	if !isToken(name) {
		return fmt.Sprintf("%q is not a header's name", name)
	}
	if hasValue && glob == "" {
		return "a value is missing after the colon; leave out the colon to ask only for the header"
	}
	p.rule.Header = append(p.rule.Header, HeaderMatch{Name: http.CanonicalHeaderKey(name), Value: glob})
	return ""
}

func (p *parser) setCount(name, value string) string {
	r := &p.rule
	switch name {
	case "prob":
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(f) || f <= 0 || f > 1 {
			return "prob is a number above 0 and at most 1"
		}
		r.Prob = f
		return ""
	case "seed":
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return "seed is a whole number, 0 or more"
		}
		r.Seed = n
		return ""
	}
	least := 1
	if name == "after" {
		least = 0
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least {
		return fmt.Sprintf("%s is a whole number, %d or more", name, least)
	}
	*map[string]*int{"nth": &r.Nth, "after": &r.After, "every": &r.Every, "count": &r.Count}[name] = n
	return ""
}

// quoteValue quotes a value that ParseRule would not read back bare.
func quoteValue(v string) string {
	if v == "" || !utf8.ValidString(v) {
		return strconv.Quote(v)
	}
	for _, c := range v {
		if unicode.IsSpace(c) || c == '"' || c == '#' || !unicode.IsPrint(c) {
			return strconv.Quote(v)
		}
	}
	return v
}

// closest returns the choice that is a slip of the pen away from got.
func closest(got string, choices []string) string {
	best, bestDistance := "", 1+max(2, len(got)/3)
	for _, c := range choices {
		if d := distance(strings.ToLower(got), strings.ToLower(c)); got != "" && d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of single-byte edits between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
