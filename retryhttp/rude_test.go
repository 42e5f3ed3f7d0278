package retryhttp_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

var quiet = log.New(io.Discard, "", 0)

// rude is an HTTP/2 server which reads every request in full, counts it, and then
// does something rude.
type rude struct {
	url       string
	transport *http.Transport
	mu        sync.Mutex
	got       []http.Header // of the requests that arrived in full
	conns     int
	do        func(fr *http2.Framer, stream uint32, n int) (goOn bool)
}

func (s *rude) deliveries() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]http.Header(nil), s.got...)
}

// startRude starts one. do gets the number of the request, from 1, over all
// connections; where it returns false, the connection is closed.
func startRude(t *testing.T, encrypted bool, do func(fr *http2.Framer, stream uint32, n int) bool) *rude {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rude{do: do, transport: &http.Transport{Protocols: new(http.Protocols)}}
	scheme := "http://"
	if encrypted {
		scheme = "https://"
		certs := httptest.NewTLSServer(nil)
		certs.Close()
		l = tls.NewListener(l, &tls.Config{Certificates: certs.TLS.Certificates, NextProtos: []string{"h2"}})
		s.transport.Protocols.SetHTTP2(true)
		s.transport.TLSClientConfig = &tls.Config{RootCAs: certs.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	} else {
		s.transport.Protocols.SetUnencryptedHTTP2(true)
	}
	s.url = scheme + l.Addr().String() + "/"
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		s.transport.CloseIdleConnections()
		l.Close()
		wg.Wait()
	})
	return s
}

func (s *rude) serve(c net.Conn) {
	defer c.Close()
	s.mu.Lock()
	s.conns++
	s.mu.Unlock()
	r := bufio.NewReader(c)
	if _, err := io.ReadFull(r, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	fr := http2.NewFramer(c, r)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	fr.WriteSettings()
	headers := map[uint32]http.Header{}
	for {
		frame, err := fr.ReadFrame()
		if err != nil {
			return
		}
		var ended bool
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				fr.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			h := http.Header{}
			for _, field := range f.Fields {
				h.Add(field.Name, field.Value)
			}
			headers[f.StreamID], ended = h, f.StreamEnded()
		case *http2.DataFrame:
			ended = f.StreamEnded()
		}
		if !ended {
			continue
		}
		id := frame.Header().StreamID
		s.mu.Lock()
		s.got = append(s.got, headers[id])
		n := len(s.got)
		s.mu.Unlock()
		if !s.do(fr, id, n) {
			return
		}
	}
}

// say answers a stream with a status and no body.
func say(fr *http2.Framer, stream uint32, status string) {
	var b bytes.Buffer
	hpack.NewEncoder(&b).WriteField(hpack.HeaderField{Name: ":status", Value: status})
	fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: b.Bytes(), EndHeaders: true, EndStream: true})
}

// closing is an HTTP/1 server that answers the first request of a connection and
// closes it when the next one has arrived in full.
type closing struct {
	url  string
	mu   sync.Mutex
	got  []*http.Request // all that arrived in full
	lost int             // of these, those that were not answered
}

func startClosing(t *testing.T) *closing {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &closing{url: "http://" + l.Addr().String() + "/"}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return s
}

func (s *closing) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for n := 1; ; n++ {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		req.Body = io.NopCloser(strings.NewReader(string(body)))
		s.mu.Lock()
		s.got = append(s.got, req)
		if n > 1 {
			s.lost++
		}
		s.mu.Unlock()
		if n > 1 {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

func (s *closing) counts() (arrived, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got), s.lost
}
