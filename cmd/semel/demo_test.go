//go:build linux

package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The demo prints where everything is, and each of these is really there.
func TestDemoSaysWhereItIs(t *testing.T) {
	d := startDemo(t, "idempotent")
	if d.lines["token"] != d.token || d.lines["page"] != d.lines["api"]+"/" {
		t.Errorf("it printed %v", d.lines)
	}
	var session struct {
		Account  string
		Operator bool
	}
	if status := d.call("GET", "/v1/session", d.token, "", &session); status != 200 || session.Account != "demo" || !session.Operator {
		t.Errorf("the token is answered with %d, %+v", status, session)
	}
	var stats map[string]int
	if status := d.call("GET", d.generator+"/stats", "", "", &stats); status != 200 || stats["executions"] != 0 {
		t.Errorf("the generator says %d, %v", status, stats)
	}
	if kids := children(t, d.cmd.Process.Pid); len(kids) != 3 {
		t.Errorf("its children are %v", kids)
	}
}

// Without SEMEL_DEMO_TOKEN a token is made, once for each folder.
func TestDemoKeepsItsToken(t *testing.T) {
	args := []string{"demo", "--data", t.TempDir(), "--addr", "127.0.0.1:0"}
	var tokens []string
	for range 2 {
		p := start(t, &syncBuffer{}, []string{"SEMEL_DEMO_TOKEN="}, args, "page", "api", "generator", "token")
		tokens = append(tokens, p.lines["token"])
		p.cmd.Process.Signal(syscall.SIGTERM)
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("it ended with %v:\n%s", err, p.log)
		}
	}
	if tokens[0] != tokens[1] || !strings.HasPrefix(tokens[0], "semel_") {
		t.Errorf("its tokens are %v", tokens)
	}
}

// SIGTERM and Ctrl-C end it cleanly, with a task under way, and leave nobody behind.
func TestDemoStopsCleanly(t *testing.T) {
	for name, stop := range map[string]func(pid int) error{
		"SIGTERM": func(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) },
		"SIGINT":  func(pid int) error { return syscall.Kill(pid, syscall.SIGINT) },
		// A terminal sends it to the children as well.
		"Ctrl-C": func(pid int) error {
			for child := range children(t, pid) {
				syscall.Kill(child, syscall.SIGINT)
			}
			return syscall.Kill(pid, syscall.SIGINT)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := startDemo(t, "idempotent")
			d.call("PUT", "/demo/causes", d.token, `{"slow_generator":true}`, nil)
			d.call("PUT", "/v1/operations/menu-export/one", d.token, smallMenu, nil)
			kids := children(t, d.cmd.Process.Pid)
			if err := stop(d.cmd.Process.Pid); err != nil {
				t.Fatal(err)
			}
			if err := d.cmd.Wait(); err != nil {
				t.Errorf("it ended with %v; its log:\n%s", err, d.log)
			}
			for pid, child := range kids {
				if syscall.Kill(pid, 0) == nil {
					t.Errorf("%s is still there", child)
				}
			}
			if log := d.log.String(); strings.Contains(log, "panic") || strings.Contains(log, `"level":"ERROR"`) {
				t.Errorf("its log:\n%s", log)
			}
			d.start() // for the clean-up, and to see that it carries on
			var op struct{ State string }
			d.call("GET", "/v1/operations/menu-export/one", d.token, "", &op, "Prefer", "wait=30")
			if op.State != "succeeded" {
				t.Errorf("after the restart the task is %q", op.State)
			}
		})
	}
}

// When the demo is killed its children end by themselves.
func TestDemoKilledLeavesNobody(t *testing.T) {
	d := startDemo(t, "idempotent")
	kids := children(t, d.cmd.Process.Pid)
	if len(kids) != 3 {
		t.Fatalf("its children are %v", kids)
	}
	ended := map[int]<-chan struct{}{}
	for pid := range kids {
		ended[pid] = whenEnded(t, pid)
	}
	d.cmd.Process.Kill()
	for pid, done := range ended {
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Errorf("%s is still there", kids[pid])
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	d.cmd.Wait() // until nobody has its standard error any more
	d.start()    // and nothing that they held is in the way
}

// whenEnded tells when a process that is not ours has ended.
func whenEnded(t *testing.T, pid int) <-chan struct{} {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer unix.Close(fd)
		for {
			// It can be read once the process has ended.
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err != unix.EINTR {
				return
			}
		}
	}()
	return done
}

// What is wrong with the command is told in one line that says what to do.
func TestDemoRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	d := startDemo(t, "idempotent")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"address in use":  {[]string{"--addr", taken.Addr().String(), "--data", t.TempDir()}, "is in use"},
		"no such promise": {[]string{"--contract", "hopeful", "--data", t.TempDir()}, "none of idempotent, queryable, opaque"},
		"folder in use":   {[]string{"--addr", "127.0.0.1:0", "--data", d.data}, "in use"},
		"no such flag":    {[]string{"--port", "1"}, "there is no flag -port"},
	} {
		t.Run(name, func(t *testing.T) {
			out, log, code := toEnd(t, nil, append([]string{"demo"}, c.args...)...)
			if code == 0 || !strings.Contains(out+log, c.want) {
				t.Errorf("it ended with %d and said:\n%s%s", code, out, log)
			}
		})
	}
}

// A child that is killed comes back under the same address, and nobody who asks
// meanwhile is told "connection refused".
func TestDemoChildrenComeBack(t *testing.T) {
	d := startDemo(t, "idempotent")
	d.call("PUT", "/demo/causes", d.token, `{"slow_generator":true}`, nil)
	for _, child := range []string{"server", "generator", "worker"} {
		syscall.Kill(d.child(child), syscall.SIGKILL)
	}
	for _, url := range []string{d.page, d.generator + "/healthz"} {
		resp, err := http.Get(url)
		if err != nil {
			// The connection that the killed process had taken may be cut; a new one is not.
			resp, err = http.Get(url)
		}
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("%s: %s", url, resp.Status)
		}
	}
	// The generator forgets its faults, and is told of them again.
	var faults struct {
		Delay int `json:"delay_ms"`
	}
	for end := time.Now().Add(20 * time.Second); faults.Delay != 3000 && time.Now().Before(end); {
		d.call("GET", d.generator+"/faults", "", "", &faults)
	}
	if faults.Delay != 3000 {
		t.Errorf("the switch is on, and the generator is not slow: %+v", faults)
	}
	var op struct{ State string }
	d.call("PUT", "/v1/operations/menu-export/one", d.token, smallMenu, &op, "Prefer", "wait=30")
	if op.State != "succeeded" {
		t.Errorf("the task is %q", op.State)
	}
}
