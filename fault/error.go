package fault

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/net/http2"
)

// Error is what a client meets whose connection a rule has cut. It unwraps to
// what a real cut would give: a [net.OpError] with ECONNRESET, or an
// [http2.StreamError]. Like these, it proves nothing about the effect.
type Error struct {
	Rule Rule
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("fault: %s: %v", e.Rule.Fault, e.Err) }

// Unwrap returns what a real network would have said.
func (e *Error) Unwrap() error { return e.Err }

// cutError is the error of a client whose connection rule has cut.
func cutError(rule *Rule) *Error {
	if rule.Fault == ResetStream {
		return &Error{Rule: *rule, Err: http2.StreamError{StreamID: 1, Code: rule.streamCode()}}
	}
	reset := os.NewSyscallError("read", syscall.ECONNRESET)
	return &Error{Rule: *rule, Err: &net.OpError{Op: "read", Net: "tcp", Err: reset}}
}

// sever closes c the way a broken network does: without the farewell that TLS
// would send, which the other side might even answer.
func sever(c net.Conn) {
	if f, ok := c.(*frameConn); ok {
		c = f.Conn
	}
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	c.Close()
}
