package contract_test

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The types of HTTP/2 frames and the error codes that the tests need (RFC 9113, sections 6 and 7).
const (
	frameData      = 0x0
	frameHeaders   = 0x1
	frameRST       = 0x3
	frameSettings  = 0x4
	frameGoAway    = 0x7
	codeNo         = 0x0
	codeProtocol   = 0x1
	codeInternal   = 0x2
	codeRefused    = 0x7
	codeEnhance    = 0xb
	flagEndStream  = 0x1
	flagEndHeaders = 0x4
)

// rudeH2 is an HTTP/2 server that speaks just enough of the protocol to be rude in every way that matters. It reads the
// whole request and then does what it is told.
type rudeH2 struct {
	conn net.Conn
	r    *bufio.Reader
}

func (s *rudeH2) frame(kind, flags byte, stream uint32, payload []byte) {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[5:], stream)
	s.conn.Write(append(head, payload...))
}

func (s *rudeH2) reset(stream, code uint32) {
	s.frame(frameRST, 0, stream, binary.BigEndian.AppendUint32(nil, code))
}

func (s *rudeH2) goAway(last, code uint32, debug string) {
	p := binary.BigEndian.AppendUint32(nil, last)
	s.frame(frameGoAway, 0, 0, append(binary.BigEndian.AppendUint32(p, code), debug...))
}

// ok answers with status 200 (entry 8 of HPACK's static table) and no body.
func (s *rudeH2) ok(stream uint32) {
	s.frame(frameHeaders, flagEndHeaders|flagEndStream, stream, []byte{0x88})
}

// serve shakes hands and calls do for every request that has arrived in full, until the client goes.
func (s *rudeH2) serve(do func(*rudeH2, uint32)) {
	defer s.conn.Close()
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(s.r, preface); err != nil {
		return
	}
	s.frame(frameSettings, 0, 0, nil)
	for {
		var head [9]byte
		if _, err := io.ReadFull(s.r, head[:]); err != nil {
			return
		}
		size := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		if _, err := s.r.Discard(size); err != nil {
			return
		}
		stream := binary.BigEndian.Uint32(head[5:]) & 0x7fffffff
		switch kind, flags := head[3], head[4]; {
		case kind == frameSettings && flags == 0:
			s.frame(frameSettings, 1, 0, nil)
		case (kind == frameHeaders || kind == frameData) && flags&flagEndStream != 0:
			do(s, stream)
		}
	}
}

// startH2 starts a rude server, over TLS or in the clear, and returns its URL with a transport that speaks to it.
func startH2(t *testing.T, encrypted bool, do func(*rudeH2, uint32)) (string, *http.Transport) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	transport := &http.Transport{Protocols: new(http.Protocols)}
	scheme := "http://"
	wrap := func(c net.Conn) net.Conn { return c }
	if encrypted {
		scheme = "https://"
		cert := httptest.NewUnstartedServer(nil)
		cert.StartTLS()
		t.Cleanup(cert.Close)
		config := &tls.Config{Certificates: cert.TLS.Certificates, NextProtos: []string{"h2"}}
		wrap = func(c net.Conn) net.Conn { return tls.Server(c, config) }
		transport.Protocols.SetHTTP2(true)
		transport.TLSClientConfig = &tls.Config{RootCAs: cert.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	} else {
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	t.Cleanup(transport.CloseIdleConnections)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c = wrap(c)
			go (&rudeH2{c, bufio.NewReader(c)}).serve(do)
		}
	}()
	return scheme + l.Addr().String(), transport
}
