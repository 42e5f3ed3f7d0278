package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/examples/menuexport/generator"
)

const smallMenu = `{"title":"本周菜单","days":[{"day":"周一","dishes":["番茄炒蛋"]}],"width":320}`

// The server, with its worker, is killed at random moments while clients ask.
// What was acknowledged must be there, and must have happened once.
func TestKillServerAtRandomMoments(t *testing.T) {
	const kills = 50
	gen, generatorURL := startGenerator(t, generator.Idempotent)
	file, token := writeConfig(t, generatorURL, "idempotent")
	log := &syncBuffer{}

	var base atomic.Value // the address changes with every start
	server := start(t, log, nil, []string{"serve", "--config", file}, "api")
	base.Store(server.lines["api"])

	stop := make(chan struct{})
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	sent := map[string]bool{}
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			client := &http.Client{Timeout: 3 * time.Second}
			for {
				id := semel.NewID()
				for acked := false; !acked; {
					select {
					case <-stop:
						return
					default:
					}
					mu.Lock()
					sent[id] = true
					mu.Unlock()
					resp, err := ask(t, client, "PUT", base.Load().(string)+"/v1/operations/menu-export/"+id, token, smallMenu, "Prefer", "wait=1")
					if err != nil {
						continue // no answer: the same again
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if acked = resp.StatusCode == 200 || resp.StatusCode == 201; acked {
						mu.Lock()
						acknowledged[id] = true
						mu.Unlock()
					} else if resp.StatusCode < 500 {
						t.Errorf("PUT %s: %s", id, resp.Status)
						return
					}
				}
			}
		})
	}
	for range kills {
		// The random moment is the point of this test; there is no signal to wait for.
		<-time.After(time.Duration(rand.IntN(300)) * time.Millisecond)
		server.kill()
		server = start(t, log, nil, []string{"serve", "--config", file}, "api")
		base.Store(server.lines["api"])
	}
	close(stop)
	clients.Wait()
	defer server.kill()

	settled := 0
	for id := range sent {
		resp, err := ask(t, http.DefaultClient, "PUT", base.Load().(string)+"/v1/operations/menu-export/"+id, token, smallMenu, "Prefer", "wait=60")
		if err != nil {
			t.Fatal(err)
		}
		var op semel.Operation
		json.NewDecoder(resp.Body).Decode(&op)
		resp.Body.Close()
		if acknowledged[id] && resp.StatusCode != 200 {
			t.Errorf("%s was acknowledged, and is now answered with %s", id, resp.Status)
		}
		if op.State != semel.Succeeded {
			t.Errorf("%s is %q: %+v", id, op.State, op.Failure)
		}
		if n := effectsOf(t, gen, id); n != 1 {
			t.Errorf("%s had %d effects", id, n)
		}
		settled++
	}
	if n := generatorCount(t, gen); n != len(sent) {
		t.Errorf("%d operations, %d effects under whatever key", len(sent), n)
	}
	t.Logf("%d kills, %d operations, %d acknowledged while killing", kills, settled, len(acknowledged))
}

// effectsOf counts what happened under the key that one operation has at the
// generator.
func effectsOf(t *testing.T, gen *generator.Server, id string) int {
	t.Helper()
	c, err := contract.Preset(contract.Idempotent)
	if err != nil {
		t.Fatal(err)
	}
	call := effect.Call{Key: semel.Key{Account: "acme", Kind: "menu-export", ID: id}, Contract: c}
	key, err := call.DownstreamKey()
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	gen.ServeHTTP(rec, httptest.NewRequest("GET", "/images?key="+url.QueryEscape(key), nil))
	var list struct{ Images []json.RawMessage }
	if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || rec.Code != 200 {
		t.Fatalf("%d %v: %s", rec.Code, err, rec.Body)
	}
	return len(list.Images)
}

func generatorCount(t *testing.T, gen *generator.Server) int {
	t.Helper()
	rec := httptest.NewRecorder()
	gen.ServeHTTP(rec, httptest.NewRequest("GET", "/stats", nil))
	var stats struct{ Executions, Images int }
	if err := json.Unmarshal(rec.Body.Bytes(), &stats); err != nil {
		t.Fatal(err)
	}
	return stats.Executions
}

// No parameters, results or tokens in any log line of a full run.
func TestLogsHoldNoSecrets(t *testing.T) {
	_, generatorURL := startGenerator(t, generator.Idempotent)
	file, token := writeConfig(t, generatorURL, "idempotent")
	log := &syncBuffer{}
	server := start(t, log, nil, []string{"serve", "--config", file}, "api")
	defer server.kill()
	url := server.lines["api"] + "/v1/operations/menu-export/"

	menu := `{"title":"secret-title","days":[{"day":"secret-day","dishes":["secret-dish"]}],"width":320}`
	var result string
	for _, step := range []struct {
		method, url, token, body string
		status                   int
	}{
		{"PUT", url + "one", token, menu, 201},
		{"PUT", url + "one", token, menu, 200},
		{"PUT", url + "one", token, strings.Replace(menu, "320", "321", 1), 409},
		{"PUT", url + "two", token, `{"title":"secret-broken`, 400},
		{"PUT", url + "two", token, `{"title":"secret-wrong","days":[]}`, 400},
		{"PUT", url + "three", "semel_WRONGTOKENWRONGTOKENWRONG", menu, 401},
		{"GET", url + "one", token, "", 200},
		{"GET", url + "one?secret-query=1", token, "", 200},
		{"GET", url + "one", token + "-other", "", 404},
		{"GET", url + "one/history", token, "", 200},
		{"DELETE", url + "one", token, "", 409},
	} {
		resp, err := ask(t, http.DefaultClient, step.method, step.url, step.token, step.body, "Prefer", "wait=30")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != step.status {
			t.Errorf("%s %s: %s, want %d: %s", step.method, step.url, resp.Status, step.status, body)
		}
		var op struct{ Result struct{ SHA256 string } }
		if json.Unmarshal(body, &op); op.Result.SHA256 != "" {
			result = op.Result.SHA256
		}
	}
	if result == "" {
		t.Fatal("there was no result to look for")
	}
	text := log.String()
	for _, secret := range []string{"secret-", token, "WRONGTOKEN", result, "番茄"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	if !strings.Contains(text, `"id":"one"`) {
		t.Errorf("the log does not name the operation; the test looks at the wrong place:\n%s", text)
	}
}

// Two hundred at once with one key: one is the first, all see the same operation.
func TestManyAtOnceAreOne(t *testing.T) {
	gen, generatorURL := startGenerator(t, generator.Idempotent)
	file, token := writeConfig(t, generatorURL, "idempotent")
	server := start(t, &syncBuffer{}, nil, []string{"serve", "--config", file}, "api")
	defer server.kill()
	url := server.lines["api"] + "/v1/operations/menu-export/" + semel.NewID()

	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 64}}
	var statuses sync.Map
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			resp, err := ask(t, client, "PUT", url, token, smallMenu)
			if err != nil {
				t.Error(err)
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			statuses.Store(i, resp.StatusCode)
		})
	}
	all.Wait()
	count := map[int]int{}
	statuses.Range(func(_, status any) bool { count[status.(int)]++; return true })
	if fmt.Sprint(count) != "map[200:199 201:1]" {
		t.Errorf("statuses %v", count)
	}
	resp, err := ask(t, client, "PUT", url, token, smallMenu, "Prefer", "wait=30")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if n := generatorCount(t, gen); n != 1 {
		t.Errorf("%d executions", n)
	}

	resp, err = ask(t, client, "PUT", url, token, strings.Replace(smallMenu, "320", "640", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var problem struct {
		Code   string   `json:"code"`
		Fields []string `json:"differing_fields"`
	}
	json.NewDecoder(resp.Body).Decode(&problem)
	if resp.StatusCode != 409 || problem.Code != "fingerprint-mismatch" || fmt.Sprint(problem.Fields) != "[/width]" {
		t.Errorf("%s %+v", resp.Status, problem)
	}
}
