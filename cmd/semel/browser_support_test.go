//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel/internal/pgtest"
)

// A demoProcess is `semel demo`, running.
type demoProcess struct {
	t *testing.T
	*process
	data, addr, contract   string
	page, generator, token string
	guest                  string
	program                *http.Client
}

// startDemo runs the demo on a free port, on a folder of its own.
func startDemo(t *testing.T, contract string) *demoProcess {
	t.Helper()
	d := &demoProcess{t: t, data: t.TempDir(), addr: "127.0.0.1:0", contract: contract,
		token: "semel_DEMOTOKENDEMOTOKENDEMOTOK", guest: "semel_GUESTTOKENGUESTTOKENGUEST",
		program: &http.Client{Timeout: 60 * time.Second}}
	d.start()
	t.Cleanup(d.stop)
	return d
}

func (d *demoProcess) start() {
	d.t.Helper()
	d.process = start(d.t, &syncBuffer{}, []string{"SEMEL_DEMO_TOKEN=" + d.token, "SEMEL_DEMO_GUEST_TOKEN=" + d.guest},
		[]string{"demo", "--data", d.data, "--addr", d.addr, "--contract", d.contract}, "page", "api", "generator", "token")
	d.page, d.generator = d.lines["page"], d.lines["generator"]
	d.addr = strings.TrimPrefix(d.lines["api"], "http://") // the same again after a restart
}

// stop ends it as a person would.
func (d *demoProcess) stop() {
	d.cmd.Process.Signal(syscall.SIGTERM)
	if err := d.cmd.Wait(); err != nil && d.cmd.ProcessState.ExitCode() != -1 {
		d.t.Errorf("the demo ended with %v; its log:\n%s", err, d.log)
	}
}

// child returns the process ID of a child: "server", "worker" or "generator". One
// that was killed is being started again.
func (d *demoProcess) child(name string) int {
	d.t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) { // between two looks
		for pid, child := range children(d.t, d.cmd.Process.Pid) {
			if child == "demo-"+name {
				return pid
			}
		}
	}
	d.t.Fatalf("the demo has no %s", name)
	return 0
}

// pause stops a child until the function that is returned is called.
func (d *demoProcess) pause(name string) (resume func()) {
	pid := d.child(name)
	syscall.Kill(pid, syscall.SIGSTOP)
	var once sync.Once
	resume = func() { once.Do(func() { syscall.Kill(pid, syscall.SIGCONT) }) }
	d.t.Cleanup(resume)
	return resume
}

// children lists the children of a process: their IDs and first arguments.
func children(t *testing.T, parent int) map[int]string {
	t.Helper()
	list := map[int]string{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		_, rest, ok := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if err != nil || !ok || len(fields) < 2 || fields[1] != strconv.Itoa(parent) || fields[0] == "Z" {
			continue
		}
		args, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		words := strings.Split(string(args), "\x00")
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && len(words) > 1 {
			list[pid] = words[1]
		}
	}
	return list
}

// call asks the demo as a program does, and decodes the answer into out.
func (d *demoProcess) call(method, path, token, body string, out any, header ...string) int {
	d.t.Helper()
	url := path
	if strings.HasPrefix(path, "/") {
		url = "http://" + d.addr + path
	}
	resp, err := ask(d.t, d.program, method, url, token, body, header...)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	if out != nil {
		if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
			d.t.Fatalf("%s %s: %s: %v", method, path, resp.Status, err)
		}
	}
	return resp.StatusCode
}

// A chromium is one browser with a profile of its own: tabs share its storage.
type chromium struct {
	t    *testing.T
	ctx  context.Context
	demo *demoProcess
	lang string
}

// findChromium returns the browser, or skips the test where it may.
func findChromium(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("SEMEL_CHROMIUM"); named != "" {
		return named
	}
	for _, name := range []string{"chromium", "google-chrome", "chromium-browser"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	pgtest.Missing(t, errors.New("no Chromium: install Debian's package chromium, or say SEMEL_CHROMIUM"))
	return ""
}

// browse starts a browser for people who read lang.
func browse(t *testing.T, d *demoProcess, lang string) *chromium {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(findChromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true), chromedp.Flag("lang", lang), chromedp.Flag("accept-lang", lang))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		chromedp.Cancel(end)
	})
	return &chromium{t: t, ctx: ctx, demo: d, lang: lang}
}

// A tab is one tab, whose console is watched: what it says must be expected.
type tab struct {
	t      *testing.T
	demo   *demoProcess
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	console  []string
	expected []string
}

// open opens the page in a new tab and waits until it is there.
func (c *chromium) open(expected ...string) *tab {
	c.t.Helper()
	p := c.blank(expected...)
	p.goTo(c.demo.page)
	return p
}

// blank opens an empty tab.
func (c *chromium) blank(expected ...string) *tab {
	c.t.Helper()
	ctx, cancel := chromedp.NewContext(c.ctx, chromedp.WithNewWindow(true))
	p := &tab{t: c.t, demo: c.demo, ctx: ctx, cancel: cancel, expected: expected}
	c.t.Cleanup(p.close)
	if err := chromedp.Do(ctx); err != nil { // opens it
		c.t.Fatal(err)
	}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			p.mu.Lock()
			p.console = append(p.console, fmt.Sprintf("%s %s: %s (%s)", m.Type, m.Source, m.Text, m.URL))
			p.mu.Unlock()
		}
	}()
	send(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: notePhases})
	// A tab in the background is looked at too, as by somebody with two windows.
	send(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	p.size(1280, 900)
	return p
}

// send sends one command of the protocol.
func send[P, R any](p *tab, cmd cdp.Command[P, R], params P) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, cmd, params); err != nil {
		p.t.Fatal(err)
	}
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 60*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%v\n%s", err, p.state())
	}
}

// js evaluates an expression, and waits for it where it is a promise.
func js[T any](p *tab, format string, args ...any) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 60*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](fmt.Sprintf(format, args...), chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", fmt.Sprintf(format, args...), err, p.state())
	}
	return v
}

// until waits until an expression is true, through reloads and the back/forward
// cache, and returns its value; one that throws is not true yet.
func until[T any](p *tab, format string, args ...any) T {
	p.t.Helper()
	expression := fmt.Sprintf(format, args...)
	poll := `new Promise(tell => {
		const is = () => { try { return (` + expression + `) || null } catch { return null } }
		const look = left => {
			const value = is()
			if (value || !left) tell(value)
			else setTimeout(look, 20, left - 1)
		}
		look(50)
	})`
	ctx, cancel := context.WithTimeout(p.ctx, 60*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		// A page that is left takes its poll with it.
		try, stop := context.WithTimeout(ctx, 10*time.Second)
		value, err := chromedp.Run(try, chromedp.Evaluate[*T](poll, chromedp.EvalAwaitPromise))
		stop()
		if err == nil && value != nil {
			return *value
		}
	}
	p.t.Fatalf("it never became true that %s\n%s", expression, p.state())
	panic("not reached")
}

// wait waits until an expression is true, as until does.
func (p *tab) wait(format string, args ...any) {
	p.t.Helper()
	until[bool](p, "!!("+format+")", args...)
}

// state says what the page shows, for a test that fails.
func (p *tab) state() string {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("the page:\n%s\nits console:\n%s\nthe demo's log:\n%s", text, strings.Join(p.console, "\n"), p.demo.log)
}

const ready = `document.body?.classList.contains("ready")`

func (p *tab) goTo(url string) {
	p.t.Helper()
	p.do(chromedp.Navigate(url))
	p.wait(ready)
}

// reload reloads the page, and waits until it is another one than before.
func (p *tab) reload() {
	p.t.Helper()
	js[chromedp.Void](p, `void (window.before = true)`)
	p.do(chromedp.Reload())
	p.wait(`!window.before && ` + ready)
}

func (p *tab) size(width, height int64) {
	p.t.Helper()
	send(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500})
}

// look sets the colour scheme.
func (p *tab) look(scheme string) {
	p.t.Helper()
	send(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// click clicks the first element of the selector, once it is there to be seen.
func (p *tab) click(selector string) {
	p.t.Helper()
	x, y := p.place(selector)
	p.do(chromedp.MouseClickXY(x, y))
}

// doubleClick is two clicks, the second of which the browser counts as such.
func (p *tab) doubleClick(selector string) {
	p.t.Helper()
	x, y := p.place(selector)
	p.do(chromedp.MouseClickXY(x, y), chromedp.MouseClickXY(x, y, chromedp.ClickCount(2)))
}

// place scrolls to an element and says where it is. Both are one step: a page may be
// another one by the next, and what was found in the page before is not there then.
func (p *tab) place(selector string) (x, y float64) {
	p.t.Helper()
	at := until[[2]float64](p, `(e => {
		if (!e.checkVisibility({ visibilityProperty: true })) return
		e.scrollIntoViewIfNeeded()
		const r = e.getClientRects()[0]
		return r.width && r.height && [r.x + r.width / 2, r.y + r.height / 2]
	})(document.querySelector(%q))`, selector)
	return at[0], at[1]
}

// text is what one element says.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return js[string](p, `document.querySelector(%q).innerText`, selector)
}

// phase waits until the page shows this phase of the task.
func (p *tab) phase(phase string) {
	p.t.Helper()
	p.wait(`document.querySelector("#task-body")?.dataset.phase == %q`, phase)
}

// notePhases makes a page note each task that it shows, with phase and title: some
// are over before a test has looked.
const notePhases = `window.passed = new Set(); new MutationObserver(() => {
	const id = document.querySelector(".identity code")?.textContent
	if (id) for (const what of [document.querySelector("#task-body").dataset.phase, document.querySelector("#task-state").textContent]) window.passed.add(id + " " + what)
}).observe(document, {subtree: true, childList: true, attributeFilter: ["data-phase"]})`

// passed waits until the task that is shown has been in this phase, or under this
// title, since the page was loaded.
func (p *tab) passed(what string) {
	p.t.Helper()
	p.wait(`passed.has(document.querySelector(".identity code").textContent + %q)`, " "+what)
}

// id is the identity of the task that is shown.
func (p *tab) id() string {
	p.t.Helper()
	return js[string](p, `document.querySelector(".identity code")?.textContent ?? ""`)
}

// counts waits until the three counts are so.
func (p *tab) counts(seen, operations, runs int) {
	p.t.Helper()
	p.wait(`["seen", "operations", "runs"].map(name => document.querySelector("#count-" + name)?.textContent).join() == "%d,%d,%d"`, seen, operations, runs)
}

// cause moves a switch to on, and waits until that is so: the page shows it as soon
// as it is pressed, the server knows of it later.
func (p *tab) cause(name string) {
	p.t.Helper()
	p.wait(`!document.querySelector("#%s").disabled`, name)
	p.click("#" + name)
	p.wait(`document.querySelector("#%s-state").dataset.on == "true"`, name)
	p.until(func() bool {
		var now map[string]any
		p.demo.call("GET", "/demo/causes", p.demo.token, "", &now)
		return now[name] == true
	})
}

// write types a menu of one day, as a person does.
func (p *tab) write(title, day, dishes string) {
	p.t.Helper()
	for js[int](p, `document.querySelectorAll("li.day").length`) > 1 {
		p.click("li.day:last-child .remove")
	}
	for selector, text := range map[string]string{"#f-title": title, "li.day .field.day input": day, "li.day textarea": dishes} {
		p.fill(selector, text)
	}
}

// fill replaces the text of a field, as typing does.
func (p *tab) fill(selector, text string) {
	p.t.Helper()
	p.click(selector)
	js[chromedp.Void](p, `document.querySelector(%q).select()`, selector)
	send(p, input.InsertText, input.InsertTextParams{Text: text})
	p.wait(`document.querySelector(%q).value == %q`, selector, text)
}

func (p *tab) generate() {
	p.t.Helper()
	p.click("#generate")
}

// steps are the steps of the timeline.
func (p *tab) steps() []string {
	p.t.Helper()
	return js[[]string](p, `[...document.querySelectorAll("#trail-body [data-step]")].map(li => li.dataset.step)`)
}

// close closes the tab, and fails the test for what its console should not have said.
func (p *tab) close() {
	if p.ctx.Err() != nil {
		return
	}
	p.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.console {
		ok := false
		for _, e := range p.expected {
			ok = ok || strings.Contains(line, e)
		}
		if !ok {
			p.t.Errorf("the console says: %s", line)
		}
	}
}
