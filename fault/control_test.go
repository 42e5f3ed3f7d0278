package fault

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// call is one request to a control. It decodes the answer into v.
func call(t testing.TB, method, url, body string, v any) int {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	must(t, err)
	if strings.HasPrefix(body, "[") {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return resp.StatusCode
}

func TestControl(t *testing.T) {
	noLeaks(t)
	s := newShop()
	srv := serve(t, "http1", s)
	p, url, client := proxied(t, "http1", "http1", srv)
	control := httptest.NewServer(p.Control())
	defer control.Close()

	var rules []RuleState
	if code := call(t, "PUT", control.URL+"/rules", "# first\nlose-answer nth=1\nhold nth=2\n", &rules); code != 200 || len(rules) != 2 {
		t.Errorf("PUT /rules: %d, %+v", code, rules)
	}
	if got := send(client, "POST", url, title); got.err == nil {
		t.Errorf("got %+v", got)
	}
	results := make(chan result)
	go func() { results <- send(client, "POST", url, title) }()

	var page logPage
	if code := call(t, "GET", control.URL+"/log?wait=1&held=1&timeout=20s", "", &page); code != 200 {
		t.Errorf("GET /log: %d", code)
	}
	if page.Progress != (Progress{Started: 2, Done: 1, Held: 1, Faults: 1}) || len(page.Entries) != 2 {
		t.Errorf("log: %+v", page)
	}
	if e := page.Entries[0]; e.Rule != "lose-answer nth=1" || e.Outcome != Faulted || e.Sends != 1 || e.Upstream[0] != 201 || e.Sent != 8 {
		t.Errorf("entry: %+v", e)
	}
	var released struct{ Released int }
	if call(t, "POST", control.URL+"/release?n=5", "", &released); released.Released != 1 {
		t.Errorf("released %+v", released)
	}
	if got := <-results; got.status != 201 {
		t.Errorf("after the release: %+v", got)
	}
	if call(t, "GET", control.URL+"/log?wait=2&since=1", "", &page); len(page.Entries) != 1 || page.Entries[0].Seq != 2 {
		t.Errorf("since: %+v", page)
	}
	if call(t, "GET", control.URL+"/rules", "", &rules); rules[1].Seen != 2 || rules[1].Applied != 1 {
		t.Errorf("GET /rules: %+v", rules)
	}
	if code := call(t, "PUT", control.URL+"/rules", `["status code=500"]`, &rules); code != 200 || rules[0].Rule.Code != 500 {
		t.Errorf("PUT /rules as JSON: %d, %+v", code, rules)
	}
	if code := call(t, "GET", control.URL+"/log?wait=3&timeout=1ms", "", &page); code != 504 || page.Progress.Done != 2 {
		t.Errorf("a wait that ends: %d, %+v", code, page)
	}
}

func TestControlErrors(t *testing.T) {
	client := NewTransport(nil, MustRule("hold"))
	defer client.Close()
	control := httptest.NewServer(client.Control())
	defer control.Close()
	for _, tt := range []struct{ method, path, body, detail string }{
		{"PUT", "/rules", "status\nlos-answer", "line 2, column 1"},
		{"PUT", "/rules", "lose-answer contains=x", "contains looks at bytes"},
		{"PUT", "/rules", "[1]", "not a JSON array of rules"},
		{"GET", "/log?wait=x", "", "wait is a whole number"},
		{"GET", "/log?until=1", "", `unknown parameter "until"`},
		{"GET", "/log?timeout=1", "", "timeout is a time"},
		{"POST", "/release?n=x", "", "n is a whole number"},
	} {
		var p struct {
			Status     int
			Detail     string
			Line       int
			Suggestion string
			Allowed    []string
		}
		if code := call(t, tt.method, control.URL+tt.path, tt.body, &p); code != 400 || p.Status != 400 || !strings.Contains(p.Detail, tt.detail) {
			t.Errorf("%s %s: %d, %+v", tt.method, tt.path, code, p)
		}
		if strings.Contains(tt.body, "los-") && (p.Line != 2 || p.Suggestion != "lose-answer" || len(p.Allowed) != len(specs)) {
			t.Errorf("%+v", p)
		}
	}
	if st := client.Rules(); len(st) != 1 || st[0].Rule.Fault != Hold {
		t.Errorf("a refused PUT changed the rules: %+v", st)
	}
	req, err := http.NewRequest("POST", control.URL+"/release", nil)
	must(t, err)
	req.Header.Set("Origin", "https://example.com")
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("a web page was served: %s", resp.Status)
	}
	help := send(http.DefaultTransport, "GET", control.URL+"/", "")
	if help.body != ControlHelp {
		t.Errorf("help: %+v", help)
	}
}

// process runs RunProxy and returns its two URLs and a function that stops it.
func process(t testing.TB, to string, opts *ProcessOptions) (proxy, control string, stop func()) {
	t.Helper()
	r, w := io.Pipe()
	opts.Out = w
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := RunProxy(ctx, to, opts)
		w.CloseWithError(errors.New("RunProxy has ended"))
		ended <- err
	}()
	lines := bufio.NewScanner(r)
	for _, into := range []*string{&proxy, &control} {
		if !lines.Scan() {
			t.Fatalf("%v", <-ended)
		}
		_, *into, _ = strings.Cut(lines.Text(), ": ")
	}
	return proxy, control, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("RunProxy: %v", err)
		}
	}
}

func TestRunProxy(t *testing.T) {
	noLeaks(t)
	s := newShop()
	srv := serve(t, "tls-h2", s)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	must(t, os.WriteFile(ca, pemOf(srv.Certificate().Raw), 0o600))
	for _, opts := range []*ProcessOptions{{CAFile: ca}, {Insecure: true}} {
		opts.Rules = []string{"lose-answer after=1 count=1 path=/orders"}
		proxy, control, stop := process(t, srv.URL, opts)
		before := s.completed()
		client := transport(t, "http1", nil)
		var seen []bool
		for range 3 {
			seen = append(seen, send(client, "POST", proxy+"/orders", title).err == nil)
		}
		if !seen[0] || seen[1] || !seen[2] || s.completed()-before != 3 {
			t.Errorf("answered %v, completed %d", seen, s.completed()-before)
		}
		var page logPage
		if call(t, "GET", control+"/log?wait=3", "", &page); page.Progress.Faults != 1 || s.proto != "HTTP/2.0" {
			t.Errorf("%+v, upstream spoke %s", page.Progress, s.proto)
		}
		stop()
	}
}

func TestRunProxyTCP(t *testing.T) {
	noLeaks(t)
	s := newLines(t)
	proxy, control, stop := process(t, "tcp://"+s.ln.Addr().String(), &ProcessOptions{Rules: []string{"lose-answer contains=COMMIT"}})
	defer stop()
	c := dial(t, strings.TrimPrefix(proxy, "tcp://"))
	if answer, err := say(c, "begin\n"); answer != "done 1\n" {
		t.Errorf("%q, %v", answer, err)
	}
	if answer, err := say(c, "commit\n"); err == nil {
		t.Errorf("answered: %q", answer)
	}
	c = dial(t, strings.TrimPrefix(proxy, "tcp://"))
	var page logPage
	call(t, "GET", control+"/log?started=2&faults=1", "", &page)
	var v map[string]any
	call(t, "POST", control+"/pause", "", &v)
	io.WriteString(c, "later\n")
	call(t, "POST", control+"/resume", "", &v)
	if answer, err := bufio.NewReader(c).ReadString('\n'); answer != "done 3\n" {
		t.Errorf("%q, %v", answer, err)
	}
	if call(t, "POST", control+"/cut", "", &v); v["cut"] != 1.0 {
		t.Errorf("cut: %v", v)
	}
}

func TestRunProxyErrors(t *testing.T) {
	for _, tt := range []struct {
		to   string
		opts *ProcessOptions
		says string
	}{
		{"http://127.0.0.1:1", &ProcessOptions{Rules: []string{"status", "nothing"}}, "line 2, column 1"},
		{"http://127.0.0.1:1", &ProcessOptions{Listen: "256.0.0.1:0"}, "fault:"},
		{"http://127.0.0.1:1", &ProcessOptions{Control: "256.0.0.1:0"}, "the control cannot listen"},
		{"http://127.0.0.1:1", &ProcessOptions{CertFile: "nowhere.pem"}, "fault:"},
		{"http://127.0.0.1:1", &ProcessOptions{CAFile: "nowhere.pem"}, "nowhere.pem"},
		{"http://127.0.0.1:1", &ProcessOptions{CAFile: "control_test.go"}, "holds no certificate"},
		{"tcp://127.0.0.1:1", &ProcessOptions{Rules: []string{"status"}}, "needs a protocol"},
		{"ftp://127.0.0.1:1", nil, "not an http or https URL"},
		{"://", nil, "not a URL"},
	} {
		err := RunProxy(context.Background(), tt.to, tt.opts)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s %+v: %v", tt.to, tt.opts, err)
		}
	}
}

// A process that speaks TLS to its clients.
func TestRunProxyServesTLS(t *testing.T) {
	s := newShop()
	srv := serve(t, "h2c", s)
	certs := httptest.NewTLSServer(nil)
	defer certs.Close()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, certs.TLS.Certificates[0], cert, key)
	proxy, _, stop := process(t, srv.URL, &ProcessOptions{CertFile: cert, KeyFile: key, H2C: true})
	defer stop()
	if got := send(transport(t, "tls-h2", certs), "POST", proxy, title); got.status != 201 || s.proto != "HTTP/2.0" {
		t.Errorf("%+v", got)
	}
}
