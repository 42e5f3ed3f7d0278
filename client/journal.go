package client

import (
	"bytes"
	"context"
	"maps"
	"sync"

	"github.com/semel-dev/semel"
)

// A Journal keeps intents. It owns no rule: to a journal, a record is two strings of
// bytes under an operation ID.
//
// All methods are safe for concurrent use. Errors that are no [*semel.Error] count
// as [semel.CodeUnavailable].
type Journal interface {
	// Session names this user of the journal among all that there are and ever were.
	Session() string
	// Alive reports whether that session may still be at work. It must be false soon
	// after its process has died, and must never be false before. It is called inside
	// Update.
	Alive(session string) bool
	// Update calls change with the record of that ID, or nil where there is none, and
	// puts what it returns in its place; nil removes it. If change returns an error,
	// nothing is written and that error is returned. Update is exclusive: between
	// reading and writing nobody else updates the same record, in whatever process.
	// When it returns nil, the write is durable. The record and its bytes are valid,
	// and may be changed, during the call only.
	Update(ctx context.Context, id string, change func(*Record) (*Record, error)) error
	// List returns the State of every record, by ID.
	List(ctx context.Context) (map[string][]byte, error)
	// Close ends the session and lets go of everything.
	Close() error
}

// A Record is what a journal keeps of one intent.
type Record struct {
	// State is small and changes often.
	State []byte
	// Body is the body of the request. It is written once, and becomes nil when it is
	// no longer needed; then no copy of it should be left.
	Body []byte
}

func (r *Record) clone() *Record {
	if r == nil {
		return nil
	}
	return &Record{bytes.Clone(r.State), bytes.Clone(r.Body)}
}

// NewMemoryJournal makes a journal that ends with the process. With it, a client is
// as careful as ever while the process lives, and forgets everything with it.
func NewMemoryJournal() Journal {
	return &memoryJournal{session: semel.NewID(), records: map[string]*Record{}}
}

type memoryJournal struct {
	session string

	mu      sync.Mutex
	records map[string]*Record
}

func (j *memoryJournal) Session() string           { return j.session }
func (j *memoryJournal) Alive(session string) bool { return session == j.session }
func (j *memoryJournal) Close() error              { return nil }

func (j *memoryJournal) Update(ctx context.Context, id string, change func(*Record) (*Record, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	next, err := change(j.records[id].clone())
	switch {
	case err != nil:
		return err
	case next == nil:
		delete(j.records, id)
	default:
		j.records[id] = next.clone()
	}
	return nil
}

func (j *memoryJournal) List(context.Context) (map[string][]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := maps.Collect(func(yield func(string, []byte) bool) {
		for id, r := range j.records {
			if !yield(id, bytes.Clone(r.State)) {
				return
			}
		}
	})
	return all, nil
}
