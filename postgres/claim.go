package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

// Claim implements [semel.Store]. It looks, without a lock, at the lanes whose
// turn it is, shares out what is due there, and takes it by compare-and-set on the
// token. Its cost depends on Max, not on what is waiting.
func (s *Store) Claim(ctx context.Context, req semel.ClaimRequest) ([]semel.Claimed, error) {
	kinds := askedKinds(req)
	if req.Max <= 0 || len(kinds) == 0 {
		return nil, nil
	}
	for _, k := range kinds {
		if err := s.saveContract(ctx, k.Contract); err != nil {
			return nil, err
		}
	}
	for try := 1; ; try++ {
		picks, err := s.choose(ctx, req.Max, kinds)
		if err != nil || len(picks) == 0 {
			return nil, err
		}
		claimed, err := s.lease(ctx, req.Worker, kinds, picks)
		if err != nil || len(claimed) > 0 || try == maxClaims {
			return claimed, err
		}
		// Others took all of it; look again.
	}
}

// maxClaims is how often a claim looks again when others were faster.
const maxClaims = 5

// askedKinds are the kinds of a request, each of them once.
func askedKinds(req semel.ClaimRequest) []semel.ClaimKind {
	var kinds []semel.ClaimKind
	for _, k := range req.Kinds {
		if !slices.ContainsFunc(kinds, func(o semel.ClaimKind) bool { return o.Kind == k.Kind }) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

const (
	// The one place of the fast path, taken while others claim the same work: rows
	// that somebody is writing are left to him. Otherwise the update waits for him,
	// and then finds the token moved.
	pickedUnlocked = `(SELECT u.* FROM unnest(` + pickedArrays + `) AS ` + pickedNames + `
	JOIN semel_operation o ON ` + onKey + ` AND o.token = u.token AND o.due_at = u.due_at FOR UPDATE OF o SKIP LOCKED) u`
	picked       = `unnest(` + pickedArrays + `) AS ` + pickedNames
	pickedArrays = `$3::smallint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[]`
	pickedNames  = `u(shard, account, kind, operation_id, token, due_at, k, n)`

	// The claim itself: a compare-and-set on the token, and on the due time, which a
	// renewal moves without a new token.
	claimOperations = `UPDATE semel_operation o SET state = 'processing', owner = $2, updated_at = t.now, revision = o.revision + 1,
	token = o.token + 1, due_at = t.now + ($11::bigint[])[u.k],
	executions = o.executions + CASE WHEN o.state = 'accepted' AND ($12::boolean[])[u.k] THEN 1 ELSE 0 END,
	run_token = o.token + 1, run_worker = $13, run_contract = ($14::text[])[u.k], run_step = '',
	run_claimed_at = t.now, run_ends_at = t.now + ($11::bigint[])[u.k],
	run_begun_at = CASE WHEN o.state = 'accepted' AND ($12::boolean[])[u.k] THEN t.now END,
	run_ended_at = NULL, run_outcome = NULL, run_evidence = NULL, run_late_at = NULL, run_late_outcome = NULL, run_late_evidence = NULL
FROM (SELECT ` + nowMS + ` AS now) t, `
	claimCondition = `
WHERE ` + onKey + ` AND o.token = u.token AND o.due_at = u.due_at AND o.due_at <= t.now
RETURNING u.n, ` + claimedColumns
	claimWaiting   = claimOperations + picked + claimCondition
	claimSkipping  = claimOperations + pickedUnlocked + claimCondition
	claimedColumns = `o.run_begun_at IS NOT NULL, o.due_at, ` + knownColumns

	leaseWork = `UPDATE semel_work o SET due_at = u.due_at, token = u.token, lane = u.lane
FROM` + unnestKeys + `, $5::bigint[], $6::bigint[], $7::text[]) AS u(shard, account, kind, operation_id, due_at, token, lane) WHERE ` + onKey

	// What was leased before: its latest execution goes to the others before the
	// claim writes over it. The rows are locked first, so that it is the latest.
	lockAgain = `SELECT 1 FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
	AS u(shard, account, kind, operation_id, token, due_at)
JOIN semel_operation o ON ` + onKey + ` AND o.token = u.token AND o.due_at = u.due_at FOR UPDATE OF o`

	keepExecutions = `INSERT INTO semel_execution (shard, account, kind, operation_id, token, worker, contract, step, claimed_at, lease_ends_at,
	begun_at, ended_at, outcome, evidence, late_outcome, late_evidence, late_at)
SELECT o.shard, o.account, o.kind, o.operation_id, o.run_token, o.run_worker, o.run_contract, o.run_step, o.run_claimed_at, o.run_ends_at,
	o.run_begun_at, o.run_ended_at, o.run_outcome, o.run_evidence, o.run_late_outcome, o.run_late_evidence, o.run_late_at
FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[]) AS u(shard, account, kind, operation_id, token, due_at)
CROSS JOIN LATERAL (SELECT * FROM semel_operation o WHERE ` + onKey + ` AND o.token = u.token AND o.due_at = u.due_at OFFSET 0) o
WHERE o.run_token IS NOT NULL
ON CONFLICT (shard, operation_id, account, kind, token) DO NOTHING`

	selectPrior = `SELECT u.account, u.kind, u.operation_id, ` + executionColumns + `
FROM` + unnestKeys + `, $5::bigint[]) AS u(shard, account, kind, operation_id, token)
JOIN semel_execution x ON x.shard = u.shard AND x.account = u.account AND x.kind = u.kind AND x.operation_id = u.operation_id AND x.token < u.token
ORDER BY x.token`

	// After a lost answer: what carries this claim's mark.
	selectClaimed = `SELECT u.n, ` + claimedColumns + ` FROM` + unnestKeys + `, $5::bigint[]) AS u(shard, account, kind, operation_id, n)
JOIN semel_operation o ON ` + onKey + ` AND o.owner = $6`
)

// A leasing is one claim on its way.
type leasing struct {
	s       *Store
	worker  string
	kinds   []semel.ClaimKind
	picks   []pick
	mark    string
	claimed map[semel.Key]*lease
}

// A lease is one operation of it.
type lease struct {
	semel.Claimed
	due int64 // when the lease ends
}

// lease takes what is still as it was picked.
func (s *Store) lease(ctx context.Context, worker string, kinds []semel.ClaimKind, picks []pick) ([]semel.Claimed, error) {
	l := &leasing{s: s, worker: worker, kinds: kinds, picks: picks, mark: rand.Text()}
	err := s.write(ctx, "claim", s.opts.BatchLockTimeout, l.take, l.follow)
	switch {
	case err == nil:
		s.turns.met(len(picks) - len(l.claimed))
		return s.answer(ctx, l)
	case isLost(err):
		return s.readBackClaims(ctx, l, err)
	case lockTimedOut(err) && len(picks) > 1:
		// Only where rows are not skipped: somebody holds one of them for long.
		half := len(picks) / 2
		one, err := s.lease(ctx, worker, kinds, picks[:half])
		if err != nil {
			return nil, err
		}
		other, err := s.lease(ctx, worker, kinds, picks[half:])
		if err != nil && len(one) == 0 {
			return nil, err
		}
		return append(one, other...), nil
	case lockTimedOut(err):
		return nil, nil
	}
	return nil, err
}

// take is the first round trip, which decides.
func (l *leasing) take(b *batch) {
	l.claimed = make(map[semel.Key]*lease, len(l.picks))
	picks, kinds := l.picks, l.kinds
	c := l.s.columnsOf(len(picks), func(i int) semel.Key { return picks[i].key })
	tokens, dues, numbers := make([]int64, len(picks)), make([]int64, len(picks)), make([]int64, len(picks))
	positions := l.positions()
	var again []int
	for i, p := range picks {
		tokens[i], dues[i], numbers[i] = p.token, p.due, int64(p.kind+1) // SQL counts from 1
		if p.token > 0 {
			again = append(again, i)
		}
	}
	if len(again) > 0 {
		a := l.s.columnsOf(len(again), func(i int) semel.Key { return picks[again[i]].key })
		before := []any{a.shards, a.accounts, a.kinds, a.id, pickOf(tokens, again), pickOf(dues, again)}
		b.queue(lockAgain, before...)
		b.queue(keepExecutions, before...)
	}
	leases, begin, contracts := make([]int64, len(kinds)), make([]bool, len(kinds)), make([]string, len(kinds))
	for i, k := range kinds {
		leases[i], begin[i], contracts[i] = l.s.span(k.Lease), k.BeginNow, contractID(k.Contract)
	}
	sql := claimWaiting
	if l.s.turns.crowded() && !l.s.opts.NoSkipLocked {
		sql = claimSkipping
	}
	b.each(sql, []any{l.s.now(), l.mark, c.shards, c.accounts, c.kinds, c.id, tokens, dues, numbers, positions,
		leases, begin, l.worker, contracts}, l.scan)
}

// follow is the second one: the work is due again when the lease ends.
func (l *leasing) follow(b *batch) {
	var taken, again []semel.Key
	for _, p := range l.picks {
		if l.claimed[p.key] != nil {
			taken = append(taken, p.key)
			if p.token > 0 {
				again = append(again, p.key)
			}
		}
	}
	if len(taken) == 0 {
		return
	}
	c := l.s.columnsOf(len(taken), func(i int) semel.Key { return taken[i] })
	dues, tokens := make([]int64, len(taken)), make([]int64, len(taken))
	for i, key := range taken {
		dues[i], tokens[i] = l.claimed[key].due, l.claimed[key].Operation.Token
	}
	b.queue(leaseWork, c.shards, c.accounts, c.kinds, c.id, dues, tokens, c.lanes())
	l.queuePrior(b, again)
}

// queuePrior reads the executions before this one.
func (l *leasing) queuePrior(b *batch, keys []semel.Key) {
	if len(keys) == 0 {
		return
	}
	c := l.s.columnsOf(len(keys), func(i int) semel.Key { return keys[i] })
	tokens := make([]int64, len(keys))
	for i, key := range keys {
		tokens[i], l.claimed[key].Prior = l.claimed[key].Operation.Token, nil
	}
	b.each(selectPrior, []any{c.shards, c.accounts, c.kinds, c.id, tokens}, func(rows pgx.Rows) error {
		var key semel.Key
		x, err := scanExecution(rows, &key.Account, &key.Kind, &key.ID)
		if err == nil {
			l.claimed[key].Prior = append(l.claimed[key].Prior, x)
		}
		return err
	})
}

func (l *leasing) positions() []int64 {
	positions := make([]int64, len(l.picks))
	for i := range positions {
		positions[i] = int64(i)
	}
	return positions
}

func (l *leasing) scan(rows pgx.Rows) error {
	c, n := &lease{}, int64(0)
	op, err := scanKnown(rows, func() semel.Operation {
		return semel.Operation{Key: l.picks[n].key, State: semel.Processing, Owner: l.mark}
	}, &n, &c.Begun, &c.due)
	if err == nil {
		c.Operation, c.Now = *op, op.UpdatedAt
		l.claimed[op.Key] = c
	}
	return err
}

// answer returns what was claimed, the oldest due first.
func (s *Store) answer(ctx context.Context, l *leasing) ([]semel.Claimed, error) {
	slices.SortStableFunc(l.picks, func(a, b pick) int { return cmp.Compare(a.due, b.due) })
	var all []semel.Claimed
	for _, p := range l.picks {
		c := l.claimed[p.key]
		if c == nil {
			continue
		}
		if len(c.Prior) > 0 {
			if err := s.readContracts(context.WithoutCancel(ctx), c.Prior); err != nil {
				return nil, unknown("claim", err) // the leases come back when they end
			}
		}
		all = append(all, c.Claimed)
	}
	return all, nil
}

// readBackClaims keeps the leases that carry our mark after an answer was lost.
// What is not told to anybody comes back when its lease ends.
func (s *Store) readBackClaims(ctx context.Context, l *leasing, lost error) ([]semel.Claimed, error) {
	c := s.columnsOf(len(l.picks), func(i int) semel.Key { return l.picks[i].key })
	err := s.settle(ctx, "claim", lost, func(ctx context.Context, _ int) error {
		l.claimed = map[semel.Key]*lease{}
		err := s.read(ctx, "claim", func(b *batch) {
			b.each(selectClaimed, []any{c.shards, c.accounts, c.kinds, c.id, l.positions(), l.mark}, l.scan)
		})
		if err != nil || len(l.claimed) == 0 {
			return err
		}
		return s.read(ctx, "claim", func(b *batch) { l.queuePrior(b, slices.Collect(maps.Keys(l.claimed))) })
	})
	if err != nil {
		return nil, err
	}
	if len(l.claimed) == 0 {
		return nil, unknown("claim", lost)
	}
	return s.answer(ctx, l)
}
