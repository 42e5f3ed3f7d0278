package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Direction is the way that bytes go through a [TCPProxy].
type Direction int

// The two directions.
const (
	ClientToServer Direction = iota
	ServerToClient
)

func (d Direction) String() string {
	if d == ClientToServer {
		return "client-to-server"
	}
	return "server-to-client"
}

// Action is what a hook decides about a chunk.
type Action int

const (
	// Pass forwards the chunk. The rules then have their say.
	Pass Action = iota
	// Drop forgets the chunk and goes on.
	Drop
	// Wait holds the chunk until [Injector.Release].
	Wait
	// Cut forwards nothing of the chunk and cuts both sides.
	Cut
	// CutMiddle forwards half of the chunk and cuts both sides.
	CutMiddle
	// PassThenCut forwards the chunk and cuts both sides at once. A server may
	// or may not act on it; its client is told nothing either way.
	PassThenCut
	// PassLoseAnswer forwards a chunk to the server, waits until the server has
	// said something, throws that away, and cuts both sides. In the other
	// direction it is Cut.
	PassLoseAnswer
)

// errOnDemand is the log's word for connections that CutAll has ended.
var errOnDemand = errors.New("fault: cut on demand")

// TCPOptions are the options of [NewTCPProxy].
type TCPOptions struct {
	// Listen is the address to listen on. Defaults to a free port of 127.0.0.1.
	Listen string
	// Rules are the first rules. Defaults to none.
	Rules []Rule
	// Hook is asked about each chunk (what one read returned, up to 32 KiB)
	// before the rules are. It must not keep or change the chunk. It may block,
	// which delays this direction of this connection only; several connections
	// call it at once. Defaults to Pass for everything.
	Hook func(dir Direction, chunk []byte) Action
	// Reset cuts with a TCP reset rather than an orderly end. Defaults to false.
	Reset bool
	// DialTimeout bounds the dial to the target. Defaults to 10 s.
	DialTimeout time.Duration
}

// TCPProxy forwards bytes between clients and a target, and breaks that on
// purpose: for databases, queues and everything that is not HTTP. It knows no
// protocol; see the package comment on rules over bytes.
//
// What can be done at any time, from any goroutine: [TCPProxy.CutAll],
// [TCPProxy.Pause] and [TCPProxy.Resume], [TCPProxy.SetDelay],
// [TCPProxy.Down] and [TCPProxy.Up], and [Injector.SetRules], which also counts
// in connections that are already open. The log has one entry per connection.
type TCPProxy struct {
	*Injector
	target string
	opts   TCPOptions
	addr   string

	state     sync.Mutex // of what follows
	ln        net.Listener
	accepting chan struct{} // closed when the current accept loop has ended
	conns     map[*link]struct{}
	paused    chan struct{} // closed by Resume; nil: not paused
	delays    [2]time.Duration
}

// NewTCPProxy listens at once, and forwards each connection to target: host
// and port, or unix: and a path. The target is dialled per connection, so it
// need not be there yet. An error is one of listening, or of a rule.
func NewTCPProxy(target string, opts *TCPOptions) (*TCPProxy, error) {
	p := &TCPProxy{Injector: newInjector(byteForm, nil), target: target, conns: map[*link]struct{}{}}
	if opts != nil {
		p.opts = *opts
	}
	if p.opts.DialTimeout == 0 {
		p.opts.DialTimeout = 10 * time.Second
	}
	p.addr = p.opts.Listen
	if p.addr == "" {
		p.addr = "127.0.0.1:0"
	}
	if err := p.SetRules(p.opts.Rules...); err != nil {
		return nil, err
	}
	if err := p.Up(); err != nil {
		return nil, err
	}
	return p, nil
}

// Addr returns host and port on which the proxy listens.
func (p *TCPProxy) Addr() string {
	p.state.Lock()
	defer p.state.Unlock()
	return p.addr
}

// Up listens again after [TCPProxy.Down], on the same port. It does nothing
// where the proxy listens already.
func (p *TCPProxy) Up() error {
	p.state.Lock()
	defer p.state.Unlock()
	if p.ln != nil {
		return nil
	}
	ln, err := net.Listen("tcp", p.addr)
	if err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	ended := make(chan struct{})
	if !p.start(func() { defer close(ended); p.accept(ln) }) {
		ln.Close()
		return ErrClosed
	}
	p.ln, p.addr, p.accepting = ln, ln.Addr().String(), ended
	return nil
}

// Down stops listening, so that new connections are refused by the system,
// and cuts those that are open: what a client sees of a server that stops.
// It returns how many were cut.
func (p *TCPProxy) Down() int {
	p.state.Lock()
	ln, ended := p.ln, p.accepting
	p.ln = nil
	p.state.Unlock()
	if ln != nil {
		ln.Close()
		<-ended
	}
	return p.CutAll()
}

// CutAll cuts every open connection now, on both sides, and returns how many
// there were. New connections are accepted as before.
func (p *TCPProxy) CutAll() int {
	p.state.Lock()
	links := make([]*link, 0, len(p.conns))
	for l := range p.conns {
		links = append(links, l)
	}
	p.state.Unlock()
	n := 0
	for _, l := range links {
		if l.cutOnDemand() {
			n++
		}
	}
	return n
}

// Pause lets nothing through in either direction, until Resume. Connections
// stay open, and new ones are accepted. What was read before may still arrive.
func (p *TCPProxy) Pause() {
	p.state.Lock()
	defer p.state.Unlock()
	if p.paused == nil {
		p.paused = make(chan struct{})
	}
}

// Resume ends a Pause; nothing that came meanwhile is lost.
func (p *TCPProxy) Resume() {
	p.state.Lock()
	defer p.state.Unlock()
	if p.paused != nil {
		close(p.paused)
		p.paused = nil
	}
}

// SetDelay makes each chunk of one direction wait for d, from now on.
func (p *TCPProxy) SetDelay(dir Direction, d time.Duration) {
	p.state.Lock()
	defer p.state.Unlock()
	p.delays[dir] = d
}

// TCPStats are totals since the beginning.
type TCPStats struct {
	Accepted   int   // connections
	Open       int   // of these, now
	FromClient int64 // bytes that were forwarded to the target; of the last 10,000 connections
	FromServer int64 // bytes that were returned to the clients; of the last 10,000 connections
	Faults     int   // rules and hooks that were carried out
}

// Stats returns the totals.
func (p *TCPProxy) Stats() TCPStats {
	progress := p.Progress()
	s := TCPStats{Accepted: progress.Started, Open: progress.Started - progress.Done, Faults: progress.Faults}
	for _, e := range p.Log() {
		s.FromClient += e.Sent
		s.FromServer += e.Received
	}
	return s
}

// Close stops listening, cuts everything, and waits for every goroutine.
func (p *TCPProxy) Close() error {
	p.shut()
	p.Down()
	p.wg.Wait()
	return nil
}

func (p *TCPProxy) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		// Known before the next Accept, so that Down and CutAll find it.
		l := p.add(c)
		if !p.start(func() { p.serve(l) }) {
			p.remove(l)
		}
	}
}

func (p *TCPProxy) add(client net.Conn) *link {
	l := &link{proxy: p, tap: p.newTap(client.RemoteAddr().String()), client: client}
	l.ctx, l.cancel = context.WithCancel(p.ctx)
	p.state.Lock()
	defer p.state.Unlock()
	p.conns[l] = struct{}{}
	return l
}

func (p *TCPProxy) remove(l *link) {
	l.cut()
	p.state.Lock()
	delete(p.conns, l)
	p.state.Unlock()
	l.tap.done()
}

// serve carries one connection from its beginning to its end.
func (p *TCPProxy) serve(l *link) {
	defer p.remove(l)
	if rule := l.tap.refused(); rule != nil {
		l.cut()
		l.tap.faulted(rule)
		return
	}
	server, err := p.dial(l.ctx)
	if err != nil {
		l.tap.ended(Failed, err)
		return
	}
	if !l.connect(server) {
		return
	}
	l.tap.edit(func(e *Entry) { e.Sends = 1 })
	var both sync.WaitGroup
	both.Go(func() { l.pump(ClientToServer, l.client, server) })
	both.Go(func() { l.pump(ServerToClient, server, l.client) })
	both.Wait()
}

func (p *TCPProxy) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.opts.DialTimeout)
	defer cancel()
	var d net.Dialer
	if path, ok := strings.CutPrefix(p.target, "unix:"); ok {
		return d.DialContext(ctx, "unix", path)
	}
	return d.DialContext(ctx, "tcp", p.target)
}

// closeConn closes c as the options say.
func (p *TCPProxy) closeConn(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok && p.opts.Reset {
		t.SetLinger(0)
	}
	c.Close()
}
