package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/history"
	"github.com/semel-dev/semel/lab/internal/expect"
	"github.com/semel-dev/semel/lab/service"
)

// The points of an execution at which [Crash] kills a worker, in their order.
const (
	BeforeBegin = string(expect.BeforeBegin)
	AfterBegin  = string(expect.AfterBegin)
	SentPoint   = string(expect.Sent)
	DonePoint   = string(expect.Done)
	Answered    = string(expect.Answered)
	Writing     = string(expect.Writing)
)

// Points are all of them.
var Points = []string{BeforeBegin, AfterBegin, SentPoint, DonePoint, Answered, Writing}

// CrashOptions configure [Crash].
type CrashOptions struct {
	// Store is "sqlite", or a postgres:// URL. Defaults to sqlite, in a temporary
	// folder.
	Store string
	// Rounds is how often a worker is killed in each cell. Defaults to 3.
	Rounds int
	// Parallel is how many cells run at a time. Defaults to 9.
	Parallel int
	// Progress is told how many rounds are done. Defaults to nothing.
	Progress func(done, all int)
}

// A Cell is one point under one promise of the external service.
type Cell struct {
	// Store is "sqlite" or "postgres".
	Store string `json:"store"`
	// Shape is the promise, Point where the worker was killed.
	Shape string `json:"shape"`
	Point string `json:"point"`
	// Rounds is how many workers were killed; each had one operation.
	Rounds int `json:"rounds"`
	// Effects counts the effects of all rounds, Most is the most of one operation.
	Effects int `json:"effects"`
	Most    int `json:"most_effects"`
	// States counts the operations by the state that they came to.
	States map[semel.State]int `json:"states"`
	// Expected is what every operation must come to, in words.
	Expected string `json:"expected"`
	// Pass: all of them did.
	Pass bool `json:"pass"`
	// Wrong says what is not as it should be.
	Wrong []string `json:"wrong,omitempty"`
}

// Crash runs the crash matrix. The error is about the lab itself, or that of a context
// that has ended: beside it are the cells that had begun, with the rounds that they
// have played.
func Crash(ctx context.Context, options *CrashOptions) (_ []Cell, err error) {
	o := CrashOptions{}
	if options != nil {
		o = *options
	}
	if o.Rounds <= 0 {
		o.Rounds = 3
	}
	if o.Parallel <= 0 {
		o.Parallel = 9
	}
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
	dir, err := os.MkdirTemp("", "semel-lab-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stage := newStage(ctx, dir, o.Store, false, false)
	defer func() { err = errors.Join(err, stage.clear()) }()
	m := &matrix{stage: stage, o: o, promises: plain}
	return m.run()
}

// A matrix is one run of all cells on one stage.
type matrix struct {
	stage    *stage
	o        CrashOptions
	promises []service.Promise
	orders   *orders
	client   *caller

	mu   sync.Mutex
	done int
}

func (m *matrix) run() ([]Cell, error) {
	var err error
	if m.orders, err = m.stage.orders(serviceSetup{}); err != nil {
		return nil, err
	}
	var cells []*cell
	var kinds []kindSetup
	for _, p := range m.promises {
		for i, point := range Points {
			k := m.stage.kind(m.orders, p)
			k.Name = fmt.Sprintf("%s-%d-%s", p, i, m.stage.tag) // one for each cell, so that workers leave other cells alone
			if p == service.Opaque && point == BeforeBegin {
				k.Timeout, k.Lease = 5*time.Second, 6*time.Second // the rescuer has one call, and no second one
			}
			cells = append(cells, &cell{matrix: m, kind: k, promise: p, point: point})
			kinds = append(kinds, k)
		}
	}
	if m.client, err = m.stage.serve(kinds...); err != nil {
		return nil, err
	}
	results := make([]Cell, len(cells))
	err = inParallel(len(cells), m.o.Parallel, func(i int) error {
		var err error
		results[i], err = cells[i].run()
		return err
	})
	return slices.DeleteFunc(results, func(c Cell) bool { return c.Rounds == 0 }), err
}

func (m *matrix) progress() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done++
	m.o.Progress(m.done, m.o.Rounds*len(m.promises)*len(Points))
}

// A cell is one point under one promise.
type cell struct {
	*matrix
	kind    kindSetup
	promise service.Promise
	point   string
}

func (c *cell) run() (Cell, error) {
	w := expect.AfterDeath(c.promise == service.Opaque, expect.Point(c.point))
	r := Cell{Store: "sqlite", Shape: string(c.promise), Point: c.point, States: map[semel.State]int{}, Expected: w.String()}
	if c.stage.remote() {
		r.Store = "postgres"
	}
	for round := range c.o.Rounds {
		h, err := c.round(round)
		if err := c.stage.ctx.Err(); err != nil {
			return r, err
		}
		if err != nil {
			r.Wrong = append(r.Wrong, fmt.Sprintf("round %d: %v", round, err))
		}
		n, state := 0, semel.None
		for _, e := range h.Events {
			switch {
			case e.What == history.Effect:
				n++
			case e.What == history.Final && e.Operation != nil:
				state = e.Operation.State
				r.States[state]++
			}
		}
		r.Effects, r.Most = r.Effects+n, max(r.Most, n)
		for _, wrong := range w.Wrong(n, state) {
			r.Wrong = append(r.Wrong, fmt.Sprintf("round %d: %s", round, wrong))
		}
		for _, v := range history.Check(h) {
			r.Wrong = append(r.Wrong, fmt.Sprintf("round %d: %s", round, v))
		}
		r.Rounds, r.Pass = round+1, len(r.Wrong) == 0
		c.progress()
	}
	return r, nil
}

// roundPatience is how long a worker may take to reach its point, and another one
// to recover, however busy the machine is.
const roundPatience = 2 * time.Minute

// round lets one worker die with one operation, and another one recover it.
func (c *cell) round(n int) (history.History, error) {
	none := history.History{}
	ctx, cancel := context.WithTimeout(c.stage.ctx, roundPatience)
	defer cancel()
	key := semel.Key{Account: c.stage.account, Kind: c.kind.Name, ID: semel.NewID()}
	rec := &history.Recorder{}
	rec.Add(history.Event{What: history.Sent, Verb: "PUT", Key: key, Attempt: "1"})
	a, err := c.client.put(ctx, key.Kind, key.ID, order(key.ID, 1), 0)
	if err != nil {
		return none, err
	}
	rec.Add(history.Event{What: history.Answered, Verb: "PUT", Key: key, Attempt: "1", Operation: a.Operation, Code: a.Code})
	if err := c.kill(ctx, n, key.ID); err != nil {
		return none, err
	}
	rescuer, err := c.stage.work(c.kind)
	if err != nil {
		return none, err
	}
	defer rescuer.Kill()
	if _, err := c.client.await(ctx, key.Kind, key.ID); err != nil {
		return none, rescuer.Problem(err)
	}
	if err := c.orders.quiet(); err != nil {
		return none, err
	}
	books, err := c.orders.count(key.ID)
	if err != nil {
		return none, err
	}
	err = finals(ctx, c.client, rec, []semel.Key{key}, map[string]service.Count{key.ID: books})
	return rec.History(map[string]history.Promise{key.Kind: {Unknown: c.promise == service.Opaque}}), err
}

// WriteCells writes the matrix as a table for people, and what is wrong below it.
func WriteCells(w io.Writer, cells []Cell) error {
	t := table{right: []bool{false, false, false, true, true, false, false}}
	t.add("store", "service", "killed", "rounds", "effects", "came to", "as it should be")
	for _, c := range cells {
		var states []string
		for _, s := range []semel.State{semel.Succeeded, semel.NeedsReconciliation, semel.Failed, semel.Processing, semel.Accepted} {
			if n := c.States[s]; n > 0 {
				states = append(states, fmt.Sprintf("%d %s", n, s))
			}
		}
		t.add(c.Store, c.Shape, c.Point, strconv.Itoa(c.Rounds), strconv.Itoa(c.Effects), strings.Join(states, ", "), verdictWord(c.Pass))
	}
	if err := t.text(w); err != nil {
		return err
	}
	for _, c := range cells {
		for _, wrong := range c.Wrong {
			fmt.Fprintf(w, "%s, %s, %s: %s; expected %s\n", c.Store, c.Shape, c.Point, wrong, c.Expected)
		}
	}
	return nil
}
