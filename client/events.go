package client

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/semel-dev/semel"
)

// silence is how long an event stream may say nothing. Servers send a sign of life
// every 15 seconds.
const silence = 45 * time.Second

// stream follows the events of an operation, until they end, fail to come, or ctx
// ends. tell gets what they say, and ends the stream by returning false. It reports
// whether anything was heard.
func (s *semelAPI) stream(ctx context.Context, in Intent, revision int64, tell func(*semel.Operation) bool) (heard bool) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	req, err := s.read(ctx, in.URL+"/events")
	if err != nil {
		return false
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", strconv.FormatInt(revision, 10))
	quiet := time.AfterFunc(silence, leave)
	defer quiet.Stop()
	resp, err := s.reads.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || media != "text/event-stream" || resp.StatusCode != http.StatusOK {
		return resp.StatusCode == http.StatusNoContent // all was told already
	}
	readEvents(resp.Body, s.limit, func(name string, data []byte) bool {
		quiet.Reset(silence)
		heard = true
		if name != "state" {
			return true
		}
		op := operationIn(in, data)
		return op == nil || tell(op)
	})
	return heard
}

// readEvents reads Server-Sent Events until their end. each is called with every
// event, and with an empty name for a sign of life; it ends the reading by
// returning false. An event longer than limit ends it, too.
func readEvents(r io.Reader, limit int64, each func(name string, data []byte) bool) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, int(min(limit+1024, 1<<30)))
	lines.Split(scanLines)
	var name string
	var data []byte
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			if !each(name, data) {
				return
			}
			name, data = "", data[:0]
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if int64(len(data)+len(value)) > limit {
				return
			}
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, value...)
		}
	}
}

// scanLines is [bufio.ScanLines] for streams of events, where a bare CR ends a line
// too.
func scanLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0 && atEOF:
		return len(data), nil, nil // a line without an end is no line
	case i < 0:
		return 0, nil, nil
	case data[i] == '\n':
		return i + 1, data[:i], nil
	case i+1 < len(data) && data[i+1] == '\n':
		return i + 2, data[:i], nil
	case i+1 < len(data), atEOF:
		return i + 1, data[:i], nil
	}
	return 0, nil, nil // a CR at the end of what is there: an LF may follow
}
