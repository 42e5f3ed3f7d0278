package idempotency

import (
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// recentFor is how long a settled record is answered from memory. What is settled
// never changes; but it is forgotten some day, by the store's clock.
const recentFor = time.Minute

// recent keeps records that are settled, so that a repeat which comes soon needs no
// read. It is bounded in bytes, in two generations: when the young one is full, the
// old one goes.
type recent struct {
	mu         sync.Mutex
	max        int // bytes of one generation
	size       int // of the young one
	young, old map[semel.Key]*record
}

// A record is an operation as it was read, with its answer, which is taken apart once.
type record struct {
	op     semel.Operation
	at     time.Time
	once   sync.Once
	stored *Answer
}

// answer is what the handler has answered; nobody changes it.
func (r *record) answer() *Answer {
	r.once.Do(func() { r.stored = unmarshalAnswer(r.op.Result) })
	return r.stored
}

func newRecent(bytes int) *recent {
	return &recent{max: bytes / 2, young: map[semel.Key]*record{}, old: map[semel.Key]*record{}}
}

// get returns nil if there is no record that is young enough.
func (c *recent) get(key semel.Key) *record {
	if c.max <= 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.young[key]
	if r == nil {
		r = c.old[key]
	}
	if r == nil || time.Since(r.at) >= recentFor {
		return nil
	}
	return r
}

// add keeps a record, if it is settled and not larger than a sixteenth of what
// there is room for.
func (c *recent) add(r *record) {
	size := 512 + 2*len(r.op.Result) + len(r.op.Params) // with what surrounds them, and taken apart
	if !r.op.State.Settled() || r.op.Expired || r.op.AsSent == "" || size > c.max/8 {
		return
	}
	r.at = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size+size > c.max {
		c.old, c.young, c.size = c.young, map[semel.Key]*record{}, 0
	}
	if c.young[r.op.Key] == nil {
		c.size += size
	}
	c.young[r.op.Key] = r
}
