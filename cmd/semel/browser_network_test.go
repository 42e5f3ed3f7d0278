//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel/fault"
)

// What a proxy does with event streams.
const (
	passes  = ""
	holds   = "holds"   // not a byte goes on before the stream has ended
	cuts    = "cuts"    // the connection breaks after the first event
	swallow = "swallow" // the header goes on, and nothing after it
)

// A middle is a real proxy between the page and the demo, with the faults of
// package fault, and with what proxies do to event streams.
type middle struct {
	*fault.Handler
	// cut breaks every connection that there is.
	cut func()

	mu      sync.Mutex
	streams string
	sent    []*http.Request
}

// between puts a proxy before the demo: the pages that are opened from now on
// go through it.
func between(t *testing.T, d *demoProcess) *middle {
	t.Helper()
	target, err := url.Parse("http://" + d.addr)
	if err != nil {
		t.Fatal(err)
	}
	m := &middle{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: m.stream,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	m.Handler = fault.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.sent = append(m.sent, r)
		m.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	server := httptest.NewUnstartedServer(m.Handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that are cut on purpose
	server.Start()
	m.cut = server.CloseClientConnections
	d.page = server.URL + "/"
	t.Cleanup(func() {
		m.Close()
		m.cut()
		server.Close()
	})
	return m
}

func (m *middle) rules(t *testing.T, rules ...string) {
	t.Helper()
	var parsed []fault.Rule
	for _, rule := range rules {
		parsed = append(parsed, fault.MustRule(rule))
	}
	if err := m.SetRules(parsed...); err != nil {
		t.Fatal(err)
	}
}

// does sets what happens to event streams from now on.
func (m *middle) does(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams = what
}

// asked lists the requests for one path, whatever became of them, oldest first.
func (m *middle) asked(method, path string) []*http.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []*http.Request
	for _, r := range m.sent {
		if r.Method == method && r.URL.Path == path {
			list = append(list, r)
		}
	}
	return list
}

func (m *middle) stream(resp *http.Response) error {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	m.mu.Lock()
	what := m.streams
	m.mu.Unlock()
	switch what {
	case holds:
		all, err := io.ReadAll(resp.Body) // until the stream has ended, or the client has gone
		resp.Body.Close()
		if err != nil {
			return err
		}
		resp.Body = io.NopCloser(bytes.NewReader(all))
	case cuts:
		resp.Body = &broken{ReadCloser: resp.Body}
	case swallow:
		resp.Body = &swallowed{ReadCloser: resp.Body}
	}
	return nil
}

// broken breaks after the first event.
type broken struct {
	io.ReadCloser
	seen bytes.Buffer
}

func (b *broken) Read(p []byte) (int, error) {
	if bytes.Contains(b.seen.Bytes(), []byte("data:")) {
		return 0, errors.New("cut")
	}
	n, err := b.ReadCloser.Read(p)
	b.seen.Write(p[:n])
	return n, err
}

// swallowed is silent until the stream ends.
type swallowed struct{ io.ReadCloser }

func (s *swallowed) Read(p []byte) (int, error) {
	if _, err := io.Copy(io.Discard, s.ReadCloser); err != nil {
		return 0, err
	}
	return 0, errors.New("cut")
}

// network sets the line of a tab: offline, or so slow.
func (p *tab) network(offline bool, latency time.Duration, bytesPerSecond float64) {
	p.t.Helper()
	send(p, network.Enable, network.EnableParams{})
	send(p, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Offline: offline, Latency: float64(latency.Milliseconds()),
			DownloadThroughput: bytesPerSecond, UploadThroughput: bytesPerSecond}}})
	send(p, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: offline, Latency: float64(latency.Milliseconds()),
		DownloadThroughput: bytesPerSecond, UploadThroughput: bytesPerSecond})
}

// agree waits until the three counts on the page are n, and asks the database and
// the generator themselves, too.
func (p *tab) agree(n int) {
	p.t.Helper()
	p.counts(n, n, n)
	p.demo.agrees(n)
}

// agrees asks the database and the generator whether n tasks happened, once each.
func (d *demoProcess) agrees(n int) {
	d.t.Helper()
	var stats struct{ Executions, Images int }
	d.call("GET", d.generator+"/stats", "", "", &stats)
	var list struct {
		Operations []struct {
			Key   struct{ ID string }
			State string
		}
	}
	const all = "/v1/operations?kind=menu-export&page_size=100"
	d.call("GET", all, d.token, "", &list)
	for _, op := range list.Operations { // the picture is there before that is written back
		if op.State == "processing" {
			d.follow("/v1/operations/menu-export/" + op.Key.ID)
		}
	}
	d.call("GET", all, d.token, "", &list)
	done := 0
	for _, op := range list.Operations {
		if op.State == "succeeded" {
			done++
		}
	}
	if stats.Executions != n || stats.Images != n || len(list.Operations) != n || done != n {
		d.t.Errorf("it should be %d: the database has %d operations, of which %d are done; the generator ran %d times and has %d pictures",
			n, len(list.Operations), done, stats.Executions, stats.Images)
	}
}

// follow reads the events of an operation until it is settled.
func (d *demoProcess) follow(path string) {
	d.t.Helper()
	resp, err := ask(d.t, d.program, "GET", "http://"+d.addr+path+"/events", d.token, "")
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		d.t.Fatal(err)
	}
}

// operation is the path of the task that is shown.
func (p *tab) operation() string { return "/v1/operations/menu-export/" + p.id() }

// ask asks for a menu with another title, and waits until it is the task that is shown.
func (p *tab) ask(title string) {
	p.t.Helper()
	before := p.id()
	p.fill("#f-title", title)
	p.generate()
	p.wait(`(document.querySelector(".identity code")?.textContent ?? "") != %q`, before)
}

// What a bad network does, one after the other, on one page. Each time the task
// goes on by itself, and happens once.
func TestPageOnABadNetwork(t *testing.T) {
	d := startDemo(t, "idempotent")
	m := between(t, d)
	p := browse(t, d, "en").open("500 (Internal Server Error)", "404 (Not Found)", "net::ERR_") // how a cut is called depends on what was on its way
	puts := func(want int) {
		t.Helper()
		if n := len(m.asked("PUT", p.operation())); n != want {
			t.Errorf("%s came %d times to the server, want %d", p.operation(), n, want)
		}
	}

	t.Run("500 before the commit", func(t *testing.T) {
		m.rules(t, "status-before code=500 count=1 method=PUT path=/v1/operations/**")
		p.ask("Refused by something")
		p.passed("unconfirmed") // nobody says that it failed
		p.phase("done")
		p.agree(1)
		puts(1)
		if says := p.text("#task-detail"); says != "Sent 2 times, made once." {
			t.Errorf("it says %q", says)
		}
	})
	t.Run("500 after the commit", func(t *testing.T) {
		m.rules(t, "status code=500 count=1 method=PUT path=/v1/operations/**")
		p.ask("Committed, and then refused")
		p.passed("unconfirmed")
		p.phase("done")
		p.agree(2)
		puts(1) // it was looked up
	})
	t.Run("offline", func(t *testing.T) {
		m.rules(t)
		p.network(true, 0, -1)
		p.ask("Written in a tunnel")
		p.wait(`document.querySelector("#task-detail").textContent.includes("You are offline. It goes on when the network is back.")`)
		p.wait(`document.querySelector("#verdict").textContent == "No connection to the demo just now. Trying again."`)
		p.phase("sending")
		puts(0)
		p.network(false, 0, -1)
		p.phase("done")
		p.agree(3)
		puts(1)
	})
	t.Run("offline while it is followed", func(t *testing.T) {
		d.call("PUT", d.generator+"/faults", "", `{"hold_request":true}`, nil)
		p.ask("Done in a tunnel")
		p.phase("processing")
		p.network(true, 0, -1)
		m.cut() // the emulation leaves those that are open
		p.wait(`document.querySelector("#task-detail").textContent.includes("You are offline")`)
		d.call("PUT", d.generator+"/faults", "", `{}`, nil)
		d.follow(p.operation())
		if p.text("#task-state") != "In progress." || strings.Contains(p.text("#trail"), "Worker gone") {
			t.Error("what the page can't know, it tells")
		}
		p.network(false, 0, -1)
		p.phase("done")
		p.agree(4)
	})
	t.Run("slow 3G", func(t *testing.T) {
		p.network(false, 2*time.Second, 50_000) // as Chromium's own developer tools call it
		p.ask("On a hill")
		p.phase("done")
		p.agree(5)
		puts(1)
		p.network(false, 0, -1)
		p.wait(`document.querySelector("#picture").naturalWidth > 0`)
	})
}

// The server is gone for 20 seconds, with all that it knew in memory. One task is
// under way, another is asked for meanwhile.
func TestPageWhileTheServerIsAway(t *testing.T) {
	const away = 20 * time.Second
	d := startDemo(t, "idempotent")
	// While the demo starts, its processes can't ask each other yet.
	p := browse(t, d, "en").open("net::ERR_", "404 (Not Found)", "/demo/counts", "/demo/causes")
	// The browser keeps 250 entries, which a slow machine's waiting page exceeds.
	js[chromedp.Void](p, `performance.setResourceTimingBufferSize(100000)`)
	p.write("Under way", "Monday", "Soup")
	d.call("PUT", d.generator+"/faults", "", `{"hold_request":true}`, nil)
	p.generate()
	p.phase("processing")
	before := p.id()
	d.kill()
	began := time.Now() // from here on nobody is there to answer
	p.ask("Meanwhile")
	p.phase("unconfirmed")
	id := p.id()
	p.wait(`document.querySelector("#verdict").textContent == "No connection to the demo just now. Trying again."`)
	p.heard(6, "/v1/operations/menu-export/"+id+")", "net::ERR_") // the wait is of seconds by now
	p.until(func() bool { return time.Since(began) >= away })
	if p.id() != id || p.text("#task-state") != "No confirmation yet. Looking this task up." {
		t.Errorf("it says %q of %s", p.text("#task-state"), p.id())
	}
	d.start()
	p.phase("done")
	if p.id() != id {
		t.Errorf("it was %s and is %s", id, p.id())
	}
	p.wait(`document.querySelector("[data-id='%s'] .state").textContent == "Done"`, before)
	p.agree(2)
	// The browser's own record of when the page had an answer of the counts.
	silent := time.Duration(js[float64](p, `(answers => Math.max(...answers.map((at, i) => at - (answers[i - 1] ?? at))))(
		performance.getEntriesByType("resource").filter(e => e.name.endsWith("/demo/counts") && e.responseStatus == 200).map(e => e.responseEnd))`)) * time.Millisecond
	t.Logf("the page had no answer for %v", silent)
	if silent < away {
		t.Errorf("the page had no answer for %v only, which is no %v", silent, away)
	}
}

// heard waits until the console has told n times of something.
func (p *tab) heard(n int, words ...string) {
	p.t.Helper()
	p.until(func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		found := 0
		for _, line := range p.console {
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
				found++
			}
		}
		return found >= n
	})
}

// until waits for something outside the page.
func (p *tab) until(is func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); {
		if time.Now().After(deadline) {
			p.t.Fatalf("it never happened\n%s", p.state())
		}
		js[chromedp.Void](p, `new Promise(requestAnimationFrame).then(() => {})`)
	}
}
