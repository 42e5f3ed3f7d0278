package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// raw sends a request line, headers and a body as they stand, and returns the status.
func (w *world) raw(line, headers, text string) int {
	w.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	var b strings.Builder
	fmt.Fprintf(&b, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n", line, acme)
	if headers != "" {
		b.WriteString(headers + "\r\n")
	}
	b.WriteString("\r\n" + text)
	io.WriteString(conn, b.String())
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	io.ReadAll(resp.Body)
	return resp.StatusCode
}

// One operation has one name. Tricks with the path find nothing, or are no key.
func TestPaths(t *testing.T) {
	w := newWorld(t, nil)
	w.do("PUT", note("abc"), body(menu)).is(201)
	for target, status := range map[string]int{
		"/v1/operations/note/abc":                          200,
		"/v1/operations/note/%61bc":                        200, // RFC 3986: the same URL
		"/v1/operations/n%6Fte/abc":                        200,
		"/v1/operations/note/abc?":                         200,
		"/v1/operations/note/abc?x=1":                      200,
		"http://elsewhere/v1/operations/note/abc":          200, // absolute form; the host is not ours to judge
		"//v1/operations/note/abc":                         404,
		"/v1//operations/note/abc":                         404,
		"/v1/operations//note/abc":                         404,
		"/v1/operations/note//abc":                         404,
		"/v1/operations/note/abc/":                         404,
		"/v1/operations/note/abc//history":                 404,
		"/v1/./operations/note/abc":                        404,
		"/v1/operations/./note/abc":                        404,
		"/v1/operations/x/../note/abc":                     404,
		"/../v1/operations/note/abc":                       404,
		"/v1/operations/note/x/../abc":                     404,
		"/v1/operations/note/.":                            400,
		"/v1/operations/note/..":                           400,
		"/v1/operations/note/%2e%2e":                       400,
		"/v1/operations/../operations":                     400, // a kind of that name is no name
		"/v1/operations/note/a%2Fbc":                       400,
		"/v1/operations/note%2Fabc":                        405, // no kind, and nothing to GET
		"/v1%2Foperations/note/abc":                        404,
		"/v1/operations/note/abc%2Fhistory":                400,
		"/v1/operations/note/abc%00":                       400,
		"/v1/operations/note/abc%0d%0aX-Evil:%201":         400,
		"/v1/operations/note/abc;x=1":                      400,
		"/v1/operations/note/abc%20":                       400,
		"/v1/operations/note/a\\bc":                        400,
		"/v1/operations/note/%E2%80%AEabc":                 400,
		"/v1/operations/note/%ff":                          400,
		"/v1/operations/note/%zz":                          400,
		"/v1/operations/note/%":                            400,
		"/v1/operations/note/":                             404,
		"/V1/operations/note/abc":                          404,
		"/v1/operations/NOTE/abc":                          400,
		"/v1/operations/note/ABC":                          404, // case counts: another operation
		"/v1/operations/note/" + strings.Repeat("x", 128):  404,
		"/v1/operations/note/" + strings.Repeat("x", 129):  400,
		"/v1/operations/" + strings.Repeat("n", 65) + "/x": 400,
		"/":             404,
		"/v1":           404,
		"*":             404,
		"abc":           400,
		"/favicon.ico":  404,
		"/openapi.yaml": 200,
	} {
		if got := w.raw("GET "+target, "", ""); got != status {
			t.Errorf("%s: %d instead of %d", target, got, status)
		}
	}
	page, err := w.ledger.List(t.Context(), semel.Query{})
	if err != nil || len(page.Operations) != 1 {
		t.Errorf("%d operations", len(page.Operations))
	}
}

// What net/http refuses never reaches a handler; what is ambiguous is refused.
func TestAmbiguousRequests(t *testing.T) {
	w := newWorld(t, nil)
	json := "Content-Type: application/json\r\n"
	for name, c := range map[string]struct {
		headers, body string
		status        int
	}{
		"two lengths":                {json + "Content-Length: 2\r\nContent-Length: 3", "{} ", 400},
		"negative length":            {json + "Content-Length: -1", "{}", 400},
		"length and chunks":          {json + "Content-Length: 2\r\nTransfer-Encoding: chunked", "2\r\n{}\r\n0\r\n\r\n", 201}, // chunks win, and the connection ends
		"unknown transfer coding":    {json + "Transfer-Encoding: gzip, chunked", "2\r\n{}\r\n0\r\n\r\n", 501},
		"bad chunk":                  {json + "Transfer-Encoding: chunked", "zz\r\n{}", 400},
		"space before the colon":     {json + "Content-Length : 2", "{}", 400},
		"folded header":              {json + "Content-Length: 2\r\nX-A: b\r\n c", "{}", 201},
		"control byte in a header":   {json + "Content-Length: 2\r\nX-A: a\x00b", "{}", 400},
		"two Authorization":          {json + "Content-Length: 2\r\nAuthorization: Bearer x", "{}", 401},
		"two Idempotency-Key, cased": {json + "Content-Length: 2\r\nidempotency-key: n\r\nIDEMPOTENCY-KEY: n", "{}", 400},
		"huge header":                {json + "Content-Length: 2\r\nX-A: " + strings.Repeat("x", 2<<20), "{}", 431},
	} {
		if status := w.raw("PUT "+note(semel.NewID()), c.headers, c.body); status != c.status {
			t.Errorf("%s: %d instead of %d", name, status, c.status)
		}
	}
}

// A body that does not come in time, or breaks off, records nothing.
func TestSlowBodies(t *testing.T) {
	w := newWorld(t, func(s *setup) {
		s.http = func(h *http.Server) { h.ReadTimeout, h.IdleTimeout = 500*time.Millisecond, time.Minute }
	})
	_, op := w.doubtful()
	for path, status := range map[string]int{"PUT " + note("slow"): 408, "POST /v1/operations/note": 408, "PUT " + operatorPath(op) + "/resolution": 408} {
		method, target, _ := strings.Cut(path, " ")
		r, w2 := io.Pipe()
		go io.WriteString(w2, `{"a":`) // and no more
		a := w.do(method, target, func(req *http.Request) {
			req.Body = r
			req.ContentLength = -1
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Idempotency-Key", "slow")
			req.Header.Set("If-Match", `"3"`)
			if strings.Contains(target, "operator") {
				as(auditor)(req)
				req.Header.Del("Idempotency-Key")
			}
		})
		a.problem(status, semel.CodeInvalid)
		w2.Close()
	}
	w.do("GET", note("slow")).problem(404, semel.CodeNotFound)

	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"a\":1}", note("cut"), acme)
	conn.(*net.TCPConn).CloseWrite()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil && resp.StatusCode < 400 {
		t.Error(resp.StatusCode)
	}
	conn.Close()
	w.active.Wait()
	w.do("GET", note("cut")).problem(404, semel.CodeNotFound)
}
