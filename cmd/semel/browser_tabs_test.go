//go:build linux

package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
)

// Five tabs ask for the same at once, and its answer is lost; then five tabs ask
// for five menus at once, each with an answer to wait for.
func TestPageInFiveTabs(t *testing.T) {
	d := startDemo(t, "idempotent")
	c := browse(t, d, "en")
	var tabs []*tab
	for range 5 {
		tabs = append(tabs, c.open(cut))
	}
	press := func() {
		t.Helper()
		var all sync.WaitGroup
		for _, p := range tabs {
			all.Go(func() { js[chromedp.Void](p, `document.querySelector("#generate").click()`) })
		}
		all.Wait()
	}
	tabs[0].cause("lose_answer")
	for _, p := range tabs {
		p.fill("#f-title", "The same five times")
	}
	press()
	for _, p := range tabs {
		p.phase("done")
		p.agree(1)
		if p.id() != tabs[0].id() {
			t.Errorf("a tab shows %s, another %s", p.id(), tabs[0].id())
		}
	}

	first := tabs[0].id()
	for i, p := range tabs {
		p.fill("#f-title", "Of five, "+string(rune('A'+i)))
	}
	press()
	ids := map[string]bool{first: true}
	for _, p := range tabs {
		p.wait(`document.querySelector(".identity code").textContent != %q`, first)
		p.phase("done")
		ids[p.id()] = true
	}
	if len(ids) != 6 {
		t.Errorf("five menus are %d tasks", len(ids)-1)
	}
	for _, p := range tabs {
		p.agree(6)
	}
}

// crash kills the process of a tab.
func (p *tab) crash() {
	p.t.Helper()
	crashed := chromedp.Events(p.ctx, inspector.TargetCrashed)
	send(p, inspector.Enable, cdp.Empty{})
	go chromedp.Call(p.ctx, page.Crash, cdp.Empty{}) // nobody is left to answer it
	for _, err := range crashed {
		if err != nil {
			p.t.Fatal(err)
		}
		break
	}
	p.close()
}

// The process of the tab that is sending is killed. Another tab goes on at once;
// without one, the next that is opened does. What was on its way arrives late and
// finds the identity known.
func TestPageWhoseTabCrashes(t *testing.T) {
	d := startDemo(t, "idempotent")
	m := between(t, d)
	c := browse(t, d, "en")

	t.Run("before another tab", func(t *testing.T) {
		p, other := c.open(), c.open("404 (Not Found)")
		m.rules(t, "hold at=before count=1 method=PUT path=/v1/operations/**")
		p.ask("With a witness")
		m.WaitHeld(t.Context(), 1)
		p.phase("sending")
		id := p.id()
		other.wait(`document.querySelector("[data-id='%s'] .state").textContent == "Sending"`, id)
		p.crash()
		other.wait(`document.querySelector("[data-id='%s'] .state").textContent == "Done"`, id)
		other.agree(1)
		m.Release()
		other.until(func() bool { return len(m.asked("PUT", "/v1/operations/menu-export/"+id)) == 2 })
		other.reload()
		other.phase("done")
		other.agree(1)
		other.close()
	})
	t.Run("alone", func(t *testing.T) {
		m.rules(t, "hold at=after count=1 method=PUT path=/v1/operations/**")
		p := c.open()
		p.ask("Without one")
		m.WaitHeld(t.Context(), 1)
		p.phase("sending")
		id := p.id()
		p.crash()
		p = c.open()
		p.phase("done")
		if p.id() != id {
			t.Errorf("it was %s and is %s", id, p.id())
		}
		m.Release()
		p.agree(2)
		if n := len(m.asked("PUT", p.operation())); n != 1 {
			t.Errorf("it was sent %d times, want 1", n)
		}
	})
}

// Away and back with the button: the page comes out of the back/forward cache,
// knows what it knew, and goes on.
func TestPageAndTheBackButton(t *testing.T) {
	d := startDemo(t, "idempotent")
	p := browse(t, d, "en").open("/favicon.ico")
	p.write("Away and back", "Monday", "Soup")
	d.call("PUT", d.generator+"/faults", "", `{"hold_request":true}`, nil)
	p.generate()
	p.phase("processing")
	id := p.id()
	js[chromedp.Void](p, `void (window.kept = true, addEventListener("pageshow", e => window.persisted = e.persisted))`)
	history, err := chromedp.Call(p.ctx, page.GetNavigationHistory, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Navigate("http://" + d.addr + "/healthz"))
	d.call("PUT", d.generator+"/faults", "", `{}`, nil)
	d.follow("/v1/operations/menu-export/" + id)
	send(p, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: history.Entries[history.CurrentIndex].ID})
	p.shown(`window.persisted && document.querySelector("#task-body").dataset.phase == "done" && document.querySelector(".identity code").textContent`, id)
	p.shown(`!!window.kept`, true)
	p.shown(`["seen", "operations", "runs"].map(name => document.querySelector("#count-" + name).textContent).join()`, "1,1,1")
	d.agrees(1)
	p.shown(`document.querySelector("[data-action=again]").click()`, nil)
	p.shown(`["seen", "operations", "runs"].map(name => document.querySelector("#count-" + name).textContent).join()`, "2,2,2")
	d.agrees(2)
}

// shown waits until an expression has this value, in whichever document the tab
// shows: chromedp goes on asking the one that is in the back/forward cache.
func (p *tab) shown(expression string, want any) {
	p.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second)
		got, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ReturnByValue: new(true)})
		cancel()
		var value any
		if err == nil && got.ExceptionDetails == nil && (len(got.Result.Value) == 0 || json.Unmarshal(got.Result.Value, &value) == nil) && value == want {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s is %v, %v; want %v", expression, value, err, want)
		}
		time.Sleep(20 * time.Millisecond) // between two looks
	}
}

// The browser's storage is emptied: under the open page, which keeps what it has
// in hand, and before it is opened again, which says so. Nothing is made by itself.
func TestPageWhoseStorageIsCleared(t *testing.T) {
	d := startDemo(t, "idempotent")
	m := between(t, d)
	p := browse(t, d, "en").open(cut)
	clear := func() {
		t.Helper()
		send(p, storage.ClearDataForOrigin, storage.ClearDataForOriginParams{Origin: strings.TrimSuffix(d.page, "/"),
			StorageTypes: "indexeddb,local_storage"})
	}
	d.call("PUT", d.generator+"/faults", "", `{"hold_request":true}`, nil)
	p.write("Forgotten", "Monday", "Soup")
	p.generate()
	p.phase("processing")
	id := p.id()
	clear()
	d.call("PUT", d.generator+"/faults", "", `{}`, nil)
	p.phase("done")
	p.agree(1)

	p.until(func() bool { // its last write is over when it has let go of the task
		return js[bool](p, `navigator.locks.query().then(all => !all.held.some(lock => lock.name.endsWith(%q)))`, id)
	})
	clear()
	js[chromedp.Void](p, `void sessionStorage.clear()`)
	p.reload()
	p.wait(`document.querySelector("#task-detail").textContent.includes("This browser itself remembers no task of yours")`)
	p.phase("done")
	p.agree(1)
	if p.id() != id {
		t.Errorf("it was %s and is %s", id, p.id())
	}
	if n := len(m.asked("PUT", p.operation())); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	p.ask("By a person")
	p.phase("done")
	p.agree(2)
}
