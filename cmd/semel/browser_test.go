//go:build linux

package main

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// The switch cuts a connection, which every browser reports by itself.
const cut = "net::ERR_EMPTY_RESPONSE"

// The answer to the first PUT is lost after its commit. The page says so, finds
// out by itself, and nothing happens twice: not by pressing again, not by a
// reload. A changed menu is a new task, and so is "again".
func TestPageAfterALostAnswer(t *testing.T) {
	for _, c := range []struct{ lang, title, done, same string }{
		{"zh-CN", "暂时没有收到确认，正在查询这次任务。", "已完成。", "菜单未变"},
		{"en-GB", "No confirmation yet. Looking this task up.", "Done.", "Same menu, same task"},
	} {
		t.Run(c.lang, func(t *testing.T) {
			d := startDemo(t, "idempotent")
			p := browse(t, d, c.lang).open(cut)
			if lang := js[string](p, `document.documentElement.lang`); !strings.HasPrefix(c.lang, lang[:2]) {
				t.Errorf("the page is in %s", lang)
			}
			p.counts(0, 0, 0)
			p.write("本周菜单", "周一", "番茄炒蛋\n米饭")
			p.cause("lose_answer")
			p.generate()
			p.passed(c.title)
			id := p.id()
			p.phase("done")
			p.counts(1, 1, 1)
			if p.id() != id || p.text("#task-state") != c.done {
				t.Errorf("%s became %s, %q", id, p.id(), p.text("#task-state"))
			}
			p.wait(`document.querySelector("#picture").naturalWidth == 800`)
			if alt := js[string](p, `document.querySelector("#picture").alt`); !strings.Contains(alt, "番茄炒蛋") {
				t.Errorf("the picture is described as %q", alt)
			}
			if kind := js[string](p, `fetch(document.querySelector("#download").href).then(r => r.headers.get("content-type"))`); kind != "image/png" {
				t.Errorf("the download is %q", kind)
			}
			p.wait(`document.querySelector("[data-step=eLost]") && document.querySelector("[data-step=eWritten]")`)
			steps := p.steps()
			at := -1
			for _, want := range []string{"eSent", "eCommitted", "eLost", "eFound"} {
				next := slices.Index(steps, want)
				if next <= at {
					t.Errorf("%s is not after what comes before it in %v", want, steps)
				}
				at = next
			}
			if slices.Index(steps, "eExecuted") < 0 || slices.Index(steps, "eWritten") < slices.Index(steps, "eExecuted") {
				t.Errorf("the timeline is %v", steps)
			}
			if on := p.text("#lose_answer-state"); !strings.ContainsAny(on, "0123456789") {
				t.Errorf("the switch does not say when it fired: %q", on)
			}

			p.reload()
			p.phase("done")
			p.generate()
			p.wait(`document.querySelector("#menu-note").textContent.includes(%q)`, c.same)
			p.counts(1, 1, 1)
			if p.id() != id {
				t.Errorf("after a reload and a press it is %s, and was %s", p.id(), id)
			}

			p.fill("li.day textarea", "番茄炒蛋\n米饭\n紫菜汤")
			p.generate()
			p.wait(`document.querySelector(".identity code").textContent != %q`, id)
			p.phase("done")
			p.counts(2, 2, 2)

			id = p.id()
			p.click("[data-action=again]")
			p.wait(`document.querySelector(".identity code").textContent != %q`, id)
			p.phase("done")
			p.counts(3, 3, 3)
			p.wait(`document.querySelectorAll("#shelf-body .card").length == 3`)
			p.wait(`[...document.querySelectorAll("#shelf-body img")].every(img => img.naturalWidth > 0)`)
		})
	}
}

// A reload in the middle of every state: the same task comes back, and goes on.
func TestPageReloadedInEveryState(t *testing.T) {
	d := startDemo(t, "idempotent")
	// The look-up may come before the transmission that was on its way.
	p := browse(t, d, "en").open(cut, "404 (Not Found)", "net::ERR_ABORTED")
	same := func(id, phase string) {
		t.Helper()
		p.wait(`document.querySelector(".identity code")?.textContent == %q`, id)
		p.phase(phase)
	}

	p.write("Sending", "Monday", "Soup")
	resume := d.pause("server")
	p.generate()
	p.phase("sending")
	p.wait(`document.querySelector(".identity code")?.textContent`)
	id := p.id()
	js[chromedp.Void](p, `void (window.before = true, setTimeout(() => location.reload()))`)
	resume()
	p.wait(`!window.before && ` + ready)
	same(id, "done")
	p.counts(1, 1, 1)

	p.cause("lose_answer")
	p.ask("Unconfirmed")
	p.passed("unconfirmed")
	id = p.id()
	p.reload()
	same(id, "done")
	p.counts(2, 2, 2)

	p.fill("#f-title", "Accepted")
	resume = d.pause("worker")
	p.generate()
	p.phase("accepted")
	id = p.id()
	p.reload()
	same(id, "accepted")
	resume()
	same(id, "done")
	p.counts(3, 3, 3)

	p.fill("#f-title", "Processing")
	d.call("PUT", d.generator+"/faults", "", `{"hold_request":true}`, nil)
	p.generate()
	p.phase("processing")
	id = p.id()
	p.reload()
	same(id, "processing")
	d.call("PUT", d.generator+"/faults", "", `{}`, nil)
	same(id, "done")
	p.counts(4, 4, 4)

	p.reload()
	same(id, "done")
	p.wait(`document.querySelector("#picture").naturalWidth > 0`)
	if title := js[string](p, `document.querySelector("#f-title").value`); title != "Processing" {
		t.Errorf("the menu that comes back is %q", title)
	}
}

// One press, two presses, two tabs at the same time, a closed tab: one task.
func TestPagePressedTwice(t *testing.T) {
	d := startDemo(t, "idempotent")
	c := browse(t, d, "en")
	p := c.open()
	p.write("Double", "Monday", "Soup")
	p.doubleClick("#generate")
	p.phase("done")
	p.counts(1, 1, 1)

	other := c.open("404 (Not Found)") // as below
	for _, tab := range []*tab{p, other} {
		tab.fill("#f-title", "Two tabs")
	}
	var both sync.WaitGroup
	for _, tab := range []*tab{p, other} {
		both.Go(func() { js[chromedp.Void](tab, `document.querySelector("#generate").click()`) })
	}
	both.Wait()
	for _, tab := range []*tab{p, other} {
		tab.wait(`document.querySelector("#picture").alt.includes("Two tabs")`)
		tab.phase("done")
		tab.counts(2, 2, 2)
	}
	if p.id() != other.id() {
		t.Errorf("two tabs made %s and %s", p.id(), other.id())
	}

	p.cause("slow_generator")
	p.fill("#f-title", "Closed")
	p.generate()
	p.wait(`document.querySelector(".identity code").textContent != %q`, other.id())
	id := p.id()
	p.close()
	other.close()
	again := c.open("404 (Not Found)") // the look-up may come before the transmission that was on its way
	again.wait(`document.querySelector(".identity code")?.textContent == %q`, id)
	again.phase("done")
	again.counts(3, 3, 3)

	// "Again", pressed twice, is once more, however slow the hand: "Stop" is in its place
	// at the second click.
	resume := d.pause("worker")
	x, y := again.place("[data-action=again]")
	again.do(chromedp.MouseClickXY(x, y))
	again.wait(`document.querySelector(".identity code").textContent != %q`, id)
	again.phase("accepted")
	again.wait(`document.elementFromPoint(%g, %g).dataset.action == "abandon"`, x, y)
	again.do(chromedp.MouseClickXY(x, y, chromedp.ClickCount(2)))
	resume()
	again.phase("done")
	again.counts(4, 4, 4)
}

// Going back to a menu whose task is not settled resumes that task.
func TestPageGoesBackToAnUnsettledMenu(t *testing.T) {
	d := startDemo(t, "idempotent")
	p := browse(t, d, "en").open()
	resume := d.pause("worker")
	p.write("First", "Monday", "Soup")
	p.generate()
	p.phase("accepted")
	first := p.id()
	p.fill("#f-title", "Second")
	p.generate()
	p.wait(`document.querySelector(".identity code").textContent != %q`, first)
	p.phase("accepted")
	p.fill("#f-title", "First")
	p.generate()
	p.wait(`document.querySelector(".identity code").textContent == %q`, first)
	p.wait(`document.querySelector("#menu-note").textContent.includes("under way already")`)
	p.counts(2, 2, 0)
	resume()
	p.phase("done")
	p.counts(2, 2, 2)
}

// The worker is killed when the generator has finished. The contract decides what
// follows; nothing is made twice.
func TestPageAfterTheWorkerWasKilled(t *testing.T) {
	for contract, step := range map[string]string{"idempotent": "eReplayed", "queryable": "eThere"} {
		t.Run(contract, func(t *testing.T) {
			d := startDemo(t, contract)
			p := browse(t, d, "en").open()
			p.cause("kill_worker")
			p.generate()
			p.wait(`document.querySelector("#kill_worker-state").textContent.includes("fired")`)
			p.wait(`document.querySelector("[data-step=eKilled]")`)
			p.phase("done")
			p.counts(1, 1, 1)
			p.wait(`document.querySelector("[data-step=%s]")`, step)
			if n := len(slices.DeleteFunc(p.steps(), func(s string) bool { return s != "eExecuted" })); n != 1 {
				t.Errorf("the timeline tells of %d executions: %v", n, p.steps())
			}
		})
	}
}

// With a generator that promises nothing, nobody can know: the task needs
// checking. No plain "again" is offered, a press makes nothing new, and what a
// person finds out appears by itself.
func TestPageThatNeedsChecking(t *testing.T) {
	d := startDemo(t, "opaque")
	p := browse(t, d, "en").open()
	p.cause("kill_worker")
	p.generate()
	p.phase("needs_reconciliation")
	p.counts(1, 1, 1)
	id := p.id()
	if again := js[bool](p, `[...document.querySelectorAll("#task button")].some(b => !b.hidden && /again|new/i.test(b.textContent))`); again {
		t.Error("a task that needs checking offers to make another")
	}
	if says := p.text("#task-detail"); !strings.Contains(says, "Somebody looks at what really happened") {
		t.Errorf("it does not say what happens next: %q", says)
	}
	p.wait(`[...document.querySelectorAll("#trail-body .ghost p")].map(p => p.textContent).join() == "A person found out,Shown"`)
	p.generate()
	p.wait(`document.querySelector("#menu-note").textContent != ""`)
	p.reload()
	p.wait(`document.querySelector(".identity code")?.textContent == %q`, id)
	p.phase("needs_reconciliation")
	p.counts(1, 1, 1)

	d.resolve(id, "the picture is on the generator's disk")
	p.phase("done")
	p.wait(`document.querySelector("[data-step=eVerdict]")`)
	p.counts(1, 1, 1)
}

// A slow generator is processing, not trouble.
func TestPageWithASlowGenerator(t *testing.T) {
	d := startDemo(t, "idempotent")
	p := browse(t, d, "en").open()
	p.cause("slow_generator")
	d.call("PUT", d.generator+"/faults", "", `{"hold_request":true}`, nil) // so slow that all of it is seen
	p.generate()
	p.phase("processing")
	if p.text("#task-state") != "In progress." || js[string](p, `document.querySelector("#task-body [aria-current=step]").textContent`) != "Processing" {
		t.Errorf("it says %q", p.text("#task-state"))
	}
	p.wait(`document.querySelector("[data-step=eRunning]")`)
	id := p.id()
	p.reload()
	p.phase("processing")
	d.call("PUT", d.generator+"/faults", "", `{"delay_ms":3000}`, nil)
	p.phase("done")
	p.counts(1, 1, 1)
	if p.id() != id {
		t.Errorf("it was %s and is %s", id, p.id())
	}
}

// A definite failure shows its reason, and may be asked for again.
func TestPageShowsWhyItFailed(t *testing.T) {
	d := startDemo(t, "idempotent")
	p := browse(t, d, "en").open()
	if status := d.call("PUT", d.generator+"/faults", "", `{"fail_next":"refuse"}`, nil); status != 200 {
		t.Fatalf("the generator's faults: %d", status)
	}
	p.generate()
	p.phase("failed")
	if why := p.text("#task-reason"); why != "the service refuses this menu; nothing was done" {
		t.Errorf("the reason is %q", why)
	}
	p.counts(1, 1, 0)
	p.wait(`document.querySelector("#verdict").textContent.includes("Nothing ran twice")`)
	p.reload()
	p.phase("failed")
	p.click("[data-action=again]")
	p.phase("done")
	p.counts(2, 2, 1)
}

// The list of tasks: an older one can be looked at and its menu taken up again,
// and there may be many.
func TestPageWithManyTasks(t *testing.T) {
	d := startDemo(t, "idempotent")
	p := browse(t, d, "en").open()
	p.write("Older", "Monday", "Soup")
	p.generate()
	p.phase("done")
	older := p.id()
	p.fill("#f-title", "Newer")
	p.generate()
	p.wait(`document.querySelector(".identity code").textContent != %q`, older)
	p.phase("done")
	newer := p.id()

	p.click("[data-id='" + older + "'] button")
	p.wait(`document.querySelector(".identity code").textContent == %q`, older)
	p.wait(`document.querySelector("#picture").alt.includes("Older")`)
	p.click("#use")
	p.wait(`document.querySelector("#f-title").value == "Older" && document.activeElement.id == "f-title"`)
	p.generate() // it is the task that is shown
	p.wait(`document.querySelector("#menu-note").textContent.includes("Same menu, same task")`)
	p.counts(2, 2, 2)
	p.reload() // the one that was last asked for
	p.wait(`document.querySelector(".identity code")?.textContent == %q`, newer)

	// Sent by another program.
	for i := range 60 {
		if status := d.call("PUT", "/v1/operations/menu-export/many-"+strconv.Itoa(i), d.token, smallMenu, nil); status != 201 {
			t.Fatalf("%d: %d", i, status)
		}
	}
	for i := range 60 { // each is done before the page is asked
		var op struct{ State string }
		if d.call("GET", "/v1/operations/menu-export/many-"+strconv.Itoa(i), d.token, "", &op); op.State != "succeeded" {
			d.call("PUT", "/v1/operations/menu-export/many-"+strconv.Itoa(i), d.token, smallMenu, &op, "Prefer", "wait=50")
		}
		if op.State != "succeeded" {
			t.Fatalf("%d is %s", i, op.State)
		}
	}
	p.wait(`document.querySelector("#count-runs").textContent == "62"`)
	p.wait(`[...document.querySelectorAll("#shelf-body .under .state")].every(e => e.textContent == "Done")`)
	p.wait(`document.querySelector("#count-seen").textContent == "62" || document.querySelector("#verdict").textContent.startsWith("You see the newest")`)
	p.reload()
	p.wait(`document.querySelector("#count-operations").textContent == "62"`)
	p.wait(`document.querySelector("#count-seen").textContent == "50" && document.querySelectorAll("#shelf-body [data-id]").length == 50`)
	p.wait(`document.querySelector("#verdict").textContent == "You see the newest 50."`)
	p.click("#shelf-body .more")
	p.counts(62, 62, 62)
	p.wait(`document.querySelector("#verdict").textContent == "They agree. Every task happened exactly once."`)
	if more := js[bool](p, `document.querySelector("#shelf-body .more").hidden`); !more {
		t.Error("there seem to be more")
	}
}
