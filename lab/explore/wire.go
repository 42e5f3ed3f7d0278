package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi/problem"
	"github.com/semel-dev/semel/lab/history"
)

const serverURL = "http://semel.example"

// died is what a caller without a client panics with that crashes.
type died struct{}

var (
	errReset   = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
)

// timedOut is what a caller sees of a request that nobody answers.
type timedOut struct{}

func (timedOut) Error() string   { return "no answer in time" }
func (timedOut) Timeout() bool   { return true }
func (timedOut) Temporary() bool { return true }

// A letter is one request on its way.
type letter struct {
	method, path string
	query        string
	header       http.Header
	body         []byte
	event        history.Event // who sent it, and about what
	where        boundary
	copied       bool   // by the network
	die          func() // lets the sender crash; does not return
}

// newLetter reads a request to the server.
func newLetter(req *http.Request, by string) (*letter, error) {
	m := &letter{method: req.Method, path: req.URL.Path, query: req.URL.RawQuery, header: req.Header.Clone(), where: toServer}
	if req.Body != nil {
		var err error
		if m.body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
	}
	m.event = history.Event{What: history.Sent, By: by, Verb: req.Method}
	parts := strings.Split(strings.Trim(m.path, "/"), "/")
	switch {
	case len(parts) >= 6 && parts[1] == "operator":
		m.event.Verb = "RESOLVE"
		m.event.Key = semel.Key{Account: parts[3], Kind: parts[4], ID: parts[5]}
		m.event.Revision = revisionIn(m.header.Get("If-Match"))
	case len(parts) >= 4:
		m.event.Key = semel.Key{Account: account, Kind: parts[2], ID: parts[3]}
		if len(parts) == 5 {
			m.where = toEvents
		} else if req.Method == http.MethodGet {
			m.where = toRead
		}
	}
	if req.Method == http.MethodPut {
		m.event.Content = string(m.body)
	}
	return m, nil
}

func revisionIn(tag string) int64 {
	n, _ := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64)
	return n
}

// exchange carries a request to the place that answers, and its answer back, with
// whatever fault is put there.
func (w *world) exchange(ctx context.Context, m *letter, arrive func(*letter) *http.Response) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.GetConn != nil {
		trace.GetConn("semel.example:80")
	}
	kind := w.meet(m.where)
	switch kind {
	case ErrorBefore:
		return nil, errRefused
	case CrashBefore:
		m.die()
	}
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	w.send(m)
	switch kind {
	case Lost:
		w.silent(m)
		return nil, errReset
	case Late:
		w.silent(m)
		w.later(27*time.Second, func() { arrive(m) }) // after the next step of whoever waits
		w.advance(5 * time.Second)
		return nil, timedOut{}
	case Duplicate, Stray:
		again := *m
		again.copied = true
		w.send(&again)
		w.silent(&again)
		if kind == Stray {
			w.strays = append(w.strays, func() { arrive(&again) })
		} else {
			arrive(&again)
		}
	}
	answer := arrive(m)
	switch {
	case kind == CrashAfter:
		w.silent(m)
		m.die()
	case kind == ErrorAfter, answer == nil:
		w.silent(m)
		return nil, errReset
	}
	w.answered(m, answer)
	return answer, nil
}

func (w *world) send(m *letter) {
	w.calls++
	m.event.Attempt = fmt.Sprint(w.calls)
	w.asked(m.event.Key)
	w.add(m.event)
}

func (w *world) silent(m *letter) {
	e := m.event
	e.What = history.Silent
	w.add(e)
}

// answered notes what an answer tells.
func (w *world) answered(m *letter, answer *http.Response) {
	e := m.event
	e.What = history.Answered
	body, _ := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		_, after, _ := bytes.Cut(body, []byte("data: "))
		body, _, _ = bytes.Cut(after, []byte("\n"))
	}
	var op semel.Operation
	switch p, refused := problem.Decode(answer.StatusCode, answer.Header, body); {
	case refused:
		e.Code, e.Operation = p.Code, p.Operation
	case answer.StatusCode == http.StatusNotModified:
		e.Revision = revisionIn(answer.Header.Get("ETag"))
	case json.Unmarshal(body, &op) == nil && op.Revision > 0:
		e.Operation = &op
	default:
		e.What = history.Silent // a stream without news
	}
	w.add(e)
}

// deliver lets a server answer; nil where it died at that.
func (w *world) deliver(m *letter) *http.Response {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := w.node(ctx)
	if w.err != nil {
		return nil
	}
	p.key = m.event.Key
	req := (&http.Request{Method: m.method, URL: &url.URL{Path: m.path, RawQuery: m.query}, Header: m.header, Host: "semel.example",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: "192.0.2.1:1", RequestURI: m.path,
		ContentLength: int64(len(m.body)), Body: io.NopCloser(bytes.NewReader(m.body))}).WithContext(ctx)
	a := &answer{header: http.Header{}}
	if m.where == toEvents {
		a.cut = cancel
	}
	p.handler.ServeHTTP(a, req)
	if p.dead {
		return nil
	}
	return a.response()
}

// answer is what a handler writes to.
type answer struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	cut     func() // ends a stream
	flushes int
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// Flush cuts a stream after what comes first: the state, or a sign of life.
func (a *answer) Flush() {
	if a.flushes++; a.flushes == 2 && a.cut != nil {
		a.cut()
	}
}

func (a *answer) response() *http.Response {
	a.WriteHeader(http.StatusOK)
	return &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, ContentLength: int64(a.body.Len()), Body: io.NopCloser(bytes.NewReader(a.body.Bytes()))}
}

// ask is a caller without a client: it sends one request, and reports whether an
// answer came that is about the operation.
func (w *world) ask(ctx context.Context, by, method, at string, header http.Header, content string) (told *semel.Operation, ok bool) {
	defer func() {
		if p := recover(); p != nil && p != any(died{}) {
			panic(p)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, method, serverURL+at, strings.NewReader(content))
	if err != nil {
		w.err = err
		return nil, false
	}
	req.Header = header
	m, err := newLetter(req, by)
	if err != nil {
		w.err = err
		return nil, false
	}
	m.die = func() { panic(died{}) }
	answer, err := w.exchange(ctx, m, w.deliver)
	if err != nil {
		return nil, false
	}
	body, _ := io.ReadAll(answer.Body)
	if p, refused := problem.Decode(answer.StatusCode, answer.Header, body); refused {
		return p.Operation, p.Operation != nil
	}
	var op semel.Operation
	if json.Unmarshal(body, &op) != nil {
		w.err = errors.New("an answer can't be read")
		return nil, false
	}
	return &op, true
}

func pathOf(key semel.Key) string { return "/v1/operations/" + key.Kind + "/" + key.ID }

func (w *world) put(ctx context.Context, key semel.Key, by, content string) bool {
	_, ok := w.ask(ctx, by, http.MethodPut, pathOf(key), http.Header{"Content-Type": {"application/json"}}, bodyOf(content))
	return ok
}

func (w *world) get(ctx context.Context, key semel.Key) bool {
	_, ok := w.ask(ctx, "one", http.MethodGet, pathOf(key), http.Header{}, "")
	return ok
}

func (w *world) remove(ctx context.Context, key semel.Key) bool {
	_, ok := w.ask(ctx, "one", http.MethodDelete, pathOf(key), http.Header{}, "")
	return ok
}

func bodyOf(content string) string { return fmt.Sprintf(`{"order":%q}`, content) }
