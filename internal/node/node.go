// Package node puts the parts of one process together: store, ledger, HTTP
// server and worker, by a configuration. `semel serve` is one node, and the demo
// is made of several.
package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/console"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/internal/config"
	"github.com/semel-dev/semel/metrics"
	"github.com/semel-dev/semel/schema"
	"github.com/semel-dev/semel/worker"
)

// Options are what a configuration file does not say.
type Options struct {
	// Effects replaces the HTTP effect of kinds, by name. Defaults to none.
	Effects map[string]effect.Effect
	// Logger gets everything that is logged. Defaults to slog.Default.
	Logger *slog.Logger
	// Version names this build, for logs. Defaults to nothing.
	Version string
}

// A Node is one process. Its parts may be used until Close.
type Node struct {
	Store  semel.Store
	Ledger *semel.Ledger
	// Server is the HTTP interface.
	Server *httpapi.Server
	// Worker is nil where the configuration turns it off.
	Worker *worker.Worker

	cfg  *config.Config
	log  *slog.Logger
	wake chan struct{} // holds one signal: there may be new work
}

// Open makes a node. Errors name the line of the configuration where one is to
// blame. Nothing runs before [Node.Run].
func Open(ctx context.Context, cfg *config.Config, options *Options) (*Node, error) {
	n := &Node{cfg: cfg, log: slog.Default(), wake: make(chan struct{}, 1)}
	var effects map[string]effect.Effect
	if options != nil {
		effects = options.Effects
		if options.Logger != nil {
			n.log = options.Logger
		}
	}
	kinds, jobs, err := buildKinds(cfg, effects)
	if err != nil {
		return nil, err
	}
	tokens, err := buildTokens(cfg)
	if err != nil {
		return nil, err
	}
	if n.Store, err = OpenStore(ctx, cfg.Database, semel.Sharding(cfg.Sharding)); err != nil {
		return nil, cfg.At(err, "database")
	}
	m := metrics.New()
	n.Ledger, err = semel.New(ctx, n.Store, &semel.Options{
		Kinds:     kinds,
		Recompile: func(kind string, definition []byte) (semel.Canon, error) { return schema.Recompile(kind, definition) },
		MaxParams: int(cfg.MaxBody),
		Limits: &semel.Limits{NewPerSecond: cfg.Limits.NewPerSecond, Burst: cfg.Limits.Burst,
			LooksPerSecond: cfg.Limits.LooksPerSecond, Pending: cfg.Limits.Pending},
		Observe: func(o semel.Observation) {
			m.Observe(o)
			if o.Name == "accept" {
				n.wakeUp()
			}
		},
		Logger: n.log,
	})
	if err != nil {
		return nil, errors.Join(err, n.Store.Close())
	}
	m.Watch(n.Ledger)
	n.Server = httpapi.New(n.Ledger, &httpapi.Options{
		Tokens: tokens, SessionKey: sessionKey(cfg.SessionKey), SecureCookies: cfg.SecureCookies, CORS: cfg.Origins,
		MaxBody: cfg.MaxBody, Metrics: m.Handler(), Logger: n.log,
	})
	if !cfg.Worker.Off {
		idle := cfg.Worker.Poll.D()
		if idle <= 0 {
			idle = time.Second
		}
		n.Worker, err = worker.New(n.Ledger, jobs, &worker.Options{
			Hosts:        cfg.Worker.Hosts,
			PollInterval: min(idle, 250*time.Millisecond),
			IdleInterval: idle,
			DrainTimeout: cfg.Worker.Drain.D(),
			Wake:         n.wake,
			Observe:      m.Observe,
			Logger:       n.log,
		})
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

// Close ends what Open began.
func (n *Node) Close() error { return errors.Join(n.Ledger.Close(), n.Store.Close()) }

// Run serves handler on the listener (nil for no server), works, and purges,
// until ctx ends or something fails; then it ends gracefully.
func (n *Node) Run(ctx context.Context, listener net.Listener, handler http.Handler) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	parts := 1
	failed := make(chan error, 3)
	go func() { n.Ledger.PurgeEvery(ctx, time.Minute); failed <- nil }()
	if listener != nil {
		parts++
		go func() { failed <- n.serve(ctx, listener, handler) }()
	}
	if n.Worker != nil {
		if others, ok := n.Store.(notifying); ok {
			go n.forward(ctx, others.Notifications(ctx))
		}
		parts++
		go func() { failed <- n.Worker.Run(ctx) }()
	}
	var errs []error
	for range parts {
		err := <-failed
		stop() // the first part to end ends the others
		if err != nil && !errors.Is(err, context.Canceled) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// WithConsole puts the operator's console under /console/ before a handler that
// serves the HTTP interface on the same origin.
func WithConsole(next http.Handler) http.Handler {
	page := console.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/console" || strings.HasPrefix(r.URL.Path, "/console/") {
			page.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// notifying are stores that can tell of new work that other nodes recorded.
type notifying interface {
	Notifications(ctx context.Context) <-chan struct{}
}

func (n *Node) forward(ctx context.Context, news <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
			n.wakeUp()
		}
	}
}

func (n *Node) wakeUp() {
	select {
	case n.wake <- struct{}{}:
	default: // one is waiting already
	}
}

func (n *Node) serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := httpapi.NewHTTPServer(listener.Addr().String(), handler)
	server.RegisterOnShutdown(n.Server.Drain)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := server.Shutdown(grace)
	<-ended
	return err
}

func buildKinds(cfg *config.Config, effects map[string]effect.Effect) ([]semel.Kind, []worker.Kind, error) {
	var kinds []semel.Kind
	var jobs []worker.Kind
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cfg.Kinds)) {
		k := cfg.Kinds[name]
		promised, err := k.ParseContract()
		if err != nil {
			errs = append(errs, cfg.At(err, "kinds", name, "contract"))
			continue
		}
		canon, err := buildCanon(name, k)
		errs = append(errs, cfg.At(err, "kinds", name, "schema"))
		call := effects[name]
		if call == nil {
			if call, err = buildEffect(k); err != nil {
				errs = append(errs, cfg.At(err, "kinds", name, "http"))
				continue
			}
		}
		job, err := worker.NewKind(worker.Kind{Name: name, Contract: promised, Effect: call, Concurrency: k.Concurrency,
			Timeout: k.Timeout.D(), Lease: k.Lease.D(), Retry: worker.Retry{MaxExecutions: k.Tries, Budget: k.Budget.D()}})
		place := []string{"kinds", name}
		var field *contract.FieldError
		if errors.As(err, &field) {
			place = append(append(place, "contract"), strings.Split(field.Field, ".")...)
		}
		errs = append(errs, cfg.At(err, place...))
		kinds = append(kinds, semel.Kind{Name: name, Canon: canon, Retention: k.Retention.D(),
			Description: k.Description, Contract: promised.Words()})
		jobs = append(jobs, job)
	}
	return kinds, jobs, errors.Join(errs...)
}

func buildCanon(name string, k config.Kind) (semel.Canon, error) {
	if k.Schema == nil && k.Include == nil && k.Exclude == nil {
		return schema.JSON(name), nil
	}
	text := k.Schema
	if text == nil {
		text = config.JSON("true") // any JSON
	}
	return schema.Compile(name, text, &schema.Options{Include: k.Include, Exclude: k.Exclude})
}

func buildEffect(k config.Kind) (effect.Effect, error) {
	var spec effect.HTTPSpec
	strict := json.NewDecoder(bytes.NewReader(k.HTTP))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&spec); err != nil {
		return nil, err
	}
	call, err := effect.NewHTTP(spec, nil)
	if err != nil {
		return nil, err // and no *effect.HTTP that is nil
	}
	return call, nil
}

func buildTokens(cfg *config.Config) (*httpapi.Tokens, error) {
	var list []httpapi.Token
	for _, account := range slices.Sorted(maps.Keys(cfg.Accounts)) {
		for _, t := range cfg.Accounts[account].Tokens {
			list = append(list, httpapi.Token{Hash: t.Hash, Account: account, Name: t.Name, ExpiresAt: t.Expires.T()})
		}
	}
	for _, o := range cfg.Operators {
		list = append(list, httpapi.Token{Hash: o.Hash, Account: o.Account, Operator: true, Accounts: o.Accounts, Name: o.Name, ExpiresAt: o.Expires.T()})
	}
	tokens, err := httpapi.NewTokens(list)
	if err != nil {
		return nil, fmt.Errorf("accounts and operators: %w", err)
	}
	return tokens, nil
}

// sessionKey makes 32 bytes of the configured text; nil keeps the default.
func sessionKey(text string) []byte {
	if text == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
