//go:build !unix

package stops

import "net"

func writeAfter(c net.Conn, before func(), p []byte) (int, error) {
	before()
	return c.Write(p)
}
