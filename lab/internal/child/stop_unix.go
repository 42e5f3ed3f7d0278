//go:build unix && !linux

package child

import (
	"os"
	"os/signal"
	"syscall"
)

// StopSelf stops this process until somebody lets it go on. The signal may reach
// another thread first, so this one waits for the word to go on, too.
func StopSelf() {
	awake := make(chan os.Signal, 1)
	signal.Notify(awake, syscall.SIGCONT)
	defer signal.Stop(awake)
	syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-awake
}
