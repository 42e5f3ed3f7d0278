//go:build unix

package child

import (
	"os"
	"syscall"
)

// wasKilled reports whether a process was ended by SIGKILL.
func wasKilled(state *os.ProcessState) bool {
	ws, ok := state.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// KillSelf ends this process at once, as a crash would. It does not return.
func KillSelf() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// stop stops a process until it is let go on.
func stop(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// goOn lets a stopped process go on.
func goOn(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// CanStop says that a process can stop here, and go on.
const CanStop = true
