package idempotency

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/fingerprint"
)

// Asked is what was asked for, as it is kept with the operation.
type Asked struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Query  string `json:"query,omitempty"`
	// Header holds the compared headers, if the contract names any.
	Header http.Header `json:"header,omitempty"`
	// MediaType is the type of the body without its parameters.
	MediaType string `json:"media_type,omitempty"`
	// JSON is the body if it is JSON, Raw if it is anything else. Both are empty
	// where there was none, or it was not kept.
	JSON json.RawMessage `json:"body,omitempty"`
	Raw  []byte          `json:"body_base64,omitempty"`
	// BodySize is the size of the body in bytes, kept or not.
	BodySize int `json:"body_size,omitempty"`
}

// body reads all of a request's body, within the limit.
func (h *Handler) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	tooLarge := &semel.Error{Code: semel.CodeTooLarge, Msg: fmt.Sprintf("the body is larger than %d bytes", h.opts.MaxBody)}
	if r.ContentLength > h.opts.MaxBody {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.opts.MaxBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &semel.Error{Code: semel.CodeInvalid, Msg: "the body did not arrive in time"}
	case err != nil:
		return nil, &semel.Error{Code: semel.CodeInvalid, Msg: "the body ended early"}
	}
	return body, nil
}

// asked is a request taken apart, with what its comparison needs.
type asked struct {
	Asked
	body   []byte
	value  fingerprint.Value
	isJSON bool // value is the body
}

func (h *Handler) takeApart(r *http.Request, body []byte) *asked {
	a := &asked{body: body, Asked: Asked{Method: r.Method, Path: r.URL.EscapedPath(), Query: canonicalQuery(r.URL.RawQuery), BodySize: len(body)}}
	a.MediaType, _, _ = mime.ParseMediaType(r.Header.Get("Content-Type"))
	for _, name := range h.offer.Compare.Headers {
		if lines := r.Header.Values(name); len(lines) > 0 {
			if a.Header == nil {
				a.Header = http.Header{}
			}
			a.Header[http.CanonicalHeaderKey(name)] = slices.Clone(lines)
		}
	}
	plain := r.Header.Get("Content-Encoding") == ""
	if plain && len(body) > 0 && isJSON(a.MediaType) {
		// What is not strict JSON can be read in two ways, so its bytes count.
		v, err := fingerprint.Parse(body)
		a.value, a.isJSON = v, err == nil
	}
	if len(body) <= h.opts.KeepBody {
		if a.isJSON {
			a.JSON = body
		} else if len(body) > 0 {
			a.Raw = body
		}
	}
	return a
}

func isJSON(media string) bool {
	return media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}

// canonicalQuery orders the parameters by name; values of one name stay in order.
// A query that can't be read stays as it is.
func canonicalQuery(raw string) string {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return raw
	}
	return values.Encode()
}

// fingerprint is the digest of what the contract compares.
func (h *Handler) fingerprint(r *http.Request, a *asked) string {
	b := fingerprint.NewBuilder("http-request")
	if h.compares(contract.CompareMethod) {
		b.Add("method", a.Method)
	}
	if h.compares(contract.ComparePath) {
		b.Add("path", a.Path)
	}
	if h.compares(contract.CompareQuery) || h.compares(contract.CompareParameters) {
		b.Add("query", a.Query)
	}
	for _, name := range h.offer.Compare.Headers {
		b.Add("header "+strings.ToLower(name), r.Header.Values(name)...)
	}
	switch {
	case h.projection != nil && a.isJSON:
		b.JSON("body", h.projection.Apply(a.value))
	case h.projection == nil && !h.compares(contract.CompareRawBody) && !h.compares(contract.CompareCanonicalBody) && !h.compares(contract.CompareParameters):
		// The body is not compared.
	case a.isJSON && !h.compares(contract.CompareRawBody):
		b.JSON("body", a.value)
	default:
		b.Add("media type", a.MediaType)
		b.Add("content encoding", r.Header.Values("Content-Encoding")...)
		b.Raw("body", a.body)
	}
	return b.Sum()
}

// compares reports whether something is compared. A contract that says nothing
// means everything.
func (h *Handler) compares(what contract.Compared) bool {
	list := h.offer.Compare.What
	if len(list) == 0 {
		return what != contract.CompareRawBody && what != contract.CompareNothing
	}
	return slices.Contains(list, what)
}

// differing names what differs between the stored request and this one, as JSON
// Pointers into [Asked].
func (h *Handler) differing(stored []byte, a *asked) []string {
	var before Asked
	if json.Unmarshal(stored, &before) != nil || before.Method == "" {
		return nil
	}
	var fields []string
	note := func(differs bool, field string) {
		if differs {
			fields = append(fields, field)
		}
	}
	note(before.Method != a.Method, "/method")
	note(before.Path != a.Path, "/path")
	note(before.Query != a.Query, "/query")
	for _, name := range h.offer.Compare.Headers {
		note(!slices.Equal(before.Header.Values(name), http.Header(a.Header).Values(name)), "/header/"+http.CanonicalHeaderKey(name))
	}
	var value fingerprint.Value
	bothJSON := a.isJSON && len(before.JSON) > 0
	if bothJSON {
		var err error
		value, err = fingerprint.Parse(before.JSON)
		bothJSON = err == nil
	}
	switch {
	case bothJSON:
		for _, at := range fingerprint.Differ(value, a.value) {
			fields = append(fields, "/body"+at)
		}
	case before.MediaType != a.MediaType, before.BodySize != a.BodySize, before.Raw != nil && !bytes.Equal(before.Raw, a.body), len(fields) == 0:
		fields = append(fields, "/body")
	}
	return fields[:min(len(fields), fingerprint.MaxDiffer)]
}

func marshalAsked(a Asked) []byte {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // its JSON has been parsed
	}
	return text
}
