package lab

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/internal/node"
	"github.com/semel-dev/semel/lab/internal/child"
	"github.com/semel-dev/semel/lab/internal/stops"
	"github.com/semel-dev/semel/schema"
	"github.com/semel-dev/semel/worker"
)

// nodeSetup is what a node is told: a server, a worker, or both. It is put
// together here rather than by package node, because the lab wants shorter waits
// than a configuration can say, and stops.
type nodeSetup struct {
	Name     string        `json:"name"`
	Database string        `json:"database"`
	Kinds    []kindSetup   `json:"kinds"`
	Tokens   []accountName `json:"tokens,omitempty"`
	// Serve serves HTTP on the inherited listener; Work executes.
	Serve bool `json:"serve,omitempty"`
	Work  bool `json:"work,omitempty"`
	// Wait waits for the word to begin, after "ready".
	Wait bool `json:"wait,omitempty"`
	// StopAt is where the process ends itself, or stops if Pause is set.
	StopAt stops.Point `json:"stop_at,omitempty"`
	Pause  bool        `json:"pause,omitempty"`
	// Purge is how often the past is forgotten. Defaults to never.
	Purge time.Duration `json:"purge,omitempty"`
}

// accountName is an account and its token; Operator says that it sees all.
type accountName struct {
	Account, Token string
	Operator       bool
}

// kindSetup is one kind: an order at the external service.
type kindSetup struct {
	Name        string            `json:"name"`
	URL         string            `json:"url"` // where orders are posted
	Contract    contract.Contract `json:"contract"`
	Timeout     time.Duration     `json:"timeout"`
	Lease       time.Duration     `json:"lease"`
	Retention   time.Duration     `json:"retention,omitempty"`
	Concurrency int               `json:"concurrency,omitempty"`
	Retry       worker.Retry      `json:"retry"`
}

func (k kindSetup) kind() semel.Kind {
	return semel.Kind{Name: k.Name, Canon: schema.JSON(k.Name), Retention: k.Retention, Description: "an order of the lab"}
}

func (k kindSetup) job(s *stops.Stopper) (worker.Kind, error) {
	spec := effect.HTTPSpec{URL: k.URL}
	if k.Contract.LookUp.By != "" {
		spec.LookUp = &effect.LookUpSpec{URL: k.URL + "/{key}",
			Absent: []contract.Match{{Status: 404, Code: "no_such_order", At: "/code"}}}
	}
	call, err := effect.NewHTTP(spec, &effect.HTTPOptions{Transport: s.Transport()})
	if err != nil {
		return worker.Kind{}, err
	}
	// Each kind stands for a service of its own.
	return worker.NewKind(worker.Kind{Name: k.Name, Contract: k.Contract, Effect: s.Effect(call), Host: k.Name,
		Concurrency: k.Concurrency, Timeout: k.Timeout, Lease: k.Lease, Retry: k.Retry})
}

// nodeRole is a server, a worker, or both.
func nodeRole(ctx context.Context) error {
	var s nodeSetup
	if err := child.Setup(&s); err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	stopper := &stops.Stopper{At: s.StopAt, Pause: s.Pause}
	store, err := node.OpenStore(ctx, s.Database, "")
	if err != nil {
		return err
	}
	defer store.Close()
	log := roleLogger(s.Name)
	var kinds []semel.Kind
	for _, k := range s.Kinds {
		kinds = append(kinds, k.kind())
	}
	wake := make(chan struct{}, 1)
	ledger, err := semel.New(ctx, stops.Store{Store: store, Stopper: stopper}, &semel.Options{
		Kinds: kinds, PollInterval: 50 * time.Millisecond, Logger: log,
		Observe: func(o semel.Observation) {
			if o.Name == "accept" {
				select {
				case wake <- struct{}{}:
				default:
				}
			}
		},
	})
	if err != nil {
		return err
	}
	defer ledger.Close()
	var listener net.Listener
	addr := ""
	if s.Serve {
		if listener, err = child.Inherited(); err != nil {
			return err
		}
		addr = listener.Addr().String()
	}
	child.Ready(addr)
	if s.Wait {
		if _, err := in.ReadString('\n'); err != nil {
			return nil // nobody needs it any more
		}
	}
	ctx, stop := child.UntilOrphaned(ctx, in)
	defer stop()
	return s.run(ctx, ledger, stopper, listener, wake)
}

// run serves and works until ctx ends or something fails.
func (s nodeSetup) run(ctx context.Context, ledger *semel.Ledger, stopper *stops.Stopper, listener net.Listener, wake <-chan struct{}) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var parts []func() error
	if s.Serve {
		server, err := s.server(ledger)
		if err != nil {
			return err
		}
		parts = append(parts, func() error {
			front := httpapi.NewHTTPServer("", server)
			defer context.AfterFunc(ctx, func() { front.Close() })()
			return front.Serve(listener)
		})
	}
	if s.Work {
		w, err := s.worker(ledger, stopper, wake)
		if err != nil {
			return err
		}
		parts = append(parts, func() error { return w.Run(ctx) })
	}
	if s.Purge > 0 {
		parts = append(parts, func() error { ledger.PurgeEvery(ctx, s.Purge); return nil })
	}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part() }()
	}
	var errs []error
	for range parts {
		if err := <-ended; ctx.Err() == nil {
			errs = append(errs, err)
		}
		stop()
	}
	return errors.Join(errs...)
}

func (s nodeSetup) server(ledger *semel.Ledger) (*httpapi.Server, error) {
	var list []httpapi.Token
	for _, t := range s.Tokens {
		token := httpapi.Token{Hash: httpapi.HashToken(t.Token), Account: t.Account, Name: t.Account, Operator: t.Operator}
		if t.Operator {
			token.Accounts = []string{"*"}
		}
		list = append(list, token)
	}
	tokens, err := httpapi.NewTokens(list)
	if err != nil {
		return nil, err
	}
	return httpapi.New(ledger, &httpapi.Options{Tokens: tokens, Logger: roleLogger(s.Name)}), nil
}

func (s nodeSetup) worker(ledger *semel.Ledger, stopper *stops.Stopper, wake <-chan struct{}) (*worker.Worker, error) {
	var jobs []worker.Kind
	for _, k := range slices.Clone(s.Kinds) {
		job, err := k.job(stopper)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return worker.New(ledger, jobs, &worker.Options{Name: s.Name, PollInterval: 20 * time.Millisecond,
		IdleInterval: 50 * time.Millisecond, DrainTimeout: time.Second, Wake: wake, Logger: roleLogger(s.Name)})
}
