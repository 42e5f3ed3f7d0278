//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel"
)

// A menu as it is sent.
type hostileMenu struct {
	Title string       `json:"title"`
	Days  []hostileDay `json:"days"`
	Width int          `json:"width"`
}

type hostileDay struct {
	Day    string   `json:"day"`
	Dishes []string `json:"dishes"`
}

func (m hostileMenu) json() string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(m)
	return b.String()
}

const (
	anImage = `<img src=x onerror="window.hurt=1">`
	aScript = `<script>window.hurt=1</script>`
)

// asText judges what the page shows, in both languages, on a phone and wide: these
// texts are there as they are, nothing ran, nothing became an element, nothing
// turns the text beside it, and nothing is cut off to the right.
func (p *tab) asText(where string, shows ...string) {
	p.t.Helper()
	for _, lang := range []string{"zh", "en"} {
		js[chromedp.Void](p, `document.querySelector("[data-lang=%s]").click()`, lang)
		p.wait(`document.documentElement.lang.startsWith(%q)`, lang)
		for _, text := range shows {
			p.wait(`document.querySelector("main").textContent.includes(%s)`, quote(text))
		}
		if js[bool](p, `"hurt" in window`) {
			p.t.Fatalf("%s, %s: markup ran", where, lang)
		}
		// The page's own are the pictures, the marks of the timeline and the crosses.
		for _, made := range js[[]string](p, `[...document.querySelectorAll("main *")].filter(e => e.matches("script, iframe, a[href^=javascript]") ||
			e.matches("img") && !/^\/menus\//.test(e.getAttribute("src") ?? "/menus/") || e.matches("svg") && !e.matches(".marks, .remove svg") ||
			[...e.attributes].some(a => a.name.startsWith("on"))).map(e => e.outerHTML.slice(0, 200))`) {
			p.t.Errorf("%s, %s: this was made from text: %s", where, lang, made)
		}
		for _, text := range js[[]string](p, `[...function* () {
			const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
			while (texts.nextNode()) {
				const text = texts.currentNode, around = text.parentElement
				const alone = around.childNodes.length == 1 && around.matches("bdi, [dir=auto]")
				if (/[\u202a-\u202e\u2066-\u2069]/.test(text.data) && !alone) yield around.outerHTML.slice(0, 200)
			}
		}()]`) {
			p.t.Errorf("%s, %s: this turns the text beside it: %s", where, lang, text)
		}
		for _, width := range []int64{360, 1280} {
			p.size(width, 900)
			p.wait(`matchMedia("(width: %dpx)").matches`, width)
			if over := p.tooWide(); over > 0 {
				p.t.Errorf("%s, %s: it is %d pixels wider than %d: %v", where, lang, over, width, js[[]string](p, `[...document.querySelectorAll("main *")].filter(e =>
					e.getBoundingClientRect().right > innerWidth).map(e => e.tagName + "." + e.className).slice(0, 8)`))
			}
			p.shot(fmt.Sprintf("hostile-page-%s-%s-%d", where, lang, width))
		}
	}
}

// pick shows one task of the list, and waits until all of it is there.
func (p *tab) pick(id, phase string) {
	p.t.Helper()
	p.wait(`document.querySelector("[data-id='%s'] button")`, id)
	js[chromedp.Void](p, `document.querySelector("[data-id='%s'] button").click()`, id)
	p.wait(`document.querySelector(".identity code")?.textContent == %q`, id)
	p.phase(phase)
	p.wait(`document.querySelector("[data-step=eShown]")`)
}

// Whatever programs, people and operators write is text on the page, whatever
// their operations are called: names that every object of JavaScript has are
// identities like others.
func TestPageShowsHostileTextAsText(t *testing.T) {
	d := startDemo(t, "opaque")
	all := markup + turned + fourByte
	menu := hostileMenu{Title: anImage + turned + fourByte, Width: 320, Days: []hostileDay{
		{anImage + turned, []string{aScript, turned, fourByte, strings.Repeat("w", 60), "</textarea><svg onload=window.hurt=1>"}},
		{strings.Repeat("W", 60), []string{strings.Repeat("𠀀", 60)}}}}
	ids := []string{"constructor", "__proto__", "toString", "hasOwnProperty", "...", "42", strings.Repeat("W", 128), strings.Repeat("~._-", 32)}
	for _, id := range ids {
		if status := d.call("PUT", "/v1/operations/menu-export/"+id, d.token, menu.json(), nil); status != 201 {
			t.Fatalf("%s is answered with %d", id, status)
		}
	}
	for _, id := range ids {
		d.follow("/v1/operations/menu-export/" + id)
	}
	evidence := all + "\n" + endless[:55000]
	d.doubt("valueOf", menu.json())
	d.resolve("valueOf", evidence)
	endlessMenu := hostileMenu{Title: endless, Width: 320, Days: []hostileDay{{endless, []string{endless, all}}}}
	d.record(recorded{"isPrototypeOf", endlessMenu.json(), semel.Failure{Code: markup, Message: all + endless}},
		recorded{"propertyIsEnumerable", menu.json(), semel.Failure{Code: "__proto__", Message: turned}})

	p := browse(t, d, "en").open()
	for _, id := range ids {
		p.pick(id, "done")
		p.wait(`document.querySelector("#picture").naturalWidth == 320 && document.querySelector("#picture").alt.includes(%s)`, quote(menu.Title))
		p.wait(`document.querySelector("[data-step=eWritten]")`)
		// It was not this page that asked, so it was neither answered nor had to look.
		if steps := strings.Join(p.steps(), " "); steps != "eSent eCommitted eClaimed eCalled eExecuted eReturned eWritten eShown" {
			t.Errorf("the timeline of %s is %s", id, steps)
		}
		p.asText(id, id, menu.Title)
	}
	p.pick("valueOf", "done")
	p.asText("verdict", evidence, menu.Title)
	p.pick("isPrototypeOf", "failed")
	p.asText("reason", all+endless, endless)
	p.pick("propertyIsEnumerable", "failed")
	p.asText("code", turned, menu.Title)
	p.reload()
	p.pick("__proto__", "done")
	p.asText("reloaded", "__proto__")

	// The menu, taken up again, is in the fields as it was written.
	js[chromedp.Void](p, `document.querySelector("#use").click()`)
	p.wait(`document.querySelector("#f-title").value == %s`, quote(menu.Title))
	for i, day := range menu.Days {
		if got := js[[]string](p, `[...document.querySelectorAll("li.day")[%d].querySelectorAll("input, textarea")].map(e => e.value)`, i); got[0] != day.Day || got[1] != strings.Join(day.Dishes, "\n") {
			t.Errorf("day %d is %q in the form", i, got)
		}
	}
	p.asText("form")
	p.click("li.day .remove")
	p.asText("removed", menu.Days[0].Day)
	p.click(".add")
	p.fill("li.day:last-child .field.day input", endless)
	p.click("li.day:last-child .remove")
	p.asText("removed word", endless)
	// One word of 60 kB is told to be too long, and an own task is text as well.
	p.fill("li.day textarea", endless)
	p.fill("#f-title", endless)
	p.generate()
	p.asText("too long")
	p.wait(`document.querySelector("#f-title-problem").textContent.startsWith("60000 characters")`)
	p.write(menu.Title, menu.Days[0].Day, strings.Join(menu.Days[0].Dishes, "\n"))
	p.generate()
	p.wait(`document.querySelector(".identity code").textContent != "__proto__"`)
	p.phase("done")
	p.wait(`document.querySelector("[data-step=eShown]")`)
	p.asText("own", menu.Title)
	p.reload()
	p.phase("done")
	p.asText("own again", menu.Title)
}

// doubt makes an operation of which nobody can know what became.
func (d *demoProcess) doubt(id, menu string) {
	d.t.Helper()
	d.call("PUT", d.generator+"/faults", "", `{"fail_next":"lose_answer"}`, nil)
	path := "/v1/operations/menu-export/" + id
	if status := d.call("PUT", path, d.token, menu, nil); status != 201 {
		d.t.Fatalf("%s is answered with %d", id, status)
	}
	resp, err := ask(d.t, d.program, "GET", "http://"+d.addr+path+"/events", d.token, "")
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"needs_reconciliation"`) {
			return
		}
	}
	d.t.Fatalf("%s is settled: %v", id, lines.Err())
}

// resolve records that an operation was applied.
func (d *demoProcess) resolve(id, evidence string) {
	d.t.Helper()
	var op struct{ Revision int }
	path := "/v1/operator/operations/demo/menu-export/" + id
	d.call("GET", path, d.token, "", &op)
	if status := d.call("PUT", path+"/resolution", d.token, fmt.Sprintf(`{"verdict":"applied","evidence":%s}`, quote(evidence)), nil,
		"If-Match", `"`+strconv.Itoa(op.Revision)+`"`); status != 200 {
		d.t.Fatalf("the verdict is answered with %d", status)
	}
}
