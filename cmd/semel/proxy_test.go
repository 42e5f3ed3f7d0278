package main

import (
	"context"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel/internal/pgtest"
)

// A service that knows nothing of us is called through the proxy: the answer is
// lost, the effect is there.
func TestProxyLosesTheAnswerAndKeepsTheEffect(t *testing.T) {
	var effects atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		effects.Add(1)
		w.Write([]byte("done"))
	}))
	defer service.Close()
	p := start(t, &syncBuffer{}, nil, []string{"proxy", "--to", service.URL, "--fault", "lose-answer count=1 path=/orders"}, "proxy", "control")
	defer p.kill()

	if resp, err := http.Post(p.lines["proxy"]+"/orders", "text/plain", strings.NewReader("one")); err == nil {
		t.Errorf("the answer arrived: %s", resp.Status)
	}
	if n := effects.Load(); n != 1 {
		t.Errorf("%d effects", n)
	}
	resp, err := http.Post(p.lines["proxy"]+"/orders", "text/plain", strings.NewReader("two"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if n := effects.Load(); n != 2 {
		t.Errorf("%d effects after two", n)
	}
}

// The same before a web service that is not ours: git's own, from the package git.
// The push fails, the branch is there, and a second push finds that out.
func TestProxyBeforeGit(t *testing.T) {
	dir := t.TempDir()
	git := func(in string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = in
		cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0", "NO_PROXY=127.0.0.1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	must := func(in string, args ...string) string {
		t.Helper()
		out, err := git(in, args...)
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return out
	}
	must(dir, "init", "--quiet", "--bare", "shop.git")
	must(dir+"/shop.git", "config", "http.receivepack", "true")
	must(dir, "init", "--quiet", "work")
	must(dir+"/work", "commit", "--quiet", "--allow-empty", "--message", "an order")
	commit := must(dir+"/work", "rev-parse", "HEAD")

	service := httptest.NewServer(&cgi.Handler{Path: must(dir, "--exec-path") + "/git-http-backend", Stderr: t.Output(),
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"}})
	defer service.Close()
	p := start(t, &syncBuffer{}, nil, []string{"proxy", "--to", service.URL, "--fault", "lose-answer count=1 method=POST path=/shop.git/git-receive-pack"}, "proxy", "control")
	defer p.kill()

	push := []string{"push", p.lines["proxy"] + "/shop.git", "HEAD:refs/heads/main"}
	if out, err := git(dir+"/work", push...); err == nil {
		t.Errorf("the answer arrived: %s", out)
	}
	if there := must(dir+"/shop.git", "rev-parse", "refs/heads/main"); there != commit {
		t.Errorf("the branch is at %s, want %s", there, commit)
	}
	if out := must(dir+"/work", push...); !strings.Contains(out, "up-to-date") {
		t.Errorf("the second push: %s", out)
	}
}

// The same before a service that is not ours: PostgreSQL. The connection breaks,
// and the row is there.
func TestProxyBeforePostgreSQL(t *testing.T) {
	database := pgtest.Database(t)
	direct, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close(context.Background())
	if _, err := direct.Exec(t.Context(), "CREATE TABLE orders (id int)"); err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, &syncBuffer{}, nil, []string{"proxy", "--to", "tcp://" + to.Host, "--fault", `lose-answer count=1 contains="INSERT INTO orders"`}, "proxy", "control")
	defer p.kill()

	to.Host = strings.TrimPrefix(p.lines["proxy"], "tcp://")
	through, err := pgx.Connect(t.Context(), to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer through.Close(context.Background())
	if _, err := through.Exec(t.Context(), "INSERT INTO orders VALUES (1)", pgx.QueryExecModeSimpleProtocol); err == nil {
		t.Error("the answer arrived")
	}
	var rows int
	if err := direct.QueryRow(t.Context(), "SELECT count(*) FROM orders").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

func TestProxySaysThatNothingWasStarted(t *testing.T) {
	out, log, code := toEnd(t, nil, "proxy", "--to", "http://127.0.0.1:1", "--control", "256.0.0.1:0")
	if code != 1 || out != "" || !strings.HasPrefix(log, "semel proxy: the control cannot listen: ") || !strings.HasSuffix(log, "\nnothing was started\n") {
		t.Errorf("exit %d: %s%s", code, out, log)
	}
}

func TestProxySaysWhatIsWrongWithARule(t *testing.T) {
	if code := run(t.Context(), []string{"proxy", "--to", "http://127.0.0.1:1", "--fault", "loose-answer"}); code != 2 {
		t.Errorf("exit %d", code)
	}
}
