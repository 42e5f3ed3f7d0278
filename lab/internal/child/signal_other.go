//go:build !unix

package child

import (
	"errors"
	"os"
)

func wasKilled(state *os.ProcessState) bool { return !state.Success() }

// KillSelf ends this process at once, as a crash would. It does not return.
func KillSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		p.Kill()
	}
	select {}
}

// StopSelf can do nothing here; see [CanStop].
func StopSelf() {}

var errCantStop = errors.New("processes can't be stopped here")

func stop(*os.Process) error { return errCantStop }

func goOn(*os.Process) error { return errCantStop }

// CanStop says that a process can stop here, and go on.
const CanStop = false
