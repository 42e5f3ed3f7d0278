package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A Process is a child.
type Process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	// Addr is what it said with "ready".
	Addr string
	// said gets the lines that follow.
	said  chan string
	log   *tail
	ended chan struct{} // closed when it has ended, and cmd.ProcessState is set
}

// startPatience is how long a process may take to be ready, on a busy machine.
const startPatience = time.Minute

// Start starts this program with these arguments, and waits until it is ready. The
// child ends when this process does, however that ends.
func Start(ctx context.Context, args []string, setup any, files ...*os.File) (*Process, error) {
	text, err := json.Marshal(setup)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{name: args[0], cmd: exec.Command(program, args...), said: make(chan string, 16), log: &tail{}, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), setupEnv+"="+string(text))
	p.cmd.Stderr, p.cmd.ExtraFiles = p.log, files
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	go p.watch(out, ready)
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	select {
	case p.Addr = <-ready:
		return p, nil
	case <-p.ended:
		err = errors.New("it ended before it was ready")
	case <-patience.C:
		err = errors.New("it is not ready after a minute")
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.Kill()
	return nil, p.Problem(err)
}

// watch reads what the child prints, until it ends.
func (p *Process) watch(out io.Reader, ready chan<- string) {
	for in := bufio.NewScanner(out); in.Scan(); {
		if addr, ok := strings.CutPrefix(in.Text(), readyWord); ok {
			ready <- strings.TrimSpace(addr)
			continue
		}
		select {
		case p.said <- in.Text():
		default: // nobody listens
		}
	}
	p.cmd.Wait()
	close(p.ended)
}

// Release lets a child begin that was told to wait.
func (p *Process) Release() error {
	_, err := io.WriteString(p.stdin, "go\n")
	return err
}

// PID is the number of its process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop stops the child, wherever it is, until [Process.GoOn].
func (p *Process) Stop() error { return stop(p.cmd.Process) }

// GoOn lets the child go on after [Process.Stop] or [StopSelf].
func (p *Process) GoOn() error { return goOn(p.cmd.Process) }

// Kill ends the child as a crash would, and waits until it has ended.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

// Killed waits until the child has ended, and reports whether it was killed, as
// it should be.
func (p *Process) Killed(ctx context.Context) error {
	select {
	case <-p.ended:
	case <-ctx.Done():
		return p.Problem(fmt.Errorf("it was to be killed, and is still there: %w", ctx.Err()))
	}
	if !wasKilled(p.cmd.ProcessState) {
		return p.Problem(fmt.Errorf("it was to be killed, and ended by itself: %s", p.cmd.ProcessState))
	}
	return nil
}

// AwaitLine waits until the child has printed that line.
func (p *Process) AwaitLine(ctx context.Context, line string) error {
	for {
		select {
		case said := <-p.said:
			if said == line {
				return nil
			}
		case <-p.ended:
			return p.Problem(fmt.Errorf("it ended before it said %q", line))
		case <-ctx.Done():
			return p.Problem(fmt.Errorf("it did not say %q: %w", line, ctx.Err()))
		}
	}
}

// Problem is an error about the child, with the end of its log.
func (p *Process) Problem(err error) error {
	return fmt.Errorf("process %s (%d): %w\n%s", p.name, p.cmd.Process.Pid, err, p.log)
}

// tail keeps the end of a log.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailLength = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailLength; over > 0 {
		t.text = append([]byte(nil), t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
