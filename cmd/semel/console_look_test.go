//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel/internal/pgtest"
)

// judgeAxe runs axe-core on what the tab shows.
func (p *tab) judgeAxe(axe, where string) {
	p.t.Helper()
	js[chromedp.Void](p, `void (globalThis.axe || (0, eval)(%s))`, quote(axe))
	for _, v := range js[[]violation](p, `axe.run(document, {resultTypes: ["violations"], rules: {"target-size": {enabled: true}}}).then(r =>
		r.violations.map(v => ({id: v.id, impact: v.impact, nodes: v.nodes.map(n => n.html + " " + n.failureSummary)})))`) {
		p.t.Errorf("%s: %s %s: %s", where, v.Impact, v.ID, strings.Join(v.Nodes, "\n"))
	}
}

// axe-core finds nothing in any view, in both languages, both colour schemes, on a
// phone and on a wide screen; and a phone never scrolls sideways.
func TestConsoleForEverybody(t *testing.T) {
	axe, err := os.ReadFile("../../sdk/js/node_modules/axe-core/axe.min.js")
	if err != nil {
		pgtest.Missing(t, fmt.Errorf("axe-core is not there: run npm ci in sdk/js: %w", err))
	}
	o := openOffice(t)
	o.furnish()
	for _, lang := range []string{"en", "zh-CN"} {
		c := browse(t, o.demoProcess, lang)
		p := c.blank("401", "404")
		judge := func(view string) {
			t.Helper()
			js[chromedp.Void](p, `void document.querySelectorAll("details").forEach(d => d.open = true)`)
			for _, scheme := range []string{"light", "dark"} {
				for _, width := range []int64{360, 1280} {
					p.look(scheme)
					p.size(width, 900)
					p.wait(`matchMedia("(width: %dpx) and (prefers-color-scheme: %s)").matches`, width, scheme)
					where := fmt.Sprintf("%s-%s-%s-%d", view, lang, scheme, width)
					if over := p.tooWide(); over > 0 {
						t.Errorf("%s: it is %d pixels too wide", where, over)
					}
					p.judgeAxe(string(axe), where)
					p.shot(where)
				}
			}
		}
		p.do(chromedp.Navigate(o.page + "console/"))
		p.wait(`document.querySelector("#token")`)
		judge("sign-in")
		p.fill("#token", o.everything)
		p.click("form.sign-in button")
		p.wait(`document.querySelectorAll("polyline").length >= 12`)
		judge("overview")
		p.view("operations", "td.key")
		judge("list")
		p.view("operations/search%3Dnobody", "#search-note")
		judge("search")
		p.view("operation/acme/order/lost-1", ".resolution")
		p.click("#record")
		p.wait(`document.querySelector(".resolution .wrong").textContent`)
		judge("operation")
		p.view("operation/acme/order/resolved", "blockquote")
		judge("resolved")
		p.view("operation/acme/order/nobody", ".wrong")
		judge("not-found")
		p.view("queue", "#evidence")
		p.click("#verdict-1")
		judge("queue")
	}
	few := o.enter(browse(t, o.demoProcess, "en"), o.few)
	few.wait(`document.querySelector(".card b").textContent == "3"`)
	few.judgeAxe(string(axe), "overview of one account")
	few.shot("overview-few")
}

// furnish fills the office with some of everything.
func (o *office) furnish() {
	o.t.Helper()
	o.call("PUT", "/v1/operations/noted/running", o.acme, `{}`, nil)
	for n := range 6 {
		o.ask(o.acme, "order", fmt.Sprintf("done-%d", n), map[string]any{"status": 200, "answer": map[string]any{"charge": n}}, "succeeded")
	}
	o.ask(o.globex, "order", "refused", map[string]any{"status": 422, "answer": map[string]any{"code": "card-declined", "message": "The card was declined."}}, "failed")
	for n := range 4 {
		o.doubtful([]string{o.acme, o.globex}[n/3], fmt.Sprintf("lost-%d", n))
	}
	op := o.doubtful(o.acme, "resolved")
	body, _ := json.Marshal(map[string]any{"verdict": "applied", "evidence": "Charge ch_17 is in the console of the payment service.", "result": map[string]any{"charge": "ch_17"}})
	o.call("PUT", "/v1/operator/operations/acme/order/resolved/resolution", o.everything, string(body), nil, "If-Match", fmt.Sprintf(`"%d"`, op.Revision))
	o.call("DELETE", "/v1/operations/order/abandoned", o.acme, "", nil)
}
