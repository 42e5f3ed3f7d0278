//go:build linux

package main

import (
	"flag"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the pictures of the documents")

// signInToConsole opens the console in a tab and signs in with the demo's token,
// which is an operator's.
func signInToConsole(p *tab) {
	p.t.Helper()
	p.do(chromedp.Navigate(strings.TrimSuffix(p.demo.page, "/") + "/console/"))
	p.wait(`document.querySelector("#token, nav")`)
	if js[bool](p, `!!document.querySelector("#token")`) {
		p.fill("#token", p.demo.token)
		p.click("form.sign-in button")
	}
	p.wait(`document.querySelector("nav")`)
}

func (p *tab) press(key string) {
	p.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		send(p, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: key, Text: key})
	}
}

// An opaque operation is killed after its effect. It appears in the queue; an
// operator looks at the evidence and resolves it, by keyboard; the page that the
// user still has open turns to done by itself.
func TestConsoleResolvesWhatNobodyKnows(t *testing.T) {
	d := startDemo(t, "opaque")
	b := browse(t, d, "en-GB")
	user := b.open()
	user.write("Menu", "Monday", "Tomatoes")
	user.cause("kill_worker")
	user.generate()
	user.phase("needs_reconciliation")
	id := user.id()

	operator := b.blank("401")
	signInToConsole(operator)
	operator.do(chromedp.Navigate(strings.TrimSuffix(d.page, "/") + "/console/#/queue"))
	operator.wait(`document.querySelector("h1 .id")?.textContent == %q`, id)
	operator.wait(`document.querySelector(".timeline")?.innerText.includes("never ended")`)
	operator.press("1")
	operator.wait(`document.querySelector("#verdict-1").checked`)
	operator.press("e")
	operator.wait(`document.activeElement.id == "evidence"`)
	send(operator, input.InsertText, input.InsertTextParams{Text: "the picture is in the generator's folder <b>"})
	operator.size(1280, 1500)
	operator.picture("console-queue")
	operator.click("#record")
	operator.wait(`document.querySelector("main").innerText.includes("Nothing needs reconciliation")`)
	user.phase("done")

	operator.do(chromedp.Navigate(strings.TrimSuffix(d.page, "/") + "/console/#/operation/demo/menu-export/" + id))
	operator.wait(`document.querySelector(".badge.succeeded") && document.querySelector("blockquote")`)
	if js[int](operator, `document.querySelectorAll("blockquote b").length`) != 0 {
		t.Error("evidence became markup")
	}
	operator.do(chromedp.Navigate(strings.TrimSuffix(d.page, "/") + "/console/#/overview"))
	operator.wait(`document.querySelector("svg.shares")`)
	user.click("[data-action=again]")
	user.wait(`document.querySelector(".identity code").textContent != %q`, id)
	user.phase("done")
	operator.wait(`document.querySelectorAll("polyline").length >= 12`)
	operator.size(1280, 1310)
	operator.picture("console-overview")
	operator.click("#language")
	operator.wait(`document.querySelector("h1").textContent == "概览"`)
	if missing := js[[]string](operator, `import("/console/i18n.js").then(m => Object.entries(m.words).filter(([, v]) => v.length != 2 || !v[0] || !v[1]).map(([k]) => k))`); len(missing) > 0 {
		t.Errorf("words without a translation: %v", missing)
	}
}
