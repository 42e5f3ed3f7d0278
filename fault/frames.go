package fault

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
)

// frameConn sits below a net/http server and lets it do two things on HTTP/2
// that it cannot do by itself: tell a handler the number of its stream (as a
// header that is appended to the client's), and reset that stream with a code
// of our choice (by rewriting the RST_STREAM that an aborted handler causes).
// Everything else, and everything on HTTP/1, passes unchanged.
type frameConn struct {
	net.Conn
	in inbound

	mu    sync.Mutex // of what follows
	out   outbound
	codes map[uint32]http2.ErrCode
}

const frameHeader = 9

func newFrameConn(c net.Conn) *frameConn {
	f := &frameConn{Conn: c, codes: map[uint32]http2.ErrCode{}}
	f.in.src = bufio.NewReaderSize(c, 4<<10)
	return f
}

// resetWith chooses the code of the next reset of a stream.
func (f *frameConn) resetWith(stream uint32, code http2.ErrCode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.codes[stream] = code
}

// CloseWrite ends the server's half.
func (f *frameConn) CloseWrite() error {
	if half, ok := f.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read returns the client's bytes. Only one goroutine reads a connection.
func (f *frameConn) Read(p []byte) (int, error) { return f.in.read(p) }

// inbound follows the frames that come in.
type inbound struct {
	src     *bufio.Reader
	mode    atomic.Int32 // sniffing, plain or framed
	ready   []byte       // rewritten, and not yet returned
	body    int          // bytes of the current frame that pass unchanged
	highest uint32       // stream that has begun
	open    uint32       // stream whose header block is not complete, or 0
}

const (
	sniffing = iota
	plain    // not HTTP/2
	framed
)

func (in *inbound) read(p []byte) (int, error) {
	if in.mode.Load() == sniffing {
		if err := in.sniff(); err != nil {
			return 0, err
		}
	}
	if in.mode.Load() == plain {
		return in.src.Read(p)
	}
	if len(in.ready) == 0 && in.body == 0 {
		if err := in.frame(); err != nil {
			return 0, err
		}
	}
	if len(in.ready) > 0 {
		n := copy(p, in.ready)
		in.ready = in.ready[n:]
		return n, nil
	}
	n, err := in.src.Read(p[:min(len(p), in.body)])
	in.body -= n
	return n, err
}

// sniff decides by the first bytes. It reads no more than it needs, because
// an HTTP/1 client may send less than an HTTP/2 preface, and wait.
func (in *inbound) sniff() error {
	for n := 1; n <= len(http2.ClientPreface); n++ {
		got, err := in.src.Peek(n)
		if err != nil {
			return err
		}
		if got[n-1] != http2.ClientPreface[n-1] {
			in.mode.Store(plain)
			return nil
		}
	}
	in.mode.Store(framed)
	in.body = len(http2.ClientPreface)
	return nil
}

// frame takes the next frame's header. Header blocks are taken whole, because
// theirs is the only payload that changes.
func (in *inbound) frame() error {
	head := make([]byte, frameHeader)
	if _, err := io.ReadFull(in.src, head); err != nil {
		return err
	}
	length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	kind, flags := http2.FrameType(head[3]), http2.Flags(head[4])
	stream := binary.BigEndian.Uint32(head[5:]) & (1<<31 - 1)
	first := kind == http2.FrameHeaders && stream > in.highest
	if first {
		in.highest, in.open = stream, stream
	}
	ends := in.open == stream && stream != 0 && flags.Has(http2.FlagHeadersEndHeaders) &&
		(first || kind == http2.FrameContinuation)
	if !ends {
		in.ready, in.body = head, length
		return nil
	}
	in.open = 0
	payload := make([]byte, length)
	if _, err := io.ReadFull(in.src, payload); err != nil {
		return err
	}
	padding := 0
	if kind == http2.FrameHeaders && flags.Has(http2.FlagHeadersPadded) && length > 0 {
		padding = min(int(payload[0]), length-1)
	}
	field := streamField(stream)
	length += len(field)
	head[0], head[1], head[2] = byte(length>>16), byte(length>>8), byte(length)
	end := len(payload) - padding
	in.ready = append(append(append(head, payload[:end]...), field...), payload[end:]...)
	return nil
}

// streamField is the stream's number as a literal header field without
// indexing (RFC 7541, 6.2.2), which leaves the compression state alone.
func streamField(stream uint32) []byte {
	value := strconv.FormatUint(uint64(stream), 10)
	name := "fault-stream-id"
	field := append([]byte{0, byte(len(name))}, name...)
	return append(append(field, byte(len(value))), value...)
}

// Write sends the server's bytes, with the codes of resets as asked for.
func (f *frameConn) Write(p []byte) (int, error) {
	if f.in.mode.Load() != framed {
		return f.Conn.Write(p)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.Conn.Write(f.out.rewrite(p, f.codes)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// outbound follows the frames that go out, in whatever pieces they come.
type outbound struct {
	head []byte // of the current frame, as far as it has come
	body int    // bytes of the current frame that pass unchanged
}

func (o *outbound) rewrite(p []byte, codes map[uint32]http2.ErrCode) []byte {
	var out []byte
	for len(p) > 0 {
		if o.body > 0 {
			n := min(o.body, len(p))
			out = append(out, p[:n]...)
			p, o.body = p[n:], o.body-n
			continue
		}
		want := frameHeader
		if len(o.head) >= frameHeader {
			want += 4 // a reset, and its code
		}
		n := min(want-len(o.head), len(p))
		o.head = append(o.head, p[:n]...)
		p = p[n:]
		if len(o.head) < want {
			continue
		}
		reset := http2.FrameType(o.head[3]) == http2.FrameRSTStream
		if reset && want == frameHeader {
			continue
		}
		if reset {
			stream := binary.BigEndian.Uint32(o.head[5:]) & (1<<31 - 1)
			if code, ok := codes[stream]; ok {
				binary.BigEndian.PutUint32(o.head[frameHeader:], uint32(code))
				delete(codes, stream)
			}
		} else {
			o.body = int(o.head[0])<<16 | int(o.head[1])<<8 | int(o.head[2])
		}
		out = append(out, o.head...)
		o.head = o.head[:0]
	}
	return out
}
