//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel"
)

// answer is what the interface says to one request, to the byte.
func (o *office) answer(method, path, token, body string, header ...string) (status int, text string) {
	o.t.Helper()
	resp, err := ask(o.t, o.program, method, "http://"+o.addr+path, token, body, header...)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// An operator of some accounts sees, counts and resolves nothing of the others:
// neither through the interface nor in the page. What it may not see is answered,
// to the byte, as what never existed.
func TestConsoleOfOneAccount(t *testing.T) {
	o := openOffice(t)
	mine, theirs := o.doubtful(o.acme, "mine"), o.doubtful(o.globex, "theirs")
	o.doubtful(o.globex, "same-id")
	listed := func(query string) (ids []string) {
		t.Helper()
		var page struct{ Operations []semel.Operation }
		if status := o.call("GET", "/v1/operator/operations?"+query, o.few, "", &page); status != 200 {
			t.Errorf("the list %s: %d", query, status)
		}
		for _, op := range page.Operations {
			ids = append(ids, op.Key.Account+"/"+op.Key.ID)
		}
		return ids
	}
	var all struct {
		Next string `json:"next_page_token"`
	}
	o.call("GET", "/v1/operator/operations?page_size=1", o.everything, "", &all) // a place in between
	for query, want := range map[string][]string{
		"": {"acme/mine"}, "account=acme": {"acme/mine"}, "account=globex": nil, "account=*": nil, "kind=order&state=needs_reconciliation": {"acme/mine"},
		"page_token=" + all.Next: {"acme/mine"},
	} {
		if ids := listed(query); !slices.Equal(ids, want) {
			t.Errorf("the list %s: %v, want %v", query, ids, want)
		}
	}
	if status, text := o.answer("GET", "/v1/operator/operations?account=globex&account=acme", o.few, ""); status != 400 {
		t.Errorf("two accounts at once: %d %s", status, text)
	}
	if status, text := o.answer("GET", "/v1/operator/stats", o.few, ""); status != 403 || strings.Contains(text, "globex") || !strings.Contains(text, "does not see them all") {
		t.Errorf("the counts of all: %d %s", status, text)
	}
	const at = "/v1/operator/operations/"
	verdict := `{"verdict":"applied","evidence":"seen"}`
	ifMatch := fmt.Sprintf(`"%d"`, theirs.Revision)
	for _, q := range []struct{ method, tail, body string }{{"GET", "", ""}, {"GET", "/history", ""}, {"PUT", "/resolution", verdict}} {
		never, want := o.answer(q.method, at+"globex/order/never"+q.tail, o.few, q.body, "If-Match", ifMatch)
		status, got := o.answer(q.method, at+"globex/order/theirs"+q.tail, o.few, q.body, "If-Match", ifMatch)
		if never != 404 || status != never || got != want {
			t.Errorf("%s %s: %d %s; what never existed: %d %s", q.method, q.tail, status, got, never, want)
		}
	}
	if op := o.ask(o.globex, "order", "theirs", map[string]any{"status": 500, "answer": map[string]any{}, "id": "theirs"}, semel.NeedsReconciliation); op.Revision != theirs.Revision {
		t.Errorf("it was changed: %+v", op)
	}
	// An account's own token is no operator's, and an operator's is no account's.
	for _, c := range []struct{ path, token string }{{at + "acme/order/mine", o.acme}, {"/v1/operator/operations", o.globex}, {"/v1/operations/order/mine", o.few}} {
		if status, text := o.answer("GET", c.path, c.token, ""); status != 403 {
			t.Errorf("%s: %d %s", c.path, status, text)
		}
	}

	p := o.enter(browse(t, o.demoProcess, "en"), o.few)
	p.wait(`document.querySelector(".card b").textContent == "1"`)
	if text := p.text("main"); strings.Contains(text, "globex") || js[int](p, `document.querySelectorAll("svg").length`) > 0 {
		t.Errorf("the overview shows more than its own:\n%s", text)
	}
	p.view("operations", "td.key")
	if keys := js[[]string](p, `[...document.querySelectorAll("td.key")].map(e => e.textContent)`); !slices.Equal(keys, []string{"mine"}) {
		t.Errorf("the list shows %v", keys)
	}
	p.expected = append(p.expected, "404")
	p.fill("#filter-search", "globex/order/theirs")
	p.click("form.filters button")
	p.wait(`document.querySelector("main .wrong")?.innerText == "There is no such operation in the accounts that you may see."`)
	p.view("queue", "#evidence")
	if place, id := p.text("#place"), p.text("h1 .id"); place != "1 of 1" || id != mine.Key.ID {
		t.Errorf("the queue: %s, %s", place, id)
	}
	// It does not help to ask from the page.
	status := js[int](p, `fetch("/v1/operator/operations/globex/order/theirs/resolution", {method: "PUT", body: %q,
		headers: {"Content-Type": "application/json", "If-Match": %q}}).then(r => r.status)`, verdict, ifMatch)
	if status != 404 {
		t.Errorf("a verdict from the page: %d", status)
	}
}

// withCookie asks as a browser does that holds the cookie of a sign-in.
func (o *office) withCookie(cookie *http.Cookie, method, path, body string, header ...string) int {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), method, "http://"+o.addr+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	req.AddCookie(cookie)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := o.program.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// A cookie alone does nothing: a request that changes something says that it comes
// from a page of this server, which no other page can say.
func TestConsoleCookieIsForItsOwnPages(t *testing.T) {
	o := openOffice(t)
	op := o.doubtful(o.acme, "x")
	resp, err := ask(t, o.program, "POST", o.page+"v1/session", o.everything, "")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	cookie := resp.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %v", cookie)
	}
	own := "http://" + o.addr
	try := func(want int, header ...string) {
		t.Helper()
		header = append(header, "If-Match", fmt.Sprintf(`"%d"`, op.Revision))
		if got := o.withCookie(cookie, "PUT", "/v1/operator/operations/acme/order/x/resolution", `{"verdict":"applied","evidence":"x"}`, header...); got != want {
			t.Errorf("%v: %d, want %d", header, got, want)
		}
	}
	const json = "application/json"
	for _, h := range [][]string{{}, {"Origin", "null"}, {"Origin", "https://evil.example"}, {"Origin", own + ".evil.example"}, {"Origin", "http://127.0.0.1:1"},
		{"Sec-Fetch-Site", "cross-site", "Origin", own}, {"Sec-Fetch-Site", "same-site", "Origin", own}, {"Sec-Fetch-Site", "none"}, {"Referer", own + "/console/"}} {
		try(403, append(h, "Content-Type", json)...)
		for _, form := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
			try(403, append(h, "Content-Type", form)...)
		}
	}
	try(415, "Origin", own, "Content-Type", "text/plain")
	try(200, "Origin", own, "Content-Type", json)
}

// evilPage does what it can with somebody's browser: it frames the console, sends
// forms, and asks by script.
const evilPage = `<!doctype html><title>A nice page</title>
<iframe id="framed" src="%[1]sconsole/"></iframe><iframe name="sink"></iframe>
<form id="f" method="post" target="sink" enctype="text/plain" action="%[1]sv1/operator/operations/acme/order/x/resolution">
<input name='{"verdict":"applied","evidence":"evil' value='"}'></form>
<form id="out" method="post" target="sink" action="%[1]sv1/session"></form>
<script>
const target = "%[1]sv1/operator/operations/acme/order/x/resolution", verdict = '{"verdict":"applied","evidence":"evil"}'
const tries = [
	["cors", {method: "PUT", credentials: "include", body: verdict, headers: {"Content-Type": "application/json", "If-Match": '"%[2]d"'}}, target],
	["simple", {method: "POST", mode: "no-cors", credentials: "include", body: verdict}, target],
	["sign-out", {method: "DELETE", credentials: "include"}, "%[1]sv1/session"],
	["read", {credentials: "include"}, "%[1]sv1/operator/operations"],
]
window.evil = async () => {
	document.getElementById("f").submit()
	document.getElementById("out").submit()
	const said = []
	for (const [name, options, url] of tries) said.push(name + ": " + await fetch(url, options).then(r => r.type + " " + r.status, e => e.name))
	return said
}
</script>`

// Somebody else's page, in the browser of an operator who is signed in, can
// neither frame the console, nor act, nor read, nor sign the operator out; neither
// from another site, nor from another port of the same one, where the cookie goes
// along.
func TestConsoleAgainstEvilPages(t *testing.T) {
	o := openOffice(t)
	op := o.doubtful(o.acme, "x")
	c := browse(t, o.demoProcess, "en")
	operator := o.enter(c, o.everything)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, evilPage, o.page, op.Revision)
	}))
	t.Cleanup(evil.Close)
	refused := func() map[string]bool {
		all := map[string]bool{}
		for line := range strings.Lines(o.log.String()) {
			var l struct {
				Method, Route string
				Status        int
			}
			if json.Unmarshal([]byte(line), &l) == nil && l.Status >= 400 {
				all[fmt.Sprint(l.Method, " ", l.Route, " ", l.Status)] = true
			}
		}
		return all
	}
	const form = "POST /v1/session 403"
	for _, from := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)} {
		p := c.blank("frame", "CORS", "Failed to load resource", "401", "403", "404", "405")
		p.do(chromedp.Navigate(from))
		p.wait(`window.evil`)
		p.wait(`document.querySelector("#framed").contentDocument == null`)
		for _, said := range js[[]string](p, `evil()`) {
			if !regexp.MustCompile(`: (TypeError|opaque 0)$`).MatchString(said) {
				t.Errorf("from %s: %s", from, said)
			}
		}
		p.said("frame-ancestors 'none'")
		if n := js[int](p, `document.querySelector("#framed").contentWindow.length`); n != 0 {
			t.Errorf("from %s: the frame holds something", from)
		}
		p.until(func() bool { return refused()[form] }) // a form that is on its way goes with its page
		p.close()
	}
	if now := o.ask(o.acme, "order", "x", map[string]any{"status": 500, "answer": map[string]any{}, "id": "x"}, semel.NeedsReconciliation); now.Revision != op.Revision {
		t.Errorf("it was changed: %+v", now)
	}
	// The forms arrived, the one from the same site with the cookie, and were refused.
	for _, want := range []string{form} {
		if all := refused(); !all[want] {
			t.Errorf("no %s among %v", want, all)
		}
	}
	operator.do(chromedp.Reload())
	operator.wait(`document.querySelector("nav")`)
	operator.view("queue", "#evidence")
}

// said waits until the browser's console has said it.
func (p *tab) said(text string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 60*time.Second)
	defer cancel()
	for {
		p.mu.Lock()
		all := strings.Join(p.console, "\n")
		p.mu.Unlock()
		if strings.Contains(all, text) {
			return
		}
		js[chromedp.Void](p, `new Promise(requestAnimationFrame).then(() => {})`)
		if ctx.Err() != nil {
			p.t.Fatalf("the browser never said %q:\n%s", text, all)
		}
	}
}

// The files of the console come with what keeps others out.
func TestConsoleHeaders(t *testing.T) {
	o := openOffice(t)
	for _, file := range []string{"", "index.html", "app.js", "console.css", "nothing"} {
		resp, err := ask(t, o.program, "GET", o.page+"console/"+file, "", "")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		policy := resp.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "require-trusted-types-for 'script'") ||
			strings.Contains(policy, "unsafe") || resp.Header.Get("X-Frame-Options") != "DENY" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%q: %v", file, resp.Header)
		}
		if bytes.Contains(body, []byte("<script>")) || bytes.Contains(body, []byte("onclick=")) {
			t.Errorf("%q has script inside", file)
		}
	}
}
