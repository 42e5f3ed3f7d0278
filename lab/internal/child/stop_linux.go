package child

import (
	"os"
	"runtime"
	"syscall"
)

// StopSelf stops this process until somebody lets it go on. The signal goes to
// this very thread, so nothing runs between it and the stop, and what follows is
// the first thing that happens afterwards.
func StopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGSTOP)
}
