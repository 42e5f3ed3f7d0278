package effect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/semel-dev/semel/contract"
)

// A LookUpSpec says how an operation is found at the external service without
// repeating it. The request is a GET.
type LookUpSpec struct {
	// URL is as [HTTPSpec].URL; it must hold the key, or what identifies the
	// operation by nature.
	URL string `json:"url"`
	// Items is the JSON Pointer of a list in the answer; empty is the whole answer.
	// Defaults to no list: the answer is the one resource.
	Items *string `json:"items,omitempty"`
	// KeyAt is the JSON Pointer, in the resource, of the text by which it was looked
	// up. Needed with Items: a filter that is ignored lists what others did. Defaults
	// to not comparing.
	KeyAt string `json:"key_at,omitempty"`
	// Natural is the JSON Pointer, in the parameters, of what KeyAt must equal where
	// the contract looks up by a natural key. Defaults to the key.
	Natural string `json:"natural,omitempty"`
	// StateAt is the JSON Pointer of a state in the resource, and the lists say what
	// its values mean; any other value can't tell. Defaults to no state: what is
	// found has succeeded.
	StateAt   string   `json:"state_at,omitempty"`
	Succeeded []string `json:"succeeded,omitempty"`
	Failed    []string `json:"failed,omitempty"`
	Pending   []string `json:"pending,omitempty"`
	// Absent are the answers that mean "not found". Status, code and header of a
	// [contract.Match] are compared; a code stands at At. A bare 404 may also come
	// from a wrong route: name a code where the API has one. Defaults to 404.
	Absent []contract.Match `json:"absent,omitempty"`
	// Result makes the operation's result out of the resource. Defaults to that of
	// the [HTTPSpec].
	Result Mapping `json:"result,omitempty"`
	// Failure says where a failed resource gives its reason. Defaults to a text of
	// our own.
	Failure Reason `json:"failure,omitzero"`
}

func (h *HTTP) setLookUp() error {
	l := *h.spec.LookUp
	h.spec.LookUp = &l
	var problems []error
	complain := func(err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("look_up.%w", err))
		}
	}
	var err error
	if h.look, err = parseTemplate(l.URL); err != nil {
		complain(fmt.Errorf("url: %w", err))
	}
	for _, m := range l.Absent {
		if m.Status == 0 || m.Code != "" && m.At == "" {
			complain(errors.New("absent: each needs a status, and a code needs the pointer where it stands"))
		}
	}
	for name, from := range l.Result {
		complain(checkSource("result."+name, from))
	}
	for _, p := range []struct{ name, pointer string }{{"key_at", l.KeyAt}, {"state_at", l.StateAt}, {"natural", l.Natural},
		{"failure.code", l.Failure.Code}, {"failure.message", l.Failure.Message}} {
		complain(checkPointer(p.name, p.pointer))
	}
	if l.Items != nil {
		complain(checkPointer("items", *l.Items))
		if l.KeyAt == "" {
			complain(errors.New("key_at is needed with items: an ignored filter would list what others did"))
		}
	}
	if l.StateAt != "" && len(l.Succeeded) == 0 {
		complain(errors.New("state_at needs at least one value in succeeded"))
	}
	if len(l.Absent) == 0 {
		l.Absent = []contract.Match{{Status: http.StatusNotFound}}
	}
	if l.Result == nil {
		l.Result = h.spec.Result
	}
	return errors.Join(problems...)
}

func (h *HTTP) checkLookUp(c contract.Contract, pathName string) []error {
	var problems []error
	if name := h.look.unknown(pathName); name != "" {
		problems = append(problems, fmt.Errorf("look_up.url: there is no variable {%s}", name))
	}
	byNature := c.LookUp.By == contract.ByNaturalKey
	switch {
	case byNature && !h.look.has("params"):
		problems = append(problems, fmt.Errorf("look_up.url: a look-up by a natural key needs a {params:…}"))
	case byNature && h.spec.LookUp.KeyAt != "" && h.spec.LookUp.Natural == "":
		problems = append(problems, fmt.Errorf("look_up.natural must say what key_at is compared with"))
	case !byNature && !h.look.has("key", pathName):
		problems = append(problems, fmt.Errorf("look_up.url needs {key}"))
	}
	return problems
}

// LookUp asks once. Whatever is not clearly an answer "can't tell".
func (h *HTTP) LookUp(ctx context.Context, call *Call) LookUpResult {
	if h.spec.LookUp == nil {
		return LookUpResult{Found: contract.FoundNoAnswer, Note: "no look-up is configured any more"}
	}
	_, key, err := downstreamKey(call.Contract, call.Key)
	if err != nil {
		return LookUpResult{Found: contract.FoundNoAnswer, Note: "no key can be made"}
	}
	u, err := h.look.expand(key, call.Params)
	if err != nil {
		return LookUpResult{Found: contract.FoundNoAnswer, Note: "no look-up can be made of this operation"}
	}
	req := (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: h.header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if err := h.authorize(ctx, req); err != nil {
		return LookUpResult{Found: contract.FoundNoAnswer, Note: "no credentials could be had"}
	}
	resp, err := h.kept.RoundTrip(req)
	if err != nil {
		return LookUpResult{Found: contract.FoundNoAnswer, Note: "the look-up had no answer"}
	}
	a, arrival, _ := readAnswer(resp, h.spec.MaxResponse)
	r := LookUpResult{Found: contract.FoundNoAnswer, Status: a.status, WaitAtLeast: waitAtLeast(a.header)}
	if arrival != contract.ArrivedComplete {
		r.Note = "the answer to the look-up was not complete"
		return r
	}
	h.spec.LookUp.read(a, h.spec.LookUp.wanted(call, key), &r)
	return r
}

// wanted returns the test for the text by which the operation was looked up. A
// UUID may come back in another case.
func (l *LookUpSpec) wanted(call *Call, key string) func(string) bool {
	if l.Natural != "" {
		key, _ = textAt(call.Params, l.Natural)
	}
	fold := l.Natural == "" && (call.Contract.Key.Form == contract.KeyUUID || call.Contract.Key.CaseInsensitive)
	return func(text string) bool { return text != "" && (text == key || fold && strings.EqualFold(text, key)) }
}

// read says what an answer means.
func (l *LookUpSpec) read(a answer, wanted func(string) bool, r *LookUpResult) {
	document, err := decode(a.body)
	if slices.ContainsFunc(l.Absent, func(m contract.Match) bool { return matches(m, a, document) }) {
		r.Found = contract.FoundNothing
		return
	}
	if a.status/100 != 2 {
		r.Note = fmt.Sprintf("the look-up was answered with %d", a.status)
		return
	}
	if err != nil {
		r.Note = "the answer to the look-up is not JSON"
		return
	}
	resource, note, absent := l.resource(document, wanted)
	switch {
	case absent:
		r.Found = contract.FoundNothing
		return
	case resource == nil:
		r.Note = note
		return
	}
	r.Found, r.Note = l.state(resource), note
	switch r.Found {
	case contract.FoundSucceeded:
		r.Output = outputOf(resource, a.header, l.Result, Omitted{})
	case contract.FoundFailed:
		r.Failure = failureOf(resource, l.Failure)
	case contract.FoundNoAnswer:
		r.Note = "the look-up found it in a state that the spec does not name"
	}
}

// resource picks the resource that was looked up. A list with entries of which
// none is ours shows that the filter was ignored, or that there is more to read:
// then nobody can tell.
func (l *LookUpSpec) resource(document any, wanted func(string) bool) (resource any, note string, absent bool) {
	if l.Items == nil {
		if l.KeyAt != "" {
			if at, _ := textIn(document, l.KeyAt); !wanted(at) {
				return nil, "the look-up found something else", false
			}
		}
		return document, "", false
	}
	list, _ := valueIn(document, *l.Items)
	items, ok := list.([]any)
	if !ok {
		return nil, "the answer to the look-up has no list", false
	}
	var ours []any
	for _, item := range items {
		if at, _ := textIn(item, l.KeyAt); wanted(at) {
			ours = append(ours, item)
		}
	}
	switch {
	case len(items) == 0:
		return nil, "", true
	case len(ours) == 0:
		return nil, "the list was not filtered by the key", false
	case len(ours) > 1:
		note = fmt.Sprintf("found %d times", len(ours))
	}
	return ours[0], note, false
}

func (l *LookUpSpec) state(resource any) contract.Found {
	if l.StateAt == "" {
		return contract.FoundSucceeded
	}
	state, _ := textIn(resource, l.StateAt)
	switch {
	case slices.Contains(l.Succeeded, state):
		return contract.FoundSucceeded
	case slices.Contains(l.Failed, state):
		return contract.FoundFailed
	case slices.Contains(l.Pending, state):
		return contract.FoundPending
	}
	return contract.FoundNoAnswer
}

func matches(m contract.Match, a answer, document any) bool {
	if m.Status != a.status {
		return false
	}
	if m.Header != "" {
		value := a.header.Get(m.Header)
		if value == "" || m.Value != "" && !strings.EqualFold(strings.TrimSpace(value), m.Value) {
			return false
		}
	}
	if m.Code != "" {
		code, _ := textIn(document, m.At)
		return code == m.Code
	}
	return true
}
