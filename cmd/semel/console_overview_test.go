//go:build linux

package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/semel-dev/semel"
)

// The overview draws every state over time, from the store's counts, and says what
// it can't count.
func TestConsoleStatesOverTime(t *testing.T) {
	o := openOffice(t)
	o.ask(o.acme, "order", "before", map[string]any{"status": 200, "answer": map[string]any{}}, semel.Succeeded)
	p := o.enter(browse(t, o.demoProcess, "en"), o.everything)
	p.wait(`document.querySelectorAll("polyline").length >= 12`)
	for _, id := range []string{"one", "two"} {
		o.ask(o.globex, "order", id, map[string]any{"status": 200, "answer": map[string]any{}}, semel.Succeeded)
	}
	o.ask(o.acme, longKind, "no", map[string]any{"status": 422, "answer": map[string]any{}}, semel.Failed)
	o.doubtful(o.acme, "lost")
	o.call("DELETE", "/v1/operations/order/never", o.acme, "", nil)
	shows := func(chart, state, value string) {
		t.Helper()
		p.wait(`[...document.querySelectorAll("figure")].find(f => f.querySelector("figcaption").textContent == %q).querySelector(%q).textContent == %q`, chart, "li."+state+" b", value)
	}
	const open, settled = "Not settled, over time", "Settled: change since this tab was opened"
	shows(open, "needs_reconciliation", "1")
	shows(open, "accepted", "0")
	shows(open, "processing", "0")
	shows(settled, "succeeded", "2") // the one before is none of the change
	shows(settled, "failed", "1")
	shows(settled, "abandoned", "1")
	p.wait(`document.querySelector("main").textContent.includes("Unconfirmed is not counted here.")`)
	p.click("#language")
	p.wait(`document.querySelector("main").textContent.includes("此处不统计“未确认”。")`)
}

// Behind one address, two nodes answer in turn and one of them is started anew: no
// rate comes from the difference of two nodes' counters.
func TestConsoleRatesOfManyNodes(t *testing.T) {
	o := openOffice(t)
	p := o.enter(browse(t, o.demoProcess, "en"), o.everything)
	rates := js[[]float64](p, `import("/console/samples.js").then(m => m.rate([
		{node: 1, at: 0, accepts: 1000}, {node: 2, at: 5000, accepts: 5}, {node: 1, at: 10000, accepts: 1020}, {node: 2, at: 15000, accepts: 15},
		{node: 3, at: 20000, accepts: 700}, {node: 2, at: 25000, accepts: 15}, {node: 3, at: 30000, accepts: 730}], "accepts").map(p => p.value))`)
	if !slices.Equal(rates, []float64{2, 1, 0, 3}) {
		t.Errorf("the rates are %v", rates)
	}
	if n := js[int](p, `import("/console/samples.js").then(m => m.sample({kinds: []})).then(all => new Set(all.map(s => s.node)).size)`); n != 1 {
		t.Errorf("one node is taken for %d", n)
	}
	if start := js[float64](p, `import("/console/samples.js").then(m => m.sample({kinds: []})).then(all => all.at(-1).node)`); start < 1e9 {
		t.Errorf("the node is known by %v", start)
	}
}

// A retry is what /metrics calls one: a call that was not the first, not every
// execution that may be followed by one.
func TestConsoleCountsRetries(t *testing.T) {
	o := openOffice(t)
	p := o.enter(browse(t, o.demoProcess, "en"), o.everything)
	counts := func(want int) {
		t.Helper()
		if n := js[int](p, `import("/console/samples.js").then(m => m.sample({kinds: []})).then(all => all.at(-1).retries)`); n != want {
			t.Errorf("it counts %d retries, want %d", n, want)
		}
	}
	lost := o.doubtful(o.acme, "lost")
	counts(0)
	if status := o.call("PUT", "/v1/operator/operations/acme/order/lost/resolution", o.everything, `{"verdict":"not_applied","then":"retry","evidence":"kim looked"}`, nil, "If-Match", fmt.Sprintf(`"%d"`, lost.Revision)); status != 200 {
		t.Fatalf("the verdict: %d", status)
	}
	o.until("acme/order/lost", func(op semel.Operation) bool {
		return op.State == semel.NeedsReconciliation && op.Revision > lost.Revision+1
	})
	counts(1)
}
