package fault

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"pgregory.net/rapid"
)

// Whatever the pieces in which bytes come, the streams are told their numbers,
// only once each, and everything else stays as it was.
func TestInboundFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var wire bytes.Buffer
		io.WriteString(&wire, http2.ClientPreface)
		fr := http2.NewFramer(&wire, nil)
		fr.WriteSettings()
		var block bytes.Buffer
		enc := hpack.NewEncoder(&block)
		streams := rapid.IntRange(1, 4).Draw(t, "streams")
		for i := range streams {
			id := uint32(2*i + 1)
			block.Reset()
			enc.WriteField(hpack.HeaderField{Name: ":path", Value: "/"})
			enc.WriteField(hpack.HeaderField{Name: "x-n", Value: rapid.StringMatching(`[a-z0-9 ]{0,30}`).Draw(t, "value")})
			b := bytes.Clone(block.Bytes())
			split := rapid.IntRange(0, len(b)).Draw(t, "split")
			whole := rapid.Bool().Draw(t, "whole")
			p := http2.HeadersFrameParam{StreamID: id, BlockFragment: b[:split], PadLength: uint8(rapid.IntRange(0, 9).Draw(t, "padding"))}
			if rapid.Bool().Draw(t, "priority") {
				p.Priority = http2.PriorityParam{StreamDep: 0, Weight: 7}
			}
			if whole {
				p.BlockFragment, p.EndHeaders = b, true
			}
			fr.WriteHeaders(p)
			if !whole {
				fr.WriteContinuation(id, true, b[split:])
			}
			fr.WriteData(id, false, []byte("data"))
			block.Reset()
			enc.WriteField(hpack.HeaderField{Name: "x-trailer", Value: "t"})
			fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
		}
		in := inbound{src: bufio.NewReader(&wire)}
		var out bytes.Buffer
		for {
			p := make([]byte, rapid.IntRange(1, 40).Draw(t, "read"))
			n, err := in.read(p)
			out.Write(p[:n])
			if err != nil {
				break
			}
		}
		if got := out.Next(len(http2.ClientPreface)); string(got) != http2.ClientPreface {
			t.Fatalf("preface %q", got)
		}
		checkStreams(t, &out, streams)
	})
}

func checkStreams(t *rapid.T, out *bytes.Buffer, streams int) {
	fr := http2.NewFramer(io.Discard, out)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	told, trailers, data := 0, 0, 0
	for {
		f, err := fr.ReadFrame()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.DataFrame:
			data += len(f.Data())
		case *http2.MetaHeadersFrame:
			last := f.Fields[len(f.Fields)-1]
			switch {
			case last.Name == "fault-stream-id":
				told++
				if want := (hpack.HeaderField{Name: "fault-stream-id", Value: strconv.Itoa(int(f.StreamID))}); last != want {
					t.Fatalf("stream %d was told %v", f.StreamID, last)
				}
			case last.Name == "x-trailer" && len(f.Fields) == 1:
				trailers++
			default:
				t.Fatalf("fields %v", f.Fields)
			}
		}
	}
	if told != streams || trailers != streams || data != 4*streams {
		t.Fatalf("told %d, trailers %d, data %d, streams %d", told, trailers, data, streams)
	}
}

// Codes are rewritten for the streams that were named, once, and nothing else
// changes, in whatever pieces it comes.
func TestOutboundFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var wire bytes.Buffer
		fr := http2.NewFramer(&wire, nil)
		fr.WriteSettingsAck()
		fr.WriteData(3, false, bytes.Repeat([]byte{3}, rapid.IntRange(0, 50).Draw(t, "size")))
		fr.WriteRSTStream(1, http2.ErrCodeInternal)
		fr.WriteRSTStream(3, http2.ErrCodeInternal)
		fr.WriteRSTStream(3, http2.ErrCodeInternal)
		fr.WritePing(true, [8]byte{1})
		var o outbound
		codes := map[uint32]http2.ErrCode{3: http2.ErrCodeRefusedStream}
		size := wire.Len()
		var out bytes.Buffer
		for wire.Len() > 0 {
			out.Write(o.rewrite(wire.Next(rapid.IntRange(1, 30).Draw(t, "write")), codes))
		}
		if out.Len() != size {
			t.Fatalf("%d bytes became %d", size, out.Len())
		}
		back := http2.NewFramer(io.Discard, &out)
		var resets []http2.ErrCode
		frames := 0
		for {
			f, err := back.ReadFrame()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			frames++
			if r, ok := f.(*http2.RSTStreamFrame); ok {
				resets = append(resets, r.ErrCode)
			}
		}
		if frames != 6 || len(resets) != 3 || resets[0] != http2.ErrCodeInternal ||
			resets[1] != http2.ErrCodeRefusedStream || resets[2] != http2.ErrCodeInternal {
			t.Fatalf("%d frames, resets %v", frames, resets)
		}
	})
}
