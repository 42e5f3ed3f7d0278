//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/internal/config"
	"github.com/semel-dev/semel/internal/node"
)

// An office is a server with its console, two accounts and an external service
// that answers as each request tells it. One operator sees all accounts, and one
// sees acme only.
type office struct {
	*demoProcess
	*node.Node
	service *service

	acme, globex    string // tokens of accounts
	everything, few string // tokens of operators
}

const officeConfig = `
listen: 127.0.0.1:0
database: %[1]s
accounts:
  acme: {tokens: [{name: a, hash: %[2]q}]}
  globex: {tokens: [{name: g, hash: %[3]q}]}
operators:
  - {name: kim, hash: %[4]q, accounts: ["*"]}
  - {name: lee, hash: %[5]q, accounts: [acme]}
worker: {poll: 20ms}
kinds:
  order: {contract: opaque, tries: 1, timeout: 30s, lease: 90s, http: {url: %[6]s/, refusal: {code: /code, message: /message}}}
  noted: {contract: opaque, description: It tells how far it is., timeout: 1h, lease: 3h, http: {url: %[6]s/}}
  %[7]s: {contract: opaque, tries: 1, timeout: 30s, lease: 90s, http: {url: %[6]s/}}
`

// longKind is as long as a kind's name may be.
var longKind = "k" + strings.Repeat("-._9", 15) + "zzz"

// openOffice opens it on an empty database.
func openOffice(t *testing.T) *office {
	t.Helper()
	o := &office{demoProcess: &demoProcess{t: t, process: &process{log: &syncBuffer{}}, program: &http.Client{Timeout: 60 * time.Second}},
		service: startService(t), acme: httpapi.NewToken(), globex: httpapi.NewToken(), everything: httpapi.NewToken(), few: httpapi.NewToken()}
	folder := t.TempDir()
	file := filepath.Join(folder, "semel.yaml")
	hash := httpapi.HashToken
	text := fmt.Sprintf(officeConfig, filepath.Join(folder, "semel.db"), hash(o.acme), hash(o.globex), hash(o.everything), hash(o.few), o.service.URL, longKind)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if o.Node, err = node.Open(t.Context(), cfg, &node.Options{Logger: slog.New(slog.NewJSONHandler(o.log, nil)),
		Effects: map[string]effect.Effect{"noted": o.service.noted()}}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.addr = listener.Addr().String()
	o.page, o.token = "http://"+o.addr+"/", o.everything
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Node.Run(ctx, listener, node.WithConsole(o.Server)) }()
	t.Cleanup(func() {
		o.service.end()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		o.Node.Close()
	})
	return o
}

// A service answers every request as its "answer" says, and holds back the notes.
type service struct {
	*httptest.Server
	note string        // that the noted kind tells
	held chan struct{} // closed at the end
	once sync.Once
}

func startService(t *testing.T) *service {
	s := &service{held: make(chan struct{}), note: markup + turned + fourByte}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Status int
			Answer json.RawMessage
			Raw    string // in the place of HTTP
		}
		body, _ := io.ReadAll(r.Body)
		json.Unmarshal(body, &asked)
		if asked.Raw != "" {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Write([]byte(asked.Raw))
				conn.Close()
			}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(asked.Status)
		w.Write(asked.Answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) end() { s.once.Do(func() { close(s.held) }) }

// noted is an effect that says how far it is, and goes on until the end.
func (s *service) noted() effect.Effect {
	return effect.Func(func(ctx context.Context, call *effect.Call) effect.Result {
		call.Progress(0.4, s.note)
		select {
		case <-s.held:
		case <-ctx.Done():
		}
		return effect.Unknown("ended", "the office closed")
	})
}

// ask makes one operation, and waits until it is in the state.
func (o *office) ask(token, kind, id string, params any, state semel.State) semel.Operation {
	o.t.Helper()
	body, err := json.Marshal(params)
	if err != nil {
		o.t.Fatal(err)
	}
	var op semel.Operation
	path := "/v1/operations/" + kind + "/" + id
	if status := o.call("PUT", path, token, string(body), &op, "Attempt-Id", "attempt-"+strings.Repeat("~", 40)); status != 200 && status != 201 {
		o.t.Fatalf("%s: %d; the log:\n%s", path, status, o.log)
	}
	changes, err := o.Ledger.Watch(o.t.Context(), op.Key)
	if err != nil {
		o.t.Fatal(err)
	}
	for op := range changes {
		switch op.State {
		case state:
			return op
		case semel.NeedsReconciliation:
			o.t.Fatalf("%s is %s", path, op.State)
		}
	}
	o.t.Fatalf("%s never was %s; the log:\n%s", path, state, o.log)
	return op
}

// doubtful makes an operation of which nobody can know what became.
func (o *office) doubtful(token, id string) semel.Operation {
	o.t.Helper()
	return o.ask(token, "order", id, map[string]any{"status": 500, "answer": map[string]any{}, "id": id}, semel.NeedsReconciliation)
}

// enter opens the console in a new tab as the operator of that token.
func (o *office) enter(c *chromium, token string) *tab {
	o.t.Helper()
	p := c.blank("401") // the first question is who is signed in
	p.do(chromedp.Navigate(o.page + "console/"))
	p.wait(`document.querySelector("#token")`)
	p.fill("#token", token)
	p.click("form.sign-in button")
	p.wait(`document.querySelector("nav")`)
	return p
}

// view goes to a view of the console, and waits until it shows what is named, and
// nothing of the view before.
func (p *tab) view(path, shows string) {
	p.t.Helper()
	js[chromedp.Void](p, `location.hash != "#/" + %q && document.querySelectorAll("main > *").forEach(e => e.dataset.before = "")`, path)
	p.do(chromedp.Navigate(strings.TrimSuffix(p.demo.page, "/") + "/console/#/" + path))
	p.wait(`document.querySelector(%q) && !document.querySelector("[data-before]")`, shows)
}

// tooWide is by how many pixels the page is wider than the screen.
func (p *tab) tooWide() int {
	p.t.Helper()
	return js[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`)
}

// shot keeps a picture where the environment says so, for people to look at.
func (p *tab) shot(name string) {
	p.t.Helper()
	folder := os.Getenv("SEMEL_SHOTS")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644); err != nil {
		p.t.Error(err)
	}
}
