package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/examples/menuexport"
	"github.com/semel-dev/semel/examples/menuexport/generator"
	"github.com/semel-dev/semel/examples/menuexport/page"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/internal/config"
	"github.com/semel-dev/semel/internal/node"
)

// Roles are what a child can be, by the name of its hidden command.
var Roles = map[string]func(context.Context) error{
	"demo-server":    serverRole,
	"demo-worker":    workerRole,
	"demo-generator": generatorRole,
}

// A lease must outlast a slow picture, and be short enough that a person who has
// killed the worker sees the recovery.
const (
	leaseTime   = 6 * time.Second
	callTimeout = 5 * time.Second
)

// inherited returns the listener that the supervisor has handed down.
func inherited() (net.Listener, error) { return net.FileListener(os.NewFile(3, "listener")) }

// untilOrphaned ends when ctx does, or when the supervisor is gone: its end of
// our standard input closes then, however it ended.
func untilOrphaned(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx, cancel
}

func (s setup) configuration(worker bool) (*config.Config, error) {
	promised, err := menuexport.Contract(s.Contract)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(promised)
	c := &config.Config{
		Database:   filepath.Join(s.Data, "semel.db"),
		SessionKey: s.SessionKey,
		// The demo's account may also act as the operator of its own operations.
		Accounts: map[string]config.Account{},
		Operators: []config.Operator{{Name: "demo", Account: "demo", Hash: httpapi.HashToken(s.Token),
			Accounts: []string{"*"}}},
		Worker: config.Worker{Off: !worker, Poll: config.DurationOf(200 * time.Millisecond)},
		Kinds: map[string]config.Kind{menuexport.KindName: {
			Description: "A weekly menu, as a picture.", Schema: menuexport.Schema, Contract: text,
			Lease: config.DurationOf(leaseTime), Timeout: config.DurationOf(callTimeout),
		}},
	}
	if s.Guest != "" {
		c.Accounts["guest"] = config.Account{Tokens: []config.Token{{Hash: httpapi.HashToken(s.Guest)}}}
	}
	return c, err
}

func (s setup) open(ctx context.Context, name string, worker bool) (*node.Node, error) {
	cfg, err := s.configuration(worker)
	if err != nil {
		return nil, err
	}
	promised, err := cfg.Kinds[menuexport.KindName].ParseContract()
	if err != nil {
		return nil, err
	}
	export, err := menuexport.NewEffect(s.Generator, promised)
	if err != nil {
		return nil, err
	}
	return node.Open(ctx, cfg, &node.Options{Logger: logger(name),
		Effects: map[string]effect.Effect{menuexport.KindName: export}})
}

func logger(name string) *slog.Logger {
	return slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("process", name)
}

func serverRole(ctx context.Context) error {
	ctx, stop := untilOrphaned(ctx)
	defer stop()
	s, err := readSetup()
	if err != nil {
		return err
	}
	n, err := s.open(ctx, "server", false)
	if err != nil {
		return err
	}
	defer n.Close()
	listener, err := inherited()
	if err != nil {
		return err
	}
	gen, err := url.Parse(s.Generator)
	if err != nil {
		return err
	}
	site, err := page.New(n.Ledger, n.Server, &page.Options{
		Generator: gen, Token: s.Token, Causes: remoteSwitches{s},
	})
	if err != nil {
		return err
	}
	defer site.Close()
	fmt.Println(readyLine)
	return n.Run(ctx, listener, node.WithConsole(site))
}

func workerRole(ctx context.Context) error {
	ctx, stop := untilOrphaned(ctx)
	defer stop()
	s, err := readSetup()
	if err != nil {
		return err
	}
	n, err := s.open(ctx, "worker", true)
	if err != nil {
		return err
	}
	defer n.Close()
	fmt.Println(readyLine)
	return n.Run(ctx, nil, nil)
}

func generatorRole(ctx context.Context) error {
	ctx, stop := untilOrphaned(ctx)
	defer stop()
	s, err := readSetup()
	if err != nil {
		return err
	}
	gen, err := generator.New(filepath.Join(s.Data, "generator"), &generator.Options{
		Contract: generator.Contract(s.Contract), Logger: logger("generator"),
	})
	if err != nil {
		return err
	}
	listener, err := inherited()
	if err != nil {
		return err
	}
	server := &http.Server{Handler: gen, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Println(readyLine)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	err = gen.Close()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	server.Shutdown(grace)
	return err
}

// remoteSwitches are the supervisor's, for the page.
type remoteSwitches struct{ setup setup }

// Get reads the switches.
func (r remoteSwitches) Get(ctx context.Context) (now page.Causes, err error) {
	err = callAs(ctx, r.setup.Secret, http.MethodGet, r.setup.Control+"/faults", nil, &now)
	return now, err
}

// Set moves them.
func (r remoteSwitches) Set(ctx context.Context, change page.Change) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return callAs(ctx, r.setup.Secret, http.MethodPut, r.setup.Control+"/faults", body, nil)
}
