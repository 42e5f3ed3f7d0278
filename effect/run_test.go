package effect

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

func run(f Func) Result { return Do(context.Background(), f, &Call{Key: testKey}) }

func TestWhatGoEffectsProve(t *testing.T) {
	for _, c := range []struct {
		name  string
		give  func(ctx context.Context, call *Call) Result
		want  contract.Proves
		reach contract.Reach
		code  string
	}{
		{"applied", func(context.Context, *Call) Result { return Applied(map[string]int{"n": 1}) }, contract.Applied, contract.ReachKey, ""},
		{"refused", func(context.Context, *Call) Result { return Refused("no", "It may not be.") }, contract.Refused, contract.ReachThis, "no"},
		{"refused for the key", func(context.Context, *Call) Result { return Refused("no", "").ForKey() }, contract.Refused, contract.ReachEarlier, "no"},
		{"not applied", func(context.Context, *Call) Result { return NotApplied("busy", "") }, contract.NotApplied, contract.ReachThis, "busy"},
		{"unknown", func(context.Context, *Call) Result { return Unknown("lost", "").ForKey() }, contract.Unknown, contract.ReachThis, "lost"},
		{"nothing said", func(context.Context, *Call) Result { return Result{} }, contract.Unknown, contract.ReachThis, "outcome-unknown"},
		{"panic", func(context.Context, *Call) Result { panic("hunter2") }, contract.Unknown, contract.ReachThis, "outcome-unknown"},
		{"panic with an error", func(context.Context, *Call) Result { panic(errors.New("hunter2")) }, contract.Unknown, contract.ReachThis, "outcome-unknown"},
	} {
		r := run(c.give)
		code := ""
		if r.Failure != nil {
			code = r.Failure.Code
		}
		if r.Proof.Proves != c.want || r.Proof.Reach != c.reach || code != c.code {
			t.Errorf("%s: %+v %+v", c.name, r.Proof, r.Failure)
		}
		if text, _ := json.Marshal(r); strings.Contains(string(text), "hunter2") {
			t.Errorf("%s: the panic's value is kept: %s", c.name, text)
		}
	}
}

func TestOutputsThatCannotBeStored(t *testing.T) {
	for _, c := range []struct {
		name   string
		output any
		want   string
	}{
		{"nothing", nil, ``},
		{"value", struct{ N int }{3}, `{"N":3}`},
		{"raw", json.RawMessage(`[1]`), `[1]`},
		{"broken", json.RawMessage(`[1`), `{"omitted":{"why":"not-json","bytes":2}}`},
		{"no JSON", func() {}, `{"omitted":{"why":"not-json"}}`},
		{"huge", json.RawMessage(`"` + strings.Repeat("x", MaxOutput) + `"`), `{"omitted":{"why":"too-large","bytes":1048578}}`},
	} {
		if r := run(func(context.Context, *Call) Result { return Applied(c.output) }); r.Proof.Proves != contract.Applied || string(r.Output) != c.want {
			t.Errorf("%s: %s %.80s", c.name, r.Proof.Proves, r.Output)
		}
	}
}

// An SDK that retries by itself: the refusal covers the last send only.
func TestSeveralSendsTakeTheForceFromANarrowProof(t *testing.T) {
	s := newService(t, answerWith(500, `{}`))
	client := &http.Client{Transport: Counting(nil)}
	send := func(ctx context.Context, c *http.Client, times int, method string) {
		for range times {
			req, _ := http.NewRequestWithContext(ctx, method, s.URL, strings.NewReader("{}"))
			if resp, err := c.Do(req); err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}
	}
	for _, c := range []struct {
		name   string
		sends  int
		method string
		end    Result
		want   contract.Proves
		counts int
	}{
		{"one send", 1, "POST", Refused("no", ""), contract.Refused, 1},
		{"two sends", 2, "POST", Refused("no", ""), contract.Unknown, 2},
		{"two sends, not applied", 2, "PUT", NotApplied("busy", ""), contract.Unknown, 2},
		{"two sends, for the key", 2, "POST", Refused("no", "").ForKey(), contract.Refused, 2},
		{"two sends, applied", 2, "POST", Applied(nil), contract.Applied, 2},
		{"two reads", 2, "GET", Refused("no", ""), contract.Refused, 0},
	} {
		for _, own := range []bool{true, false} {
			r := run(func(ctx context.Context, call *Call) Result {
				if own {
					send(ctx, call.Client(), c.sends, c.method)
				} else {
					send(ctx, client, c.sends, c.method)
				}
				return c.end
			})
			if r.Proof.Proves != c.want || r.Sends != c.counts {
				t.Errorf("%s: %s with %d sends, want %s with %d", c.name, r.Proof.Proves, r.Sends, c.want, c.counts)
			}
			if c.want == contract.Unknown && r.Proof.Cause != contract.CauseHiddenSends {
				t.Errorf("%s: cause %s", c.name, r.Proof.Cause)
			}
		}
	}
}

func TestCountingClientsSendOnceAndLeaveRedirects(t *testing.T) {
	n := 0
	s := newService(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		n++
		switch {
		case r.URL.Path == "/from":
			http.Redirect(w, r, "/to", http.StatusSeeOther)
		case n == 2:
			cut(w, "")
		default:
			io.WriteString(w, "ok")
		}
	})
	r := run(func(ctx context.Context, call *Call) Result {
		client := call.Client()
		for range 2 { // the second meets a dead connection
			req, _ := http.NewRequestWithContext(ctx, "POST", s.URL, strings.NewReader("x"))
			req.Header.Set("Idempotency-Key", "k")
			if resp, err := client.Do(req); err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}
		req, _ := http.NewRequestWithContext(ctx, "POST", s.URL+"/from", nil)
		resp, err := client.Do(req)
		if err != nil || resp.StatusCode != http.StatusSeeOther {
			t.Errorf("redirect: %v, %v", resp, err)
		}
		return Unknown("end", "")
	})
	if r.Sends != 3 || s.count() != 3 {
		t.Errorf("%d counted, %d arrived; want 3 and 3", r.Sends, s.count())
	}
}

func TestLookUpNeverTrustsAPanic(t *testing.T) {
	r := LookUp(context.Background(), finder(func() LookUpResult { panic("x") }), &Call{})
	if r.Found != contract.FoundNoAnswer || !r.Panicked {
		t.Errorf("%+v", r)
	}
	r = LookUp(context.Background(), finder(func() LookUpResult { return LookUpResult{Found: "odd", Output: json.RawMessage(`1`)} }), &Call{})
	if r.Found != contract.FoundNoAnswer || r.Output != nil {
		t.Errorf("%+v", r)
	}
}

type finder func() LookUpResult

func (finder) Do(context.Context, *Call) Result             { return Result{} }
func (f finder) LookUp(context.Context, *Call) LookUpResult { return f() }

func TestProgressIsKeptInBounds(t *testing.T) {
	var got []semel.Progress
	call := &Call{Report: func(p semel.Progress) { got = append(got, p) }}
	call.Progress(-1, "a")
	call.Progress(0.5, "b")
	call.Progress(7, "c")
	(&Call{}).Progress(0.5, "nobody listens")
	if len(got) != 3 || got[0].Fraction != 0 || got[1].Fraction != 0.5 || got[2].Fraction != 1 || got[2].Note != "c" {
		t.Errorf("%+v", got)
	}
}
