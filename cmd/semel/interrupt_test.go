//go:build linux

package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/httpapi"
)

// terminal opens a pseudo-terminal; the program gets user.
func terminal(t *testing.T) (screen, user *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if user, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { user.Close() })
	return screen, user
}

// shown reads what is on the screen until part is there.
func shown(t *testing.T, screen *os.File, part string) string {
	t.Helper()
	var all []byte
	for buf := make([]byte, 1024); !bytes.Contains(all, []byte(part)); {
		n, err := screen.Read(buf)
		if err != nil {
			t.Fatalf("%v; the screen shows %q", err, all)
		}
		all = append(all, buf[:n]...)
	}
	return string(all)
}

// Ctrl-C ends what the lab does with a report of what has run so far, which says
// that it is partial.
func TestInterruptedLabReports(t *testing.T) {
	for _, c := range []struct {
		args     string
		progress string
		says     []string
	}{
		{"explore", "100 schedules", []string{" schedules ran (", wasInterrupted, "The single faults had not all run"}},
		{"crash --rounds 1000 --parallel 2", "3 of 18000 workers killed", []string{"as it should be", "idempotent", "yes", wasInterrupted}},
		{"soak --seed 7 --kill-every 100ms", "2 kills", []string{" kills and ", "nothing has been judged", "--seed 7"}},
	} {
		screen, user := terminal(t)
		cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"lab"}, strings.Fields(c.args)...)...)
		cmd.Env = append(os.Environ(), "SEMEL_TEST_COMMAND=1", "TERM=xterm")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, user
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if progress := shown(t, screen, c.progress); !strings.Contains(progress, "\x1b[?7l") {
			t.Errorf("%s: a narrow terminal would wrap it: %q", c.args, progress)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != interrupted {
			t.Errorf("%s: exit %d", c.args, code)
		}
		says(t, c.args, out.String(), c.says...)
		if strings.Contains(out.String(), "NO") {
			t.Errorf("%s: what was interrupted is called wrong:\n%s", c.args, &out)
		}
		shown(t, screen, "semel lab: interrupted before the end\r\n")
	}
}

// Ctrl-C ends a wait for an answer, and not the doubt: what was sent may have been
// recorded, and how to find out is said.
func TestInterruptedOpSaysThatItIsUnconfirmed(t *testing.T) {
	file, token := writeConfig(t, "http://127.0.0.1:1", "opaque")
	operator := httpapi.NewToken()
	appendTo(t, file, fmt.Sprintf("operators: [{name: kim, hash: %q, accounts: [acme]}]\n", httpapi.HashToken(operator)))
	server := start(t, &syncBuffer{}, nil, []string{"serve", "--config", file}, "api")
	defer server.kill()
	base, err := url.Parse(server.lines["api"])
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := fault.NewProxy(base, &fault.ProxyOptions{Rules: []fault.Rule{fault.MustRule("hold")}})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	through, err := proxy.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, token string
		want        []string
	}{
		{"resolve acme/menu-export/1 --verdict applied --evidence x --revision 7", operator,
			[]string{"unconfirmed", "it may have been recorded", "Run the same command again with --revision 7"}},
		{"abandon menu-export/2", token, []string{"unconfirmed", "it may have been recorded", "Run the same command again"}},
		{"get menu-export/2", token, []string{"nothing was changed"}},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"op"}, strings.Fields(c.args)...)...)
		cmd.Env = append(os.Environ(), "SEMEL_TEST_COMMAND=1", "SEMEL_SERVER="+through, "SEMEL_TOKEN="+c.token)
		var out, log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := proxy.WaitHeld(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != interrupted || out.Len() > 0 {
			t.Errorf("%s: exit %d: %s", c.args, code, &out)
		}
		says(t, c.args, log.String(), append(c.want, "interrupted before the end")...)
		proxy.Release()
	}
	// The server had done it, and says so to who asks again.
	out, _, code := toEnd(t, []string{"SEMEL_SERVER=" + base.String(), "SEMEL_TOKEN=" + token}, "op", "abandon", "menu-export/2")
	if code != 0 || !strings.Contains(out, "abandoned") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// A first Ctrl-C lets a call that is under way end; a second one does not wait.
func TestSecondCtrlC(t *testing.T) {
	called, done := make(chan struct{}), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(called)
		<-done
	}))
	defer service.Close()
	defer close(done)
	file, token := writeConfig(t, service.URL, "opaque")
	edit(t, file, "timeout: 2s", "timeout: 10m")
	edit(t, file, "lease: 3s", "lease: 1h")
	appendTo(t, file, "worker: {drain: 10m}\n")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--config", file)
	cmd.Env = append(os.Environ(), "SEMEL_TEST_COMMAND=1")
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	_, api, _ := strings.Cut(shown(t, reader, "console: "), "api: ")
	api, _, _ = strings.Cut(api, "\n")
	resp, err := ask(t, http.DefaultClient, "PUT", api+"/v1/operations/menu-export/1", token, smallMenu)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-called
	cmd.Process.Signal(os.Interrupt)
	shown(t, reader, `"msg":"stopping","hint":"running executions may end; a second Ctrl-C does not wait`)
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}

// What is wrong with a configuration, its database or its address is told with the
// line, and that nothing was started; what is hardly meant is logged.
func TestServeSaysThatNothingWasStarted(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, c := range map[string]struct{ from, to, want string }{
		"a member":   {"timeout: 2s", "time_out: 2s", `there is no member "time_out" here`},
		"a value":    {"lease: 3s", "lease: 2s", "semel.yaml:12: kinds.menu-export.timeout: one call may take 2s"},
		"a database": {"database: semel.db", "database: none/semel.db", "semel.yaml:2: database: "},
		"an address": {"listen: 127.0.0.1:0", "listen: " + taken.Addr().String(), "semel.yaml:1: listen: " + taken.Addr().String() + " is in use, perhaps by another node"},
	} {
		file, _ := writeConfig(t, "http://127.0.0.1:1", "opaque")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, bytes.TrimSpace(text), 0o600); err != nil {
			t.Fatal(err)
		}
		edit(t, file, c.from, c.to)
		out, log, status := toEnd(t, nil, "serve", "--config", file)
		if status != 1 || out != "" || !strings.HasSuffix(log, "\nnothing was started\n") {
			t.Errorf("%s: status %d: %s%s", name, status, out, log)
		}
		says(t, name, log, c.want)
	}
	file, _ := writeConfig(t, "http://127.0.0.1:1", "opaque")
	edit(t, file, "lease: 3s", "lease: 2h")
	log := &syncBuffer{}
	start(t, log, nil, []string{"serve", "--config", file}, "api").kill()
	says(t, "a doubt", log.String(), `"level":"WARN"`, "semel.yaml:14: kinds.menu-export.lease", "noticed only after 2h0m0s")
}

// What can't be printed is not printed: a token that nobody has read is no success.
func TestOutputThatIsLost(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"token"}, {"version"}, {"lab", "list"}} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = append(os.Environ(), "SEMEL_TEST_COMMAND=1")
		var log bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &log
		cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(log.String(), "no space left on device") {
			t.Errorf("%v: exit %d: %s", args, code, &log)
		}
	}
}

// A reader that has seen enough ends the command quietly, as pipes do.
func TestOutputIntoHead(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "lab", "list")
	cmd.Env = append(os.Environ(), "SEMEL_TEST_COMMAND=1")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = writer, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGPIPE || log.Len() > 0 {
		t.Errorf("it ended with %v: %s", cmd.ProcessState, &log)
	}
}
