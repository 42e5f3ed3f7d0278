package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/internal/child"
	"github.com/semel-dev/semel/lab/internal/stops"
	"github.com/semel-dev/semel/lab/service"
)

// A moment is where a worker is stopped, to wake up when its lease is over and
// another worker has taken over.
type moment struct {
	name, title string
	at          stops.Point
	expect      map[service.Promise]Expect
}

var moments = []moment{
	{"before-call", "before its call", stops.SendBefore, map[service.Promise]Expect{
		service.Idempotent: once("succeeded"),
		service.Queryable:  once("succeeded"),
		service.Opaque:     {Operations: 1, Effects: 0, Most: 0, Visible: "needs_reconciliation"},
	}},
	// It has looked at the clock for the last time. No lock reaches into its socket:
	// for a queryable service this is the exception of docs/guarantees.md.
	{"at-socket", "at its socket", stops.SocketBefore, map[service.Promise]Expect{
		service.Idempotent: once("succeeded"),
		service.Queryable:  {Operations: 1, Effects: 1, Most: 2, Visible: "succeeded"},
		service.Opaque:     {Operations: 1, Effects: 0, Most: 1, Visible: "needs_reconciliation"},
	}},
	{"after-sending", "after sending", stops.SocketAfter, map[service.Promise]Expect{
		service.Idempotent: once("succeeded"),
		service.Queryable:  once("succeeded"),
		service.Opaque:     once("needs_reconciliation"),
	}},
}

// outlivedLease: a worker process is stopped, its lease ends, another one takes
// over, and then it wakes up.
func outlivedLease() []Scenario {
	var all []Scenario
	for _, m := range moments {
		for _, p := range plain {
			all = append(all, Scenario{
				Name:   "outlived-" + m.name + "-" + string(p),
				Group:  "outlived",
				Title:  fmt.Sprintf("a worker sleeps %s until another has taken over (%s service%s)", m.title, p, exception(m, p)),
				Expect: m.expect[p],
				run:    func(s *stage) (Counts, error) { return outlive(s, m, p) },
			})
		}
	}
	return all
}

// exception says where the title must not promise too much.
func exception(m moment, p service.Promise) string {
	if m.at == stops.SocketBefore && p == service.Queryable {
		return ": the exception"
	}
	return ""
}

func outlive(s *stage, m moment, p service.Promise) (c Counts, err error) {
	if !child.CanStop {
		return c, errors.New("processes can't be stopped on this system")
	}
	// A worker that wakes up tells what it saw as long again as its lease was; the
	// lease is long enough for another one to have taken over by then.
	shop, err := s.shop(p, serviceSetup{}, func(k *kindSetup) { k.Timeout, k.Lease = time.Second, 10*time.Second })
	if err != nil {
		return c, err
	}
	id, err := shop.accepted("tea")
	if err != nil {
		return c, err
	}
	sleeper, err := s.victim(m.at, true, shop.kind)
	if err != nil {
		return c, err
	}
	if err := sleeper.Release(); err != nil {
		return c, err
	}
	if err := sleeper.AwaitLine(s.ctx, m.at.Announced()); err != nil {
		return c, err
	}
	if _, err := s.work(shop.kind); err != nil {
		return c, err
	}
	before, err := shop.await(s.ctx, shop.kind.Name, id)
	if err != nil {
		return c, err
	}
	if err := sleeper.GoOn(); err != nil {
		return c, err
	}
	if err := shop.late(id, &c); err != nil {
		return c, err
	}
	if m.at == stops.SocketBefore {
		if err := shop.arrivedLate(p); err != nil {
			return c, err
		}
	}
	after, err := shop.await(s.ctx, shop.kind.Name, id)
	if err != nil {
		return c, err
	}
	if after.State != before.State || string(after.Result) != string(before.Result) {
		c.complain("it was %s, and is %s since the first worker woke up", before.State, after.State)
	}
	c.Visible, c.Sends = string(after.State), 1
	return c, shop.tally(&c)
}

// late waits until the write of the worker that woke up was refused and kept, and
// looks at what is on record.
func (s *shop) late(id string, c *Counts) error {
	ctx, cancel := context.WithTimeout(s.stage.ctx, 30*time.Second)
	defer cancel()
	for {
		h, err := s.history(s.stage.ctx, s.kind.Name, id)
		if err != nil {
			return err
		}
		first, applied := h.Executions[0], 0
		for _, x := range h.Executions {
			if x.Outcome == semel.Applied {
				applied++
			}
		}
		if applied > 1 {
			c.complain("%d applied outcomes are on record", applied)
		}
		if first.Outcome != "" {
			c.complain("the first execution's outcome was taken: %s", first.Outcome)
			return nil
		}
		if first.LateOutcome != "" {
			return nil
		}
		if pause(ctx, 20*time.Millisecond) != nil { // another process writes it
			c.complain("what the first worker saw was not kept")
			return nil
		}
	}
}

// arrivedLate waits for the request that was stopped at the socket, and until the
// service is done with it.
func (s *shop) arrivedLate(p service.Promise) error {
	want := 2
	if p == service.Opaque {
		want = 1 // nobody has called again
	}
	ctx, cancel := context.WithTimeout(s.stage.ctx, 5*time.Second)
	defer cancel()
	for {
		n, err := s.orders.count("tea")
		if err != nil {
			return err
		}
		if n.Arrived >= want || pause(ctx, 20*time.Millisecond) != nil { // it may never come: the call is cancelled at the same moment
			return s.orders.quiet()
		}
	}
}
