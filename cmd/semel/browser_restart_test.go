//go:build linux

package main

import (
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

// The demo is stopped and started again on the same folder, and carries on.
func TestPageAfterARestart(t *testing.T) {
	d := startDemo(t, "idempotent")
	p := browse(t, d, "en").open("net::ERR_", "/demo/counts", "/demo/causes") // what is asked while a process is away
	p.generate()
	p.phase("done")
	settled := p.id()
	d.pause("worker")
	p.fill("#f-title", "Across a restart")
	p.generate()
	p.phase("accepted")
	id := p.id()
	syscall.Kill(d.child("worker"), syscall.SIGCONT)
	d.kill() // nothing is said to anybody
	d.start()
	p.phase("done") // the open page goes on by itself
	if p.id() != id {
		t.Errorf("it was %s and is %s", id, p.id())
	}
	p.counts(2, 2, 2)
	d.stop()
	d.start()
	p.reload()
	p.wait(`document.querySelector(".identity code")?.textContent == %q`, id)
	p.counts(2, 2, 2)
	js[chromedp.Void](p, `document.querySelector("#shelf").scrollIntoView()`)
	p.wait(`document.querySelectorAll("#shelf-body [data-id]").length == 2 && document.querySelector("[data-id='%s'] img").naturalWidth > 0`, settled)
}

// The server's process is killed; the page lives on, and the task too.
func TestPageAfterTheServerWasKilled(t *testing.T) {
	d := startDemo(t, "idempotent")
	p := browse(t, d, "en").open("net::ERR_", "/demo/counts", "/demo/causes") // what is asked while a process is away
	d.call("PUT", d.generator+"/faults", "", `{"hold_request":true}`, nil)
	p.generate()
	p.phase("processing")
	id := p.id()
	was := d.child("server")
	syscall.Kill(was, syscall.SIGKILL)
	d.call("PUT", d.generator+"/faults", "", `{}`, nil)
	p.phase("done")
	if p.id() != id || d.child("server") == was {
		t.Errorf("it was %s and is %s", id, p.id())
	}
	p.counts(1, 1, 1)
	p.fill("#f-title", "Afterwards")
	p.generate()
	p.wait(`document.querySelector(".identity code").textContent != %q`, id)
	p.phase("done")
	p.counts(2, 2, 2)
}
