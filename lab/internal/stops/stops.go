// Package stops ends or stops a worker's process at a named point of an execution.
//
// Package worker has no hook for this: the points are in the store, the effect and
// the socket that its process gives it.
package stops

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/lab/internal/child"
)

// A Point is a named moment in the life of one execution, at which a worker process
// ends or stops itself. All of them are outside package worker: around the calls
// to its store, around its effect, and at its socket.
type Point string

const (
	ClaimBefore  Point = "claim.before"  // it is about to claim
	ClaimAfter   Point = "claim.after"   // it has claimed, and does not know it yet
	BeginBefore  Point = "begin.before"  // it is about to write the begin mark
	BeginAfter   Point = "begin.after"   // the begin mark is written
	SendBefore   Point = "send.before"   // it is about to call
	SocketBefore Point = "socket.before" // the first byte is about to leave
	SocketAfter  Point = "socket.after"  // the request has left
	FinishBefore Point = "finish.before" // the answer is there, and is about to be written back
	FinishDuring Point = "finish.during" // somewhere within the write-back
	FinishAfter  Point = "finish.after"  // it is written back, and the worker does not know it yet
)

// Announced is what a process prints when it reaches its stop.
func (s Point) Announced() string { return "reached " + string(s) }

// A Stopper ends or stops this process at its point, the first time it is there.
type Stopper struct {
	At Point
	// Pause stops the process (it may be woken up) instead of ending it.
	Pause bool
	// Ended waits, before a call whose time is over, until its context knows that: the
	// timers of a process that goes on fire a moment later.
	Ended bool

	stop func() // in tests; nil stops the process
	once sync.Once
	// calls is held by every call to the store: a process that is stopped must not
	// hold a lock of the database, since nobody could go on then.
	calls sync.RWMutex
}

// reach is called where an execution is at a point.
func (s *Stopper) reach(at Point) { s.passing(at, func() {}) }

// passing does what leads to a point, and stops there. Nothing is written back
// between the two, even if what was done is answered at once.
func (s *Stopper) passing(at Point, do func()) {
	first := false
	if at == s.At {
		s.once.Do(func() {
			first = true
			if !s.Pause {
				do()
				child.KillSelf()
			}
			s.calls.Lock()
			defer s.calls.Unlock()
			do()
			fmt.Println(at.Announced())
			s.stopNow()
		})
	}
	if !first {
		do()
	}
}

func (s *Stopper) stopNow() {
	if s.stop != nil {
		s.stop()
		return
	}
	child.StopSelf()
}

// A Store is a store with stops around the calls of an execution.
type Store struct {
	semel.Store
	*Stopper
}

func (s Store) Claim(ctx context.Context, req semel.ClaimRequest) ([]semel.Claimed, error) {
	s.reach(ClaimBefore)
	s.calls.RLock()
	claimed, err := s.Store.Claim(ctx, req)
	s.calls.RUnlock()
	if err == nil && len(claimed) > 0 {
		s.reach(ClaimAfter)
	}
	return claimed, err
}

func (s Store) Renew(ctx context.Context, batch []semel.Renewal) ([]bool, error) {
	s.calls.RLock()
	defer s.calls.RUnlock()
	return s.Store.Renew(ctx, batch)
}

func (s Store) RecordAttempts(ctx context.Context, batch []semel.Attempt) error {
	s.calls.RLock()
	defer s.calls.RUnlock()
	return s.Store.RecordAttempts(ctx, batch)
}

func (s Store) Apply(ctx context.Context, batch []semel.Change) ([]semel.Applying, error) {
	begins, ends := false, false
	for _, c := range batch {
		begins = begins || c.Execution != nil && c.Execution.Begin
		// Work that is handed back has not been done: that is no write-back.
		ends = ends || c.Execution != nil && c.Execution.End && c.Execution.Outcome != semel.NotApplied
	}
	if begins {
		s.reach(BeginBefore)
	}
	if ends {
		s.reach(FinishBefore)
		if s.At == FinishDuring {
			go func() {
				time.Sleep(rand.N(3 * time.Millisecond)) // a commit takes about as long: anywhere within it
				child.KillSelf()
			}()
		}
	}
	s.calls.RLock()
	done, err := s.Store.Apply(ctx, batch)
	s.calls.RUnlock()
	if begins {
		s.reach(BeginAfter)
	}
	if ends {
		if s.At == FinishDuring {
			child.KillSelf()
		}
		s.reach(FinishAfter)
	}
	return done, err
}

// Effect returns an effect with a stop before it. It can do what e can do.
func (s *Stopper) Effect(e effect.Effect) effect.Effect {
	stopping := stoppingEffect{e, s}
	if finder, ok := e.(effect.Finder); ok {
		return stoppingFinder{stopping, finder}
	}
	return stopping
}

type stoppingEffect struct {
	effect.Effect
	stopper *Stopper
}

func (e stoppingEffect) Do(ctx context.Context, call *effect.Call) effect.Result {
	e.stopper.reach(SendBefore)
	if end, ok := ctx.Deadline(); ok && e.stopper.Ended && !time.Now().Before(end) {
		<-ctx.Done()
	}
	return e.Effect.Do(ctx, call)
}

func (e stoppingEffect) Check(c contract.Contract) error {
	if checker, ok := e.Effect.(effect.Checker); ok {
		return checker.Check(c)
	}
	return nil
}

func (e stoppingEffect) Host() string {
	if hoster, ok := e.Effect.(effect.Hoster); ok {
		return hoster.Host()
	}
	return ""
}

type stoppingFinder struct {
	stoppingEffect
	finder effect.Finder
}

func (e stoppingFinder) LookUp(ctx context.Context, call *effect.Call) effect.LookUpResult {
	return e.finder.LookUp(ctx, call)
}

// Transport makes connections with stops at the socket.
func (s *Stopper) Transport() http.RoundTripper {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &stoppingConn{conn, s}, nil
	}, MaxIdleConnsPerHost: 64}
}

type stoppingConn struct {
	net.Conn
	stopper *Stopper
}

func (c *stoppingConn) Write(p []byte) (n int, err error) {
	if c.stopper.At == SocketBefore {
		return writeAfter(c.Conn, func() { c.stopper.reach(SocketBefore) }, p)
	}
	c.stopper.passing(SocketAfter, func() { n, err = c.Conn.Write(p) })
	return n, err
}
