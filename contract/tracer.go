package contract

import (
	"net/http/httptrace"
	"sync"
)

// TraceFacts is what [net/http/httptrace] told about one call. The zero TraceFacts means that nobody watched.
type TraceFacts struct {
	// Traced says that somebody watched.
	Traced bool
	// Asked counts how often a connection was asked for, Got how often one was handed over. Each time one is handed
	// over the request is sent, so Got is the number of sends, hidden re-sends of the transport included.
	Asked, Got int
	// Reused says that the latest connection had served other requests before.
	Reused bool
	// FirstByte says that the first byte of an answer arrived.
	FirstByte bool
	// NothingWritten says that a connection of the caller's own making counted what went out, and that it was
	// nothing. net/http cannot tell; leave it false unless the caller can.
	NothingWritten bool
}

// A Tracer collects the [TraceFacts] of one call. Its zero value is ready; use one for each call, and never copy it.
// It is safe for concurrent use, as the hooks of a transport may run beside the caller.
type Tracer struct {
	mu    sync.Mutex
	facts TraceFacts
}

// ClientTrace returns the hooks for [httptrace.WithClientTrace]. They run besides the hooks that the context already
// has.
func (t *Tracer) ClientTrace() *httptrace.ClientTrace {
	note := func(f func(*TraceFacts)) {
		t.mu.Lock()
		defer t.mu.Unlock()
		f(&t.facts)
	}
	note(func(f *TraceFacts) { f.Traced = true })
	return &httptrace.ClientTrace{
		GetConn:              func(string) { note(func(f *TraceFacts) { f.Asked++ }) },
		GotConn:              func(i httptrace.GotConnInfo) { note(func(f *TraceFacts) { f.Got++; f.Reused = i.Reused }) },
		GotFirstResponseByte: func() { note(func(f *TraceFacts) { f.FirstByte = true }) },
	}
}

// Facts returns what was seen so far.
func (t *Tracer) Facts() TraceFacts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.facts
}
