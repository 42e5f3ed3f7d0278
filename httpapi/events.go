package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/semel-dev/semel"
)

// events streams an operation until it is settled.
func (c *call) events() error {
	stopping := &semel.Error{Code: semel.CodeUnavailable, Msg: "this server is about to stop; ask again"}
	if c.s.draining.Err() != nil {
		return stopping
	}
	ctx, stop := c.s.until(c.r.Context())
	defer stop()
	changes, err := c.s.ledger.Watch(ctx, c.key)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if c.r.Method == "HEAD" {
		h.Set("Content-Type", eventStream)
		c.w.WriteHeader(http.StatusOK)
		return nil
	}
	first, ok := <-changes
	if !ok { // the client is gone, or the server drains
		return stopping
	}
	seen := c.lastEventID(first)
	if seen == first.Revision && first.State.Settled() {
		c.state = first.State
		c.w.WriteHeader(http.StatusNoContent) // an EventSource stops at this
		return nil
	}
	h.Set("Content-Type", eventStream)
	h.Set("X-Accel-Buffering", "no") // or some proxies keep events to themselves
	c.w.WriteHeader(http.StatusOK)
	s := stream{call: c, control: http.NewResponseController(c.w), sent: seen}
	s.run(first, changes)
	return nil
}

const eventStream = "text/event-stream"

// lastEventID returns the revision that the client has seen, or 0. One that is
// ahead of the record is not of this record.
func (c *call) lastEventID(op semel.Operation) int64 {
	lines := c.r.Header.Values("Last-Event-ID")
	if len(lines) != 1 {
		return 0
	}
	n, err := strconv.ParseInt(lines[0], 10, 64)
	if err != nil || n > op.Revision {
		return 0
	}
	return n
}

// A stream is one open event stream.
type stream struct {
	*call
	control  *http.ResponseController
	sent     int64 // the last revision told
	progress *semel.Progress
}

// run tells changes until there can be no more or nobody listens.
func (s *stream) run(first semel.Operation, changes <-chan semel.Operation) {
	if !s.write([]byte("retry: 1000\n\n")) || !s.tell(first) {
		return
	}
	heartbeat := time.NewTicker(s.s.opts.Heartbeat)
	defer heartbeat.Stop()
	for {
		select {
		case op, ok := <-changes:
			if !ok || !s.tell(op) {
				return
			}
		case <-heartbeat.C:
			if !s.stillAllowed() || !s.write([]byte(": alive\n\n")) {
				return
			}
		}
	}
}

// stillAllowed asks again who is there: a stream must not outlive its credential.
func (s *stream) stillAllowed() bool {
	who, err := s.s.Identify(s.r)
	return err == nil && who.Account == s.who.Account
}

// tell writes one event and reports whether the stream still works.
func (s *stream) tell(op semel.Operation) bool {
	s.state = op.State
	switch {
	case op.Revision > s.sent:
		s.sent, s.progress = op.Revision, op.Progress
		return s.event("state", op)
	case op.Progress != nil && (s.progress == nil || *op.Progress != *s.progress):
		s.progress = op.Progress
		op.Params, op.Result = nil, nil
		return s.event("progress", op)
	}
	return true
}

func (s *stream) event(name string, op semel.Operation) bool {
	data, err := encodeOperation(op)
	if err != nil {
		s.code, s.cause = semel.CodeInternal, err
		return false
	}
	var b []byte
	b = append(append(append(b, "event: "...), name...), '\n')
	if name == "state" {
		b = append(strconv.AppendInt(append(b, "id: "...), op.Revision, 10), '\n')
	}
	return s.write(slices.Concat(b, []byte("data: "), data, []byte("\n"))) // data ends with a line end of its own
}

// write writes through to the client, who has a bounded time to take it.
func (s *stream) write(b []byte) bool {
	s.control.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := s.w.Write(b); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
