package fault

import (
	"context"
	"net"
	"sync"
)

// Listener is a [net.Listener] that breaks the connections it accepts, for
// servers of any protocol. Rules count connections, or with contains= places
// in what the clients send; status, duplicate and reset-stream need a protocol
// and are refused.
//
// The server sees what a server sees: cut-before never reaches it, cut-during is a
// read that fails, lose-answer and cut-after are writes that fail.
type Listener struct {
	*Injector
	net.Listener
}

// NewListener returns a listener around ln. It panics where a rule is not
// valid, or needs a protocol.
func NewListener(ln net.Listener, rules ...Rule) *Listener {
	return &Listener{Injector: newInjector(byteForm, rules), Listener: ln}
}

// Accept returns the next connection that no rule refuses.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		t := l.newTap(c.RemoteAddr().String())
		if rule := t.refused(); rule != nil {
			t.faulted(rule)
			c.Close()
			t.done()
			continue
		}
		ctx, cancel := context.WithCancel(l.ctx)
		return &tappedConn{Conn: c, tap: t, ctx: ctx, cancel: cancel}, nil
	}
}

// Close closes the listener inside, and cuts the connections in which something
// is held or delayed. The others stay open; the server closes them.
func (l *Listener) Close() error {
	l.shut()
	return l.Listener.Close()
}

// tappedConn is the server's side of a connection.
type tappedConn struct {
	net.Conn
	tap    *tap
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	once   sync.Once

	mu  sync.Mutex
	cut error // what reads and writes return after a cut
}

func (c *tappedConn) Read(p []byte) (int, error) {
	if err := c.isCut(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n == 0 {
		return 0, err
	}
	q := c.tap.client(p[:n])
	if werr := c.tap.await(c.ctx, q); werr != nil {
		return 0, c.shut(werr)
	}
	c.tap.delivered(q.pass)
	if q.cut != nil {
		cutErr := c.shut(cutError(q.cut))
		c.tap.faulted(q.cut)
		if q.pass == 0 {
			return 0, cutErr
		}
		return q.pass, nil
	}
	return n, err
}

func (c *tappedConn) Write(p []byte) (int, error) {
	if err := c.isCut(); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	q := c.tap.server(p)
	if err := c.tap.await(c.ctx, q); err != nil {
		return 0, c.shut(err)
	}
	n := 0
	if q.pass > 0 {
		var err error
		n, err = c.Conn.Write(p[:q.pass])
		c.tap.returnedBytes(n)
		if err != nil {
			return n, err
		}
	}
	if q.cut != nil {
		cutErr := c.shut(cutError(q.cut))
		c.tap.faulted(q.cut)
		return n, cutErr
	}
	return n, nil
}

func (c *tappedConn) isCut() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// shut closes the connection below, and returns the error that its user gets
// from now on.
func (c *tappedConn) shut(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut == nil {
		c.cut = err
		c.Conn.Close()
	}
	return c.cut
}

// CloseWrite closes the server's half, where the connection inside can.
func (c *tappedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (c *tappedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.cancel()
		c.tap.done()
	})
	return err
}
