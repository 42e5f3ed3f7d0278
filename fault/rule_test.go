package fault

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseRule(t *testing.T) {
	for text, want := range map[string]Rule{
		"lose-answer": {Fault: LoseAnswer},
		"lose-answer after=1 count=1 path=/orders method=POST":    {Fault: LoseAnswer, After: 1, Count: 1, Path: "/orders", Method: "POST"},
		"  status\tcode=500  ":                                    {Fault: Status, Code: 500},
		"status-before method=post,Put":                           {Fault: StatusBefore, Method: "POST,PUT"},
		"cut-during bytes=10":                                     {Fault: CutDuring, Bytes: 10},
		"cut-after bytes=0":                                       {Fault: CutAfter, Bytes: HeaderOnly},
		"delay for=1.5s at=after":                                 {Fault: Delay, For: 1500 * time.Millisecond, At: After},
		"hold at=before nth=3":                                    {Fault: Hold, At: Before, Nth: 3},
		"duplicate parallel=true answer=second":                   {Fault: Duplicate, Parallel: true, Second: true},
		"duplicate parallel=false answer=first":                   {Fault: Duplicate},
		"reset-stream code=refused_stream":                        {Fault: ResetStream, StreamCode: "REFUSED_STREAM"},
		"replay-old-connection every=2":                           {Fault: ReplayOldConnection, Every: 2},
		"lose-answer prob=0.5 seed=7":                             {Fault: LoseAnswer, Prob: 0.5, Seed: 7},
		"lose-answer header=idempotency-key":                      {Fault: LoseAnswer, Header: []HeaderMatch{{Name: "Idempotency-Key"}}},
		`lose-answer header="accept: text/*" header=X-A:b`:        {Fault: LoseAnswer, Header: []HeaderMatch{{"Accept", "text/*"}, {"X-A", "b"}}},
		`lose-answer contains="insert into \"order\"\n" host=a:1`: {Fault: LoseAnswer, Contains: "insert into \"order\"\n", Host: "a:1"},
	} {
		got, err := ParseRule(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestParseRuleErrors(t *testing.T) {
	for _, tt := range []struct {
		text       string
		column     int
		says       string
		suggestion string
	}{
		{"", 1, "a rule begins with a fault", ""},
		{"lose-anser count=1", 1, `unknown fault "lose-anser"`, "lose-answer"},
		{"teapot", 1, `unknown fault "teapot" (allowed: lose-answer, status,`, ""},
		{"lose-answer cuont=1", 13, `lose-answer takes no "cuont"`, "count"},
		{"lose-answer code=503", 13, `lose-answer takes no "code"`, ""},
		{"lose-answer count", 18, "count needs a value", ""},
		{"lose-answer count=", 19, "count is empty", ""},
		{"lose-answer count=0", 19, "count is a whole number, 1 or more", ""},
		{"lose-answer count=x", 19, "count is a whole number, 1 or more", ""},
		{"lose-answer after=-1", 19, "after is a whole number, 0 or more", ""},
		{"lose-answer count=1 count=2", 21, "count is given twice", ""},
		{"lose-answer nth=1 count=2", 26, "nth stands alone", ""},
		{"lose-answer seed=2", 19, "seed means nothing without prob", ""},
		{"lose-answer prob=0", 18, "prob is a number above 0 and at most 1", ""},
		{"lose-answer prob=NaN", 18, "prob is a number above 0 and at most 1", ""},
		{"lose-answer prob=0.1 seed=-1", 27, "seed is a whole number", ""},
		{"status code=200", 13, "code is a status between 400 and 599", ""},
		{"reset-stream code=REFUSED", 19, "unknown HTTP/2 error code", ""},
		{"reset-stream code=REFUSED_STREEM", 19, "unknown HTTP/2 error code", "REFUSED_STREAM"},
		{"delay", 6, "delay needs how long", ""},
		{"delay for=2", 11, "for is a time above 0", ""},
		{"delay for=1s at=befor", 17, `at cannot be "befor"`, "before"},
		{"duplicate parallel=yes", 20, "parallel cannot be", ""},
		{"duplicate answer=secnd", 18, "answer cannot be", "second"},
		{"cut-after bytes=-1", 17, "bytes is a whole number", ""},
		{"cut-before method=P(T", 19, "is not a method", ""},
		{"cut-before header=a(", 19, "is not a header's name", ""},
		{"cut-before header=X:", 19, "a value is missing after the colon", ""},
		{`cut-before path="/a`, 17, "the quoted value of path does not end", ""},
		{`cut-before path="/a"b`, 21, "a space is missing after the quoted value", ""},
		{`cut-before path=/a"b`, 19, "a quote inside the value of path", ""},
		{`cut-before path=""`, 17, "path is empty", ""},
		{"cut-before =1", 12, "a name is missing before '='", ""},
		{"cut-before\ncount=1", 11, `a name is missing before '\n'`, ""},
		{"cut-before path=/a\ncount=1", 19, `a name is missing before '\n'`, ""},
	} {
		_, err := ParseRule(tt.text)
		var p *ParseError
		if !errors.As(err, &p) {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if p.Column != tt.column || !strings.Contains(p.Error(), tt.says) || p.Suggestion != tt.suggestion {
			t.Errorf("%q: column %d, suggestion %q: %v", tt.text, p.Column, p.Suggestion, err)
		}
	}
}

func TestParseRules(t *testing.T) {
	rules, err := ParseRules("# two\n\nlose-answer count=1\r\n  status  \n")
	if err != nil || len(rules) != 2 || rules[1].Fault != Status {
		t.Errorf("%v, %v", rules, err)
	}
	_, err = ParseRules("status\n\n  los-answer\n")
	if err == nil || err.Error() != `line 3, column 3: unknown fault "los-answer"; did you mean lose-answer? (allowed: `+
		"lose-answer, status, status-before, cut-before, cut-during, cut-after, delay, hold, duplicate, reset-stream, replay-old-connection)" {
		t.Errorf("%v", err)
	}
}

func TestMustRulePanics(t *testing.T) {
	defer func() {
		if v := recover(); v == nil || !strings.Contains(v.(string), "unknown fault") {
			t.Errorf("recovered %v", v)
		}
	}()
	MustRule("nothing")
}

// Every fault, and everything that can be told to it, is in the manual.
func TestManualIsComplete(t *testing.T) {
	manual := readFile(t, "doc.go")
	for _, s := range specs {
		if !strings.Contains(manual, "\n//\t"+string(s.fault)+" ") {
			t.Errorf("the manual has no line for %s", s.fault)
		}
		for _, p := range s.params {
			if !strings.Contains(manual, "\n//\t"+p+"=") {
				t.Errorf("the manual has no line for %s=", p)
			}
		}
	}
	for _, p := range selectors {
		if !strings.Contains(manual, p+"=") {
			t.Errorf("the manual has no %s=", p)
		}
	}
}

// ruleGen makes valid rules.
func ruleGen() *rapid.Generator[Rule] {
	return rapid.Custom(func(t *rapid.T) Rule {
		s := rapid.SampledFrom(specs).Draw(t, "spec")
		r := Rule{Fault: s.fault}
		for _, p := range s.params {
			if !rapid.Bool().Draw(t, p) && s.fault != Delay {
				continue
			}
			switch p {
			case "code":
				if s.fault == ResetStream {
					r.StreamCode = rapid.SampledFrom(streamCodes()).Draw(t, "stream code")
				} else {
					r.Code = rapid.IntRange(400, 599).Draw(t, "code")
				}
			case "bytes":
				r.Bytes = rapid.SampledFrom([]int64{HeaderOnly, 1, 1 << 40}).Draw(t, "bytes")
			case "for":
				r.For = time.Duration(rapid.Int64Range(1, 1<<62).Draw(t, "for"))
			case "at":
				r.At = rapid.SampledFrom([]At{"", Before, After}).Draw(t, "at")
			case "parallel":
				r.Parallel = true
			case "answer":
				r.Second = true
			}
		}
		text := rapid.SampledFrom([]string{"", "/a", "/a/**", "a b", `say "x"`, "#", "é\x00\xff", "=", "a=b"})
		r.Path, r.Host, r.Contains = text.Draw(t, "path"), text.Draw(t, "host"), text.Draw(t, "contains")
		r.Method = rapid.SampledFrom([]string{"", "GET", "GET,M-SEARCH"}).Draw(t, "method")
		for range rapid.IntRange(0, 2).Draw(t, "headers") {
			r.Header = append(r.Header, HeaderMatch{
				Name:  rapid.SampledFrom([]string{"Accept", "Idempotency-Key"}).Draw(t, "name"),
				Value: text.Draw(t, "value"),
			})
		}
		number := rapid.IntRange(0, 1<<40)
		if rapid.Bool().Draw(t, "nth") {
			r.Nth = number.Draw(t, "nth")
			return r
		}
		r.After, r.Every, r.Count = number.Draw(t, "after"), number.Draw(t, "every"), number.Draw(t, "count")
		if rapid.Bool().Draw(t, "chance") {
			r.Prob = rapid.Float64Range(1e-300, 1).Draw(t, "prob")
			r.Seed = rapid.Uint64().Draw(t, "seed")
		}
		return r
	})
}

// What a rule writes of itself is that rule.
func TestRuleRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := ruleGen().Draw(t, "rule")
		if err := r.Validate(); err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		back, err := ParseRule(r.String())
		if err != nil || !reflect.DeepEqual(back, r) {
			t.Fatalf("%s\n%+v\n%+v\n%v", r, r, back, err)
		}
	})
}

func FuzzParseRule(f *testing.F) {
	f.Add("lose-answer after=1 count=1 path=/orders method=POST")
	f.Add(`cut-during bytes=0 header="A: b*" contains="\xff" prob=0.5 seed=3`)
	f.Add("reset-stream code=CANCEL at=before every=2")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule(text)
		if err != nil {
			var p *ParseError
			if !errors.As(err, &p) || p.Column < 1 || p.Column > len(text)+1 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		back, err := ParseRule(r.String())
		if err != nil || !reflect.DeepEqual(back, r) {
			t.Fatalf("%q: %+v became %+v, %v", text, r, back, err)
		}
	})
}

func TestValidateHandMade(t *testing.T) {
	for _, r := range []Rule{
		{},
		{Fault: "x"},
		{Fault: LoseAnswer, Code: 500},
		{Fault: Status, StreamCode: "CANCEL"},
		{Fault: Status, Code: 99},
		{Fault: ResetStream, Code: 500},
		{Fault: ResetStream, StreamCode: "NOPE"},
		{Fault: CutAfter, Bytes: -2},
		{Fault: Delay},
		{Fault: Hold, At: "later"},
		{Fault: Hold, Method: "post"},
		{Fault: Hold, Header: []HeaderMatch{{Name: "x-lower"}}},
		{Fault: Hold, Header: []HeaderMatch{{Name: "X", Value: " a"}}},
		{Fault: Hold, Contains: strings.Repeat("x", tailSize+1)},
		{Fault: Hold, Count: -1},
		{Fault: Hold, Nth: 1, Prob: 0.5},
		{Fault: Hold, Prob: 1.5},
		{Fault: Hold, Seed: 1},
	} {
		if r.Validate() == nil {
			t.Errorf("%+v is valid", r)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"/orders", "/orders", true},
		{"/orders", "/orders/1", false},
		{"/orders/*", "/orders/1", true},
		{"/orders/*", "/orders/1/lines", false},
		{"/orders/*/lines", "/orders/1/lines", true},
		{"/orders/**", "/orders/1/lines", true},
		{"/**/lines", "/orders/1/lines", true},
		{"/*", "/", true},
		{"/a?c", "/abc", true},
		{"/a?c", "/aéc", true},
		{"/a?c", "/a/c", false},
		{"*", "", true},
		{"", "", true},
		{"", "a", false},
		{"**a*b", "xxa/ab", true},
		{strings.Repeat("*a", 50), strings.Repeat("a", 200) + "b", false},
	} {
		if got := glob(tt.pattern, tt.s, '/'); got != tt.want {
			t.Errorf("glob(%q, %q) = %v", tt.pattern, tt.s, got)
		}
	}
	if !glob("api.*:80*", "api.example/x:8080", 0) {
		t.Error("without a stop, * takes everything")
	}
}

func TestSelectors(t *testing.T) {
	f := facts{method: "POST", path: "/orders/1", host: "api:80", header: http.Header{"Accept": {"a/b", "text/html"}}}
	for rule, want := range map[string]bool{
		"hold":                            true,
		"hold method=GET,POST":            true,
		"hold method=GET":                 false,
		"hold path=/orders/*":             true,
		"hold path=/orders":               false,
		"hold host=api*":                  true,
		"hold host=api":                   false,
		"hold header=accept":              true,
		"hold header=accept:text/*":       true,
		"hold header=accept:x":            false,
		"hold header=b header=accept":     false,
		"hold path=/orders/* method=POST": true,
	} {
		r := MustRule(rule)
		if r.selects(f) != want {
			t.Errorf("%s: %v", rule, !want)
		}
	}
}
