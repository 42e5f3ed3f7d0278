//go:build linux

package main

import (
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// shift gives every page that is loaded in this tab a clock that is wrong by so
// much, until the function that is returned is called.
func (p *tab) shift(by time.Duration) (right func()) {
	p.t.Helper()
	script := `{
		const Right = Date, by = ` + strconv.FormatInt(by.Milliseconds(), 10) + `
		Date = class extends Right {
			constructor(...of) { of.length ? super(...of) : super(Right.now() + by) }
			static now() { return Right.now() + by }
		}
	}`
	id, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	if err != nil {
		p.t.Fatal(err)
	}
	return func() {
		p.t.Helper()
		send(p, page.RemoveScriptToEvaluateOnNewDocument, page.RemoveScriptToEvaluateOnNewDocumentParams(id))
	}
}

// The device's clock is a day wrong, either way: nothing is refused for that, and
// what the page tells of when is the server's time.
func TestPageWithAWrongClock(t *testing.T) {
	d := startDemo(t, "idempotent")
	c := browse(t, d, "en")
	n := 0
	for name, by := range map[string]time.Duration{"ahead": 24 * time.Hour, "behind": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			p := c.blank(cut)
			p.shift(by)
			p.goTo(d.page)
			if off := js[float64](p, `Date.now()`) - float64(time.Now().Add(by).UnixMilli()); off > 60_000 || off < -60_000 {
				t.Fatalf("the clock is %v ms off", off)
			}
			p.cause("lose_answer")
			p.ask("A day " + name)
			p.passed("unconfirmed")
			id := p.id()
			p.reload()
			p.phase("done")
			if p.id() != id {
				t.Errorf("it was %s and is %s", id, p.id())
			}
			n++
			p.agree(n)
			p.wait(`document.querySelector("[data-step=eShown]")`)
			for _, since := range js[[]string](p, `[...document.querySelectorAll("#trail-body [data-step] .since")].map(e => e.textContent).filter(s => s.startsWith("-") || / [hd]$/.test(s))`) {
				t.Errorf("a step is told to come after %s", since)
			}
			if first := js[string](p, `document.querySelector("#shelf-body [data-id]").dataset.id`); first != id {
				t.Errorf("the newest in the list is %s", first)
			}
			d.call("PUT", d.generator+"/faults", "", `{"hold_request":true}`, nil)
			p.click("[data-action=again]")
			p.wait(`document.querySelector(".identity code").textContent != %q`, id)
			p.wait(`document.querySelector("[data-step=eRunning]") && !document.querySelector("[data-step=eGone]")`)
			d.call("PUT", d.generator+"/faults", "", `{}`, nil)
			p.phase("done")
			n++
			p.agree(n)
			p.close()
		})
	}
}

// A task has waited in this browser for longer than the server remembers anything,
// and its one transmission had no answer. That is said; nothing is made anew by
// itself, nor by another look, but by a person.
func TestPageWithAnExpiredIdentity(t *testing.T) {
	d := startDemo(t, "idempotent")
	m := between(t, d)
	p := browse(t, d, "en").blank("503 (Service Unavailable)", "net::ERR_", "410 (Gone)", "404 (Not Found)")
	right := p.shift(-40 * 24 * time.Hour)
	m.rules(t, "status-before path=/demo/**", "cut-before path=/v1/operations", "cut-before path=/v1/operations/**") // no answer tells the time
	p.goTo(d.page)
	p.ask("Forty days ago")
	p.phase("unconfirmed")
	id := p.id()
	right()
	m.rules(t)
	p.reload()
	p.phase("expired")
	for range 2 {
		if says := p.text("#task-detail"); p.id() != id || p.text("#task-state") != "Too old to say." ||
			says != "Tasks are kept for 30 days; this one is older, so we can't say whether it happened. Please look for its result before you ask for a new one." {
			t.Errorf("%s: %q %q", p.id(), p.text("#task-state"), says)
		}
		p.counts(1, 0, 0)
		p.wait(`document.querySelector("#verdict").textContent == "A task on this page is older than what the server keeps."`)
		p.reload()
		p.phase("expired")
	}
	sent := len(m.asked("PUT", p.operation()))
	p.generate() // the same menu is the same task
	p.wait(`document.querySelector("#menu-note").textContent.includes("nothing new was made")`)
	if now := len(m.asked("PUT", p.operation())); now != sent {
		t.Errorf("it was sent %d times more", now-sent)
	}
	js[chromedp.Void](p, `document.querySelector("[data-action=again]").click()`)
	p.wait(`document.querySelector(".identity code").textContent != %q`, id)
	p.phase("done")
	p.counts(2, 1, 1)
}

// Three more ends that a reload must not change: an identity that is known with
// another request, a request that the server refuses, and a task that was stopped.
func TestPageReloadedAfterOtherEnds(t *testing.T) {
	d := startDemo(t, "idempotent")
	m := between(t, d)
	p := browse(t, d, "en").open("409 (Conflict)", "400 (Bad Request)")
	stays := func(phase, title string) {
		t.Helper()
		p.phase(phase)
		id := p.id()
		for range 2 {
			if p.id() != id || p.text("#task-state") != title {
				t.Errorf("%s is %s, and says %q", id, p.id(), p.text("#task-state"))
			}
			p.reload()
			p.phase(phase)
		}
	}

	resume := d.pause("worker")
	p.ask("Stopped")
	p.phase("accepted")
	js[chromedp.Void](p, `document.querySelector("[data-action=abandon]").click()`)
	stays("abandoned", "Stopped.")
	p.counts(1, 1, 0)
	resume()

	// The identity is taken while the first transmission is on its way.
	m.rules(t, "hold at=before count=1 method=PUT path=/v1/operations/**")
	p.ask("Known with another request")
	m.WaitHeld(t.Context(), 1)
	if status := d.call("PUT", p.operation(), d.token, smallMenu, nil); status != 201 {
		t.Fatalf("the other request is answered with %d", status)
	}
	m.Release()
	stays("conflict", "Not accepted.")
	p.counts(2, 2, 1) // the other's

	// The form is older than what the server takes.
	js[chromedp.Void](p, `void (JSON.stringify = (was => (v, ...more) => was(v?.days ? { ...v, theme: "neon" } : v, ...more))(JSON.stringify))`)
	p.ask("Refused")
	stays("rejected", "Not accepted.")
	p.counts(2, 2, 1)
	p.ask("In the end")
	p.phase("done")
	p.counts(3, 3, 2)
	p.wait(`document.querySelector("#verdict").textContent.includes("Nothing ran twice")`)
}
