package page

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/examples/menuexport"
	"github.com/semel-dev/semel/examples/menuexport/generator"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/sqlite"
)

const (
	demoToken  = "semel_DEMODEMODEMODEMODEMODEMO"
	guestToken = "semel_GUESTGUESTGUESTGUESTGUES"
	menu       = `{"title":"Menu","days":[{"day":"Monday","dishes":["Soup"]}],"width":320}`
)

// switches are in memory.
type switches struct{ now Causes }

func (s *switches) Get(context.Context) (Causes, error) { return s.now, nil }
func (s *switches) Set(_ context.Context, change Change) error {
	if change.KillWorker != nil {
		s.now.KillWorker = *change.KillWorker
	}
	if change.SlowGenerator != nil {
		s.now.SlowGenerator = *change.SlowGenerator
	}
	return nil
}

// newSite serves the page with a real store and a real generator, and no worker.
func newSite(t *testing.T) (base string, ledger *semel.Ledger) {
	t.Helper()
	gen, err := generator.New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	generating := httptest.NewServer(gen)
	t.Cleanup(func() { gen.Close(); generating.Close() })
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	kind, err := menuexport.Kind()
	if err != nil {
		t.Fatal(err)
	}
	ledger, err = semel.New(t.Context(), store, &semel.Options{Kinds: []semel.Kind{kind}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ledger.Close() })
	tokens, err := httpapi.NewTokens([]httpapi.Token{
		{Hash: httpapi.HashToken(demoToken), Account: "demo", Operator: true, Accounts: []string{"demo"}, Name: "demo"},
		{Hash: httpapi.HashToken(guestToken), Account: "guest"},
	})
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(generating.URL)
	if err != nil {
		t.Fatal(err)
	}
	site, err := New(ledger, httpapi.New(ledger, &httpapi.Options{Tokens: tokens}), &Options{Generator: to, Token: demoToken, Causes: &switches{}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(site)
	t.Cleanup(func() { server.Close(); site.Close() })
	return server.URL, ledger
}

// ask makes one request on a connection of its own; header holds names and values.
func ask(t *testing.T, method, url, body string, header ...string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

func bearer(token string) []string {
	return []string{"Authorization", "Bearer " + token, "Content-Type", "application/json"}
}

// All modules of the page are fetched at once, not one after the other: what any
// of them imports is in the head of the page.
func TestHeadNamesEveryModule(t *testing.T) {
	all, err := readFiles()
	if err != nil {
		t.Fatal(err)
	}
	index := string(all["/index.html"].body)
	var preloaded []string
	for _, m := range regexp.MustCompile(`(?:<link rel="modulepreload" href|<script type="module" src)="([^"]+)"`).FindAllStringSubmatch(index, -1) {
		preloaded = append(preloaded, m[1])
	}
	imports := regexp.MustCompile(`(?m)^(?:import|(?:import|export) .* from) '([^']+)'$`)
	var reached []string
	for next := []string{"/assets/head.js", "/assets/app.js"}; len(next) > 0; next = next[1:] {
		if slices.Contains(reached, next[0]) {
			continue
		}
		reached = append(reached, next[0])
		f, ok := all[next[0]]
		if !ok {
			t.Errorf("%s does not exist", next[0])
		}
		for _, m := range imports.FindAllStringSubmatch(string(f.body), -1) {
			to, err := url.Parse(next[0])
			if err == nil {
				to, err = to.Parse(m[1])
			}
			if err != nil {
				t.Fatal(err)
			}
			next = append(next, to.Path)
		}
	}
	slices.Sort(preloaded)
	slices.Sort(reached)
	if !slices.Equal(preloaded, reached) {
		t.Errorf("the head names\n%v\nand the page needs\n%v", preloaded, reached)
	}
	if inline := regexp.MustCompile(`<style|\sstyle=|<script>|\son\w+=`).FindString(index); inline != "" {
		t.Errorf("the page has %q, which its policy forbids", inline)
	}
}

// Both languages say the same things.
func TestWordsInBothLanguages(t *testing.T) {
	all, err := readFiles()
	if err != nil {
		t.Fatal(err)
	}
	en, zh, ok := strings.Cut(string(all["/assets/words.js"].body), "const zh = {")
	if !ok {
		t.Fatal("there is no Chinese")
	}
	entry := regexp.MustCompile(`(?m)^  (\w+): (.+)`)
	braces := regexp.MustCompile(`\{\w+\}`)
	read := func(text string) map[string][]string {
		words := map[string][]string{}
		for _, m := range entry.FindAllStringSubmatch(text, -1) {
			names := braces.FindAllString(m[2], -1)
			slices.Sort(names)
			words[m[1]] = names
		}
		return words
	}
	english, chinese := read(en), read(zh)
	for word, names := range english {
		if other, ok := chinese[word]; !ok || !slices.Equal(names, other) {
			t.Errorf("%s: %v in English, %v in Chinese", word, names, other)
		}
		used := 0
		for name, f := range all {
			if name != "/assets/words.js" && (strings.HasPrefix(name, "/assets/") || name == "/index.html") {
				used += strings.Count(string(f.body), "'"+word+"'") + strings.Count(string(f.body), `"`+word+`"`)
			}
		}
		if used == 0 {
			t.Errorf("%s is never said", word)
		}
	}
	if len(english) != len(chinese) || len(english) < 100 {
		t.Errorf("%d words in English, %d in Chinese", len(english), len(chinese))
	}
}

func TestFilesCostNothingTheSecondTime(t *testing.T) {
	base, _ := newSite(t)
	for _, name := range []string{"/assets/app.js", "/assets/style.css", "/sdk/index.js", "/assets/seal.svg"} {
		plain, text, err := ask(t, "GET", base+name, "", "Accept-Encoding", "identity")
		if err != nil || plain.StatusCode != 200 || plain.Header.Get("ETag") == "" || len(text) == 0 {
			t.Fatalf("%s: %v %v", name, plain, err)
		}
		zipped, short, err := ask(t, "GET", base+name, "", "Accept-Encoding", "br, gzip")
		if err != nil || zipped.Header.Get("Content-Encoding") != "gzip" || len(short) >= len(text) {
			t.Errorf("%s: %d bytes become %d (%v)", name, len(text), len(short), err)
		}
		again, nothing, err := ask(t, "GET", base+name, "", "Accept-Encoding", "gzip", "If-None-Match", zipped.Header.Get("ETag"))
		if err != nil || again.StatusCode != 304 || nothing != "" {
			t.Errorf("%s: %v %v", name, again, err)
		}
	}
	for _, name := range []string{"/assets/", "/assets/none.js", "/index.html", "/static/index.html", "/sdk/../page.go"} {
		if resp, text, err := ask(t, "GET", base+name, ""); err == nil && resp.StatusCode == 200 {
			t.Errorf("%s is served: %.100s", name, text)
		}
	}
}

// A browser on this machine is signed in by itself; nobody else is.
func TestWhoIsSignedIn(t *testing.T) {
	base, _ := newSite(t)
	for name, c := range map[string]struct {
		path    string
		header  []string
		account string
		cookie  bool
	}{
		"this machine":              {"/", nil, "demo", true},
		"by name":                   {"/", []string{"Host", "localhost:8787"}, "demo", true},
		"another name for it":       {"/", []string{"Host", "evil.example"}, "", false},
		"another name, with a port": {"/", []string{"Host", "127.0.0.1.evil.example:8787"}, "", false},
		"somebody else, please":     {"/?sign-in", nil, "", false},
		"signed in already":         {"/", []string{"Authorization", "Bearer " + guestToken}, "guest", false},
	} {
		t.Run(name, func(t *testing.T) {
			resp, text, err := ask(t, "GET", base+c.path, "", c.header...)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text, `name="semel-account" content="`+c.account+`"`) {
				t.Errorf("the page is not for %q", c.account)
			}
			cookie := resp.Header.Get("Set-Cookie")
			if (cookie != "") != c.cookie || c.cookie && (!strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict")) {
				t.Errorf("the cookie is %q", cookie)
			}
			if !strings.Contains(resp.Header.Get("Content-Security-Policy"), "script-src 'self';") {
				t.Errorf("the policy is %q", resp.Header.Get("Content-Security-Policy"))
			}
		})
	}
}

// The next transmission loses its answer, and all of its answers where it is sent
// again; the operation is committed. No other transmission is touched.
func TestLosingAnAnswer(t *testing.T) {
	base, ledger := newSite(t)
	path := base + "/v1/operations/" + menuexport.KindName + "/"
	put := func(id, attempt string) (int, error) {
		resp, _, err := ask(t, "PUT", path+id, menu, append(bearer(demoToken), "Attempt-Id", attempt)...)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, nil
	}
	if _, text, err := ask(t, "PUT", base+"/demo/causes", `{"lose_answer":true}`, bearer(demoToken)...); err != nil || !strings.Contains(text, `"lose_answer":true`) {
		t.Fatalf("%s %v", text, err)
	}
	// Whoever is nobody can't use it up.
	if resp, _, err := ask(t, "PUT", path+"one", menu, bearer("semel_NOBODYNOBODYNOBODYNOBODYNO")...); err != nil || resp.StatusCode != 401 {
		t.Fatalf("%v %v", resp, err)
	}
	for range 3 {
		if status, err := put("one", "first"); err == nil {
			t.Errorf("the answer came: %d", status)
		}
	}
	if _, err := ledger.Get(t.Context(), semel.Key{Account: "demo", Kind: menuexport.KindName, ID: "one"}); err != nil {
		t.Errorf("it is not committed: %v", err)
	}
	if status, err := put("one", "second"); err != nil || status != 200 {
		t.Errorf("another transmission: %d %v", status, err)
	}
	if status, err := put("two", "third"); err != nil || status != 201 {
		t.Errorf("another operation: %d %v", status, err)
	}
	var told Causes
	_, text, err := ask(t, "GET", base+"/demo/causes", "", bearer(demoToken)...)
	if err == nil {
		err = json.Unmarshal([]byte(text), &told)
	}
	if err != nil || told.LoseAnswer || len(told.Losses) != 1 || told.Losses[0].OperationID != "one" || told.Losses[0].Times != 3 {
		t.Errorf("%s %v", text, err)
	}
	if _, text, err := ask(t, "GET", base+"/demo/causes", "", bearer(guestToken)...); err != nil || !strings.Contains(text, `"losses":[]`) {
		t.Errorf("the guest is told %s %v", text, err)
	}
}

// One switch is moved at a time, by those who may, from this page.
func TestMovingSwitches(t *testing.T) {
	base, _ := newSite(t)
	move := func(change string, header ...string) (int, string) {
		resp, text, err := ask(t, "PUT", base+"/demo/causes", change, header...)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, text
	}
	move(`{"kill_worker":true}`, bearer(demoToken)...)
	move(`{"lose_answer":true}`, bearer(demoToken)...)
	if _, text := move(`{"slow_generator":true}`, bearer(demoToken)...); !strings.HasPrefix(text, `{"lose_answer":true,"kill_worker":true,"slow_generator":true,`) {
		t.Errorf("they stand at %s", text)
	}
	if _, text := move(`{"kill_worker":false}`, bearer(demoToken)...); !strings.HasPrefix(text, `{"lose_answer":true,"kill_worker":false,"slow_generator":true,`) {
		t.Errorf("they stand at %s", text)
	}
	for name, c := range map[string]struct {
		status int
		change string
		header []string
	}{
		"nobody":        {401, `{"kill_worker":true}`, nil},
		"the guest":     {403, `{"kill_worker":true}`, bearer(guestToken)},
		"another page":  {403, `{"kill_worker":true}`, append(bearer(demoToken), "Sec-Fetch-Site", "cross-site")},
		"another place": {403, `{"kill_worker":true}`, append(bearer(demoToken), "Origin", "https://evil.example")},
		"no JSON":       {400, `kill`, bearer(demoToken)},
		"no switch":     {400, `{"kill_everybody":true}`, bearer(demoToken)},
	} {
		if status, text := move(c.change, c.header...); status != c.status {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

func TestCounts(t *testing.T) {
	base, _ := newSite(t)
	for i, token := range []string{demoToken, demoToken, guestToken} {
		if resp, _, err := ask(t, "PUT", base+"/v1/operations/"+menuexport.KindName+"/"+string(rune('a'+i)), menu, bearer(token)...); err != nil || resp.StatusCode != 201 {
			t.Fatalf("%v %v", resp, err)
		}
	}
	for token, want := range map[string]string{
		demoToken:  `{"operations":2,"all_operations":3,"executions":0,"images":0}`,
		guestToken: `{"operations":1,"all_operations":3,"executions":0,"images":0}`,
	} {
		if _, text, err := ask(t, "GET", base+"/demo/counts", "", bearer(token)...); err != nil || strings.TrimSpace(text) != want {
			t.Errorf("%s %v", text, err)
		}
	}
	// Carried on from the last count.
	for i := range 3 {
		if resp, _, err := ask(t, "PUT", base+"/v1/operations/"+menuexport.KindName+"/more-"+string(rune('a'+i)), menu, bearer(demoToken)...); err != nil || resp.StatusCode != 201 {
			t.Fatalf("%v %v", resp, err)
		}
	}
	want := `{"operations":5,"all_operations":6,"executions":0,"images":0}`
	if _, text, err := ask(t, "GET", base+"/demo/counts", "", bearer(demoToken)...); err != nil || strings.TrimSpace(text) != want {
		t.Errorf("%s %v", text, err)
	}
	if resp, _, err := ask(t, "GET", base+"/demo/counts", ""); err != nil || resp.StatusCode != 401 {
		t.Errorf("%v %v", resp, err)
	}
}

// Everything that is not there is answered alike.
func TestPicturesAreTheirOwners(t *testing.T) {
	base, _ := newSite(t)
	if resp, _, err := ask(t, "PUT", base+"/v1/operations/"+menuexport.KindName+"/one", menu, bearer(demoToken)...); err != nil || resp.StatusCode != 201 {
		t.Fatalf("%v %v", resp, err)
	}
	first := ""
	for _, c := range [][2]string{{demoToken, "/menus/one/images/a.png"}, {guestToken, "/menus/one/images/a.png"}, {guestToken, "/menus/never/images/a.png"}} {
		resp, text, err := ask(t, "GET", base+c[1], "", bearer(c[0])...)
		if err != nil || resp.StatusCode != 404 {
			t.Fatalf("%v: %v %v", c, resp, err)
		}
		if c[0] == guestToken {
			if first == "" {
				first = text
			}
			if text != first {
				t.Errorf("%v: %s, and before %s", c, text, first)
			}
		}
	}
}
