package fault

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
)

// reply gives the client what run has returned: an answer, or a cut.
func reply(w http.ResponseWriter, r *http.Request, resp *http.Response, err error) {
	if err != nil {
		fail(w, r, err)
		return
	}
	defer resp.Body.Close()
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	out := http.NewResponseController(w)
	// A whole answer is left to the server, which then knows its length.
	_, whole := innermost(resp.Body).(*wholeBody)
	if !whole {
		out.Flush()
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil && !errors.Is(werr, http.ErrBodyNotAllowed) {
				return
			}
			if !whole {
				out.Flush()
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			fail(w, r, err)
			return
		}
	}
	maps.Copy(w.Header(), resp.Trailer)
}

// innermost returns the body below the meter.
func innermost(body io.ReadCloser) io.ReadCloser {
	if m, ok := body.(*meteredBody); ok {
		return m.ReadCloser
	}
	return body
}

// fail ends a request without an answer, or without the rest of it.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	var cut *Error
	if errors.As(err, &cut) {
		abort(w, r, &cut.Rule)
		return
	}
	var panicked *handlerPanic
	if errors.As(err, &panicked) {
		panic(panicked.value)
	}
	panic(http.ErrAbortHandler)
}

// abort cuts the client's connection. On HTTP/2 this is a reset of the
// stream, except where the fault is about the connection.
func abort(w http.ResponseWriter, r *http.Request, rule *Rule) {
	c, _ := r.Context().Value(connKey{}).(*clientConn)
	if c != nil && rule.Fault == ReplayOldConnection {
		sever(c.Conn)
	}
	if c != nil && c.frames != nil && rule.Fault == ResetStream && r.ProtoMajor == 2 {
		c.frames.resetWith(streamOf(r), rule.streamCode())
	}
	if r.ProtoMajor < 2 {
		// Hijacking rather than panicking, because a middleware outside may
		// turn panics into a 500, which would be an answer.
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			sever(conn)
			return
		}
	}
	panic(http.ErrAbortHandler)
}

// streamHeader is how a frameConn tells a handler the number of its stream.
const streamHeader = "Fault-Stream-Id"

// streamOf returns the number of r's HTTP/2 stream, or 0.
func streamOf(r *http.Request) uint32 {
	id, _ := r.Context().Value(streamKey{}).(uint32)
	return id
}

type streamKey struct{}

// takeStream returns the stream's number that a frameConn has added to h,
// and takes it out. It is the last value; a client may have sent its own.
func takeStream(h http.Header) uint32 {
	values := h[streamHeader]
	h.Del(streamHeader)
	if len(values) == 0 {
		return 0
	}
	id, _ := strconv.ParseUint(values[len(values)-1], 10, 32)
	return uint32(id)
}
