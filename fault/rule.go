package fault

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// Fault names what goes wrong. The package comment says where each one leaves
// the request.
type Fault string

// The faults.
const (
	LoseAnswer          Fault = "lose-answer"
	Status              Fault = "status"
	StatusBefore        Fault = "status-before"
	CutBefore           Fault = "cut-before"
	CutDuring           Fault = "cut-during"
	CutAfter            Fault = "cut-after"
	Delay               Fault = "delay"
	Hold                Fault = "hold"
	Duplicate           Fault = "duplicate"
	ResetStream         Fault = "reset-stream"
	ReplayOldConnection Fault = "replay-old-connection"
)

// At is the side of the upstream's work on which a fault takes place.
type At string

// Before is before the upstream has the request, After is after it has
// completed it.
const (
	Before At = "before"
	After  At = "after"
)

// HeaderOnly, as [Rule.Bytes], lets the header pass and nothing of the body.
// In text it is bytes=0.
const HeaderOnly int64 = -1

// HeaderMatch selects requests that carry a header.
type HeaderMatch struct {
	Name  string // canonical form, such as Idempotency-Key
	Value string // glob over the value, * matches anything. Defaults to any value
}

// Rule says what goes wrong, for which requests, and how often. Its zero
// fields mean what the package comment calls the default. [Rule.Validate]
// says whether a hand-made one makes sense; [ParseRule] returns only those
// that do.
type Rule struct {
	Fault Fault

	Code       int           // status, status-before: 400 to 599. Defaults to 503
	StreamCode string        // reset-stream: name of the HTTP/2 error code. Defaults to INTERNAL_ERROR
	Bytes      int64         // cut-during, cut-after: bytes of the body that pass, or HeaderOnly. Defaults to half
	For        time.Duration // delay: how long. Needed there
	At         At            // Defaults to Before for delay and replay-old-connection, to After for hold and reset-stream
	Parallel   bool          // duplicate: both at once. Defaults to one after the other
	Second     bool          // duplicate: return the second answer. Defaults to the first

	Path     string        // glob over the URL's path. Defaults to all
	Method   string        // methods, upper case, separated by commas. Defaults to all
	Host     string        // glob over the host and port. Defaults to all
	Header   []HeaderMatch // all of these. Defaults to none
	Contains string        // bytes sent by the client; Listener and TCPProxy only. Defaults to counting connections

	Nth   int     // only the Nth selected. Defaults to all
	After int     // not the first After. Defaults to 0
	Every int     // each Nth. Defaults to each
	Count int     // at most this often. Defaults to no limit
	Prob  float64 // by chance, above 0 and up to 1. Defaults to always
	Seed  uint64  // of the chance. Defaults to 0
}

// spec is one row of the rule language: what a fault may be told.
type spec struct {
	fault  Fault
	params []string
	at     At   // default of at=, where it has one
	bytes  bool // possible without knowing the protocol
}

var specs = []spec{
	{fault: LoseAnswer, bytes: true},
	{fault: Status, params: []string{"code"}},
	{fault: StatusBefore, params: []string{"code"}},
	{fault: CutBefore, bytes: true},
	{fault: CutDuring, params: []string{"bytes"}, bytes: true},
	{fault: CutAfter, params: []string{"bytes"}, bytes: true},
	{fault: Delay, params: []string{"for", "at"}, at: Before, bytes: true},
	{fault: Hold, params: []string{"at"}, at: After, bytes: true},
	{fault: Duplicate, params: []string{"parallel", "answer"}},
	{fault: ResetStream, params: []string{"code", "at"}, at: After},
	{fault: ReplayOldConnection, params: []string{"at"}, at: Before, bytes: true},
}

// selectors may be given for every fault, in the order in which String writes them.
var selectors = []string{"path", "method", "host", "header", "contains", "nth", "after", "every", "count", "prob", "seed"}

func specOf(f Fault) (spec, bool) {
	i := slices.IndexFunc(specs, func(s spec) bool { return s.fault == f })
	if i < 0 {
		return spec{}, false
	}
	return specs[i], true
}

// at returns the side on which r takes place, with the default filled in.
func (r *Rule) at() At {
	if r.At != "" {
		return r.At
	}
	s, _ := specOf(r.Fault)
	return s.at
}

func (r *Rule) status() int {
	if r.Code != 0 {
		return r.Code
	}
	return http.StatusServiceUnavailable
}

func (r *Rule) streamCode() http2.ErrCode {
	for c := http2.ErrCodeNo; c <= http2.ErrCodeHTTP11Required; c++ {
		if c.String() == r.StreamCode {
			return c
		}
	}
	return http2.ErrCodeInternal
}

func streamCodes() []string {
	var names []string
	for c := http2.ErrCodeNo; c <= http2.ErrCodeHTTP11Required; c++ {
		names = append(names, c.String())
	}
	return names
}

// cutPoint returns how many of total bytes pass.
func (r *Rule) cutPoint(total int64) int64 {
	switch {
	case r.Bytes == HeaderOnly:
		return 0
	case r.Bytes == 0:
		return total / 2
	default:
		return min(r.Bytes, total)
	}
}

// Validate returns an error that names the first field which the rule's fault
// does not know, or whose value makes no sense.
func (r *Rule) Validate() error {
	s, ok := specOf(r.Fault)
	if !ok {
		return fmt.Errorf("fault: unknown fault %q", r.Fault)
	}
	given := map[string]bool{
		"code": r.Code != 0 || r.StreamCode != "", "bytes": r.Bytes != 0, "for": r.For != 0,
		"at": r.At != "", "parallel": r.Parallel, "answer": r.Second,
	}
	for _, name := range []string{"code", "bytes", "for", "at", "parallel", "answer"} {
		if given[name] && !slices.Contains(s.params, name) {
			return fmt.Errorf("fault: %s takes no %s", r.Fault, name)
		}
	}
	for _, check := range []func() error{r.validParams, r.validSelectors, r.validCounts} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rule) validParams() error {
	switch {
	case r.Fault == ResetStream && r.Code != 0:
		return errors.New("fault: reset-stream takes the name of an HTTP/2 error code, not a status")
	case r.Fault != ResetStream && r.StreamCode != "":
		return fmt.Errorf("fault: %s takes a status, not the name of an HTTP/2 error code", r.Fault)
	case r.StreamCode != "" && !slices.Contains(streamCodes(), r.StreamCode):
		return fmt.Errorf("fault: unknown HTTP/2 error code %q", r.StreamCode)
	case r.Code != 0 && (r.Code < 400 || r.Code > 599):
		return fmt.Errorf("fault: status %d is not between 400 and 599", r.Code)
	case r.Bytes < HeaderOnly:
		return errors.New("fault: bytes is negative")
	case r.Fault == Delay && r.For <= 0:
		return errors.New("fault: delay needs how long: for=2s")
	case r.At != "" && r.At != Before && r.At != After:
		return fmt.Errorf("fault: at is %q, not before or after", r.At)
	}
	return nil
}

func (r *Rule) validSelectors() error {
	if r.Method != "" {
		for m := range strings.SplitSeq(r.Method, ",") {
			if !isToken(m) || m != strings.ToUpper(m) {
				return fmt.Errorf("fault: %q is not a method in upper case", m)
			}
		}
	}
	if len(r.Contains) > tailSize {
		return fmt.Errorf("fault: contains is longer than %d bytes", tailSize)
	}
	for _, h := range r.Header {
		if !isToken(h.Name) || http.CanonicalHeaderKey(h.Name) != h.Name {
			return fmt.Errorf("fault: %q is not a header's name in canonical form", h.Name)
		}
		if strings.TrimSpace(h.Value) != h.Value {
			return fmt.Errorf("fault: the value of header %s begins or ends with a space", h.Name)
		}
	}
	return nil
}

func (r *Rule) validCounts() error {
	switch {
	case r.Nth < 0 || r.After < 0 || r.Every < 0 || r.Count < 0:
		return errors.New("fault: nth, after, every and count are not negative")
	case r.Nth > 0 && (r.After > 0 || r.Every > 0 || r.Count > 0 || r.Prob != 0):
		return errors.New("fault: nth stands alone, without after, every, count or prob")
	case !(r.Prob >= 0 && r.Prob <= 1):
		return errors.New("fault: prob is above 0 and at most 1")
	case r.Seed != 0 && r.Prob == 0:
		return errors.New("fault: seed means nothing without prob")
	}
	return nil
}

// String writes the rule in the rule language. For a valid rule,
// [ParseRule] of it is the same rule again.
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString(string(r.Fault))
	put := func(name, value string) {
		b.WriteString(" " + name + "=" + quoteValue(value))
	}
	number := func(name string, n int) {
		if n != 0 {
			put(name, strconv.Itoa(n))
		}
	}
	text := func(name, value string) {
		if value != "" {
			put(name, value)
		}
	}
	number("code", r.Code)
	text("code", r.StreamCode)
	switch {
	case r.Bytes == HeaderOnly:
		put("bytes", "0")
	case r.Bytes != 0:
		put("bytes", strconv.FormatInt(r.Bytes, 10))
	}
	if r.For != 0 {
		put("for", r.For.String())
	}
	text("at", string(r.At))
	if r.Parallel {
		put("parallel", "true")
	}
	if r.Second {
		put("answer", "second")
	}
	text("path", r.Path)
	text("method", r.Method)
	text("host", r.Host)
	for _, h := range r.Header {
		if h.Value == "" {
			put("header", h.Name)
		} else {
			put("header", h.Name+": "+h.Value)
		}
	}
	text("contains", r.Contains)
	number("nth", r.Nth)
	number("after", r.After)
	number("every", r.Every)
	number("count", r.Count)
	if r.Prob != 0 {
		put("prob", strconv.FormatFloat(r.Prob, 'g', -1, 64))
	}
	if r.Seed != 0 {
		put("seed", strconv.FormatUint(r.Seed, 10))
	}
	return b.String()
}

// MarshalText writes the rule as [Rule.String] does.
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the rule as [ParseRule] does.
func (r *Rule) UnmarshalText(text []byte) error {
	parsed, err := ParseRule(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}

func isToken(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return true
}
