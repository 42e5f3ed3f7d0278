//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/semel-dev/semel/internal/pgtest"
)

// axe-core finds nothing, in both languages, both colour schemes, on a phone and
// on a wide screen; and a phone never scrolls sideways.
func TestPageForEverybody(t *testing.T) {
	axe, err := os.ReadFile("../../sdk/js/node_modules/axe-core/axe.min.js")
	if err != nil {
		pgtest.Missing(t, fmt.Errorf("axe-core is not there: run npm ci in sdk/js: %w", err))
	}
	d := startDemo(t, "idempotent")
	for _, lang := range []string{"en", "zh-CN"} {
		c := browse(t, d, lang)
		p := c.open()
		judge := func(state string) {
			t.Helper()
			for _, scheme := range []string{"light", "dark"} {
				for _, width := range []int64{1400, 900, 360} {
					p.look(scheme)
					p.size(width, 900)
					p.wait(`innerWidth == %d`, width)
					where := fmt.Sprintf("%s, %s, %s, %d", state, lang, scheme, width)
					if over := js[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
						t.Errorf("%s: it is %d pixels too wide", where, over)
					}
					if state != "done" && (width == 900 || (width == 1400) != (scheme == "light")) {
						continue // the colours and parts have been judged
					}
					js[chromedp.Void](p, `void (globalThis.axe || (0, eval)(%s))`, quote(string(axe)))
					for _, v := range js[[]violation](p, `axe.run(document, {resultTypes: ["violations"], rules: {"target-size": {enabled: true}}}).then(r =>
						r.violations.map(v => ({id: v.id, impact: v.impact, nodes: v.nodes.map(n => n.html + " " + n.failureSummary)})))`) {
						t.Errorf("%s: %s %s: %s", where, v.Impact, v.ID, strings.Join(v.Nodes, "\n"))
					}
				}
			}
			p.size(1280, 900)
		}
		judge("empty")
		p.fill("#f-title", "")
		p.fill("#f-width", "1")
		p.generate()
		p.wait(`document.querySelectorAll("[aria-invalid=true]").length == 2`)
		judge("wrong")
		p.fill("#f-title", "A")
		p.fill("#f-width", "320")
		p.generate()
		p.phase("done")
		p.wait(`document.querySelector("[data-step=eWritten]")`)
		judge("done")
		d.pause("worker")
		p.ask("Stopped")
		p.phase("accepted")
		judge("accepted")
		js[chromedp.Void](p, `document.querySelector("[data-action=abandon]").click()`)
		p.phase("abandoned")
		syscall.Kill(d.child("worker"), syscall.SIGCONT)
		judge("abandoned")
		p.goTo(d.page + "?sign-in")
		judge("sign-in")
	}
}

type violation struct {
	ID, Impact string
	Nodes      []string
}

func quote(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// What is wrong with a menu is said at the field, before anything is sent.
func TestPageSaysWhatIsWrong(t *testing.T) {
	d := startDemo(t, "idempotent")
	p := browse(t, d, "en").open()
	problem := func(selector string) string {
		return js[string](p, `(e => document.getElementById(e.getAttribute("aria-describedby").split(" ").at(-1)).textContent)(document.querySelector(%q))`, selector)
	}
	p.write("x", "Monday", "Soup")
	for _, c := range []struct{ field, text, want string }{
		{"#f-title", "", "Please write something."},
		{"#f-title", strings.Repeat("𠀀", 121), "121 characters; 120 are the most."},
		{"#f-title", strings.Repeat("𠀀", 120), ""},
		{"#f-title", "\u200b", "There is nothing here that can be seen."},
		{"#f-title", "Menu", ""},
		{"li.day .field.day input", strings.Repeat("d", 61), "61 characters; 60 are the most."},
		{"li.day .field.day input", "Monday", ""},
		{"li.day textarea", "  \n", "Please write at least one dish."},
		{"li.day textarea", "Soup\n\n" + strings.Repeat("s", 61), "Line 3 has 61 characters; 60 are the most."},
		{"li.day textarea", strings.Repeat("Soup\n", 21), "21 dishes; 20 are the most."},
		{"li.day textarea", strings.Repeat("Soup\n", 20), ""},
		{"#f-width", "319", "A whole number, 320 to 2400."},
		{"#f-width", "1e3", "A whole number, 320 to 2400."},
		{"#f-width", "2400", ""},
		{"#f-width", "320", ""},
	} {
		p.fill(c.field, c.text)
		if c.want != "" {
			p.generate()
			p.wait(`document.activeElement == document.querySelector(%q)`, c.field)
			p.wait(`document.querySelector("#menu-note").textContent == "One field needs a look before anything is sent."`)
		}
		if got := problem(c.field); got != c.want {
			t.Errorf("%s %.20q: %q, want %q", c.field, c.text, got, c.want)
		}
	}
	for range 6 {
		p.click(".add")
	}
	if js[int](p, `document.querySelectorAll("li.day").length`) != 7 || !js[bool](p, `document.querySelector(".add").disabled`) {
		t.Error("an eighth day can be added")
	}
	p.counts(0, 0, 0)
	for range 6 {
		p.click("li.day:last-child .remove")
	}
	p.generate()
	p.phase("done")
	p.counts(1, 1, 1)
}

// All of it works from the keyboard, and nobody is thrown to the top of the page.
func TestPageFromTheKeyboard(t *testing.T) {
	d := startDemo(t, "idempotent")
	p := browse(t, d, "en").open()
	p.wait(`!document.querySelector("#lose_answer").disabled`) // until the server has said how the switches stand
	press := func(keys string) { t.Helper(); p.do(chromedp.KeyEvent(keys)) }
	focus := func() string {
		return js[string](p, `(e => e.id || e.dataset.lang || e.dataset.action || e.className)(document.activeElement)`)
	}
	press(kb.Tab)
	if focus() != "skip" || js[float64](p, `document.activeElement.getBoundingClientRect().top`) < 0 {
		t.Errorf("the first stop is %s", focus())
	}
	press(kb.Enter)
	p.wait(`document.activeElement.id == "menu"`)
	press(kb.Tab)
	if focus() != "f-title" {
		t.Errorf("after the skip link comes %s", focus())
	}
	// Every stop can be seen.
	seen := map[string]bool{}
	for range 60 {
		name := js[string](p, `(e => e.tagName + e.id + (e.dataset.lang ?? "") + e.className + (e.getAttribute("aria-label") ?? ""))(document.activeElement)`)
		seen[name] = true
		if js[bool](p, `(e => { const s = getComputedStyle(e), l = e.nextElementSibling && getComputedStyle(e.nextElementSibling)
			return e != document.body && s.outlineStyle == "none" && !(l && l.outlineStyle != "none") })(document.activeElement)`) {
			t.Errorf("the focus on %s can't be seen", name)
		}
		press(kb.Tab)
	}
	for _, stop := range []string{"generate", "lose_answer", "kill_worker", "slow_generator", "sign-out", "switch-account"} {
		found := false
		for name := range seen {
			found = found || strings.Contains(name, stop)
		}
		if !found {
			t.Errorf("the keyboard never comes to %s", stop)
		}
	}
	js[chromedp.Void](p, `document.querySelector("#f-title").focus()`)
	press(kb.Enter)
	p.phase("done")
	js[chromedp.Void](p, `document.querySelector("[data-action=again]").focus()`)
	press(" ")
	p.wait(`document.activeElement.id == "task-state"`)
	p.phase("done")
	p.counts(2, 2, 2)
	if live := js[string](p, `document.activeElement.getAttribute("aria-live")`); live != "polite" {
		t.Errorf("the state is announced %q", live)
	}
}

// The language is the browser's, can be switched, and is remembered.
func TestPageInTwoLanguages(t *testing.T) {
	d := startDemo(t, "idempotent")
	c := browse(t, d, "zh-CN")
	p := c.open()
	if title := js[string](p, `document.querySelector("#f-title").value`); title != "本周菜单" || p.text("#generate") != "生成图片" {
		t.Errorf("it begins with %q, %q", title, p.text("#generate"))
	}
	p.click("[data-lang=en]")
	if title := js[string](p, `document.querySelector("#f-title").value`); title != "Menu of the week" || p.text("#generate") != "Generate" {
		t.Errorf("in English it is %q, %q", title, p.text("#generate"))
	}
	at := js[[]float64](p, `(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector("[data-lang=en]").getBoundingClientRect())`)
	send(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: at[0], Y: at[1]})
	p.wait(`document.querySelector("[data-lang=en]").matches(":hover")`)
	if js[bool](p, `(b => getComputedStyle(b).backgroundColor != getComputedStyle(document.querySelector("#generate")).backgroundColor)(document.querySelector("[data-lang=en]"))`) {
		t.Error("the language that was just chosen can't be read")
	}
	p.generate()
	p.phase("done")
	p.click("[data-lang=zh]")
	p.wait(`document.querySelector("#task-state").textContent == "已完成。"`)
	if title := js[string](p, `document.querySelector("#f-title").value`); title != "Menu of the week" {
		t.Errorf("what was asked for was replaced by %q", title)
	}
	// Nothing is left in the other language.
	for _, selector := range []string{".top .tag", ".hero", "#counts", "#causes", "#trail"} {
		if text := strings.NewReplacer("SIGKILL", "", "HTTP", "", "ms", "").Replace(p.text(selector)); strings.ContainsAny(text, "abcdefghijklmnopqrtuvwxyz") {
			t.Errorf("%s says %q", selector, text)
		}
	}
	p.reload()
	p.wait(`document.documentElement.lang == "zh-CN"`)
	if other := c.open(); other.text("#generate") != "生成图片" {
		t.Error("another tab does not remember the language")
	}
}

// noteJumps makes a page note what moves without anybody having asked for it.
const noteJumps = `window.jumps = []; new PerformanceObserver(list => { for (const e of list.getEntries()) if (!e.hadRecentInput && e.value > 0.005)
	window.jumps.push(e.value.toFixed(4) + " " + e.sources.map(s => (s.node?.id || s.node?.className || s.node?.nodeName) + " " + JSON.stringify([s.previousRect.y, s.currentRect.y])).join(" ")) }).observe({type: "layout-shift", buffered: true})`

// Nothing jumps while the page loads and a task goes through its states.
func TestPageDoesNotJump(t *testing.T) {
	for _, width := range []int64{1400, 900, 360} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			d := startDemo(t, "idempotent")
			p := browse(t, d, "zh-CN").blank(cut)
			send(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: noteJumps})
			p.size(width, 900)
			p.goTo(d.page)
			p.counts(0, 0, 0)
			p.cause("lose_answer")
			p.cause("slow_generator")
			p.generate()
			p.passed("unconfirmed")
			p.phase("done")
			p.counts(1, 1, 1)
			p.wait(`document.querySelector("[data-step=eWritten]")`)
			first := js[[]string](p, `jumps`)
			p.reload() // where it was scrolled to
			p.phase("done")
			p.counts(1, 1, 1)
			if jumps := append(first, js[[]string](p, `jumps`)...); len(jumps) > 0 {
				t.Errorf("it jumped: %s", strings.Join(jumps, "\n"))
			}
		})
	}
}

// The pictures of the page in the documentation, made with -update.
func TestPageScreenshots(t *testing.T) {
	for lang, file := range map[string]string{"en": "page-en.png", "zh-CN": "page-zh.png"} {
		d := startDemo(t, "idempotent")
		p := browse(t, d, lang).open(cut)
		p.look("light")
		p.size(1400, 1480)
		p.cause("lose_answer")
		p.generate()
		p.phase("done")
		p.counts(1, 1, 1)
		p.wait(`document.querySelector("[data-step=eShown]") && document.querySelector("#picture").naturalWidth && document.querySelector("#shelf-body img").naturalWidth`)
		js[chromedp.Void](p, `(document.activeElement.blur(), scrollTo(0, 0), document.fonts.ready.then(() => new Promise(requestAnimationFrame)))`)
		shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			save(t, filepath.Join("../../docs/images", file), shot)
		}
	}
}

// save writes a screenshot with the 256 colours that it has most of, which is a
// third of the size and can't be told apart.
func save(t *testing.T, file string, shot []byte) {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	small := image.NewPaletted(full.Bounds(), popular(full))
	nearest := map[color.RGBA]uint8{}
	eachPixel(full, func(x, y int, c color.RGBA) {
		index, ok := nearest[c]
		if !ok {
			index = uint8(small.Palette.Index(c))
			nearest[c] = index
		}
		small.SetColorIndex(x, y, index)
	})
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d bytes", file, out.Len())
}

// popular returns the 256 colours that a picture has most of, no two of them
// nearly the same.
func popular(img image.Image) color.Palette {
	exact, count, best := map[color.RGBA]int{}, map[color.RGBA]int{}, map[color.RGBA]color.RGBA{}
	eachPixel(img, func(_, _ int, c color.RGBA) { exact[c]++ })
	for c, n := range exact {
		near := color.RGBA{c.R >> 3, c.G >> 3, c.B >> 3, 255}
		if count[near] += n; n > exact[best[near]] {
			best[near] = c
		}
	}
	nears := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return count[b] - count[a] })
	var p color.Palette
	for _, near := range nears[:min(256, len(nears))] {
		p = append(p, best[near])
	}
	return p
}

func eachPixel(img image.Image, use func(x, y int, c color.RGBA)) {
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			use(x, y, color.RGBAModel.Convert(img.At(x, y)).(color.RGBA))
		}
	}
}
