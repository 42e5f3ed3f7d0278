package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/lab/history"
	"github.com/semel-dev/semel/lab/internal/child"
	"github.com/semel-dev/semel/lab/service"
)

// SoakOptions configure [Soak].
type SoakOptions struct {
	// Store is "sqlite", or a postgres:// URL. Defaults to sqlite, in a temporary
	// folder.
	Store string
	// For is how long clients ask and processes are killed. Defaults to 60 s.
	For time.Duration
	// Seed chooses what everybody does. The same seed makes the same choices; what
	// real processes make of them differs. Defaults to 0.
	Seed uint64
	// Nodes is how many processes serve and work, Workers how many only work.
	// Default to 3 and 2.
	Nodes, Workers int
	// Clients is how many ask. Defaults to 16.
	Clients int
	// KillEvery is how often one of the processes is killed. Defaults to 1 s.
	KillEvery time.Duration
	// Record gets the whole history as JSON where a promise was broken. Defaults to
	// nothing.
	Record io.Writer
	// Progress is told after each kill how it goes. Defaults to nothing.
	Progress func(SoakReport)
}

func (o *SoakOptions) setDefaults() {
	if o.For <= 0 {
		o.For = time.Minute
	}
	if o.Nodes <= 0 {
		o.Nodes = 3
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	if o.Clients <= 0 {
		o.Clients = 16
	}
	if o.KillEvery <= 0 {
		o.KillEvery = time.Second
	}
	if o.Progress == nil {
		o.Progress = func(SoakReport) {}
	}
}

// A SoakReport is what came of a soak.
type SoakReport struct {
	Store string `json:"store"`
	Seed  uint64 `json:"seed"`
	// Nodes is how many processes served and worked, Workers how many only worked.
	Nodes   int `json:"nodes"`
	Workers int `json:"workers"`
	// Seconds is how long it went on so far, without the checks.
	Seconds int `json:"seconds"`
	Kills   int `json:"kills"`
	// Sends counts the clients' transmissions, Unanswered those without an answer.
	Sends      int `json:"sends"`
	Unanswered int `json:"unanswered"`
	// Asked is how many operations were asked for, Acknowledged how many of them
	// somebody was told of, Operations how many are on record.
	Asked        int `json:"asked"`
	Acknowledged int `json:"acknowledged"`
	Operations   int `json:"operations"`
	// Effects is how many there were outside.
	Effects int                 `json:"effects"`
	States  map[semel.State]int `json:"states,omitempty"`
	// Duplicates, Lost and Stuck count operations: more than one effect,
	// acknowledged and not on record, never ended.
	Duplicates int `json:"duplicates"`
	Lost       int `json:"lost"`
	Stuck      int `json:"stuck"`
	// Violations are all promises that were not kept, these three among them.
	Violations []history.Violation `json:"violations,omitempty"`
	Pass       bool                `json:"pass"`
}

// Soak runs a soak. The error is about the lab itself.
func Soak(ctx context.Context, options *SoakOptions) (_ SoakReport, err error) {
	s := &soak{rec: &history.Recorder{}}
	if options != nil {
		s.o = *options
	}
	s.o.setDefaults()
	dir, err := os.MkdirTemp("", "semel-lab-")
	if err != nil {
		return SoakReport{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s.stage = newStage(ctx, dir, s.o.Store, false, false)
	defer func() { err = errors.Join(err, s.stage.clear()) }()
	if err := s.open(); err != nil {
		return SoakReport{}, err
	}
	if err := s.run(ctx); err != nil {
		return s.report(), err
	}
	return s.judge()
}

// A soak is one run.
type soak struct {
	o      SoakOptions
	stage  *stage
	orders *orders
	kinds  []kindSetup
	fleet  []*restarted
	rec    *history.Recorder
	begun  time.Time

	mu    sync.Mutex
	keys  []semel.Key
	count SoakReport // Kills, Sends, Unanswered
}

// restarted is a process that is killed and started again, at the same address.
type restarted struct {
	door  *child.Door // nil for a worker
	setup nodeSetup
	proc  *child.Process
}

// soakWays are what goes wrong at the service meanwhile.
var soakWays = []string{"cut-before", "lose-answer", "cut-after", "status code=500", "status-before code=503",
	"delay for=20ms", "delay for=3s at=before", "delay for=3s at=after"}

func (s *soak) open() error {
	var err error
	if s.orders, err = s.stage.orders(serviceSetup{Seed: s.o.Seed}); err != nil {
		return err
	}
	if err := s.orders.rules(chances(soakWays, 0.15, s.o.Seed)...); err != nil {
		return err
	}
	for _, p := range plain {
		k := s.stage.kind(s.orders, p)
		if p == service.Queryable {
			k.Contract.LookUp.AbsentAfter = contract.Duration(patient)
		}
		s.kinds = append(s.kinds, k)
	}
	for i := range s.o.Nodes + s.o.Workers {
		r := &restarted{setup: s.stage.node(fmt.Sprintf("node-%d", i), nodeSetup{Work: true, Kinds: s.kinds})}
		if i < s.o.Nodes {
			if r.door, err = child.NewDoor(); err != nil {
				return err
			}
			s.stage.keep(r.door)
			r.setup.Serve = true
		}
		if err := r.start(s.stage.ctx); err != nil {
			return err
		}
		s.stage.keep(closer(func() { r.proc.Kill() }))
		s.fleet = append(s.fleet, r)
	}
	return nil
}

func (r *restarted) start(ctx context.Context) error {
	var files []*os.File
	if r.door != nil {
		files = append(files, r.door.File)
	}
	p, err := child.Start(ctx, []string{"lab-node"}, r.setup, files...)
	if err == nil {
		r.proc = p
	}
	return err
}

// run lets clients ask and kills processes, until the time is over.
func (s *soak) run(ctx context.Context) error {
	s.begun = time.Now()
	asking, stop := context.WithTimeout(ctx, s.o.For)
	defer stop()
	var clients sync.WaitGroup
	for i := range s.o.Clients {
		c := s.client(i)
		s.stage.keep(c)
		clients.Go(func() { c.run(ctx, asking) })
	}
	err := s.killing(asking)
	stop()
	clients.Wait()
	return err
}

// killing kills one process after another, and starts it again.
func (s *soak) killing(ctx context.Context) error {
	random := rand.New(rand.NewPCG(s.o.Seed, 0))
	ticker := time.NewTicker(s.o.KillEvery) // kills at their own pace are the point
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		r := s.fleet[random.IntN(len(s.fleet))]
		r.proc.Kill()
		if err := r.start(s.stage.ctx); err != nil {
			return err
		}
		s.mu.Lock()
		s.count.Kills++
		s.mu.Unlock()
		s.o.Progress(s.report())
	}
}

func (s *soak) report() SoakReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.count
	r.Nodes, r.Workers = s.o.Nodes, s.o.Workers
	r.Store, r.Seed, r.Seconds, r.Asked = "sqlite", s.o.Seed, int(time.Since(s.begun).Seconds()), len(s.keys)
	if s.stage.remote() {
		r.Store = "postgres"
	}
	return r
}

// judge lets everything come to its end, and checks the recording.
func (s *soak) judge() (SoakReport, error) {
	r := s.report()
	ctx := s.stage.ctx
	if err := s.orders.rules(); err != nil {
		return r, err
	}
	reader := newCaller(s.fleet[0].door.URL, s.stage.token, nil)
	if err := reader.drained(ctx, s.kinds); err != nil {
		return r, err
	}
	if err := s.orders.quiet(); err != nil {
		return r, err
	}
	books, err := s.orders.books()
	if err != nil {
		return r, err
	}
	if err := finals(ctx, reader, s.rec, s.keys, books); err != nil {
		return r, err
	}
	expected := map[string]history.Promise{}
	for i, p := range plain {
		expected[s.kinds[i].Name] = history.Promise{Unknown: p == service.Opaque}
	}
	h := s.rec.History(expected)
	r.fill(h)
	if len(r.Violations) > 0 && s.o.Record != nil {
		err = h.Write(s.o.Record)
	}
	return r, err
}

// fill counts what the history says.
func (r *SoakReport) fill(h history.History) {
	told := map[semel.Key]bool{}
	for _, e := range h.Events {
		switch {
		case e.What == history.Effect:
			r.Effects++
		case e.What == history.Answered && e.Operation != nil:
			told[e.Key] = true
		case e.What == history.Final && e.Operation != nil:
			r.Operations++
		}
	}
	r.Acknowledged, r.States, r.Violations = len(told), states(h), history.Check(h)
	for _, v := range r.Violations {
		switch v.Rule {
		case "one effect":
			r.Duplicates++
		case "nothing lost":
			r.Lost++
		case "nothing stuck":
			r.Stuck++
		}
	}
	r.Pass = len(r.Violations) == 0
}

// String is the report for people.
func (r SoakReport) String() string {
	text := fmt.Sprintf("%s, %d nodes and %d workers, seed %d: %d s, %d kills, %d requests of which %d had no answer\n", r.Store, r.Nodes, r.Workers, r.Seed, r.Seconds, r.Kills, r.Sends, r.Unanswered) +
		fmt.Sprintf("%d operations asked for, %d acknowledged, %d on record, %d effects %v\n", r.Asked, r.Acknowledged, r.Operations, r.Effects, r.States) +
		fmt.Sprintf("%d duplicates, %d lost, %d stuck, %d promises broken\n", r.Duplicates, r.Lost, r.Stuck, len(r.Violations))
	return text + history.Report(r.Violations, 20)
}
