package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	setupEnv  = "SEMEL_LAB_SETUP"
	readyWord = "ready"
)

// Is reports whether this process is somebody's child.
func Is() bool { return os.Getenv(setupEnv) != "" }

// Setup reads what the parent has given this process.
func Setup(into any) error {
	if err := json.Unmarshal([]byte(os.Getenv(setupEnv)), into); err != nil {
		return errors.New("this command is started by `semel lab` only")
	}
	return nil
}

// Ready tells the parent that this process can be used, and under which address;
// there may be none.
func Ready(addr string) { fmt.Println(readyWord, addr) }

// UntilOrphaned ends when ctx does, or when standard input closes.
func UntilOrphaned(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx, cancel
}

// Inherited returns the listener that the parent has handed down.
func Inherited() (net.Listener, error) { return net.FileListener(os.NewFile(3, "listener")) }

// Serve serves a handler on the inherited listener until ctx ends.
func Serve(ctx context.Context, handler http.Handler) error {
	listener, err := Inherited()
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	Ready(listener.Addr().String())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
