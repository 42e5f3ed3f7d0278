package idempotency

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An Answer is what a handler answered, as it is kept and replayed.
type Answer struct {
	Status int
	// Header holds the header lines as they were: those that the contract allows.
	Header http.Header
	Body   []byte
	// Trailer holds the trailers.
	Trailer http.Header
	// NotKept says why there is no body although there was one: "too-large",
	// "hijacked" or "found-out". Empty means that the body is all there.
	NotKept string
}

// storedAnswer is an Answer as JSON: text stays text, so that people can read it.
type storedAnswer struct {
	Status  int         `json:"status"`
	Header  http.Header `json:"header,omitempty"`
	Text    string      `json:"body,omitempty"`
	Bytes   []byte      `json:"body_base64,omitempty"`
	Trailer http.Header `json:"trailer,omitempty"`
	NotKept string      `json:"not_kept,omitempty"`
}

func (a *Answer) marshal() json.RawMessage {
	s := storedAnswer{Status: a.Status, Header: a.Header, Trailer: a.Trailer, NotKept: a.NotKept}
	if utf8.Valid(a.Body) {
		s.Text = string(a.Body)
	} else {
		s.Bytes = a.Body
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // strings, numbers and bytes can be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// unmarshalAnswer reads what marshal wrote. A result that a person recorded may be
// anything; then it is told that it is done.
func unmarshalAnswer(result json.RawMessage) *Answer {
	var s storedAnswer
	if json.Unmarshal(result, &s) != nil || s.Status < 100 || s.Status > 999 {
		return &Answer{Status: http.StatusOK, NotKept: "found-out"}
	}
	a := &Answer{Status: s.Status, Header: s.Header, Body: s.Bytes, Trailer: s.Trailer, NotKept: s.NotKept}
	if s.Bytes == nil {
		a.Body = []byte(s.Text)
	}
	return a
}

// keep reduces an answer to what may be replayed.
func (h *Handler) keep(a *Answer, method string) *Answer {
	kept := http.Header{}
	for name, lines := range a.Header {
		allowed := slices.Contains(h.replayed, name)
		// Without a body, the length of what a GET would have got is all there is.
		if name == "Content-Length" && (method == http.MethodHead || a.Status == http.StatusNotModified) {
			allowed = true
		}
		if allowed && len(lines) > 0 {
			kept[name] = lines
		}
	}
	out := &Answer{Status: a.Status, Header: kept, Body: a.Body, NotKept: a.NotKept}
	for name, lines := range a.Trailer {
		if !slices.Contains(neverKept, name) {
			if out.Trailer == nil {
				out.Trailer = http.Header{}
			}
			out.Trailer[name] = lines
		}
	}
	return out
}

// replay answers from the record.
func (h *Handler) replay(w http.ResponseWriter, r *http.Request, a *Answer) {
	if mark := h.offer.Replay.Marker; mark.Header != "" {
		w.Header().Set(mark.Header, mark.Value)
	}
	if a.NotKept != "" {
		h.notKept(w, r, a)
		return
	}
	body, header := a.Body, a.Header
	if strings.EqualFold(header.Get("Content-Encoding"), "gzip") && !acceptsGzip(r) {
		plain, err := gunzip(body)
		if err == nil {
			body, header = plain, header.Clone()
			header.Del("Content-Encoding")
			if tag := header.Get("Etag"); tag != "" && !strings.HasPrefix(tag, "W/") {
				header.Set("Etag", "W/"+tag) // the same meaning, other bytes
			}
		}
	}
	if len(a.Trailer) > 0 {
		header = header.Clone()
		if header == nil {
			header = http.Header{}
		}
		header.Set("Trailer", strings.Join(slices.Sorted(maps.Keys(a.Trailer)), ", "))
	}
	(&Answer{Status: a.Status, Header: header, Body: body, Trailer: a.Trailer}).send(w, r.Method)
}

// send writes an answer: header lines as they are, the length of the body unless
// trailers follow it, then the trailers.
func (a *Answer) send(w http.ResponseWriter, method string) {
	out := w.Header()
	for name, lines := range a.Header {
		out[name] = slices.Clone(lines) // the answer may be sent again
	}
	for name, lines := range a.Trailer {
		if !declared(a.Header, name) {
			out[http.TrailerPrefix+name] = slices.Clone(lines)
		}
	}
	if bodyAllowed(a.Status) && len(a.Trailer) == 0 && (method != http.MethodHead || len(a.Body) > 0) {
		out.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	if _, ok := a.Header["Content-Type"]; !ok && len(a.Body) > 0 {
		out["Content-Type"] = nil // the first answer had none, so nobody guesses one
	}
	w.WriteHeader(a.Status)
	if bodyAllowed(a.Status) && len(a.Body) > 0 {
		w.Write(a.Body) // an error means that the client is gone
	}
	for name, lines := range a.Trailer {
		if declared(a.Header, name) {
			out[name] = slices.Clone(lines)
		}
	}
}

// declared reports whether the header announces a trailer.
func declared(h http.Header, name string) bool {
	for _, line := range h["Trailer"] {
		for announced := range strings.SplitSeq(line, ",") {
			if http.CanonicalHeaderKey(strings.TrimSpace(announced)) == name {
				return true
			}
		}
	}
	return false
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// acceptsGzip reports whether the asker said that it can read gzip. One that says
// nothing may be a program that can't.
func acceptsGzip(r *http.Request) bool {
	any := false
	for _, line := range r.Header.Values("Accept-Encoding") {
		for element := range strings.SplitSeq(line, ",") {
			coding, params, _ := strings.Cut(element, ";")
			_, q, found := strings.Cut(params, "q=")
			weight, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			accepted := !found || err == nil && weight > 0
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "gzip", "x-gzip":
				return accepted
			case "*":
				any = accepted
			}
		}
	}
	return any
}

const maxUnzipped = 64 << 20

func gunzip(body []byte) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(zr, maxUnzipped+1))
	if err == nil && len(plain) > maxUnzipped {
		err = errors.New("too large")
	}
	return plain, err
}
