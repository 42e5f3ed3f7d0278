// Package memstore is a store in memory, for tests: the smallest one that the
// judge passes, written by following docs/adding-a-store.md.
//
// [Data] is what lasts; [Open] gives handles on it, as processes on a database.
// Nothing of it outlives the program.
package memstore

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
)

// Data is the content of a store, shared by its handles.
type Data struct {
	clock func() time.Time

	mu          sync.Mutex
	rows        map[semel.Key]*row
	horizons    map[lane]int64 // milliseconds
	definitions map[[2]string][]byte
	served      map[string]int64 // by account: the number of its latest claim
	claims      int64
}

// lane is a shard and a kind.
type lane struct {
	shard int
	kind  string
}

// row is one operation with all that belongs to it.
type row struct {
	op         semel.Operation
	idTime     time.Time
	working    bool
	due        time.Time
	executions []semel.Execution
	attempts   []semel.Attempt
	verdicts   []semel.Verdict
}

// NewData returns an empty store's content, with a clock (nil for time.Now).
func NewData(clock func() time.Time) *Data {
	if clock == nil {
		clock = time.Now
	}
	return &Data{clock: clock, rows: map[semel.Key]*row{}, horizons: map[lane]int64{},
		definitions: map[[2]string][]byte{}, served: map[string]int64{}}
}

// Store is a handle. It is safe for concurrent use.
type Store struct {
	data   *Data
	closed atomic.Bool
}

// Open returns a handle on the data.
func Open(data *Data) *Store { return &Store{data: data} }

// enter takes the one lock, unless the caller is gone already, and reads the
// clock once, as a statement does.
func (s *Store) enter(ctx context.Context) (now time.Time, leave func(), err error) {
	if s.closed.Load() {
		return now, nil, &semel.Error{Op: "memstore", Code: semel.CodeUnavailable, Recorded: semel.RecordedNo, Msg: "it is closed"}
	}
	if err := ctx.Err(); err != nil {
		return now, nil, &semel.Error{Op: "memstore", Code: semel.CodeUnavailable, Recorded: semel.RecordedNo, Err: err}
	}
	s.data.mu.Lock()
	return s.data.clock().UTC().Truncate(time.Millisecond), s.data.mu.Unlock, nil
}

func laneOf(k semel.Key) lane { return lane{semel.ShardByAccount.Shard(k), k.Kind} }

// copyOf keeps callers' hands off what is stored.
func copyOf(op semel.Operation) *semel.Operation {
	op.Params, op.Request, op.Result = slices.Clone(op.Params), slices.Clone(op.Request), slices.Clone(op.Result)
	if op.Failure != nil {
		f := *op.Failure
		op.Failure = &f
	}
	if op.Progress != nil {
		p := *op.Progress
		op.Progress = &p
	}
	return &op
}

// Insert implements [semel.Tx].
func (s *Store) Insert(ctx context.Context, batch []semel.Insertion) ([]semel.Inserted, error) {
	now, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := make([]semel.Inserted, len(batch))
	for i, in := range batch {
		horizon, known := s.data.horizons[laneOf(in.Key)]
		switch r := s.data.rows[in.Key]; {
		case r != nil:
			out[i] = semel.Inserted{Verdict: semel.Exists, Operation: copyOf(r.op)}
		case in.Validate() != nil:
			out[i].Err = in.Validate()
		case known && !in.IDTime.IsZero() && in.IDTime.UnixMilli() <= horizon:
			out[i].Verdict = semel.PastHorizon
		case !in.AcceptUntil.IsZero() && now.After(in.AcceptUntil):
			out[i].Verdict = semel.PastDeadline
		default:
			out[i] = semel.Inserted{Verdict: semel.Created, Operation: copyOf(s.create(in, now).op)}
		}
	}
	return out, nil
}

func (s *Store) create(in semel.Insertion, now time.Time) *row {
	r := &row{idTime: in.IDTime}
	if in.State.Settled() {
		r.op = *in.Operation(now, now.Add(in.Retain).Truncate(time.Millisecond))
	} else {
		r.op, r.working, r.due = *in.Operation(now, time.Time{}), true, now.Add(in.Due)
	}
	if in.AttemptID != "" {
		r.attempts = []semel.Attempt{{Key: in.Key, ID: in.AttemptID, At: now}}
	}
	if b := in.Begun; b != nil {
		r.executions = []semel.Execution{{Token: 1, Worker: b.Worker, Contract: b.Contract, ClaimedAt: now, BegunAt: now, LeaseEndsAt: now.Add(b.Lease)}}
		r.due = now.Add(b.Lease)
	}
	s.data.rows[in.Key] = r
	return r
}

// Get implements [semel.Tx].
func (s *Store) Get(ctx context.Context, keys []semel.Key) ([]semel.Found, error) {
	_, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := make([]semel.Found, len(keys))
	for i, k := range keys {
		if r := s.data.rows[k]; r != nil {
			out[i].Operation = copyOf(r.op)
		} else if at, ok := semel.IDTime(k.ID); ok {
			horizon, known := s.data.horizons[laneOf(k)]
			out[i].PastHorizon = known && at.UnixMilli() <= horizon
		}
	}
	return out, nil
}

// Apply implements [semel.Tx].
func (s *Store) Apply(ctx context.Context, batch []semel.Change) ([]semel.Applying, error) {
	now, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := make([]semel.Applying, len(batch))
	for i, c := range batch {
		if !c.State.Valid() {
			out[i].Err = &semel.Error{Op: "apply", Code: semel.CodeInvalid, Key: c.Key, Recorded: semel.RecordedNo, Msg: "there is no such state"}
		} else if r := s.data.rows[c.Key]; r != nil && r.op.Revision == c.Revision && r.op.Token == c.Token {
			r.change(c, now)
			out[i] = semel.Applying{Applied: true, Operation: copyOf(r.op)}
		}
	}
	return out, nil
}

func (r *row) change(c semel.Change, now time.Time) {
	op := &r.op
	op.Revision++
	op.State, op.Owner, op.UpdatedAt = c.State, c.Owner, now
	if c.NextToken != 0 {
		op.Token = c.NextToken
	}
	if c.ClearedToken != 0 {
		op.ClearedToken = c.ClearedToken
	}
	if c.Result != nil {
		op.Result = slices.Clone(c.Result)
	}
	if c.Failure != nil {
		f := *c.Failure
		op.Failure = &f
	} else if c.State == semel.Succeeded || c.State == semel.Abandoned {
		op.Failure = nil
	}
	op.Acknowledged = op.Acknowledged || c.Acknowledged
	op.Contradicted = op.Contradicted || c.Contradicted
	if c.Begun {
		op.Executions++
	}
	if c.State.Settled() && op.ExpiresAt.IsZero() {
		op.ExpiresAt = now.Add(c.Retain).Truncate(time.Millisecond)
	}
	switch c.Work {
	case semel.WorkDue:
		r.working, r.due = true, now.Add(c.Due)
	case semel.WorkDone:
		r.working = false
	}
	if c.Execution != nil {
		if x := r.execution(c.Execution.Token); x != nil {
			x.end(*c.Execution, now)
		}
	}
	if c.Verdict != nil {
		v := *c.Verdict
		v.At, v.Result = now, slices.Clone(v.Result)
		r.verdicts = append(r.verdicts, v)
	}
}

// execution is a pointer type of its own only to have a method.
type execution semel.Execution

func (r *row) execution(token int64) *execution {
	for i := range r.executions {
		if r.executions[i].Token == token {
			return (*execution)(&r.executions[i])
		}
	}
	return nil
}

func (x *execution) end(c semel.ExecutionChange, now time.Time) {
	if c.Begin && x.BegunAt.IsZero() {
		x.BegunAt = now
	}
	if c.End {
		x.EndedAt, x.Outcome, x.Evidence = now, c.Outcome, slices.Clone(c.Evidence)
	}
}
