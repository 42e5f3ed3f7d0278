//go:build linux

package main

import (
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// The server is killed, twice, while the page follows its events. The page comes
// back with the last that it heard of, and hears the rest.
func TestPageEventsAcrossRestarts(t *testing.T) {
	d := startDemo(t, "idempotent")
	m := between(t, d)
	p := browse(t, d, "en").open("net::ERR_")
	d.call("PUT", d.generator+"/faults", "", `{"hold_request":true}`, nil)
	p.generate()
	p.phase("processing")
	events := p.operation() + "/events"
	heard := func() []int {
		t.Helper()
		var ids []int
		for _, r := range m.asked("GET", events) {
			id, err := strconv.Atoi(r.Header.Get("Last-Event-ID"))
			if err != nil {
				t.Error(err)
			}
			ids = append(ids, id)
		}
		return ids
	}
	for range 2 {
		was, streams := d.child("server"), len(heard())
		syscall.Kill(was, syscall.SIGKILL)
		p.until(func() bool { return len(heard()) > streams })
	}
	d.call("PUT", d.generator+"/faults", "", `{}`, nil)
	p.phase("done")
	p.agree(1)
	if ids := heard(); len(ids) < 3 || !slices.IsSorted(ids) || ids[0] == ids[len(ids)-1] {
		t.Errorf("the streams began after %v", ids)
	}
	if n := len(m.asked("PUT", p.operation())); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

// A proxy that holds a stream back until it ends, one that lets nothing of it
// through, one that cuts it: the page looks instead, and shows every state.
func TestPageBehindAProxyThatSpoilsEvents(t *testing.T) {
	d := startDemo(t, "idempotent")
	m := between(t, d)
	p := browse(t, d, "en").open("net::ERR_")
	for n, what := range []string{holds, swallow, cuts} {
		t.Run(what, func(t *testing.T) {
			m.does(what)
			d.call("PUT", d.generator+"/faults", "", `{"hold_request":true}`, nil)
			p.ask("A proxy that " + what)
			p.phase("processing")
			d.call("PUT", d.generator+"/faults", "", `{}`, nil)
			p.phase("done")
			p.agree(n + 1)
			if len(m.asked("GET", p.operation()+"/events")) == 0 {
				t.Error("no stream was opened")
			}
			if n := len(m.asked("PUT", p.operation())); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}
