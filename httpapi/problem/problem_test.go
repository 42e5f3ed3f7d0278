package problem_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi/problem"
)

var update = flag.Bool("update", false, "write problems.md anew")

func Example() {
	answer := httptest.NewRecorder()
	problem.Write(answer, problem.Of(&semel.Error{Code: semel.CodeTooMany, RetryAfter: 1500 * time.Millisecond}))

	p, ours := problem.Decode(answer.Code, answer.Header(), answer.Body.Bytes())
	fmt.Println(ours, p.Status, p.Code, p.Retryable, p.Recorded, p.RetryAfter)
	fmt.Println(errors.Is(p.Err(), semel.ErrTooMany))
	// Output:
	// true 429 too-many-requests true no 2s
	// true
}

// Every code survives the way through an answer and back.
func TestThereAndBack(t *testing.T) {
	op := semel.Operation{Key: semel.Key{Account: "acme", Kind: "note", ID: "n1"}, State: semel.Accepted, Revision: 1}
	for _, code := range semel.Codes() {
		sent := &semel.Error{Code: code, Msg: `a <b> & "c"`, Hint: "h", Key: op.Key, Operation: &op, Fields: []string{"/a~1b"},
			RetryAfter: 3 * time.Second, Retention: 48 * time.Hour, Recorded: semel.RecordedUnknown, Err: errors.New("secret")}
		w := httptest.NewRecorder()
		problem.Write(w, problem.Of(sent))
		if w.Code != code.Info().Status {
			t.Errorf("%s: status %d", code, w.Code)
		}
		if bytes.Contains(w.Body.Bytes(), []byte("secret")) {
			t.Errorf("%s: the cause is told", code)
		}
		p, ok := problem.Decode(w.Code, w.Header(), w.Body.Bytes())
		if !ok {
			t.Fatalf("%s: not read back", code)
		}
		if p.Retryable != code.Info().Retryable || p.Title != code.Info().Title || p.Type != problem.TypeBase+string(code) {
			t.Errorf("%s: %+v", code, p)
		}
		got := p.Err()
		want := *sent
		want.Err = nil
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", code, *got, want)
		}
	}
}

func TestForeignErrorTellsNothing(t *testing.T) {
	for _, err := range []error{errors.New("password=hunter2"), nil} {
		p := problem.Of(err)
		if p.Code != semel.CodeInternal || p.Recorded != semel.RecordedUnknown || strings.Contains(string(p.Marshal()), "hunter2") {
			t.Errorf("%v: %s", err, p.Marshal())
		}
	}
}

func TestDecodeRefusesWhatIsNotOurs(t *testing.T) {
	ours := `{"code":"internal","status":200,"recorded":"perhaps"}`
	for _, c := range []struct {
		name, media, body string
		ok                bool
	}{
		{"ours", "application/problem+json; charset=utf-8", ours, true},
		{"plain JSON", "application/json", ours, false},
		{"a proxy's page", "text/html", "<h1>502</h1>", false},
		{"somebody's problem", problem.MediaType, `{"type":"about:blank","status":502}`, false},
		{"cut", problem.MediaType, ours[:20], false},
		{"no media type", "", ours, false},
	} {
		p, ok := problem.Decode(503, http.Header{"Content-Type": {c.media}}, []byte(c.body))
		if ok != c.ok {
			t.Errorf("%s: %v", c.name, ok)
		}
		if ok && (p.Status != 503 || p.Recorded != semel.RecordedUnknown) {
			t.Errorf("%s: the status line counts, and a word that is none of the three is unknown: %+v", c.name, p)
		}
	}
}

// A stored record that is not JSON may not turn an answer into nothing.
func TestOperationThatIsNotJSON(t *testing.T) {
	p := problem.Of(&semel.Error{Code: semel.CodeMismatch, Operation: &semel.Operation{Params: []byte("<xml>"), Revision: 7}})
	got, ok := problem.Decode(409, http.Header{"Content-Type": {problem.MediaType}}, p.Marshal())
	if !ok || got.Operation == nil || got.Operation.Revision != 7 || got.Operation.Params != nil {
		t.Errorf("%s", p.Marshal())
	}
}

// problems.md is the page that "type" points to.
func TestPageIsUpToDate(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Problems\n\nEvery error of the HTTP interface, made from the table in `error.go` by `go test ./httpapi/problem -update`. Package idempotency has one more: [answer-not-kept](../../idempotency/answers.md#answer-not-kept).\n")
	codes := semel.Codes()
	slices.Sort(codes)
	for _, c := range codes {
		info := c.Info()
		again := "no"
		if info.Retryable {
			again = "yes"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| status | may the same identity be sent again? | is the operation of this request recorded? |\n|---|---|---|\n| %d | %s | %s |\n",
			c, info.Title, info.Status, again, info.Recorded)
	}
	if *update {
		if err := os.WriteFile("problems.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("problems.md")
	if err != nil || string(have) != b.String() {
		t.Errorf("problems.md is stale: go test ./httpapi/problem -update (%v)", err)
	}
}
