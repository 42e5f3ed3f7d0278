//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/node"
)

// A recorded is an operation of the demo's account that failed.
type recorded struct {
	id, params string
	failure    semel.Failure
}

// record writes operations, as if they had been there for long: what they ask for
// need not be what the kind's schema allows today.
func (d *demoProcess) record(all ...recorded) {
	d.t.Helper()
	store, err := node.OpenStore(d.t.Context(), filepath.Join(d.data, "semel.db"), "")
	if err != nil {
		d.t.Fatal(err)
	}
	defer store.Close()
	for batch := range slices.Chunk(all, 1000) {
		var in []semel.Insertion
		for _, r := range batch {
			key := semel.Key{Account: "demo", Kind: "menu-export", ID: r.id}
			in = append(in, semel.Insertion{Key: key, State: semel.Accepted, AsSent: "v1:sha256:0", Fingerprint: "v1:sha256:0",
				Params: []byte(r.params), Request: []byte(r.params), Owner: key.ID, AttemptID: "a", Due: time.Hour})
		}
		created, err := store.Insert(d.t.Context(), in)
		if err != nil {
			d.t.Fatal(err)
		}
		var changes []semel.Change
		for i, c := range created {
			if c.Err != nil || c.Verdict != semel.Created {
				d.t.Fatalf("%s: %v, %v", in[i].Key, c.Verdict, c.Err)
			}
			changes = append(changes, semel.Change{Key: in[i].Key, Revision: c.Operation.Revision, Token: c.Operation.Token, Owner: "o",
				State: semel.Failed, Work: semel.WorkDone, Retain: 720 * time.Hour, Failure: &batch[i].failure})
		}
		applied, err := store.Apply(d.t.Context(), changes)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, a := range applied {
			if a.Err != nil {
				d.t.Fatal(a.Err)
			}
		}
	}
}

// With 10,000 operations in the account's history the page shows the newest, counts
// them all, and lists as many as anybody asks for, without becoming slow or
// jumping.
func TestPageWithTenThousandTasks(t *testing.T) {
	d := startDemo(t, "idempotent")
	var old []recorded
	for i := range 10_000 {
		old = append(old, recorded{fmt.Sprintf("old-%06d", i), smallMenu, semel.Failure{Code: "refused", Message: "long ago"}})
	}
	d.record(old...)
	p := browse(t, d, "en").blank()
	send(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: noteJumps})
	p.goTo(d.page)
	p.counts(50, 10_000, 0)
	p.wait(`document.querySelector("#verdict").textContent == "You see the newest 50."`)
	p.ask("One more")
	p.phase("done")
	p.counts(51, 10_001, 1)
	if jumps := js[[]string](p, `jumps`); len(jumps) > 0 {
		t.Errorf("it jumped: %s", strings.Join(jumps, "\n"))
	}

	// How long a letter in the form takes, which redraws everything.
	const letter = `(() => {
		const field = document.querySelector("#f-title"), took = []
		for (let i = 0; i < 9; i++) {
			const start = performance.now()
			field.value += "x"
			field.dispatchEvent(new Event("input", { bubbles: true }))
			took.push(performance.now() - start)
		}
		return took.sort((a, b) => a - b)[4]
	})()`
	few := js[float64](p, letter)
	began := time.Now()
	const listed = 1_001
	js[any](p, `(async () => {
		const cards = document.querySelector("#shelf-body ul"), more = document.querySelector("#shelf-body .more")
		while (cards.children.length < %d) {
			const grown = new Promise(done => new MutationObserver(done).observe(cards, { childList: true }))
			more.click()
			await grown
		}
	})()`, listed)
	many := js[float64](p, letter)
	listing := time.Since(began)
	t.Logf("%v to list them; a letter takes %.1f ms with 51 tasks in the list, %.1f ms with %d", listing.Round(time.Millisecond), few, many, js[int](p, `document.querySelectorAll("#shelf-body [data-id]").length`))
	if many > 500 { // a redrawing from nothing takes longer
		t.Errorf("a letter takes %.0f ms", many)
	}
	p.ask("And another")
	p.phase("done")
	p.counts(listed+1, 10_002, 2)
}
