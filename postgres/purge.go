package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

const (
	raiseHorizon = `INSERT INTO semel_horizon AS h (shard, kind, horizon_at)
SELECT u.shard, $3, ` + nowMS + ` - $4::bigint FROM unnest($2::smallint[]) AS u(shard)
ON CONFLICT (shard, kind) DO UPDATE SET horizon_at = excluded.horizon_at WHERE excluded.horizon_at > h.horizon_at`

	selectExpiring = `SELECT e.shard, e.account, e.operation_id, e.expires_at FROM unnest($2::smallint[]) AS u(shard)
CROSS JOIN LATERAL (SELECT * FROM semel_expiry e WHERE e.shard = u.shard AND e.kind = $3 AND e.expires_at <= ` + nowMS + `
	ORDER BY e.expires_at LIMIT $4) e LIMIT $4`

	selectForgettable = `SELECT o.shard, o.account, o.operation_id, o.id_time FROM unnest($1::smallint[]) AS u(shard)
CROSS JOIN LATERAL (SELECT o.shard, o.account, o.operation_id, o.id_time FROM semel_operation o
	WHERE o.shard = u.shard AND o.kind = $2 AND o.expired AND o.id_time IS NOT NULL AND o.id_time <= o.created_at
	AND o.id_time <= (SELECT h.horizon_at FROM semel_horizon h WHERE h.shard = u.shard AND h.kind = $2)
	ORDER BY o.id_time LIMIT $3) o LIMIT $3`

	doomed = ` unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS u(shard, account, kind, operation_id, at)`

	// The condition stands on the row that loses its content, not on what was read
	// before: who settled, revived or stripped it meanwhile is seen.
	stripOperations = `UPDATE semel_operation o SET expired = true, params = NULL, request = NULL, result = NULL, as_sent = '',
	fingerprint = '', schema_version = '', progress = NULL, progress_note = '', failure_code = NULL, failure_message = '',
	run_token = NULL, run_worker = NULL, run_contract = NULL, run_step = NULL, run_claimed_at = NULL, run_ends_at = NULL, run_begun_at = NULL,
	run_ended_at = NULL, run_outcome = NULL, run_evidence = NULL, run_late_at = NULL, run_late_outcome = NULL, run_late_evidence = NULL
FROM unnest($2::smallint[], $3::text[], $4::text[], $5::text[]) AS u(shard, account, kind, operation_id)
WHERE ` + onKey + ` AND o.state IN ` + settledStates + ` AND o.expired IS NOT TRUE AND o.expires_at > 0 AND o.expires_at <= ` + nowMS

	theirs = ` CROSS JOIN LATERAL (SELECT o.expired FROM semel_operation o WHERE ` + onKey + ` AND o.expired OFFSET 0) o
WHERE x.shard = u.shard AND x.account = u.account AND x.kind = u.kind AND x.operation_id = u.operation_id`

	stripExecutions = `DELETE FROM semel_execution x USING` + doomed + theirs
	stripAttempts   = `DELETE FROM semel_attempt x USING` + doomed + theirs
	stripVerdicts   = `DELETE FROM semel_verdict x USING` + doomed + theirs

	dropExpiry = `DELETE FROM semel_expiry e USING` + doomed + `
WHERE e.shard = u.shard AND e.kind = u.kind AND e.expires_at = u.at AND e.account = u.account AND e.operation_id = u.operation_id
	AND NOT EXISTS (SELECT 1 FROM semel_operation o WHERE ` + onKey + ` AND o.expired IS NOT TRUE)`

	forgetOperations = `DELETE FROM semel_operation o USING unnest($1::smallint[], $2::text[], $3::text[], $4::text[]) AS u(shard, account, kind, operation_id)
WHERE ` + onKey + ` AND o.state IN ` + settledStates + ` AND o.expired AND o.id_time IS NOT NULL AND o.id_time <= o.created_at
	AND o.id_time <= (SELECT h.horizon_at FROM semel_horizon h WHERE h.shard = u.shard AND h.kind = u.kind)`
)

// purgeChunk is how many rows one transaction of a purge touches.
const purgeChunk = 500

// Purge implements [semel.Store]. Each transaction touches one shard.
func (s *Store) Purge(ctx context.Context, reqs []semel.PurgeRequest) (semel.Purged, error) {
	var sum semel.Purged
	for _, req := range reqs {
		err := s.write(ctx, "purge", s.opts.LockTimeout, func(b *batch) {
			b.queue(raiseHorizon, s.now(), allShards(), req.Kind, int64(req.Retention.Milliseconds()))
		})
		if err != nil {
			return sum, plain("purge", err)
		}
		if err := s.inChunks(ctx, req, &sum.Stripped, s.strip); err != nil {
			return sum, err
		}
		if err := s.inChunks(ctx, req, &sum.Deleted, s.forget); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// inChunks repeats a step until it finds nothing more or the request's Max is
// reached.
func (s *Store) inChunks(ctx context.Context, req semel.PurgeRequest, total *int, step func(context.Context, string, int) (found, done int, err error)) error {
	for *total < req.Max {
		chunk := min(purgeChunk, req.Max-*total)
		found, done, err := step(ctx, req.Kind, chunk)
		*total += done
		if err != nil || found < chunk || done == 0 {
			return err
		}
	}
	return nil
}

// A doomedRow is a row that a purge may have a right to.
type doomedRow struct {
	shard       int16
	account, id string
	at          int64
}

// strip takes everything but the identity from settled rows whose time is over.
func (s *Store) strip(ctx context.Context, kind string, most int) (found, done int, err error) {
	rows, err := s.doomedRows(ctx, selectExpiring, s.now(), allShards(), kind, most)
	if err != nil {
		return 0, 0, err
	}
	for shard, some := range byShard(rows) {
		n := 0
		c := doomedColumns(shard, kind, some)
		err := s.write(ctx, "purge", s.opts.LockTimeout, func(b *batch) {
			n = 0
			b.count(&n, stripOperations, append([]any{s.now()}, c[:4]...)...)
			for _, sql := range []string{stripExecutions, stripAttempts, stripVerdicts, dropExpiry} {
				b.queue(sql, c...)
			}
		})
		if err != nil {
			return len(rows), done, plain("purge", err)
		}
		done += n
	}
	return len(rows), done, nil
}

// forget deletes stripped rows that the horizon answers for.
func (s *Store) forget(ctx context.Context, kind string, most int) (found, done int, err error) {
	rows, err := s.doomedRows(ctx, selectForgettable, allShards(), kind, most)
	if err != nil {
		return 0, 0, err
	}
	for shard, some := range byShard(rows) {
		n := 0
		c := doomedColumns(shard, kind, some)
		err := s.write(ctx, "purge", s.opts.LockTimeout, func(b *batch) {
			n = 0
			b.count(&n, forgetOperations, c[:4]...)
		})
		if err != nil {
			return len(rows), done, plain("purge", err)
		}
		done += n
	}
	return len(rows), done, nil
}

func (s *Store) doomedRows(ctx context.Context, sql string, args ...any) (all []doomedRow, err error) {
	err = s.read(ctx, "purge", func(b *batch) {
		all = nil
		b.each(sql, args, func(rows pgx.Rows) error {
			var r doomedRow
			err := rows.Scan(&r.shard, &r.account, &r.id, &r.at)
			all = append(all, r)
			return err
		})
	})
	return all, err
}

func byShard(rows []doomedRow) map[int16][]doomedRow {
	m := map[int16][]doomedRow{}
	for _, r := range rows {
		m[r.shard] = append(m[r.shard], r)
	}
	return m
}

func doomedColumns(shard int16, kind string, rows []doomedRow) []any {
	slices.SortFunc(rows, func(a, b doomedRow) int { return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.id, b.id)) })
	shards, accounts, kinds, ids, at := make([]int16, len(rows)), make([]string, len(rows)), make([]string, len(rows)), make([]string, len(rows)), make([]int64, len(rows))
	for i, r := range rows {
		shards[i], accounts[i], kinds[i], ids[i], at[i] = shard, r.account, kind, r.id, r.at
	}
	return []any{shards, accounts, kinds, ids, at}
}
