package lab

import (
	"bytes"
	"context"
	"net/url"
	"sync"

	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/lab/internal/child"
	"github.com/semel-dev/semel/lab/internal/stops"
	"github.com/semel-dev/semel/lab/service"
)

// kill starts a worker that gets this operation, and waits until it was killed at
// the cell's point.
func (c *cell) kill(ctx context.Context, round int, order string) error {
	at, byService, drop := c.how(round)
	setup := c.stage.node("victim", nodeSetup{Work: true, Kinds: []kindSetup{c.kind}, Wait: true, StopAt: at})
	var trap *writeTrap
	if c.point == Writing && c.stage.remote() {
		var err error
		if trap, err = newWriteTrap(setup.Database, round); err != nil {
			return err
		}
		defer trap.proxy.Close()
		setup.Database, setup.StopAt = trap.database, ""
	}
	victim, err := c.stage.start("lab-node", setup)
	if err != nil {
		return err
	}
	if trap != nil {
		trap.arm(victim)
	}
	if byService != "" {
		if err := c.orders.kill(order, byService, victim, drop); err != nil {
			return err
		}
	}
	if err := victim.Release(); err != nil {
		return err
	}
	if err := victim.Killed(ctx); err != nil {
		victim.Kill()
		return err
	}
	return nil
}

// how says who kills, and where: the worker itself at a stop, or the service. The
// rounds of a cell differ where a point leaves something open.
func (c *cell) how(round int) (at stops.Point, byService string, drop bool) {
	switch c.point {
	case BeforeBegin:
		if c.promise != service.Opaque { // for these the claim itself is the begin mark
			return stops.ClaimBefore, "", false
		}
		return []stops.Point{stops.ClaimBefore, stops.ClaimAfter, stops.BeginBefore}[round%3], "", false
	case AfterBegin:
		if c.promise != service.Opaque {
			return []stops.Point{stops.ClaimAfter, stops.SendBefore}[round%2], "", false
		}
		return []stops.Point{stops.BeginAfter, stops.SendBefore}[round%2], "", false
	case SentPoint: // it happens although the caller is dead, or it never does
		return "", "arrived", round%2 == 1
	case DonePoint:
		return "", "done", false
	case Answered:
		return stops.FinishBefore, "", false
	}
	return []stops.Point{stops.FinishDuring, stops.FinishAfter}[round%2], "", false
}

// A writeTrap is a proxy between a worker and its database that kills the worker
// while its write-back is on the way.
type writeTrap struct {
	proxy    *fault.TCPProxy
	database string
	round    int

	mu       sync.Mutex
	victim   *child.Process
	answered bool // kill at the database's next answer
}

func newWriteTrap(database string, round int) (*writeTrap, error) {
	u, err := url.Parse(database)
	if err != nil {
		return nil, err
	}
	t := &writeTrap{round: round}
	if t.proxy, err = fault.NewTCPProxy(u.Host, &fault.TCPOptions{Hook: t.hook}); err != nil {
		return nil, err
	}
	u.Host = t.proxy.Addr()
	t.database = u.String()
	return t, nil
}

func (t *writeTrap) arm(victim *child.Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.victim = victim
}

// evidence stands in every write-back of a call, and in nothing else.
var evidence = []byte(`"did":"call"`)

// hook sees all bytes. The write-back is one packet with the whole transaction; it
// arrives or not, in part or whole, and its sender is dead by then.
func (t *writeTrap) hook(dir fault.Direction, chunk []byte) fault.Action {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.victim == nil:
		return fault.Pass
	case t.answered && dir == fault.ServerToClient:
		t.victim.Kill()
		return fault.Cut
	case t.answered || dir != fault.ClientToServer || !bytes.Contains(chunk, evidence):
		return fault.Pass
	}
	switch t.round % 4 {
	case 0: // it arrives when its sender is dead
		t.victim.Kill()
		return fault.PassThenCut
	case 1: // its answer does not come back
		t.answered = true
		return fault.Pass
	case 2: // it never arrives
		t.victim.Kill()
		return fault.Cut
	}
	t.victim.Kill() // one half arrives
	return fault.CutMiddle
}
