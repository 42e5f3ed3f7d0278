//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel"
)

// What somebody writes who means no good: markup that would run, marks that turn
// the text around them, characters of four bytes, a word without a break.
const (
	markup   = `<img src=x onerror="window.hurt=1"><script>window.hurt=1</script><svg onload="window.hurt=1"></svg></code></pre><iframe srcdoc="x"></iframe>&lt;b&gt;`
	turned   = "paid \u202Egnp.000,1\u2066\u2067 \u200fשלום"
	fourByte = "𠀀👩‍👩‍👧‍👦🏴𝒳"
)

var endless = strings.Repeat("w", 60000)

// harmless judges what a view shows: on a phone and wide, nothing ran, nothing
// became an element, nothing turns the text beside it, and nothing is cut off to
// the right.
func (p *tab) harmless(where string, shows ...string) {
	p.t.Helper()
	js[chromedp.Void](p, `void document.querySelectorAll("details").forEach(d => d.open = true)`)
	for _, text := range shows {
		if !js[bool](p, `document.querySelector("main").textContent.includes(%s)`, quote(text)) {
			p.t.Errorf("%s: it does not show %.80q as it is", where, text)
		}
	}
	if js[bool](p, `"hurt" in window`) {
		p.t.Fatalf("%s: markup ran", where)
	}
	if n := js[int](p, `document.querySelectorAll("main img, main script, main iframe, main [onload], main [onerror]").length`); n > 0 {
		p.t.Errorf("%s: %d elements were made from text", where, n)
	}
	for _, text := range js[[]string](p, `[...function* () {
		const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT)
		while (texts.nextNode()) {
			const text = texts.currentNode, around = text.parentElement, style = getComputedStyle(around)
			const alone = around.childNodes.length == 1 && (/isolate|plaintext/.test(style.unicodeBidi) || style.display == "block")
			if (/[\u202a-\u202e\u2066-\u2069]/.test(text.data) && (!alone || around.closest("pre"))) yield around.outerHTML.slice(0, 200)
		}
	}()]`) {
		p.t.Errorf("%s: this turns the text beside it: %s", where, text)
	}
	for _, width := range []int64{360, 1280} {
		p.size(width, 900)
		p.wait(`matchMedia("(width: %dpx)").matches`, width)
		if over := p.tooWide(); over > 0 {
			p.t.Errorf("%s: it is %d pixels wider than %d: %v", where, over, width, js[[]string](p, `[...document.querySelectorAll("main *")].filter(e =>
				e.getBoundingClientRect().right > innerWidth).map(e => e.tagName + "." + e.className).slice(0, 8)`))
		}
		p.shot(fmt.Sprintf("hostile-%s-%d", where, width))
	}
}

// Whatever accounts, external services and operators write is text in the console.
func TestConsoleShowsHostileTextAsText(t *testing.T) {
	o := openOffice(t)
	all := markup + turned + fourByte
	params := func(status int, answer any) map[string]any {
		return map[string]any{"status": status, "answer": answer, markup: turned, "note": all, "word": endless, "exact": json.Number("9007199254740993.1")}
	}
	longest := strings.Repeat("~._-", 32)
	refused := o.ask(o.acme, "order", "__proto__", params(422, map[string]any{"code": markup, "message": all}), semel.Failed)
	done := o.ask(o.acme, longKind, strings.Repeat("W", 128), params(200, map[string]any{markup: all, "word": endless}), semel.Succeeded)
	garbled := o.ask(o.acme, "order", "...", map[string]any{"raw": "HTTP/1.1 <script>" + all + "\r\n\r\n"}, semel.NeedsReconciliation)
	unknown := o.ask(o.acme, "order", longest, params(500, map[string]any{"message": all}), semel.NeedsReconciliation)
	running := o.ask(o.acme, "noted", "constructor", params(0, nil), semel.Processing)
	evidence := all + "\n" + endless[:55000]
	verdict, err := json.Marshal(map[string]any{"verdict": "applied", "evidence": evidence, "result": map[string]any{"seen": all}})
	if err != nil {
		t.Fatal(err)
	}
	resolution := "/v1/operator/operations/acme/order/.../resolution"
	if status := o.call("PUT", resolution, o.everything, string(verdict), nil, "If-Match", fmt.Sprintf(`"%d"`, garbled.Revision)); status != 200 {
		t.Fatalf("the verdict: %d", status)
	}

	p := o.enter(browse(t, o.demoProcess, "en"), o.everything)
	// In JSON, what can't be seen is written out.
	escaped := `paid \u202egnp.000,1\u2066\u2067 \u200fשלום`
	inJSON := strings.Trim(quoteAsIs(markup), `"`) + escaped + fourByte
	see := func(op semel.Operation, name string, shows ...string) {
		t.Helper()
		p.view("operation/"+op.Key.Account+"/"+op.Key.Kind+"/"+op.Key.ID, ".timeline")
		p.wait(`document.querySelector("h1").textContent == %q`, op.Key.ID)
		p.harmless(name, append(shows, op.Key.ID)...)
	}
	see(refused, "refused", all, inJSON, endless, "9007199254740993.1")
	see(done, "done", inJSON, endless)
	see(garbled, "garbled", evidence, escaped)
	see(unknown, "unknown", inJSON, endless)
	p.view("operation/acme/noted/constructor", "#progress")
	p.wait(`document.querySelector("#progress").textContent.includes(%s)`, quote(turned))
	see(running, "running", markup)
	p.view("queue", "#evidence")
	p.fill("#evidence", evidence)
	p.harmless("queue", longest)
	p.view("operations", "td.key")
	p.wait(`document.querySelectorAll("td.key").length == 5`)
	p.harmless("list", longest, "__proto__", strings.Repeat("W", 128), "...")
	p.view("overview", "svg.shares")
	p.harmless("overview", longKind)
}

// quoteAsIs is JSON as browsers write it, with "<" left alone.
func quoteAsIs(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(text)
	return strings.TrimSpace(b.String())
}

// A link that somebody else made opens the console, and nothing more.
func TestConsoleOpensHostileLinks(t *testing.T) {
	o := openOffice(t)
	o.doubtful(o.acme, "x")
	p := o.enter(browse(t, o.demoProcess, "en"), o.everything)
	for _, link := range []struct{ path, shows string }{
		{"constructor", ".cards"}, {"__proto__/x", ".cards"}, {"operation/%E0%A4%A", ".cards"}, {"<img src=x onerror=window.hurt=1>", ".cards"},
		{"operations/" + "state%3D%3Cscript%3E", ".wrong"}, {"operations/account%3D%22%3E%3Cimg%20src%3Dx%20onerror%3Dwindow.hurt%3D1%3E", ".foot"},
		{"operation/acme/order/%3Cimg%20src%3Dx%20onerror%3Dwindow.hurt%3D1%3E", ".wrong"}, {"operation/..%2f..%2f/order/x", ".wrong"}, {"operation", ".wrong"},
	} {
		p.expected = append(p.expected, "400", "404") // what a browser says of an answer that is not 2xx
		p.view("queue", "#evidence")
		p.view(link.path, link.shows)
		p.harmless("link")
	}
	// What is typed into the search goes nowhere but to the interface.
	p.view("operations", "td.key")
	p.fill("#filter-search", "acme/order/<img src=x onerror=window.hurt=1>/../..")
	p.click("form.filters button")
	p.fill("#filter-search", "acme/order/<script>")
	p.click("form.filters button")
	p.wait(`document.querySelector(".wrong")`)
	p.harmless("search")
}
