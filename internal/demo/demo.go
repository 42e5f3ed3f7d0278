// Package demo runs the menu export as it would run in earnest, on one machine:
// a server, a worker and an image generator, each a process of its own, so that
// "kill the worker" kills a process.
//
// [Run] supervises. It owns the listeners and hands them down, so a child that
// is killed comes back under the same address, and nobody is told "connection
// refused" meanwhile. All that lasts is in one folder; after a restart with the
// same folder the demo carries on.
package demo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/semel-dev/semel/httpapi"
)

// Options are the flags of `semel demo`.
type Options struct {
	// Data is the folder. Defaults to "semel-demo" in the user's cache folder.
	Data string
	// Addr is the address of page and API. Defaults to 127.0.0.1:8787.
	Addr string
	// Contract is what the generator promises. Defaults to idempotent.
	Contract string
	// Token is the demo account's token. Defaults to one that is made once and kept
	// in the folder.
	Token string
	// Guest is the token of a second account, "guest". Defaults to none.
	Guest string
	// Out gets the addresses and the token; Log gets what the children log.
	Out, Log io.Writer
}

// setup is what the children are told, through their environment.
type setup struct {
	Data       string `json:"data"`
	Contract   string `json:"contract"`
	Token      string `json:"token"`
	Guest      string `json:"guest,omitempty"`
	SessionKey string `json:"session_key"`
	// Generator and Control are base URLs; Secret is asked for by Control.
	Generator string `json:"generator"`
	Control   string `json:"control"`
	Secret    string `json:"secret"`
}

const setupEnv = "SEMEL_DEMO_SETUP"

// Run runs the demo until ctx ends.
func Run(ctx context.Context, o Options) error {
	s, err := prepare(&o)
	if err != nil {
		return err
	}
	api, err := net.Listen("tcp", o.Addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("--addr: %s is in use, perhaps by another demo; --addr 127.0.0.1:0 takes a free port", o.Addr)
	} else if err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	defer api.Close()
	gen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer gen.Close()
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Generator, s.Control = "http://"+gen.Addr().String(), "http://"+control.Addr().String()

	sup, err := newSupervisor(s, o.Log)
	if err != nil {
		return err
	}
	generator := sup.add("generator", gen)
	server := sup.add("server", api)
	worker := sup.add("worker", nil)
	faults := &faultControl{setup: s, worker: worker, log: o.Log}
	generator.onReady = faults.again
	controller := &http.Server{Handler: faults.handler()}
	go controller.Serve(control)
	defer controller.Close()

	failed := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	defer stop()
	go func() { failed <- sup.run(running) }()

	// The addresses are printed once all three are there.
	for _, c := range []*child{generator, server, worker} {
		select {
		case <-c.ready:
		case err := <-failed:
			return err
		}
	}
	base := "http://" + reachable(api.Addr().(*net.TCPAddr))
	fmt.Fprintf(o.Out, "page: %s/\napi: %s\ngenerator: %s\ntoken: %s\n", base, base, s.Generator, s.Token)
	fmt.Fprintf(o.Out, "console: %s/console/\n\nOpen the page in a browser. The token is for programs, and for the console. Ctrl-C ends it all.\n", base)
	return <-failed
}

// reachable is an address that a browser on this machine can open.
func reachable(a *net.TCPAddr) string {
	if a.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port))
	}
	return a.String()
}

// prepare fills in defaults and makes what is to last.
func prepare(o *Options) (setup, error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:8787"
	}
	switch o.Contract {
	case "":
		o.Contract = "idempotent"
	case "idempotent", "queryable", "opaque":
	default:
		return setup{}, fmt.Errorf("--contract: %q is none of idempotent, queryable, opaque", o.Contract)
	}
	if o.Data == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return setup{}, fmt.Errorf("there is no cache folder; say --data DIR: %w", err)
		}
		o.Data = filepath.Join(cache, "semel-demo")
	}
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return setup{}, fmt.Errorf("--data: %w", err)
	}
	var err error
	s := setup{Data: o.Data, Contract: o.Contract, Token: o.Token, Guest: o.Guest, Secret: rand.Text()}
	if s.Token == "" {
		if s.Token, err = lasting(filepath.Join(o.Data, "token"), httpapi.NewToken); err != nil {
			return setup{}, err
		}
	}
	s.SessionKey, err = lasting(filepath.Join(o.Data, "session-key"), func() string {
		key := make([]byte, 32)
		rand.Read(key)
		return hex.EncodeToString(key)
	})
	return s, err
}

// lasting reads a secret from a file, or makes it and writes it there.
func lasting(file string, make func() string) (string, error) {
	text, err := os.ReadFile(file)
	if err == nil && len(strings.TrimSpace(string(text))) > 0 {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	secret := make()
	return secret, os.WriteFile(file, []byte(secret+"\n"), 0o600)
}

// readSetup is how a child learns what it is to be.
func readSetup() (setup, error) {
	var s setup
	if err := json.Unmarshal([]byte(os.Getenv(setupEnv)), &s); err != nil {
		return s, errors.New("this command is started by `semel demo` only")
	}
	return s, nil
}
