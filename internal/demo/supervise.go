package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// readyLine is what a child prints on its standard output once it serves.
const readyLine = "ready"

// supervisor keeps children running. A child that ends is started again, at once
// the first time and then after a growing wait; one that never became ready is
// an error.
type supervisor struct {
	program string
	env     []string
	log     io.Writer
	kids    []*child
}

// A child is one process, over and over.
type child struct {
	name     string
	listener net.Listener
	ready    chan struct{} // closed when it is ready for the first time
	onReady  func()        // called every time it is; may be nil

	mu      sync.Mutex
	process *os.Process
	readied sync.Once
}

func newSupervisor(s setup, log io.Writer) (*supervisor, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	return &supervisor{program: program, env: append(os.Environ(), setupEnv+"="+string(text)), log: log}, err
}

func (s *supervisor) add(name string, listener net.Listener) *child {
	c := &child{name: name, listener: listener, ready: make(chan struct{})}
	s.kids = append(s.kids, c)
	return c
}

// run keeps all children running until ctx ends, and then ends them gently: the
// worker and the server before the generator.
func (s *supervisor) run(ctx context.Context) error {
	failed := make(chan error, len(s.kids))
	var ended []chan struct{}
	var stops []context.CancelFunc
	for _, c := range s.kids {
		kidCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan struct{})
		stops, ended = append(stops, stop), append(ended, done)
		go func() {
			defer close(done)
			if err := s.keep(kidCtx, ctx.Done(), c); err != nil {
				failed <- fmt.Errorf("%s: %w", c.name, err)
			}
		}()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	for i := len(s.kids) - 1; i >= 0; i-- {
		stops[i]()
		<-ended[i]
	}
	return err
}

// keep starts a child again and again until ctx ends. Once stopping is closed, a
// child that ends is not started again: Ctrl-C reaches the children as well.
func (s *supervisor) keep(ctx context.Context, stopping <-chan struct{}, c *child) error {
	for wait := time.Duration(0); ; wait = min(2*wait+100*time.Millisecond, 2*time.Second) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		begun := time.Now()
		err := s.once(ctx, c)
		select {
		case <-ctx.Done():
			return nil
		case <-stopping:
			return nil
		default:
		}
		select {
		case <-c.ready:
		default:
			return fmt.Errorf("it ended before it was ready: %w", err)
		}
		if time.Since(begun) > 5*time.Second {
			wait = 0
		}
	}
}

// once runs the process until it ends by itself or ctx ends.
func (s *supervisor) once(ctx context.Context, c *child) error {
	cmd := exec.Command(s.program, "demo-"+c.name)
	cmd.Env, cmd.Stderr = s.env, s.log
	if c.listener != nil {
		f, err := c.listener.(*net.TCPListener).File()
		if err != nil {
			return err
		}
		defer f.Close()
		cmd.ExtraFiles = []*os.File{f}
	}
	// A pipe that closes with this process tells the child to end too.
	alive, hold, err := os.Pipe()
	if err != nil {
		return err
	}
	defer hold.Close()
	cmd.Stdin = alive
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	alive.Close()
	c.mu.Lock()
	c.process = cmd.Process
	c.mu.Unlock()
	lines := make(chan struct{})
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			if in.Text() == readyLine {
				c.readied.Do(func() { close(c.ready) })
				if c.onReady != nil {
					go c.onReady()
				}
			}
		}
	}()
	exited := make(chan error, 1)
	go func() { <-lines; exited <- cmd.Wait() }()
	select {
	case err = <-exited:
		if err == nil {
			err = errors.New("it ended by itself")
		}
		return err
	case <-ctx.Done():
	}
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-exited:
	case <-time.After(15 * time.Second):
		cmd.Process.Kill()
		<-exited
	}
	return nil
}

// kill ends the process as a crash would.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil {
		c.process.Kill()
	}
}
