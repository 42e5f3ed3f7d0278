//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/semel-dev/semel"
)

// An operator who has nothing but an operation ID finds the operation, by keyboard,
// among what it may see; and where nothing is found, the page says why, at the
// field, and keeps what was typed.
func TestConsoleFindsByID(t *testing.T) {
	o := openOffice(t)
	o.doubtful(o.acme, "only")
	o.doubtful(o.globex, "theirs")
	for _, account := range []string{o.acme, o.globex} {
		o.ask(account, longKind, "twin", map[string]any{"status": 200, "answer": map[string]any{}}, semel.Succeeded)
	}
	c := browse(t, o.demoProcess, "en")
	p := o.enter(c, o.few)
	p.expected = append(p.expected, "404") // an ID is asked for in each place
	seek := func(text string) {
		t.Helper()
		p.view("operations", "td.key, #search-note")
		p.tabTo("#filter-search")
		p.keys(text + kb.Enter)
	}
	found := func(key string) {
		t.Helper()
		p.wait(`location.hash == "#/operation/%s" && document.querySelector(".timeline") && document.activeElement.id == "main"`, key)
	}
	missed := func(typed, why string) {
		t.Helper()
		p.wait(`document.querySelector("#search-note[role=alert] .wrong")?.textContent == %q`, why)
		p.wait(`document.activeElement.id == "filter-search"`)
		if got := js[[]string](p, `[document.activeElement.value, document.activeElement.ariaInvalid, document.activeElement.getAttribute("aria-describedby")]`); strings.Join(got, "|") != typed+"|true|search-note" {
			t.Errorf("the field is %q", got)
		}
	}
	const form = "This is neither a key nor an operation ID. Write account/kind/operation ID, or the ID alone: 1 to 128 letters, digits and . _ ~ -"
	const none = "No operation with this ID was found."

	seek("only")
	found("acme/order/only")
	seek(" twin ") // globex has one too, but not for this operator
	found("acme/" + longKind + "/twin")
	seek("acme/order/only")
	found("acme/order/only")
	for _, typed := range []string{"order/only", "acme/order/only/x", "acme//only", "two words", "ключ", ".."} {
		seek(typed)
		missed(typed, form)
	}
	seek("theirs")
	missed("theirs", none)
	if places := p.text("#search-note .quiet"); places != "Looked in acme/"+longKind+", acme/noted, acme/order" {
		t.Errorf("it says %q", places)
	}
	p.click("#language")
	p.wait(`document.querySelector("#search-note .wrong")?.textContent == "未找到此编号的任务。" && document.querySelector("#filter-search").value == "theirs"`)
	p.click("#language")
	missed("theirs", none)
	// Asked once more, it looks once more.
	o.doubtful(o.acme, "theirs")
	p.keys(kb.Enter)
	found("acme/order/theirs")

	// Who sees all accounts need not name one, where it is one of the newest.
	p = o.enter(browse(t, o.demoProcess, "en"), o.everything)
	p.expected = append(p.expected, "404")
	seek("only")
	found("acme/order/only")
	seek("twin")
	p.wait(`document.querySelector(".foot").textContent == "That is all." && [...document.querySelectorAll("td.account")].map(e => e.textContent).sort().join() == "acme,globex"`)
	p.fill("#filter-account", "globex")
	p.keys(kb.Enter)
	found("globex/" + longKind + "/twin")
	seek("nobody")
	missed("nobody", none+" Only the accounts of the newest 1,000 operations were looked in: for another one, fill in the account.")
	p.fill("#filter-account", "nobody")
	p.keys(kb.Enter)
	p.wait(`document.querySelector("#search-note .quiet")?.textContent.startsWith("Looked in nobody/")`)
	missed("nobody", none)
}
