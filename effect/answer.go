package effect

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// A Mapping makes an operation's result out of an answer: the names are the
// members of the result, the values say where each comes from, as a JSON Pointer
// into the body ("/image/url") or as "header:Location". What is not there becomes
// null. Without a mapping the result is the whole body.
type Mapping map[string]string

// A Reason says where an answer tells, in words fit for the account, why it
// refuses: JSON Pointers to a code and to a message. Empty ones are not read.
type Reason struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// answer is what was read of an HTTP answer.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	limited bool // there is more than was kept
}

// readAnswer reads up to max bytes of the body, and says how much arrived.
func readAnswer(resp *http.Response, max int64) (answer, contract.Arrival, error) {
	a := answer{status: resp.StatusCode, header: resp.Header}
	var err error
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, max+1))
	resp.Body.Close()
	switch {
	case int64(len(a.body)) > max:
		a.body, a.limited = a.body[:max], true
		return a, contract.ArrivedLimited, nil
	case err != nil:
		return a, contract.ArrivedCut, err
	}
	return a, contract.ArrivedComplete, nil
}

// output is the operation's result.
func (a answer) output(m Mapping) json.RawMessage {
	omitted := Omitted{Status: a.status, Bytes: int64(len(a.body))}
	omitted.MediaType, _, _ = mime.ParseMediaType(a.header.Get("Content-Type"))
	var document any
	switch v, err := decode(a.body); {
	case a.limited:
		omitted.Why = OmittedTooLarge
	case len(a.body) == 0:
		omitted.Why = OmittedEmpty
	case err != nil || !json.Valid(a.body) || !utf8.Valid(a.body):
		omitted.Why = OmittedNotJSON
	default:
		document = v
	}
	if len(m) == 0 && omitted.Why == "" {
		return a.body // as it came, byte for byte
	}
	return outputOf(document, a.header, m, omitted)
}

// outputOf is the result that a mapping makes of a document, or the document.
func outputOf(document any, header http.Header, m Mapping, omitted Omitted) json.RawMessage {
	if len(m) == 0 {
		if omitted.Why != "" {
			return omitted.JSON()
		}
		return marshal(document)
	}
	result := make(map[string]any, len(m))
	for name, from := range m {
		if field, ok := strings.CutPrefix(from, "header:"); ok {
			result[name] = nil
			if v := header.Get(field); v != "" {
				result[name] = strings.ToValidUTF8(v, "\uFFFD")
			}
			continue
		}
		result[name], _ = valueIn(document, from)
	}
	if omitted.Why != "" {
		result["omitted"] = omitted
	}
	return marshal(result)
}

func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil { // what was decoded can be encoded; a number out of all bounds may not
		return Omitted{Why: OmittedNotJSON}.JSON()
	}
	return raw
}

// failure is what the answer says of its refusal, where the spec names a place.
func (a answer) failure(r Reason) *semel.Failure {
	document, err := decode(a.body)
	if a.limited || err != nil {
		return nil
	}
	return failureOf(document, r)
}

const maxFailureText = 500

func failureOf(document any, r Reason) *semel.Failure {
	f := semel.Failure{Code: "refused"}
	if code, ok := textIn(document, r.Code); ok && r.Code != "" && plainCode(code) {
		f.Code = code
	}
	if message, ok := textIn(document, r.Message); ok && r.Message != "" {
		f.Message = clip(strings.ToValidUTF8(message, "\uFFFD"), maxFailureText)
	}
	if f == (semel.Failure{Code: "refused"}) {
		return nil
	}
	return &f
}

// plainCode reports whether a code is short and made of harmless characters.
func plainCode(code string) bool {
	return code != "" && len(code) <= semel.MaxNameLength && semel.ValidID(code)
}

// clip cuts a text at a rune's boundary.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}

// maxWait is what an absurd Retry-After comes down to: the caller stops anyway.
const maxWait = 10 * 365 * 24 * time.Hour

// waitAtLeast is what the answer asks for.
func waitAtLeast(h http.Header) time.Duration {
	wait, _ := contract.RetryAfter(h, time.Now())
	return min(wait, maxWait)
}
