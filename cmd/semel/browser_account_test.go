//go:build linux

package main

import (
	"strings"
	"testing"
)

// Somebody else sees nothing, and resumes nothing.
func TestPageOfAnotherAccount(t *testing.T) {
	d := startDemo(t, "idempotent")
	c := browse(t, d, "en")
	p := c.open()
	p.write("Mine", "Monday", "Soup")
	p.generate()
	p.phase("done")
	done := p.id()
	image := js[string](p, `new URL(document.querySelector("#picture").src).pathname`)
	resume := d.pause("worker")
	p.fill("#f-title", "Unsettled")
	p.generate()
	p.phase("accepted")
	unsettled := p.id()

	// A tab that works for the one account stops before the other is signed in.
	other := c.blank("401 (Unauthorized)", "404 (Not Found)")
	other.goTo(d.page + "?sign-in")
	other.fill("#token", "semel_NOBODYNOBODYNOBODYNOBODYNO")
	other.click("#sign-in-go")
	other.wait(`document.querySelector("#token-problem").textContent == "This token is not known."`)
	other.fill("#token", d.guest)
	other.click("#sign-in-go")
	for _, tab := range []*tab{other, p} {
		tab.wait(`document.querySelector("#account-name")?.textContent == "guest" && ` + ready)
		tab.counts(0, 0, 1)
		if tab.id() != "" || strings.Contains(tab.text("body"), "Unsettled") || js[string](tab, `document.querySelector("#f-title").value`) != "Menu of the week" {
			t.Errorf("the guest sees %q", tab.text("body"))
		}
		if !js[bool](tab, `document.querySelector("#lose_answer").disabled`) {
			t.Error("the guest may move the switches")
		}
	}

	// What is somebody else's is answered as what never was.
	for _, path := range []string{"", "/events", "/history"} {
		mine, never := "/v1/operations/menu-export/"+done+path, "/v1/operations/menu-export/"+strings.Repeat("0", len(done))+path
		same(t, other, mine, never)
	}
	same(t, other, image, strings.Replace(image, done, strings.Repeat("0", len(done)), 1))

	other.fill("#f-title", "Guest's own")
	other.generate()
	other.phase("accepted")
	resume()
	other.phase("done")
	other.counts(1, 1, 3)

	// And back: the task goes on being the first account's.
	p.expected = append(p.expected, "404 (Not Found)", "401 (Unauthorized)") // it may ask once more before it is gone
	p.click("#sign-out")
	p.wait(`!document.querySelector("#sign-in").hidden && ` + ready)
	p.fill("#token", d.token)
	p.click("#sign-in-go")
	p.wait(`document.querySelector(".identity code")?.textContent == %q`, unsettled)
	p.phase("done")
	p.counts(2, 2, 3)
}

// same compares two answers to the page, byte by byte.
func same(t *testing.T, p *tab, one, other string) {
	t.Helper()
	const read = `fetch(%q).then(async r => r.status + " " + [...r.headers].filter(([n]) => n != "date").join("|") + " " + await r.text())`
	a, b := js[string](p, read, one), js[string](p, read, other)
	if a != b || !strings.HasPrefix(a, "404 ") {
		t.Errorf("%s is answered with\n%s\nand %s with\n%s", one, a, other, b)
	}
}
