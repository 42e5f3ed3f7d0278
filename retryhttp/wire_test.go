package retryhttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// A server reads the whole request and then resets the stream, or the connection.
// What arrives is never more than what is counted, on either side of a bare
// transport's idea of what may be repeated; and what may not be, arrives once.
func TestDeliveriesAreWhatIsCounted(t *testing.T) {
	rudeness := map[string]func(fr *http2.Framer, stream uint32, n int) bool{
		"PROTOCOL_ERROR": reset(http2.ErrCodeProtocol),
		"REFUSED_STREAM": reset(http2.ErrCodeRefusedStream),
		"INTERNAL_ERROR": reset(http2.ErrCodeInternal),
		"GOAWAY(0)": func(fr *http2.Framer, _ uint32, _ int) bool {
			fr.WriteGoAway(0, http2.ErrCodeNo, nil)
			return false
		},
		"closed": func(*http2.Framer, uint32, int) bool { return false },
	}
	for name, do := range rudeness {
		for _, encrypted := range []bool{true, false} {
			for _, kind := range kinds {
				t.Run(fmt.Sprintf("%s/tls=%t/%s", name, encrypted, kind.name), func(t *testing.T) {
					s := startRude(t, encrypted, do)
					var report retryhttp.Report
					_, err := kind.do(t, s.url, s.transport, &report)
					if err == nil {
						t.Fatal("an answer, out of nothing")
					}
					got := s.deliveries()
					want := 3
					if kind.once {
						want = 1
					}
					if len(got) != want || report.Attempts != want || report.Sends != want {
						t.Errorf("%d arrived, report says %d attempts and %d sends; want %d of each",
							len(got), report.Attempts, report.Sends, want)
					}
					ids := map[string]bool{}
					for _, h := range got {
						ids[h.Get("attempt-id")] = true
						if key := h.Get("idempotency-key"); (key != "") != kind.keyed || kind.keyed && key != `"once"` {
							t.Errorf("the key on the wire is %q", key)
						}
					}
					if !kind.once && (len(ids) != want || ids[""]) {
						t.Errorf("Attempt-Ids are not fresh: %v", ids)
					}
					if kind.once && !ids[""] {
						t.Errorf("what passes through has a new header: %v", ids)
					}
				})
			}
		}
	}
}

func reset(code http2.ErrCode) func(*http2.Framer, uint32, int) bool {
	return func(fr *http2.Framer, stream uint32, _ int) bool {
		fr.WriteRSTStream(stream, code)
		return true
	}
}

// kind is a kind of request, as far as repeats are concerned.
type kind struct {
	name, method, body string
	keyed, once        bool
}

var kinds = []kind{
	{name: "POST", method: "POST", body: "a=1", once: true},
	{name: "POST without a body", method: "POST", once: true},
	{name: "keyed POST", method: "POST", body: "a=1", keyed: true},
	{name: "keyed POST without a body", method: "POST", keyed: true},
	{name: "PATCH", method: "PATCH", body: "a=1", once: true},
	{name: "PUT", method: "PUT", body: "a=1"},
	{name: "DELETE", method: "DELETE"},
	{name: "GET", method: "GET"},
}

func (k kind) do(t *testing.T, url string, base http.RoundTripper, report *retryhttp.Report) (*http.Response, error) {
	t.Helper()
	o := quick(preset(t, contract.IETF))
	o.MaxAttempts = 3
	call := retryhttp.Call{Report: report}
	if k.keyed {
		call.Key = "once"
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a bare transport would go on for ever
	t.Cleanup(cancel)
	return retryhttp.New(base, o).RoundTrip(request(t, retryhttp.With(ctx, call), k.method, url, k.body))
}

// The same over HTTP/1: a reused connection closes when the request has arrived.
func TestReusedConnectionThatCloses(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			s := startClosing(t)
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			resp, err := base.RoundTrip(request(t, context.Background(), "GET", s.url, ""))
			if err != nil {
				t.Fatal(err)
			}
			text(t, resp)
			var report retryhttp.Report
			resp, err = kind.do(t, s.url, base, &report)
			arrived, lost := s.counts()
			arrived-- // the first GET
			if lost != 1 {
				t.Fatalf("%d requests were lost: the connection was not reused", lost)
			}
			want := 2 // the second one has a fresh connection
			if kind.once {
				want = 1
				if e := asError(t, err); e.State() != retryhttp.Unconfirmed {
					t.Errorf("%v", err)
				}
			} else {
				if err != nil {
					t.Fatal(err)
				}
				text(t, resp)
			}
			if arrived != want || report.Attempts != want || report.Sends != want {
				t.Errorf("%d arrived, report says %d attempts and %d sends; want %d of each", arrived, report.Attempts, report.Sends, want)
			}
		})
	}
}

// Over HTTP/1 a request looks as it does without the transport, whatever its body.
func TestHTTP1LooksTheSame(t *testing.T) {
	got := make(chan []string, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			got <- raw(c)
		}
	}()
	url := "http://" + l.Addr().String() + "/path?q=1"
	base := &http.Transport{DisableKeepAlives: true}
	ours := retryhttp.New(base, &retryhttp.Options{Contract: preset(t, contract.Semel), AttemptIDHeader: "-"})
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"} {
		for name, body := range map[string]io.Reader{
			"nil": nil, "NoBody": http.NoBody, "empty": strings.NewReader(""), "short": strings.NewReader("hello"), "unknown": io.LimitReader(strings.NewReader("hello"), 5),
		} {
			var looks [2][]string
			for i, tr := range []http.RoundTripper{base, ours} {
				if s, ok := body.(*strings.Reader); ok {
					s.Seek(0, io.SeekStart)
				}
				if name == "unknown" {
					body = io.LimitReader(strings.NewReader("hello"), 5)
				}
				req, err := http.NewRequest(method, url, body)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := tr.RoundTrip(req)
				if err != nil {
					t.Fatalf("%s %s: %v", method, name, err)
				}
				text(t, resp)
				looks[i] = <-got
			}
			if !slices.Equal(looks[0], looks[1]) {
				t.Errorf("%s with body %s:\nbare %q\nours %q", method, name, looks[0], looks[1])
			}
		}
	}
}

// raw reads one HTTP/1 request as it is, answers it, and returns its lines: header
// names in lower case and sorted, since neither case nor order mean anything.
func raw(c net.Conn) []string {
	defer c.Close()
	r := bufio.NewReader(c)
	var lines []string
	first, _ := r.ReadString('\n')
	body := int64(0)
	chunked := false
	for {
		line, err := r.ReadString('\n')
		line = strings.TrimSpace(line)
		if err != nil || line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		line = strings.ToLower(name) + ":" + value
		fmt.Sscanf(line, "content-length: %d", &body)
		chunked = chunked || line == "transfer-encoding: chunked"
		lines = append(lines, line)
	}
	slices.Sort(lines)
	var rest strings.Builder
	if chunked {
		for !strings.HasSuffix(rest.String(), "0\r\n\r\n") {
			b, err := r.ReadByte()
			if err != nil {
				break
			}
			rest.WriteByte(b)
		}
	} else {
		io.CopyN(&rest, r, body)
	}
	io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	return append(append([]string{first}, lines...), rest.String())
}

// Over HTTP/2, header and body are the same; only a body's absence is said later.
func TestHTTP2LooksTheSame(t *testing.T) {
	for _, p := range protocols[2:] {
		t.Run(p.name, func(t *testing.T) {
			var h recorder
			url, base := p.serve(t, &h)
			ours := retryhttp.New(base, &retryhttp.Options{Contract: preset(t, contract.Semel), AttemptIDHeader: "-"})
			for _, method := range []string{"GET", "POST", "DELETE"} {
				for _, body := range []string{"", "hello"} {
					for _, tr := range []http.RoundTripper{base, ours} {
						resp, err := tr.RoundTrip(request(t, context.Background(), method, url, body))
						if err != nil {
							t.Fatal(err)
						}
						text(t, resp)
					}
					all := h.all()
					bare, our := all[len(all)-2], all[len(all)-1]
					if body == "" && our.length == -1 {
						our.length = 0
					}
					if bare != our {
						t.Errorf("bare %+v, ours %+v", bare, our)
					}
				}
			}
		})
	}
}

// An answer arrives over each protocol on the third attempt: each with the same body,
// the same key and an Attempt-Id of its own, and counted one by one.
func TestThirdTime(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p protocol) {
		h := &recorder{script: []func(http.ResponseWriter, *http.Request){lose, status(503), status(201)}}
		url, base := p.serve(t, h)
		tr := retryhttp.New(base, quick(preset(t, contract.Idempotent)))
		var report retryhttp.Report
		ctx := retryhttp.With(context.Background(), retryhttp.Call{Key: "once", Report: &report})
		resp, err := tr.Client().Do(request(t, ctx, "POST", url, "a=1"))
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, resp); resp.StatusCode != 201 || got != "Created" {
			t.Errorf("%d %q", resp.StatusCode, got)
		}
		all := h.all()
		if len(all) != 3 || report.Attempts != 3 || report.Sends != 3 || report.State() != retryhttp.Applied || report.Stopped != retryhttp.StopSettled {
			t.Errorf("%d arrived; %+v", len(all), report)
		}
		ids := map[string]bool{}
		for _, s := range all {
			if s.key != "once" || s.body != "a=1" || s.length != 3 {
				t.Errorf("%+v", s)
			}
			ids[s.id] = true
		}
		if len(ids) != 3 || ids[""] {
			t.Errorf("Attempt-Ids: %v", ids)
		}
	})
}
