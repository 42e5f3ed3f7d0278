//go:build linux

package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/semel-dev/semel"
)

// keys types, as a keyboard does.
func (p *tab) keys(text string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(text))
}

// ctrlEnter presses Enter together with Ctrl.
func (p *tab) ctrlEnter() {
	p.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		send(p, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13, Modifiers: 2})
	}
}

// tabTo presses Tab until the focus is on what the selector names, and can be seen.
func (p *tab) tabTo(selector string) {
	p.t.Helper()
	for range 60 {
		p.keys(kb.Tab)
		if js[bool](p, `document.activeElement.matches(%q)`, selector) {
			if js[bool](p, `getComputedStyle(document.activeElement).outlineStyle == "none"`) {
				p.t.Errorf("the focus on %s can't be seen", selector)
			}
			return
		}
	}
	p.t.Fatalf("the keyboard never comes to %s", selector)
}

// An operator works through the queue without a pointer: signs in, opens the
// queue, looks, says what is known and how, and is at the next one.
func TestConsoleQueueFromTheKeyboard(t *testing.T) {
	o := openOffice(t)
	var ids []string
	for _, id := range []string{"oldest", "second", "third", "newest"} {
		ids = append(ids, o.doubtful(o.acme, id).Key.ID)
	}
	p := browse(t, o.demoProcess, "en").blank("401")
	p.do(chromedp.Navigate(o.page + "console/"))
	p.wait(`document.activeElement.id == "token"`)
	p.keys(o.few + kb.Enter)
	p.wait(`document.querySelector(".card")`)
	p.tabTo("#nav-queue")
	p.keys(kb.Enter)
	at := func(place, id string) {
		t.Helper()
		p.wait(`document.querySelector("#place")?.textContent == %q && document.querySelector("h1 .id")?.textContent == %q`, place, id)
	}
	at("1 of 4", ids[0])
	p.wait(`document.activeElement.id == "main"`)

	p.press("j")
	at("2 of 4", ids[1])
	p.press("k")
	at("1 of 4", ids[0])
	p.press("k") // around the end
	at("4 of 4", ids[3])
	p.press("j")
	at("1 of 4", ids[0])

	// Nothing is recorded without a verdict and a reason.
	p.press("e")
	p.wait(`document.activeElement.id == "evidence"`)
	p.ctrlEnter()
	p.wait(`document.querySelector(".resolution .wrong").textContent == "Say how you know, and choose a verdict."`)
	// While one types, letters and digits are letters and digits; and what was
	// typed is there after a look at another one.
	p.keys("jk1e4: seen in the console")
	p.keys(kb.Tab)
	p.press("j")
	at("2 of 4", ids[1])
	p.press("k")
	at("1 of 4", ids[0])
	p.wait(`document.querySelector("#evidence").value == "jk1e4: seen in the console" && !document.querySelector("[name=verdict]:checked")`)
	p.press("1")
	p.wait(`document.querySelector("#verdict-1").checked && document.querySelector("#result").offsetParent`)
	p.press("e")
	p.ctrlEnter()
	at("1 of 3", ids[1])
	p.wait(`document.activeElement.id == "main" && document.querySelector("#evidence").value == "" && !document.querySelector("[name=verdict]:checked")`)
	p.wait(`document.querySelector("#say").textContent == "Recorded. 1 of 3"`)

	p.press("4")
	p.press("e")
	p.wait(`document.activeElement.id == "evidence"`)
	p.keys("their books burnt")
	p.tabTo("#record")
	p.keys(kb.Enter)
	at("1 of 2", ids[2])
	p.press("3")
	p.wait(`document.querySelector("#verdict-3").checked`)
	p.press("e")
	p.keys("no such charge")
	p.ctrlEnter()
	at("1 of 1", ids[3])

	// Somebody else was quicker: it is said, and nothing is overwritten.
	if status := o.call("PUT", "/v1/operator/operations/acme/order/"+ids[3]+"/resolution", o.everything, `{"verdict":"not_applied","then":"fail","evidence":"kim looked"}`, nil, "If-Match", `"4"`); status != 200 {
		t.Fatalf("kim's verdict: %d", status)
	}
	p.expected = append(p.expected, "412")
	p.press("1")
	p.press("e")
	p.keys("lee looked")
	p.ctrlEnter()
	p.wait(`document.querySelector("article .wrong")?.textContent == "It has changed since you looked. Look again, then decide."`)
	p.wait(`document.querySelector("article .badge.failed") && document.querySelector("blockquote").textContent == "kim looked"`)

	states := map[string]semel.State{ids[0]: semel.Succeeded, ids[1]: semel.NeedsReconciliation, ids[2]: semel.Failed, ids[3]: semel.Failed}
	for id, want := range states {
		var op semel.Operation
		if o.call("GET", "/v1/operations/order/"+id, o.acme, "", &op); op.State != want {
			t.Errorf("%s is %s, want %s", id, op.State, want)
		}
	}
	var h semel.History
	o.call("GET", "/v1/operations/order/"+ids[0]+"/history", o.acme, "", &h)
	if len(h.Verdicts) != 1 || h.Verdicts[0].By != "lee" || h.Verdicts[0].Evidence != "jk1e4: seen in the console" {
		t.Errorf("the verdict is %+v", h.Verdicts)
	}
}

// The queue holds all that waits, the oldest first, however much that is.
func TestConsoleLongQueue(t *testing.T) {
	o := openOffice(t)
	const many = 1100 // more than one page of the interface
	first := o.doubtful(o.acme, "first")
	var in []semel.Insertion
	for n := range many {
		in = append(in, semel.Insertion{Key: semel.Key{Account: "acme", Kind: "order", ID: fmt.Sprintf("n-%04d", n)}, State: semel.Accepted,
			AsSent: "v1:sha256:0", Fingerprint: "v1:sha256:0", Params: []byte(`{}`), Owner: fmt.Sprint(n)})
	}
	made, err := o.Store.Insert(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	var changes []semel.Change
	for _, m := range made {
		changes = append(changes, semel.Change{Key: m.Operation.Key, Revision: m.Operation.Revision, Token: m.Operation.Token, Owner: "o",
			State: semel.NeedsReconciliation, Work: semel.WorkDone})
	}
	if _, err := o.Store.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	p := o.enter(browse(t, o.demoProcess, "en"), o.few)
	p.wait(`document.querySelector(".card b").textContent == "1,000 and more"`)
	p.view("queue", "#evidence")
	if place, id := p.text("#place"), p.text("h1 .id"); place != "1 of 1,101" || id != first.Key.ID {
		t.Errorf("the queue begins with %s, %s", place, id)
	}
	p.view("operations/state%3Dneeds_reconciliation", "td.key")
	for _, rows := range []int{100, 200} {
		p.wait(`document.querySelectorAll("td.key").length == %d`, rows)
		p.click("#more")
	}
	p.wait(`document.querySelectorAll("td.key").length == 300`)
	ids := js[[]string](p, `[...document.querySelectorAll("td.key")].map(e => e.textContent)`)
	if slices.Sort(ids); len(slices.Compact(ids)) != 300 {
		t.Error("a row is in the list twice")
	}
}

// The server goes away and comes back: it is said, what was seen stays, and all
// goes on by itself; nothing that was typed is lost.
func TestConsoleStaysCalm(t *testing.T) {
	d := startDemo(t, "opaque")
	c := browse(t, d, "en")
	user := c.open(cut)
	user.write("Menu", "Monday", "Tomatoes")
	user.cause("kill_worker")
	user.generate()
	user.phase("needs_reconciliation")
	id := user.id()
	user.close()

	p := c.blank("401", "net::ERR_")
	signInToConsole(p)
	p.view("operation/demo/menu-export/"+id, "#evidence")
	p.fill("#evidence", "half a sentence")
	d.stop()
	p.wait(`document.querySelector("#net").textContent.startsWith("No answer from the server")`)
	if p.text("h1 .id") != id || js[string](p, `document.querySelector("#evidence").value`) != "half a sentence" {
		t.Error("what was there is gone")
	}
	p.click("#verdict-1")
	p.click("#record")
	p.wait(`document.querySelector(".resolution .wrong").textContent.startsWith("No answer. It may have been recorded")`)
	p.click("#language") // a redraw, that can't ask
	p.wait(`document.querySelector("#net").textContent.startsWith("服务器没有回应")`)
	d.start()
	p.wait(`document.querySelector("#net").textContent == ""`)
	p.wait(`document.querySelector("#evidence")?.value == "half a sentence" && document.querySelector("#verdict-1").checked`)
	p.click("#record")
	p.wait(`document.querySelector(".badge.succeeded")`)
}

// The first paint comes soon, little is loaded, and nothing jumps.
func TestConsoleFirstPaint(t *testing.T) {
	o := openOffice(t)
	o.furnish()
	const observe = `window.jumps = []; new PerformanceObserver(list => { for (const e of list.getEntries()) if (!e.hadRecentInput && e.value > 0.005)
		window.jumps.push(e.value.toFixed(4) + " " + e.sources.map(s => (s.node?.id || s.node?.className || s.node?.nodeName) + " " + JSON.stringify([s.previousRect.y, s.currentRect.y])).join(" ")) }).observe({type: "layout-shift", buffered: true})`
	p := o.enter(browse(t, o.demoProcess, "en"), o.everything)
	send(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: observe})
	for _, v := range []struct{ path, shows string }{{"overview", "polyline"}, {"operations", "td.key"}, {"operation/acme/order/resolved", "blockquote"}, {"queue", "#evidence"}} {
		for _, width := range []int64{360, 1280} {
			p.size(width, 900)
			p.view(v.path, v.shows)
			p.do(chromedp.Reload())
			p.wait(`document.querySelector(%q) && performance.getEntriesByName("first-contentful-paint").length`, v.shows)
			if jumps := js[[]string](p, `jumps`); len(jumps) > 0 {
				t.Errorf("%s, %d wide: it jumped: %v", v.path, width, jumps)
			}
			t.Logf("%-30s %4d wide: first paint after %.0f ms, loaded after %.0f ms, %.1f kB in %d files", v.path, width,
				js[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`),
				js[float64](p, `performance.getEntriesByType("navigation")[0].loadEventEnd`),
				js[float64](p, `performance.getEntries().filter(e => e.name.includes("/console/")).reduce((sum, e) => sum + (e.encodedBodySize || 0), 0) / 1000`),
				js[int](p, `performance.getEntries().filter(e => e.name.includes("/console/")).length`))
		}
	}
	if size := js[int](p, `performance.getEntries().filter(e => e.name.includes("/console/")).reduce((sum, e) => sum + (e.encodedBodySize || 0), 0)`); size > 96000 {
		t.Errorf("the console is %d bytes", size)
	}
}
