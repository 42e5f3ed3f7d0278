package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

const (
	renewOperations = `UPDATE semel_operation o SET due_at = t.now + u.lease, run_ends_at = CASE WHEN o.run_token = u.token THEN t.now + u.lease ELSE o.run_ends_at END,
	progress = CASE WHEN u.told THEN u.progress ELSE o.progress END,
	progress_note = CASE WHEN u.told THEN u.note ELSE o.progress_note END
FROM (SELECT ` + nowMS + ` AS now) t, unnest($2::smallint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
	$9::boolean[], $10::double precision[], $11::text[])
	AS u(shard, account, kind, operation_id, token, n, lease, told, progress, note)
WHERE ` + onKey + ` AND o.token = u.token AND o.state = 'processing'
RETURNING u.n`

	// The operation's row is ours since the statement before.
	ourRenewed = ` unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[]) AS u(shard, account, kind, operation_id, token, lane)
CROSS JOIN LATERAL (SELECT * FROM semel_operation o WHERE ` + onKey + ` AND o.token = u.token AND o.state = 'processing' OFFSET 0) o`

	renewWork = `UPDATE semel_work w SET due_at = o.due_at, lane = u.lane FROM` + ourRenewed + `
WHERE w.shard = u.shard AND w.account = u.account AND w.kind = u.kind AND w.operation_id = u.operation_id`

	ofExecution = `
WHERE shard = $2 AND account = $3 AND kind = $4 AND operation_id = $5 AND `
	keepLate       = `UPDATE semel_execution SET late_outcome = $6, late_evidence = $7, late_at = ` + nowMS + ofExecution + `token = $8 AND late_at IS NULL`
	keepLateLatest = `UPDATE semel_operation SET run_late_outcome = $6, run_late_evidence = $7, run_late_at = ` + nowMS + ofExecution + `run_token = $8 AND run_late_at IS NULL`
)

// Renew implements [semel.Store]. The batch is one transaction.
func (s *Store) Renew(ctx context.Context, members []semel.Renewal) ([]bool, error) {
	if len(members) == 0 {
		return nil, nil
	}
	held := make([]bool, len(members))
	err := s.write(ctx, "renew", s.opts.LockTimeout, func(b *batch) {
		clear(held)
		for _, which := range rounds(members) {
			s.queueRenew(b, members, which, held)
		}
	})
	if err != nil {
		return nil, plain("renew", err)
	}
	return held, nil
}

// rounds cuts members into groups with distinct keys, each in the order of keys:
// in one statement a row is written once.
func rounds(members []semel.Renewal) [][]int {
	var all [][]int
	times := map[semel.Key]int{}
	for i, m := range members {
		n := times[m.Key]
		times[m.Key]++
		if n == len(all) {
			all = append(all, nil)
		}
		all[n] = append(all[n], i)
	}
	for _, which := range all {
		slices.SortFunc(which, func(a, b int) int { return members[a].Key.Compare(members[b].Key) })
	}
	return all
}

func (s *Store) queueRenew(b *batch, members []semel.Renewal, which []int, held []bool) {
	n := len(which)
	c := s.columnsOf(n, func(i int) semel.Key { return members[which[i]].Key })
	tokens, positions, leases := make([]int64, n), make([]int64, n), make([]int64, n)
	told, progress, notes := make([]bool, n), make([]float64, n), make([]string, n)
	for i, m := range which {
		tokens[i], positions[i], leases[i] = members[m].Token, int64(m), s.span(members[m].Lease)
		if p := members[m].Progress; p != nil {
			told[i], progress[i], notes[i] = true, p.Fraction, p.Note
		}
	}
	b.each(renewOperations, []any{s.now(), c.shards, c.accounts, c.kinds, c.id, tokens, positions, leases, told, progress, notes},
		func(rows pgx.Rows) error {
			var i int64
			err := rows.Scan(&i)
			if err == nil {
				held[i] = true
			}
			return err
		})
	b.queue(renewWork, c.shards, c.accounts, c.kinds, c.id, tokens, c.lanes())
}

// KeepLate implements [semel.Store].
func (s *Store) KeepLate(ctx context.Context, late semel.Late) error {
	return plain("keep late", s.write(ctx, "keep late", s.opts.LockTimeout, func(b *batch) {
		k := late.Key
		args := []any{s.now(), s.shard(k), k.Account, k.Kind, k.ID, string(late.Outcome), []byte(late.Evidence), late.Token}
		b.queue(keepLate, args...)
		b.queue(keepLateLatest, args...)
	}))
}
