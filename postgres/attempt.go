package postgres

import (
	"context"
	"slices"

	"github.com/semel-dev/semel"
)

const (
	// The row is locked from here on, so the numbers below are ours.
	countAttempts = `UPDATE semel_operation o SET attempts = o.attempts + u.more
FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS u(shard, account, kind, operation_id, more)
WHERE ` + onKey + ` AND o.expired IS NOT TRUE`

	// The last of an operation's attempts in this batch has back = 0.
	addAttempts = `INSERT INTO semel_attempt (shard, account, kind, operation_id, number, attempt_id, at)
SELECT o.shard, o.account, o.kind, o.operation_id, o.attempts - u.back, u.attempt_id, ` + nowMS + `
FROM unnest($2::smallint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[]) AS u(shard, account, kind, operation_id, back, attempt_id)
CROSS JOIN LATERAL (SELECT * FROM semel_operation o WHERE ` + onKey + ` AND o.expired IS NOT TRUE OFFSET 0) o
ON CONFLICT (shard, account, kind, operation_id, number) DO NOTHING`

	dropAttempts = `DELETE FROM semel_attempt a USING unnest($1::smallint[], $2::text[], $3::text[], $4::text[]) AS u(shard, account, kind, operation_id)
CROSS JOIN LATERAL (SELECT o.attempts FROM semel_operation o WHERE ` + onKey + ` OFFSET 0) o
WHERE a.shard = u.shard AND a.account = u.account AND a.kind = u.kind AND a.operation_id = u.operation_id AND a.number <= o.attempts - $5`
)

// RecordAttempts implements [semel.Store].
func (s *Store) RecordAttempts(ctx context.Context, members []semel.Attempt) error {
	if len(members) == 0 {
		return nil
	}
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, func(a, b semel.Attempt) int { return a.Key.Compare(b.Key) })
	var keys []semel.Key
	var counts []int64
	back, ids := make([]int64, len(sorted)), make([]string, len(sorted))
	for i := len(sorted) - 1; i >= 0; i-- {
		ids[i] = sorted[i].ID
		if i+1 < len(sorted) && sorted[i].Key == sorted[i+1].Key {
			back[i] = back[i+1] + 1
			counts[len(counts)-1]++
			continue
		}
		keys, counts = append(keys, sorted[i].Key), append(counts, 1)
	}
	slices.Reverse(keys)
	slices.Reverse(counts)
	one := s.columnsOf(len(keys), func(i int) semel.Key { return keys[i] })
	all := s.columnsOf(len(sorted), func(i int) semel.Key { return sorted[i].Key })
	return plain("attempts", s.write(ctx, "attempts", s.opts.LockTimeout, func(b *batch) {
		b.queue(countAttempts, one.shards, one.accounts, one.kinds, one.id, counts)
		b.queue(addAttempts, s.now(), all.shards, all.accounts, all.kinds, all.id, back, ids)
		b.queue(dropAttempts, one.shards, one.accounts, one.kinds, one.id, int64(semel.MaxAttempts))
	}))
}
