//go:build unix

package stops

import (
	"errors"
	"net"
	"syscall"
)

// writeAfter calls before when the bytes are about to leave, and holds on to the
// socket meanwhile: whoever closes it has to wait until they have left.
func writeAfter(c net.Conn, before func(), p []byte) (n int, err error) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		before()
		return c.Write(p)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		before()
		for n < len(p) {
			k, err := syscall.Write(int(fd), p[n:])
			switch {
			case errors.Is(err, syscall.EINTR):
				continue
			case errors.Is(err, syscall.EAGAIN):
				return false
			case err != nil:
				failed = err
				return true
			}
			n += k
		}
		return true
	})
	return n, errors.Join(failed, err)
}
