//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
)

// The queue that somebody has open follows what comes and what others decide, and
// leaves alone what is looked at: the place on the screen, the focus, the
// selection, and every letter.
func TestConsoleQueueRefreshes(t *testing.T) {
	o := openOffice(t)
	p := o.enter(browse(t, o.demoProcess, "en"), o.few)
	p.size(1280, 500)
	p.view("queue", "#place")
	p.wait(`document.querySelector("#place").textContent == "Nothing needs reconciliation."`)
	first := o.doubtful(o.acme, "first")
	p.wait(`document.querySelector("h1 .id")?.textContent == "first" && document.querySelector("#place").textContent == "1 of 1"`)
	said := func(text string) {
		t.Helper()
		p.wait(`document.querySelector("#say[aria-live=polite]").textContent == %q`, text)
	}
	said("1 more in the queue. 1 of 1")

	p.press("2")
	p.press("e")
	p.wait(`document.activeElement.id == "evidence"`)
	p.keys("half a sentence")
	js[struct{}](p, `(window.field = document.querySelector("#evidence"), field.setSelectionRange(2, 6), field.scrollIntoView({block: "center"}), window.top0 = field.getBoundingClientRect().top, {})`)
	undisturbed := func(when string) {
		t.Helper()
		if got := js[string](p, `[document.querySelector("#evidence") == field, document.activeElement == field, field.value, field.selectionStart, field.selectionEnd,
			field.getBoundingClientRect().top - top0, document.querySelector("#verdict-2").checked, document.querySelector("h1 .id").textContent].join("|")`); got != "true|true|half a sentence|2|6|0|true|first" {
			t.Errorf("%s: %s", when, got)
		}
	}
	decide := func(op semel.Operation, verdict string) {
		t.Helper()
		at := fmt.Sprintf("/v1/operator/operations/acme/order/%s/resolution", op.Key.ID)
		if status := o.call("PUT", at, o.everything, verdict, nil, "If-Match", fmt.Sprintf(`"%d"`, op.Revision)); status != 200 {
			t.Fatalf("kim's verdict on %s: %d", op.Key.ID, status)
		}
	}
	const failed = `{"verdict":"not_applied","then":"fail","evidence":"kim looked"}`

	o.doubtful(o.globex, "another") // not for this operator
	second := o.doubtful(o.acme, "second")
	p.wait(`document.querySelector("#place").textContent == "1 of 2" && document.querySelector("#next").offsetParent`)
	said("1 more in the queue. 1 of 2")
	undisturbed("one came")

	// Tried again by somebody else, and unknown again.
	decide(first, `{"verdict":"not_applied","then":"retry","evidence":"kim looked"}`)
	first = o.until("acme/order/first", func(op semel.Operation) bool {
		return op.State == semel.NeedsReconciliation && op.Revision > first.Revision+1
	})
	p.wait(`document.querySelector("#news span")?.textContent == "It has changed since you looked. Look again, then decide."`)
	said("It has changed since you looked. Look again, then decide. " + p.text("#place"))
	undisturbed("it changed")
	p.wait(`document.querySelector("#place").textContent == "1 of 2"`)

	decide(first, failed)
	p.wait(`document.querySelector("#news span").textContent == "Somebody has decided this one meanwhile."`)
	said("Somebody has decided this one meanwhile. 1 of 2")
	undisturbed("somebody decided")
	p.click("#look-again")
	p.wait(`document.querySelector("article .badge.failed") && document.activeElement.id == "main" && !document.querySelector("#news").textContent`)
	p.press("j")
	p.wait(`document.querySelector("h1 .id").textContent == "second" && document.querySelector("#place").textContent == "1 of 1"`)

	// The last one is decided elsewhere: it stays until one goes on.
	decide(second, failed)
	p.wait(`document.querySelector("#news span")?.textContent == "Somebody has decided this one meanwhile."`)
	if !strings.Contains(p.text("main"), "second") {
		t.Error("it is gone")
	}
	p.click("#next")
	p.wait(`document.querySelector("#place").textContent == "Nothing needs reconciliation." && !document.querySelector("h1 .id") && document.activeElement.id == "main"`)
	o.doubtful(o.acme, "third")
	p.wait(`document.querySelector("h1 .id")?.textContent == "third" && document.activeElement.id == "main"`)
}

// until waits until an operation is so, as its history goes on.
func (o *office) until(key string, is func(semel.Operation) bool) semel.Operation {
	o.t.Helper()
	part := strings.Split(key, "/")
	changes, err := o.Ledger.Watch(o.t.Context(), semel.Key{Account: part[0], Kind: part[1], ID: part[2]})
	if err != nil {
		o.t.Fatal(err)
	}
	for op := range changes {
		if is(op) {
			return op
		}
	}
	o.t.Fatalf("%s never was so; the log:\n%s", key, o.log)
	return semel.Operation{}
}
