package fault

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// link is one connection through a TCPProxy.
type link struct {
	proxy  *TCPProxy
	tap    *tap
	client net.Conn
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	mu     sync.Mutex // of what follows
	server net.Conn   // nil until it is dialled
	ended  bool
}

// connect adds the server's side. It closes it and returns false where the
// link was cut meanwhile.
func (l *link) connect(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		l.proxy.closeConn(server)
		return false
	}
	l.server = server
	return true
}

// cut ends both sides. It may be called again.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// cutOnDemand is cut, noted in the log. It reports whether there was anything
// left to cut.
func (l *link) cutOnDemand() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.tap.ended(Faulted, errOnDemand)
	l.end()
	return true
}

func (l *link) end() {
	if l.ended {
		return
	}
	l.ended = true
	l.cancel()
	l.proxy.closeConn(l.client)
	if l.server != nil {
		l.proxy.closeConn(l.server)
	}
}

// pump forwards one direction until it ends. An orderly end of one direction
// leaves the other open, as TCP does.
func (l *link) pump(dir Direction, src, dst net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			switch l.forward(dir, buf[:n], dst) {
			case linkEnds:
				l.cut()
				return
			case peerGone:
				// What it has said before is still on its way the other way.
				return
			}
		}
		if err == nil {
			continue
		}
		half, ok := dst.(interface{ CloseWrite() error })
		if err != io.EOF || !ok || half.CloseWrite() != nil {
			l.cut()
		}
		return
	}
}

// How forward ends.
const (
	linkLives = iota
	linkEnds
	peerGone
)

// forward moves one chunk, as the proxy's switches, the hook and the rules
// have it.
func (l *link) forward(dir Direction, chunk []byte, dst net.Conn) int {
	if !l.gate(dir) {
		return linkEnds
	}
	action := Pass
	if l.proxy.opts.Hook != nil {
		action = l.proxy.opts.Hook(dir, chunk)
	}
	var q cue
	switch {
	case action == Drop:
		return linkLives
	case action == Pass:
		q = l.tap.decide(dir, chunk)
	default:
		q = l.tap.ordered(action, dir, chunk)
	}
	if l.tap.await(l.ctx, q) != nil {
		return linkEnds
	}
	n, err := 0, error(nil)
	if q.pass > 0 {
		n, err = dst.Write(chunk[:q.pass])
	}
	l.tap.moved(dir, n)
	if q.cut != nil {
		// The cut comes first: whoever waits for the fault finds it done.
		l.cut()
		l.tap.faulted(q.cut)
		return linkEnds
	}
	if err != nil {
		return peerGone
	}
	return linkLives
}

// gate waits for what SetDelay and Pause have asked for.
func (l *link) gate(dir Direction) bool {
	p := l.proxy
	p.state.Lock()
	delay := p.delays[dir]
	p.state.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.ctx.Done():
			return false
		}
	}
	for {
		p.state.Lock()
		paused := p.paused
		p.state.Unlock()
		if paused == nil {
			return true
		}
		select {
		case <-paused:
		case <-l.ctx.Done():
			return false
		}
	}
}

func (t *tap) decide(dir Direction, chunk []byte) cue {
	if dir == ClientToServer {
		return t.client(chunk)
	}
	return t.server(chunk)
}

func (t *tap) moved(dir Direction, n int) {
	if dir == ClientToServer {
		t.delivered(n)
	} else {
		t.returnedBytes(n)
	}
}

// ordered is what a hook has ordered, in the terms of a rule.
func (t *tap) ordered(action Action, dir Direction, chunk []byte) cue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := cue{pass: len(chunk)}
	if dir == ClientToServer {
		t.speaks()
	}
	switch action {
	case Wait:
		q.waits = []*Rule{{Fault: Hold, At: Before}}
	case CutMiddle:
		q.pass, q.cut = len(chunk)/2, &Rule{Fault: CutDuring}
	case PassThenCut:
		q.cut = &Rule{Fault: CutAfter}
		t.muted = dir == ClientToServer // the answer may be faster than the cut
	case PassLoseAnswer:
		if dir == ClientToServer {
			t.arm(&Rule{Fault: LoseAnswer})
			break
		}
		fallthrough
	default: // Cut
		q.pass, q.cut = 0, &Rule{Fault: CutBefore}
	}
	return q
}
