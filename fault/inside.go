package fault

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// inside is an upstream that is a handler in this process.
type inside struct{ next http.Handler }

// handlerPanic carries a handler's panic to the goroutine of the request.
type handlerPanic struct{ value any }

func (p *handlerPanic) Error() string { return "the handler panicked" }

func (u *inside) roundTrip(x *exchange, req *http.Request) (*http.Response, error) {
	x.edit(func(e *Entry) { e.Sends++ })
	pr, pw := io.Pipe()
	rec := &recorder{header: http.Header{}, ready: make(chan struct{}), body: pw}
	rec.resp = &http.Response{
		Proto: req.Proto, ProtoMajor: req.ProtoMajor, ProtoMinor: req.ProtoMinor,
		Request: req, Body: pr, Trailer: http.Header{},
	}
	if !x.in.start(func() { rec.run(u.next, countSent(x, req)) }) {
		return nil, ErrClosed
	}
	<-rec.ready
	if rec.failed != nil {
		return nil, rec.failed
	}
	return rec.resp, nil
}

// partial gives the handler a body that breaks. Without a body the header is
// what breaks, and no server would call its handler then.
func (u *inside) partial(x *exchange, req *http.Request, body []byte, n int64) error {
	if len(body) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	broken := withBody(req, ctx, body)
	broken.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:n]), &leavingReader{cancel}))
	x.edit(func(e *Entry) { e.Sends++ })
	pr, pw := io.Pipe()
	rec := &recorder{header: http.Header{}, ready: make(chan struct{}), body: pw, resp: &http.Response{}}
	if !x.in.start(func() { rec.run(u.next, broken) }) {
		return ErrClosed
	}
	io.Copy(io.Discard, pr)
	return nil
}

// leavingReader is the end of a client that leaves in the middle of its body.
type leavingReader struct{ leave context.CancelFunc }

func (r *leavingReader) Read([]byte) (int, error) {
	r.leave()
	return 0, io.ErrUnexpectedEOF
}

// recorder is the ResponseWriter of a handler whose client must not see its
// answer yet. The handler's goroutine writes, resp is read after ready.
type recorder struct {
	header http.Header
	body   *io.PipeWriter
	resp   *http.Response
	failed error
	ready  chan struct{}
	once   sync.Once
}

func (rec *recorder) run(next http.Handler, req *http.Request) {
	defer func() {
		if v := recover(); v != nil {
			failed := &handlerPanic{v}
			rec.once.Do(func() { rec.failed = failed; close(rec.ready) })
			rec.body.CloseWithError(failed)
		}
	}()
	next.ServeHTTP(rec, req)
	rec.WriteHeader(http.StatusOK)
	rec.trailers()
	rec.body.Close()
}

func (rec *recorder) Header() http.Header { return rec.header }

func (rec *recorder) WriteHeader(code int) {
	if code < 200 && code != http.StatusSwitchingProtocols {
		return
	}
	rec.once.Do(func() {
		rec.resp.StatusCode = code
		rec.resp.Header = rec.header.Clone()
		rec.resp.ContentLength = -1
		if n, err := strconv.ParseInt(rec.header.Get("Content-Length"), 10, 64); err == nil {
			rec.resp.ContentLength = n
		}
		close(rec.ready)
	})
}

func (rec *recorder) Write(p []byte) (int, error) {
	rec.WriteHeader(http.StatusOK)
	return rec.body.Write(p)
}

// Flush sends the header on; bodies are never kept back here.
func (rec *recorder) Flush() { rec.WriteHeader(http.StatusOK) }

// trailers collects what the handler has set after its body, in the two ways
// that net/http knows. The reader of the body sees them after its end.
func (rec *recorder) trailers() {
	for _, names := range rec.resp.Header["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if v, ok := rec.header[name]; ok && rec.resp.Trailer != nil {
				rec.resp.Trailer[http.TrailerPrefix+name] = v
			}
		}
	}
	for name, v := range rec.header {
		if strings.HasPrefix(name, http.TrailerPrefix) && rec.resp.Trailer != nil {
			rec.resp.Trailer[name] = v
		}
	}
}

// tally notes what a handler answers, on its way to the client.
type tally struct {
	http.ResponseWriter
	status int
	wrote  bool
	bytes  int64
}

func (t *tally) WriteHeader(code int) {
	if !t.wrote && code >= 200 {
		t.status, t.wrote = code, true
	}
	t.ResponseWriter.WriteHeader(code)
}

func (t *tally) Write(p []byte) (int, error) {
	t.wrote = true
	n, err := t.ResponseWriter.Write(p)
	t.bytes += int64(n)
	return n, err
}

func (t *tally) Flush() { http.NewResponseController(t.ResponseWriter).Flush() }

func (t *tally) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(t.ResponseWriter).Hijack()
}

func (t *tally) Unwrap() http.ResponseWriter { return t.ResponseWriter }
