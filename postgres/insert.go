package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

// Insert implements [semel.Tx]. The batch is one transaction and one round trip,
// unless a member of it must wait for somebody: then they go one by one. A lone
// member whose key is taken takes another one.
func (s *Store) Insert(ctx context.Context, members []semel.Insertion) ([]semel.Inserted, error) {
	if len(members) == 0 {
		return nil, nil
	}
	if err := s.saveBegun(ctx, members); err != nil {
		return nil, err
	}
	out := make([]semel.Inserted, len(members))
	together, alone := s.sortOut(members, out)
	if len(alone) == 0 {
		if err := s.insertTogether(ctx, members, together, out); err != nil {
			return nil, err
		}
		s.notifier.inserted(members, out)
		return out, nil
	}
	var waiting sync.WaitGroup
	waiting.Go(func() { s.insertSingly(ctx, members, alone, out) })
	if err := s.insertTogether(ctx, members, together, out); err != nil {
		for _, i := range together {
			out[i] = semel.Inserted{Err: err}
		}
	}
	waiting.Wait()
	s.notifier.inserted(members, out)
	return out, nil
}

// sortOut answers the members that can't be, and says which of the others go
// together, in the order of their keys, and which go alone, since their key was
// held by somebody's transaction a moment ago.
func (s *Store) sortOut(members []semel.Insertion, out []semel.Inserted) (together, alone []int) {
	together = make([]int, 0, len(members))
	for i, in := range members {
		switch err := in.Validate(); {
		case err != nil:
			out[i].Err = err
		case s.blocked.has(in.Key):
			alone = append(alone, i)
		default:
			together = append(together, i)
		}
	}
	slices.SortStableFunc(together, func(a, b int) int { return members[a].Key.Compare(members[b].Key) })
	return together, alone
}

func (s *Store) insertTogether(ctx context.Context, members []semel.Insertion, which []int, out []semel.Inserted) error {
	if len(which) == 0 {
		return nil
	}
	if len(which) == 1 {
		out[which[0]] = s.insertAlone(ctx, members[which[0]])
		if err := out[which[0]].Err; err != nil && len(members) == 1 && semel.AsError("", err).Code == semel.CodeUnavailable {
			return err
		}
		return nil
	}
	some, err := s.insertAll(ctx, pickOf(members, which), s.opts.BatchLockTimeout)
	if err != nil {
		if concernsOne(err) {
			s.insertSingly(ctx, members, which, out)
			return nil
		}
		return err
	}
	for n, i := range which {
		out[i] = some[n]
	}
	return nil
}

// insertSingly gives each member a transaction of its own, a few at a time.
func (s *Store) insertSingly(ctx context.Context, members []semel.Insertion, which []int, out []semel.Inserted) {
	var all sync.WaitGroup
	turn := make(chan struct{}, 4)
	for _, i := range which {
		turn <- struct{}{}
		all.Go(func() {
			out[i] = s.insertAlone(ctx, members[i])
			<-turn
		})
	}
	all.Wait()
}

func (s *Store) insertAlone(ctx context.Context, in semel.Insertion) semel.Inserted {
	blocked := s.blocked.has(in.Key)
	one, err := s.insertAll(ctx, []semel.Insertion{in}, s.opts.BatchLockTimeout)
	if lockTimedOut(err) && !blocked { // it has not been waited for before
		one, err = s.insertAll(ctx, []semel.Insertion{in}, s.opts.LockTimeout)
	}
	switch {
	case err == nil:
		if blocked {
			s.blocked.remove(in.Key)
		}
		return one[0]
	case lockTimedOut(err):
		s.blocked.add(in.Key)
		return semel.Inserted{Err: inProgress(in.Key, err)}
	}
	return semel.Inserted{Err: err}
}

func inProgress(key semel.Key, err error) *semel.Error {
	return &semel.Error{Op: "insert", Code: semel.CodeInProgress, Key: key, Recorded: semel.RecordedNo,
		Msg:  "a transaction that has not ended yet is recording the same operation",
		Hint: "ask again with the same key", Err: err}
}

// insertAll inserts members in one transaction. If its answer is lost they are
// inserted again under other marks: that waits for what may be left of the first
// try, and knows by its mark what it wrote.
func (s *Store) insertAll(ctx context.Context, members []semel.Insertion, lock time.Duration) (out []semel.Inserted, err error) {
	if out, err = s.insertOnce(ctx, members, lock); !isLost(err) {
		return out, err
	}
	err = s.settle(ctx, "insert", err, func(ctx context.Context, try int) error {
		again := slices.Clone(members)
		for i := range again {
			again[i].Owner = nextMark(again[i].Owner, try)
		}
		out, err = s.insertOnce(ctx, again, lock)
		return err
	})
	for i, o := range out {
		if o.Verdict == semel.Exists && isMark(o.Operation.Owner, members[i].Owner) {
			out[i].Verdict = semel.Created
		}
	}
	return out, err
}

// insertOnce looks for what is there instead of the members that were not created:
// on the same way, or, if there is one member and that is rare, afterwards. Nothing
// is missed in between: a row goes only when the horizon has passed it.
func (s *Store) insertOnce(ctx context.Context, members []semel.Insertion, lock time.Duration) (out []semel.Inserted, err error) {
	c, alone := s.insertColumns(members), len(members) == 1
	err = s.write(ctx, "insert", lock, func(b *batch) {
		out = s.queueInsert(b, c, members)
		if !alone {
			queueOthers(b, c, members, out)
		}
	})
	if err == nil && alone && out[0].Verdict == 0 {
		if err = s.read(ctx, "insert", func(b *batch) { queueOthers(b, c, members, out) }); err != nil {
			err = unknown("insert", err) // the key is taken, or refused: nobody has looked
		}
	}
	return out, err
}

// noTime stands for no date, and for no deadline: nothing is later.
const noTime = 1<<63 - 1

// An insertBatch holds the columns of the members, in one array for each.
type insertBatch struct {
	keyColumns
	n                                                                int
	owners, states, asSent, fingerprints, versions, attemptIDs       []string
	idTimes, acceptUntil, attempts, tokens, dues, retains, positions []int64
	params, requests                                                 [][]byte
	someWork, someAttempts, someTombstones                           bool
	begun                                                            []semel.Insertion
}

func (s *Store) insertColumns(members []semel.Insertion) *insertBatch {
	n := len(members)
	numbers, texts, bytes := make([]int64, 7*n), make([]string, 6*n), make([][]byte, 2*n)
	c := &insertBatch{keyColumns: s.columnsOf(n, func(i int) semel.Key { return members[i].Key }), n: n,
		owners: texts[:n], states: texts[n : 2*n], asSent: texts[2*n : 3*n], fingerprints: texts[3*n : 4*n],
		versions: texts[4*n : 5*n], attemptIDs: texts[5*n:],
		idTimes: numbers[:n], acceptUntil: numbers[n : 2*n], attempts: numbers[2*n : 3*n], tokens: numbers[3*n : 4*n],
		dues: numbers[4*n : 5*n], retains: numbers[5*n : 6*n], positions: numbers[6*n:],
		params: bytes[:n], requests: bytes[n:]}
	for i, in := range members {
		c.owners[i], c.states[i], c.asSent[i], c.fingerprints[i] = in.Owner, string(in.State), in.AsSent, in.Fingerprint
		c.versions[i], c.attemptIDs[i], c.params[i], c.requests[i] = in.SchemaVersion, in.AttemptID, in.Params, in.Request
		c.idTimes[i], c.acceptUntil[i], c.positions[i] = noTime, noTime, int64(i)
		if !in.IDTime.IsZero() {
			c.idTimes[i] = in.IDTime.UnixMilli()
		}
		if !in.AcceptUntil.IsZero() {
			c.acceptUntil[i] = in.AcceptUntil.UnixMilli()
		}
		if in.AttemptID != "" {
			c.attempts[i], c.someAttempts = 1, true
		}
		if in.Begun != nil {
			c.tokens[i] = 1
			c.begun = append(c.begun, in)
		}
		if in.State.Settled() {
			c.someTombstones = true
		} else {
			c.someWork = true
		}
		c.dues[i], c.retains[i] = s.span(in.Due), s.span(in.Retain)
	}
	return c
}

// shape picks the statements for this batch.
func (c *insertBatch) shape() insertStatements {
	if c.n == 1 {
		return insertOne
	}
	for i := range c.n {
		if c.states[i] != c.states[0] || c.acceptUntil[i] != c.acceptUntil[0] || c.tokens[i] != c.tokens[0] || c.versions[i] != c.versions[0] ||
			c.dues[i] != c.dues[0] || c.retains[i] != c.retains[0] {
			return insertMany
		}
	}
	return insertAlike
}

// queueInsert adds the statements that insert members, and returns where the
// answers of those that are created will be.
func (s *Store) queueInsert(b *batch, c *insertBatch, members []semel.Insertion) []semel.Inserted {
	sql := c.shape()
	out := make([]semel.Inserted, len(members))
	byOwner := make(map[string]int, len(members))
	for i, in := range members {
		byOwner[in.Owner] = i
	}
	b.each(sql.operations.text, sql.operations.args(c, s.now()), func(rows pgx.Rows) error {
		var owner string
		var created, expires int64
		if err := rows.Scan(&owner, &created, &expires); err != nil {
			return err
		}
		i := byOwner[owner]
		out[i] = semel.Inserted{Verdict: semel.Created, Operation: members[i].Operation(timeOf(created), timeOf(expires))}
		return nil
	})
	if c.someWork {
		b.queue(sql.work.text, sql.work.args(c)...)
	}
	if c.someTombstones {
		b.queue(sql.tombstones.text, sql.tombstones.args(c)...)
	}
	if c.someAttempts {
		b.queue(sql.attempts.text, sql.attempts.args(c)...)
	}
	if len(c.begun) > 0 {
		s.queueBegun(b, c.begun)
	}
	return out
}

// queueOthers answers the members that were not created.
func queueOthers(b *batch, c *insertBatch, members []semel.Insertion, out []semel.Inserted) {
	sql := c.shape()
	b.each(sql.others.text, sql.others.args(c), func(rows pgx.Rows) error {
		var n int64
		var exists, past bool
		op, err := scanMaybe(rows, &exists, &n, &past)
		switch {
		case err != nil:
			return err
		case exists:
			out[n] = semel.Inserted{Verdict: semel.Exists, Operation: op}
		case past:
			out[n].Verdict = semel.PastHorizon
		case !members[n].AcceptUntil.IsZero():
			out[n].Verdict = semel.PastDeadline
		default:
			return fmt.Errorf("%s was neither created nor found", members[n].Key)
		}
		return nil
	})
}

func (s *Store) queueBegun(b *batch, begun []semel.Insertion) {
	n := len(begun)
	c := s.columnsOf(n, func(i int) semel.Key { return begun[i].Key })
	owners, workers, contracts, leases := make([]string, n), make([]string, n), make([]string, n), make([]int64, n)
	for i, in := range begun {
		owners[i], workers[i], contracts[i], leases[i] = in.Owner, in.Begun.Worker, contractID(in.Begun.Contract), s.span(in.Begun.Lease)
	}
	b.queue(beginInserted, c.shards, c.accounts, c.kinds, c.id, owners, leases, workers, contracts)
}

func pickOf[T any](all []T, which []int) []T {
	some := make([]T, len(which))
	for n, i := range which {
		some[n] = all[i]
	}
	return some
}
