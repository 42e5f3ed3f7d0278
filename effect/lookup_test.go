package effect

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
)

func TestWhatALookUpFinds(t *testing.T) {
	query := mustPreset(t, contract.Queryable)
	key, err := callUnder(query).DownstreamKey()
	if err != nil {
		t.Fatal(err)
	}
	items, root := "/data", ""
	states := LookUpSpec{StateAt: "/state", Succeeded: []string{"done"}, Failed: []string{"rejected"}, Pending: []string{"queued"},
		Failure: Reason{Code: "/why"}}
	list := LookUpSpec{Items: &items, KeyAt: "/key"}
	coded := LookUpSpec{Absent: []contract.Match{{Status: 404, Code: "no_such_order", At: "/code"}}}
	for _, c := range []struct {
		name   string
		spec   LookUpSpec
		status int
		body   string
		found  contract.Found
		output string
	}{
		{"resource", LookUpSpec{}, 200, `{"id":7}`, contract.FoundSucceeded, `{"id":7}`},
		{"resource, mapped", LookUpSpec{Result: Mapping{"n": "/id"}}, 200, `{"id":7}`, contract.FoundSucceeded, `{"n":7}`},
		{"not found", LookUpSpec{}, 404, `{}`, contract.FoundNothing, ""},
		{"not found, with code", coded, 404, `{"code":"no_such_order"}`, contract.FoundNothing, ""},
		{"404 of somebody else", coded, 404, `<html>`, contract.FoundNoAnswer, ""},
		{"server error", LookUpSpec{}, 500, `{}`, contract.FoundNoAnswer, ""},
		{"not allowed", LookUpSpec{}, 401, `{}`, contract.FoundNoAnswer, ""},
		{"not JSON", LookUpSpec{}, 200, `<html>`, contract.FoundNoAnswer, ""},
		{"done", states, 200, `{"state":"done"}`, contract.FoundSucceeded, `{"state":"done"}`},
		{"failed", states, 200, `{"state":"rejected","why":"closed"}`, contract.FoundFailed, ""},
		{"queued", states, 200, `{"state":"queued"}`, contract.FoundPending, ""},
		{"another state", states, 200, `{"state":"odd"}`, contract.FoundNoAnswer, ""},
		{"no state", states, 200, `{}`, contract.FoundNoAnswer, ""},
		{"in the list", list, 200, `{"data":[{"key":"other"},{"key":"KEY","id":1}]}`, contract.FoundSucceeded, `{"id":1,"key":"KEY"}`},
		{"empty list", list, 200, `{"data":[]}`, contract.FoundNothing, ""},
		{"filter ignored", list, 200, `{"data":[{"key":"other"}]}`, contract.FoundNoAnswer, ""},
		{"no list", list, 200, `{"data":{}}`, contract.FoundNoAnswer, ""},
		{"twice", list, 200, `{"data":[{"key":"KEY"},{"key":"KEY"}]}`, contract.FoundSucceeded, `{"key":"KEY"}`},
		{"list at the root", LookUpSpec{Items: &root, KeyAt: "/key"}, 200, `[{"key":"KEY"}]`, contract.FoundSucceeded, `{"key":"KEY"}`},
		{"something else", LookUpSpec{KeyAt: "/key"}, 200, `{"key":"other"}`, contract.FoundNoAnswer, ""},
	} {
		s := newService(t, answerWith(c.status, strings.ReplaceAll(c.body, "KEY", key)))
		c.spec.URL = s.URL + "/o?key={key}"
		h := newEffect(t, query, HTTPSpec{URL: s.URL, LookUp: &c.spec}, nil)
		r := LookUp(context.Background(), h, callUnder(query))
		if r.Found != c.found || strings.ReplaceAll(string(r.Output), key, "KEY") != c.output {
			t.Errorf("%s: %s %s (%s), want %s %s", c.name, r.Found, r.Output, r.Note, c.found, c.output)
		}
		if s.arrived[0].Method != "GET" || s.arrived[0].URL.Query().Get("key") != key {
			t.Errorf("%s: asked with %s %s", c.name, s.arrived[0].Method, s.arrived[0].URL)
		}
		if c.name == "failed" && (r.Failure == nil || r.Failure.Code != "closed") {
			t.Errorf("failure: %+v", r.Failure)
		}
		if c.name == "twice" && r.Note == "" {
			t.Error("nothing is said of two")
		}
	}
}

func TestALookUpWithoutAnswerCannotTell(t *testing.T) {
	query := mustPreset(t, contract.Queryable)
	release := make(chan struct{})
	defer close(release)
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request, []byte){
		"reset":  func(w http.ResponseWriter, _ *http.Request, _ []byte) { cut(w, "") },
		"silent": func(http.ResponseWriter, *http.Request, []byte) { <-release },
		"half of a not found": func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			cut(w, "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n{}")
		},
	} {
		s := newService(t, answer)
		h := newEffect(t, query, HTTPSpec{URL: s.URL, LookUp: &LookUpSpec{URL: s.URL + "/{key}"}}, nil)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		if r := LookUp(ctx, h, callUnder(query)); r.Found != contract.FoundNoAnswer || r.Note == "" {
			t.Errorf("%s: %+v", name, r)
		}
		cancel()
	}
}

func TestLookUpByANaturalKey(t *testing.T) {
	c := mustPreset(t, contract.Queryable)
	c.LookUp.By = contract.ByNaturalKey
	items := "/orders"
	s := newService(t, answerWith(200, `{"orders":[{"ref":"A1"},{"ref":"a1","total":3}]}`))
	h := newEffect(t, c, HTTPSpec{URL: s.URL, LookUp: &LookUpSpec{URL: s.URL + "/orders?ref={params:/ref}", Items: &items, KeyAt: "/ref", Natural: "/ref"}}, nil)
	call := callUnder(c)
	call.Params = []byte(`{"ref":"a1"}`)
	if r := LookUp(context.Background(), h, call); r.Found != contract.FoundSucceeded || string(r.Output) != `{"ref":"a1","total":3}` {
		t.Errorf("%+v %s: natural keys are compared as they are", r, r.Output)
	}
}

func TestLookUpOfARemovedSpecCannotTell(t *testing.T) {
	c := mustPreset(t, contract.Queryable)
	h, err := NewHTTP(HTTPSpec{URL: "http://127.0.0.1:1/"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r := LookUp(context.Background(), h, callUnder(c)); r.Found != contract.FoundNoAnswer {
		t.Errorf("%+v", r)
	}
}
