package service

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv("LAB_SERVICE_VICTIM") != "" {
		select {}
	}
	os.Exit(m.Run())
}

func start(t *testing.T, dir string, o *Options) (url string, stop func()) {
	t.Helper()
	s, err := New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	stop = func() {
		server.Close()
		s.Close()
	}
	return server.URL, stop
}

func ask(t *testing.T, method, url, key, body string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	req.Header.Set("Authorization", "Bearer secret")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), resp.Header
}

func count(t *testing.T, url, order string) Count {
	t.Helper()
	_, text, _ := ask(t, "GET", url+"/books?order="+order, "", "")
	var c map[string]Count
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c[order]
}

// What each promise makes of a repeat, and of a key that comes with another order.
func TestPromises(t *testing.T) {
	for _, c := range []struct {
		promise Promise
		repeat  int // effects after two requests
		other   int // the status of another order under the same key
	}{{Idempotent, 1, 422}, {Stored, 1, 422}, {Queryable, 2, 201}, {Opaque, 2, 201}} {
		url, stop := start(t, t.TempDir(), nil)
		for range 2 {
			if status, body, _ := ask(t, "POST", url+"/orders/"+string(c.promise), "k", `{"order":"a"}`); status != 201 {
				t.Errorf("%s: %d %s", c.promise, status, body)
			}
		}
		if n := count(t, url, "a"); n.Done != c.repeat || n.Arrived != 2 || len(n.Times) != c.repeat {
			t.Errorf("%s: %+v", c.promise, n)
		}
		if status, _, _ := ask(t, "POST", url+"/orders/"+string(c.promise), "k", `{"order":"b"}`); status != c.other {
			t.Errorf("%s: another order is %d", c.promise, status)
		}
		stop()
	}
}

func TestLookUp(t *testing.T) {
	url, stop := start(t, t.TempDir(), nil)
	defer stop()
	ask(t, "POST", url+"/orders/queryable", "k", `{"order":"a"}`)
	for path, want := range map[string]int{"/orders/queryable/k": 200, "/orders/queryable/other": 404, "/orders/opaque/k": 404} {
		if status, _, _ := ask(t, "GET", url+path, "", ""); status != want {
			t.Errorf("%s is %d", path, status)
		}
	}
}

// A stored server error comes back, and the effect is there.
func TestStoredErrors(t *testing.T) {
	url, stop := start(t, t.TempDir(), &Options{StoreErrors: 1})
	defer stop()
	for i := range 2 {
		status, _, header := ask(t, "POST", url+"/orders/stored", "k", `{"order":"a"}`)
		if status != 500 || (header.Get("Idempotency-Replayed") != "") != (i == 1) {
			t.Errorf("%d: %d %v", i, status, header)
		}
	}
	if n := count(t, url, "a"); n.Done != 1 {
		t.Errorf("%+v", n)
	}
}

// A key is forgotten after its time, and then it is a new request.
func TestKeys(t *testing.T) {
	url, stop := start(t, t.TempDir(), &Options{Keep: time.Nanosecond})
	defer stop()
	for range 2 {
		ask(t, "POST", url+"/orders/idempotent", "k", `{"order":"a"}`)
	}
	if n := count(t, url, "a"); n.Done != 2 {
		t.Errorf("%+v", n)
	}
}

// The books survive, without the line that a kill has cut short.
func TestBooksLast(t *testing.T) {
	dir := t.TempDir()
	url, stop := start(t, dir, nil)
	ask(t, "POST", url+"/orders/idempotent", "k", `{"order":"a"}`)
	stop()
	file := filepath.Join(dir, "books.jsonl")
	text, _ := os.ReadFile(file)
	if err := os.WriteFile(file, append(text, `{"order":"b","key`...), 0o600); err != nil {
		t.Fatal(err)
	}
	url, stop = start(t, dir, nil)
	defer stop()
	status, _, header := ask(t, "POST", url+"/orders/idempotent", "k", `{"order":"a"}`)
	if status != 201 || header.Get("Idempotency-Replayed") == "" || count(t, url, "a").Done != 1 || count(t, url, "b").Done != 0 {
		t.Errorf("%d %v", status, header)
	}
}

// A process is killed at the point, the effect stands, and only who knows the
// secret may ask for it.
func TestKill(t *testing.T) {
	url, stop := start(t, t.TempDir(), &Options{Secret: "secret"})
	defer stop()
	for i, c := range []struct {
		at   string
		drop bool
		done int
	}{{"arrived", false, 1}, {"arrived", true, 0}, {"done", false, 1}} {
		victim := exec.Command(os.Args[0])
		victim.Env = append(os.Environ(), "LAB_SERVICE_VICTIM=1")
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		order := fmt.Sprintf("order-%d", i)
		body := fmt.Sprintf(`{"order":%q,"at":%q,"pid":%d,"drop":%v}`, order, c.at, victim.Process.Pid, c.drop)
		if status, text, _ := ask(t, "PUT", url+"/kill", "", body); status != 204 {
			t.Fatal(status, text)
		}
		ask(t, "POST", url+"/orders/opaque", "", fmt.Sprintf(`{"order":%q}`, order))
		victim.Wait()
		if ws := victim.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
			t.Errorf("%s: it ended with %v", c.at, victim.ProcessState)
		}
		if n := count(t, url, order); n.Done != c.done {
			t.Errorf("%s: %+v", c.at, n)
		}
	}
	req, _ := http.NewRequest("PUT", url+"/kill", strings.NewReader(`{}`))
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 403 {
		t.Error(err, resp.Status)
	}
}

// The faults of package fault are at hand.
func TestFaults(t *testing.T) {
	url, stop := start(t, t.TempDir(), nil)
	defer stop()
	if status, text, _ := ask(t, "PUT", url+"/faults/rules", "", "lose-answer nth=1"); status != 200 {
		t.Fatal(status, text)
	}
	if status, _, _ := ask(t, "POST", url+"/orders/opaque", "", `{"order":"a"}`); status != 0 {
		t.Errorf("there was an answer: %d", status)
	}
	if n := count(t, url, "a"); n.Done != 1 {
		t.Errorf("%+v", n)
	}
}
