package idempotency

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
)

// A recorder is the handler's ResponseWriter. It holds the answer back until the
// outcome is recorded, unless the handler flushes, writes more than is kept, or
// takes the connection; and it keeps a copy for the repeats.
type recorder struct {
	w      http.ResponseWriter
	method string
	max    int // how much of the body is kept
	// held: nothing may go out before the commit. Then hard is how much may be
	// held, and there is no flushing.
	held bool
	hard int

	header http.Header // the handler's own
	sent   http.Header // as it was at WriteHeader
	status int
	body   []byte
	size   int64 // written by the handler

	streaming bool // the header and what was held have gone out
	dropped   bool // the body is too large to keep
	overflow  bool // the body is too large to hold: the answer is not whole
	hijacked  bool
	mark      func(http.Header) // adds what is to be said of the answer; may be nil
}

func newRecorder(w http.ResponseWriter, r *http.Request, opts *Options) *recorder {
	return &recorder{w: w, method: r.Method, max: opts.MaxAnswer, held: opts.Begin != nil, hard: opts.MaxBuffer, header: w.Header().Clone()}
}

// Unwrap is for [http.ResponseController]: deadlines and such.
func (c *recorder) Unwrap() http.ResponseWriter { return c.w }

func (c *recorder) Header() http.Header {
	if c.header == nil {
		c.header = http.Header{}
	}
	return c.header
}

func (c *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	if c.status != 0 || c.hijacked {
		return
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		c.replaceHeader(c.header)
		c.w.WriteHeader(status) // early hints promise nothing
		return
	}
	c.status, c.sent = status, c.Header().Clone()
}

var errTooMuch = errors.New("idempotency: the answer is larger than Options.MaxBuffer, and can't go out before the commit")

func (c *recorder) Write(p []byte) (int, error) {
	if c.hijacked {
		return 0, http.ErrHijacked
	}
	if err := c.begin(p); err != nil {
		return 0, err
	}
	c.size += int64(len(p))
	if c.method == http.MethodHead {
		return len(p), nil
	}
	if c.held {
		if c.overflow || len(c.body)+len(p) > c.hard {
			c.overflow = true
			return 0, errTooMuch
		}
		c.body = append(c.body, p...)
		return len(p), nil
	}
	if !c.dropped && len(c.body)+len(p) > c.max {
		c.stream()
		c.body, c.dropped = nil, true
	}
	if !c.dropped {
		c.body = append(c.body, p...)
	}
	if c.streaming {
		return c.w.Write(p)
	}
	return len(p), nil
}

// begin does what the first write implies.
func (c *recorder) begin(p []byte) error {
	if c.status == 0 {
		c.WriteHeader(http.StatusOK)
	}
	if !bodyAllowed(c.status) {
		return http.ErrBodyNotAllowed
	}
	if c.size == 0 && len(p) > 0 && !c.streaming && c.sent.Get("Content-Encoding") == "" {
		if _, there := c.sent["Content-Type"]; !there {
			c.sent.Set("Content-Type", http.DetectContentType(p))
		}
	}
	return nil
}

func (c *recorder) WriteString(s string) (int, error) { return c.Write([]byte(s)) }

// ReadFrom copies. Once nothing is kept any more, the connection's own way of
// copying is used, which may be sendfile.
func (c *recorder) ReadFrom(src io.Reader) (n int64, err error) {
	buf := make([]byte, 32<<10)
	for !(c.streaming && c.dropped) {
		got, readErr := src.Read(buf)
		if got > 0 {
			wrote, err := c.Write(buf[:got])
			n += int64(wrote)
			if err != nil {
				return n, err
			}
		}
		if readErr == io.EOF {
			return n, nil
		}
		if readErr != nil {
			return n, readErr
		}
	}
	rest, err := io.Copy(c.w, src)
	c.size += rest
	return n + rest, err
}

// Flush sends what there is, unless a commit must come first.
func (c *recorder) Flush() { c.FlushError() }

// FlushError is Flush for [http.ResponseController].
func (c *recorder) FlushError() error {
	if c.held || c.hijacked {
		return nil
	}
	if c.status == 0 {
		c.WriteHeader(http.StatusOK)
	}
	c.stream()
	return http.NewResponseController(c.w).Flush()
}

// Hijack gives the connection away. What goes over it is not kept.
func (c *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if c.held {
		return nil, nil, http.ErrNotSupported
	}
	conn, rw, err := http.NewResponseController(c.w).Hijack()
	if err == nil {
		c.hijacked = true
	}
	return conn, rw, err
}

// stream lets out what was held back; from here on everything goes through.
func (c *recorder) stream() {
	if c.streaming {
		return
	}
	c.streaming = true
	c.replaceHeader(c.marked(c.sent))
	c.w.WriteHeader(c.status)
	if len(c.body) > 0 {
		c.w.Write(c.body)
	}
}

func (c *recorder) replaceHeader(with http.Header) {
	out := c.w.Header()
	for name := range out {
		if _, stays := with[name]; !stays {
			delete(out, name)
		}
	}
	for name, lines := range with {
		out[name] = slices.Clone(lines)
	}
}

func (c *recorder) marked(header http.Header) http.Header {
	header = header.Clone()
	if c.mark != nil {
		c.mark(header)
	}
	return header
}

// answer is what the handler has answered; call it once it has returned.
func (c *recorder) answer() *Answer {
	if c.hijacked {
		return &Answer{Status: http.StatusOK, NotKept: "hijacked"}
	}
	if c.status == 0 {
		c.WriteHeader(http.StatusOK)
	}
	a := &Answer{Status: c.status, Header: c.sent, Body: c.body, Trailer: c.trailers()}
	if c.dropped || c.held && len(c.body) > c.max {
		a.Body, a.NotKept = nil, "too-large"
	}
	return a
}

// trailers are those that the header announced, and those with the prefix.
func (c *recorder) trailers() http.Header {
	var t http.Header
	add := func(name string, lines []string) {
		if t == nil {
			t = http.Header{}
		}
		t[name] = lines
	}
	for name, lines := range c.header {
		if plain, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			add(http.CanonicalHeaderKey(plain), lines)
		} else if declared(c.sent, name) {
			add(name, lines)
		}
	}
	return t
}

// finish sends what has not gone out yet.
func (c *recorder) finish() {
	switch {
	case c.hijacked:
	case c.streaming:
		for name, lines := range c.trailers() {
			if declared(c.sent, name) {
				c.w.Header()[name] = lines
			} else {
				c.w.Header()[http.TrailerPrefix+name] = lines
			}
		}
	default:
		if c.status == 0 {
			c.WriteHeader(http.StatusOK)
		}
		c.replaceHeader(nil)
		header := c.marked(c.sent)
		if c.method != http.MethodHead {
			header.Del("Content-Length") // it is counted again
		}
		for name := range header {
			if strings.HasPrefix(name, http.TrailerPrefix) {
				delete(header, name)
			}
		}
		(&Answer{Status: c.status, Header: header, Body: c.body, Trailer: c.trailers()}).send(c.w, c.method)
	}
}
