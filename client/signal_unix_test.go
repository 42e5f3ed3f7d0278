//go:build unix

package client

import (
	"os"
	"syscall"
	"testing"
)

// stopProcess stops a process, as a debugger or a full machine does.
func stopProcess(t testing.TB, p *os.Process) {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

// killSelf ends this process at once, with nothing written or closed.
func killSelf() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
