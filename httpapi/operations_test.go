package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/schema"
)

func TestCreateOnce(t *testing.T) {
	w := newWorld(t, nil)
	id := semel.NewID()
	first := w.do("PUT", note(id), body(menu), header("Attempt-Id", "t1")).is(201).
		has("Location", note(id)).has("ETag", `"1"`).has("Idempotency-Replayed", "").has("Retry-After", "1").
		has("Cache-Control", "no-store").has("Preference-Applied", "").has("Access-Control-Allow-Origin", "")
	op := first.op()
	if op.Key != (semel.Key{Account: "acme", Kind: "note", ID: id}) || op.State != semel.Accepted || string(op.Params) != menu || !op.ExpiresAt.IsZero() {
		t.Errorf("%s", first.body)
	}
	again := w.do("PUT", note(id), body(menu), header("Attempt-Id", "t2")).is(200).
		has("Location", note(id)).has("ETag", `"1"`).has("Idempotency-Replayed", "true")
	if again.op().CreatedAt != op.CreatedAt {
		t.Error("it was created again")
	}
	// The IETF header names the same operation, bare or quoted.
	for _, key := range []string{id, `"` + id + `"`, " \t" + id + " "} {
		w.do("POST", "/v1/operations/note", body(menu), header("Idempotency-Key", key)).is(200).has("Idempotency-Replayed", "true").has("Location", note(id))
	}
	w.do("POST", "/v1/operations/note", body(menu), header("Idempotency-Key", `"other"`)).is(201).has("Location", note("other")).has("Idempotency-Replayed", "")
	w.do("PUT", note("other"), body(menu)).is(200)

	got := w.do("GET", note(id)).is(200).has("ETag", `"1"`).has("Retry-After", "1").op()
	if string(got.Params) != menu {
		t.Errorf("params %s", got.Params)
	}
	head := w.do("HEAD", note(id)).is(200).has("ETag", `"1"`)
	if head.Get("Content-Length") == "" {
		t.Error("HEAD without a length")
	}
}

// Law 2: the same key with another request names the differing fields and leaves
// the record untouched, whatever its state.
func TestMismatch(t *testing.T) {
	w := newWorld(t, nil)
	path, op := w.create()
	check := func() {
		t.Helper()
		for _, status := range []int{409, 422} {
			a := reply{}
			if status == 409 {
				a = w.do("PUT", path, body(`{"other":1}`))
			} else {
				a = w.do("POST", "/v1/operations/note", header("Idempotency-Key", op.Key.ID), body(`{"other":1}`))
			}
			p := a.has("Idempotency-Replayed", "").problem(status, semel.CodeMismatch)
			if len(p.DifferingFields) == 0 || p.Operation == nil || p.Operation.Key != op.Key || p.Retryable || p.Recorded != semel.RecordedNo {
				t.Errorf("%s", a.body)
			}
		}
	}
	check()
	lease := w.claim(time.Minute)
	check()
	w.finish(lease, semel.Ending{Outcome: semel.Applied, Result: []byte(`{"x":"` + secret + `"}`)})
	check()
	if got := w.do("GET", path).op(); string(got.Params) != menu || got.State != semel.Succeeded {
		t.Errorf("%+v", got)
	}
}

// Law 1, over sockets.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	path := note(semel.NewID())
	var mu sync.Mutex
	statuses := map[int]int{}
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			a, err := w.try(t.Context(), "PUT", path, body(menu), header("Attempt-Id", fmt.Sprint("t", i)))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			statuses[a.status]++
			if (a.Get("Idempotency-Replayed") == "true") != (a.status == 200) {
				t.Error("a first answer looks like a replay, or a replay like a first answer")
			}
		})
	}
	all.Wait()
	if statuses[201] != 1 || statuses[200] != 199 {
		t.Errorf("%v", statuses)
	}
	page, err := w.ledger.List(t.Context(), semel.Query{})
	if err != nil || len(page.Operations) != 1 {
		t.Errorf("%d operations, %v", len(page.Operations), err)
	}
}

func TestSettled(t *testing.T) {
	w := newWorld(t, nil)
	path, _ := w.create()
	result := `{"url":"<` + secret + `>&"}`
	w.finish(w.claim(time.Minute), semel.Ending{Outcome: semel.Applied, Result: []byte(result)})
	a := w.do("GET", path).is(200).has("Retry-After", "").has("ETag", `"3"`)
	if !bytes.Contains(a.body, []byte(result)) {
		t.Errorf("the result is not told as it is: %s", a.body)
	}
	if op := a.op(); op.ExpiresAt.Sub(op.UpdatedAt).Truncate(time.Second) != time.Hour || op.Executions != 1 {
		t.Errorf("%+v", op)
	}
	a = w.do("PUT", path, body(menu)).is(200).has("Retry-After", "").has("Idempotency-Replayed", "true")
	if string(a.op().Result) != result {
		t.Errorf("%s", a.body)
	}
	w.do("DELETE", path).problem(409, semel.CodeAlreadyStarted)
}

func TestNotModified(t *testing.T) {
	w := newWorld(t, nil)
	path, _ := w.create()
	for tag, status := range map[string]int{`"1"`: 304, `W/"1"`: 304, `"7", "1"`: 304, `*`: 304, `"2"`: 200, `1`: 200, `"01"`: 200, `""`: 200} {
		a := w.do("GET", path, header("If-None-Match", tag)).is(status).has("ETag", `"1"`)
		if status == 304 && len(a.body) > 0 {
			t.Errorf("%s: a body", tag)
		}
	}
	// Attempts and progress are outside of the revision.
	lease := w.claim(time.Minute)
	if _, err := w.ledger.Renew(t.Context(), []semel.Lease{lease}, []*semel.Progress{{Fraction: 0.4, Note: "baking"}}); err != nil {
		t.Fatal(err)
	}
	w.do("GET", path, header("If-None-Match", `"2"`)).is(304)
	if p := w.do("GET", path).op().Progress; p == nil || p.Fraction != 0.4 {
		t.Errorf("%+v", p)
	}
}

func TestAbandon(t *testing.T) {
	w := newWorld(t, nil)
	// before it arrives
	late := note(semel.NewID())
	for range 2 {
		if op := w.do("DELETE", late).is(200).op(); op.State != semel.Abandoned {
			t.Errorf("%+v", op)
		}
	}
	p := w.do("PUT", late, body(menu)).problem(409, semel.CodeAbandoned)
	if p.Operation == nil || p.Retryable {
		t.Errorf("%+v", p)
	}
	w.do("POST", "/v1/operations/note", body(menu), header("Idempotency-Key", path.Base(late))).problem(409, semel.CodeAbandoned)
	w.do("GET", late).is(200)
	// before it begins
	early, _ := w.create()
	w.do("DELETE", early).is(200).has("ETag", `"2"`)
	// after it began
	begun, _ := w.create()
	w.claim(time.Minute)
	p = w.do("DELETE", begun).problem(409, semel.CodeAlreadyStarted)
	if p.Operation == nil || p.Operation.State != semel.Processing || p.Recorded != semel.RecordedYes {
		t.Errorf("%+v", p)
	}
	w.do("DELETE", "/v1/operations/nothing/x").problem(404, semel.CodeUnknownKind)
	w.do("DELETE", note("..")).problem(400, semel.CodeInvalid)
}

// Law 8, over HTTP: an expired identity is 410 for every verb, for ever.
func TestExpired(t *testing.T) {
	w := newWorld(t, nil)
	path, op := w.create()
	w.finish(w.claim(time.Minute), semel.Ending{Outcome: semel.Applied})
	for _, later := range []time.Duration{61 * time.Minute, 48 * time.Hour} { // the stripped row, then no row
		w.clock.advance(later)
		if _, err := w.ledger.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, a := range []reply{
			w.do("PUT", path, body(menu)), w.do("GET", path), w.do("DELETE", path),
			w.do("GET", path+"/events"), w.do("GET", path+"/history"),
			w.do("POST", "/v1/operations/note", body(menu), header("Idempotency-Key", op.Key.ID)),
			w.do("GET", operatorPath(op), as(auditor)), w.do("GET", operatorPath(op)+"/history", as(auditor)),
			w.do("PUT", operatorPath(op)+"/resolution", as(auditor), header("If-Match", `"3"`), body(`{"verdict":"applied","evidence":"e"}`)),
		} {
			p := a.problem(410, semel.CodeExpired)
			if p.RetentionSeconds != 3600 || p.Retryable || p.Hint == "" {
				t.Errorf("%s", a.body)
			}
		}
	}
}

func TestAcceptUntil(t *testing.T) {
	w := newWorld(t, nil)
	now := time.Now()
	path := note(semel.NewID())
	past, future := header("Accept-Until", now.Add(-time.Second).UTC().Format(time.RFC3339Nano)), header("Accept-Until", now.Add(time.Hour).Format(time.RFC3339))
	p := w.do("PUT", path, body(menu), past).problem(412, semel.CodeDeadlinePassed)
	if p.Recorded != semel.RecordedNo {
		t.Errorf("%+v", p)
	}
	w.do("POST", "/v1/operations/note", body(menu), header("Idempotency-Key", "late"), past).problem(412, semel.CodeDeadlinePassed)
	w.do("GET", path).problem(404, semel.CodeNotFound)
	w.do("PUT", path, body(menu), future).is(201)
	w.do("PUT", path, body(menu), past).is(200) // a known one is answered
	// The zero time and negative ones are deadlines too, and have passed.
	for _, remote := range []string{"0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1960-05-05T00:00:00+02:00"} {
		w.do("PUT", note(semel.NewID()), body(menu), header("Accept-Until", remote)).problem(412, semel.CodeDeadlinePassed)
	}
	for _, bad := range []string{"", "tomorrow", "2026-11-30", "2026-11-30T12:00:00", "1764500000", "2026-13-01T00:00:00Z"} {
		a := w.do("PUT", note(semel.NewID()), body(menu), header("Accept-Until", bad))
		if a.status != 400 {
			t.Errorf("%q: %d", bad, a.status)
		}
	}
	w.do("PUT", note(semel.NewID()), body(menu), future, future).problem(400, semel.CodeInvalid)
}

// Attempts are recorded behind the answer, at most by the time that the ledger
// is closed.
func TestAttempts(t *testing.T) {
	w := newWorld(t, nil)
	path, op := w.create(header("Attempt-Id", "first"))
	bad := []with{header("Attempt-Id", strings.Repeat("x", 129)), header("Attempt-Id", "a b"), header("Attempt-Id", "<script>"), header("Attempt-Id", "")}
	for _, b := range bad { // ignored: it decides nothing
		w.do("PUT", path, body(menu), b).is(200)
	}
	w.do("PUT", path, body(menu), header("Attempt-Id", "a"), header("Attempt-Id", "b")).is(200)
	w.do("PUT", path, body(menu), header("Attempt-Id", "second")).is(200)
	w.ledger.Close()
	h := decoded[semel.History](w.do("GET", path+"/history").is(200))
	var ids []string
	for _, a := range h.Attempts {
		ids = append(ids, a.ID)
	}
	if !slices.Equal(ids, []string{"first", "second"}) {
		t.Errorf("%q", ids)
	}
	got := w.do("GET", path).has("ETag", `"1"`).op()
	if got.Attempts != 2 || got.Revision != op.Revision {
		t.Errorf("%+v", got)
	}
}

func TestHistory(t *testing.T) {
	w := newWorld(t, nil)
	path, _ := w.create()
	a := w.do("GET", path+"/history").is(200)
	if got := strings.TrimSpace(string(a.body)); got != `{"attempts":[],"executions":[],"verdicts":[]}` {
		t.Errorf("%s", got)
	}
	w.finish(w.claim(time.Minute), semel.Ending{Outcome: semel.Unknown, Evidence: []byte(`{"wire":"reset"}`)})
	h := decoded[semel.History](w.do("GET", path+"/history").is(200))
	if len(h.Executions) != 1 || h.Executions[0].Outcome != semel.Unknown || string(h.Executions[0].Evidence) != `{"wire":"reset"}` {
		t.Errorf("%+v", h)
	}
	w.do("GET", note(semel.NewID())+"/history").problem(404, semel.CodeNotFound)
	w.do("GET", note("a b")+"/history").problem(400, semel.CodeInvalid)
}

// Each execution tells what its own contract says, whatever the kind's is today.
func TestHistoryTellsPromises(t *testing.T) {
	w := newWorld(t, nil)
	for stored, want := range map[string]string{
		`{"look_up":{"by":"key","absent_after":"90s"}}`:                                `{"shape":"queryable","absent_after_seconds":90}`,
		`{"carrier":{"in":"header","name":"K"},"retention":{"minimum":"24h"}}`:         `{"shape":"idempotent","keeps_seconds":86400}`,
		`{"carrier":{"in":"header","name":"K"},"retention":{"after":"kept_for_ever"}}`: `{"shape":"idempotent","keeps_for_ever":true}`,
		`{"retention":{"minimum":"24h"}}`:                                              `{"shape":"opaque"}`,
		`{}`:                                                                           `{"shape":"opaque"}`, `stripe-v1`: `null`, ``: `null`, `{"name":"told elsewhere"}`: `null`,
	} {
		path, _ := w.create()
		w.claimUnder(stored, time.Minute)
		h := decoded[struct {
			Executions []struct {
				Contract string
				Promise  map[string]any
			}
		}](w.do("GET", path+"/history").is(200))
		if len(h.Executions) != 1 || h.Executions[0].Contract != stored {
			t.Fatalf("%s: %+v", stored, h)
		}
		got := h.Executions[0].Promise
		if words, _ := got["words"].(string); (got != nil) != strings.HasPrefix(words, "This API: it ") {
			t.Errorf("%s: in words %q", stored, words)
		}
		delete(got, "words")
		text, _ := json.Marshal(got)
		var wanted map[string]any
		json.Unmarshal([]byte(want), &wanted)
		if again, _ := json.Marshal(wanted); string(text) != string(again) {
			t.Errorf("%s promises %s, want %s", stored, text, again)
		}
	}
}

func TestList(t *testing.T) {
	w := newWorld(t, nil)
	var mine []string
	for range 5 {
		_, op := w.create()
		mine = append(mine, op.Key.ID)
		w.clock.advance(time.Second)
	}
	slices.Reverse(mine)
	w.create(as(globex))
	w.do("PUT", "/v1/operations/export/e1", body(menu)).is(201)

	type page struct {
		Operations []semel.Operation `json:"operations"`
		Next       string            `json:"next_page_token"`
	}
	list := func(query string, o ...with) page {
		t.Helper()
		a := w.do("GET", "/v1/operations"+query, o...).is(200)
		if bytes.Contains(a.body, []byte("SECRET")) {
			t.Error("a list has parameters")
		}
		return decoded[page](a)
	}
	var got []string
	for token, pages := "", 1; ; pages++ {
		p := list("?kind=note&page_size=2&page_token=" + token)
		for _, op := range p.Operations {
			got = append(got, op.Key.ID)
		}
		if token = p.Next; token == "" {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
	}
	if !slices.Equal(got, mine) {
		t.Errorf("\n%v\n%v", got, mine)
	}
	if p := list("?state=succeeded"); p.Operations == nil || len(p.Operations) != 0 {
		t.Errorf("%+v", p)
	}
	if p := list("?page_size=100000"); len(p.Operations) != 6 {
		t.Errorf("%d operations", len(p.Operations))
	}
	if p := list("", as(globex)); len(p.Operations) != 1 || p.Operations[0].Key.Account != "globex" {
		t.Errorf("%+v", p)
	}
	for _, bad := range []string{"?stat=accepted", "?state=done", "?kind=A", "?page_size=0", "?page_size=-1", "?page_size=x", "?page_size=1&page_size=2",
		"?page_token=garbage", "?account=globex", "?a=%zz", "?a;b"} {
		w.do("GET", "/v1/operations"+bad).problem(400, semel.CodeInvalid)
	}
}

func TestKinds(t *testing.T) {
	w := newWorld(t, nil)
	a := w.do("GET", "/v1/kinds/note").is(200)
	kind := decoded[map[string]any](a)
	if kind["kind"] != "note" || kind["retention_seconds"] != 3600.0 || kind["contract"] != "kept for ever" || kind["schema"] == nil {
		t.Errorf("%s", a.body)
	}
	var all struct{ Kinds []json.RawMessage }
	if err := json.Unmarshal(w.do("GET", "/v1/kinds", as(root)).is(200).body, &all); err != nil || len(all.Kinds) != 2 {
		t.Errorf("%d %v", len(all.Kinds), err)
	}
	w.do("GET", "/v1/kinds/nothing").problem(404, semel.CodeUnknownKind)
	w.do("PUT", "/v1/operations/nothing/x", body("{}")).problem(404, semel.CodeUnknownKind)
	w.do("POST", "/v1/operations/nothing", body("{}"), header("Idempotency-Key", "x")).problem(404, semel.CodeUnknownKind)
}

// Backpressure: new operations are refused with a time to come back, and repeats
// are not.
func TestTooMany(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.ledger.Limits = &semel.Limits{NewPerSecond: 0.01, Burst: 1, LooksPerSecond: 1000} })
	path, _ := w.create()
	p := w.do("PUT", note(semel.NewID()), body(menu)).problem(429, semel.CodeTooMany)
	if p.RetryAfter < time.Second || !p.Retryable || p.Recorded != semel.RecordedNo {
		t.Errorf("%+v", p)
	}
	w.do("POST", "/v1/operations/note", body(menu), header("Idempotency-Key", "k")).problem(429, semel.CodeTooMany)
	w.do("PUT", path, body(menu)).is(200)
}

// A store that is gone is 503, and nothing is claimed about the record that is
// not known.
func TestStoreIsGone(t *testing.T) {
	w := newWorld(t, nil)
	path, op := w.create()
	w.store.Close()
	for _, a := range []reply{
		w.do("PUT", path, body(menu)), w.do("GET", path), w.do("DELETE", path), w.do("GET", path+"/events"), w.do("GET", path+"/history"),
		w.do("GET", "/v1/operations"), w.do("GET", "/v1/operator/operations", as(root)), w.do("GET", operatorPath(op), as(root)),
		w.do("GET", "/v1/operator/stats", as(root)), w.do("GET", "/readyz", nobody),
	} {
		if p := a.problem(503, semel.CodeUnavailable); !p.Retryable || p.RetryAfter == 0 {
			t.Errorf("%s", a.body)
		}
	}
	w.do("GET", "/healthz", nobody).is(200)
}

func TestMetricsAndHealth(t *testing.T) {
	w := newWorld(t, nil)
	if a := w.do("GET", "/metrics", nobody).is(200); string(a.body) != "up 1\n" {
		t.Errorf("%q", a.body)
	}
	w.do("GET", "/healthz", nobody).is(200)
	without := newWorld(t, func(s *setup) { s.server.Metrics = nil })
	resp, err := http.Get(without.url + "/metrics")
	if err != nil || resp.StatusCode != 404 {
		t.Error(resp, err)
	}
	resp.Body.Close()
}

func TestBasePath(t *testing.T) {
	w := newWorld(t, func(s *setup) { s.server.BasePath = "/semel" })
	w.do("PUT", note("n1"), body(menu)).is(201).has("Location", "/semel/v1/operations/note/n1")
}

func TestStripPrefix(t *testing.T) {
	w := newWorld(t, nil)
	mux := http.NewServeMux()
	mux.Handle("/semel/", http.StripPrefix("/semel", w.server))
	w.http.Config.Handler, w.prefix = mux, "/semel"
	w.do("PUT", note("n%31"), body(menu)).is(201)
	w.do("GET", note("n1")).is(200)
}

// A kind with a schema: order, white space and defaults do not make another
// request, and what differs is named after defaults.
func TestSameRequestInOtherWords(t *testing.T) {
	canon, err := schema.Compile("menu-export", []byte(`{"type":"object","required":["title"],"additionalProperties":false,"properties":{
		"title":{"type":"string"},"theme":{"enum":["light","dark"],"default":"light"},"width":{"type":"integer","minimum":320,"default":800}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(s *setup) {
		s.ledger.Kinds = append(s.ledger.Kinds, semel.Kind{Name: "menu-export", Canon: canon})
	})
	path := "/v1/operations/menu-export/" + semel.NewID()
	first := w.do("PUT", path, body(`{"title":"本周菜单"}`)).is(201).op()
	for _, same := range []string{`{"width":800,"title":"本周菜单"}`, ` { "title" : "\u672c周菜单", "theme":"light", "width": 8e2 } `} {
		if op := w.do("PUT", path, body(same)).is(200).op(); op.Fingerprint != first.Fingerprint {
			t.Errorf("%s: %s", same, op.Fingerprint)
		}
	}
	p := w.do("PUT", path, body(`{"title":"本周菜单","theme":"dark","width":801}`)).problem(409, semel.CodeMismatch)
	if !slices.Equal(p.DifferingFields, []string{"/theme", "/width"}) {
		t.Errorf("%q", p.DifferingFields)
	}
	if op := w.do("GET", path).op(); op.Revision != 1 || op.Fingerprint != first.Fingerprint {
		t.Errorf("%+v", op)
	}
	for _, bad := range []string{`{}`, `{"title":"x","width":1}`, `{"title":"x","colour":"red"}`} {
		w.do("PUT", "/v1/operations/menu-export/"+semel.NewID(), body(bad)).problem(400, semel.CodeInvalid)
	}
	shown := decoded[struct{ Schema struct{ Required []string } }](w.do("GET", "/v1/kinds/menu-export").is(200))
	if !slices.Equal(shown.Schema.Required, []string{"title"}) {
		t.Errorf("%+v", shown)
	}
}
