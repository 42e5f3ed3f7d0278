package storetest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// A Harness is one empty database and the ways into it. Cleaning it up is the
// business of whoever made it (with t.Cleanup); the handles from Open are closed
// by this package.
type Harness struct {
	// Open opens the store. Every call gives a handle of its own on the same data:
	// after the earlier ones are closed it is a restart, before that it is another
	// process.
	Open func() (semel.Store, error)
	// Clock is the clock that all handles go by. Nil if it can't be set: then the
	// tests that need it are skipped.
	Clock *Clock
	// Begin begins a transaction of a caller's on the store's database. Nil if the
	// store has no transactions: then the tests that need them are skipped.
	Begin func(store semel.Store) (Transaction, error)
}

// A Transaction is one of a caller's own.
type Transaction struct {
	Tx               semel.Tx
	Commit, Rollback func() error
}

// A Clock is set by the tests. It begins at a fixed time and is safe for
// concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands still.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// Now returns what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the clock on.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A testCase is one test and what it needs of the harness.
type testCase struct {
	name  string
	needs need
	run   func(*world)
}

type need int

const (
	anything need = 0
	clock    need = 1 << iota
	callerTx
)

// Run tests a store. The function makes a harness for each test.
func Run(t *testing.T, harness func(t *testing.T) Harness) {
	t.Helper()
	for _, c := range slices.Concat(insertCases, raceCases, getCases, applyCases, claimCases, renewCases,
		attemptCases, listCases, countCases, purgeCases, reviveCases, cancelCases, txCases, walkCases) {
		t.Run(c.name, func(t *testing.T) {
			h := harness(t)
			if c.needs&clock != 0 && h.Clock == nil {
				t.Skip("the clock of this store can't be set")
			}
			if c.needs&callerTx != 0 && h.Begin == nil {
				t.Skip("this store does not work in a caller's transaction")
			}
			c.run(newWorld(t, h))
		})
	}
}
