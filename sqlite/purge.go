package sqlite

import (
	"context"
	"database/sql"

	"github.com/semel-dev/semel"
)

// purgeChunk is how many rows one transaction of a purge touches, so that other
// writers get their turn in between.
const purgeChunk = 200

// Purge implements [semel.Store].
func (s *Store) Purge(ctx context.Context, reqs []semel.PurgeRequest) (semel.Purged, error) {
	var sum semel.Purged
	for _, req := range reqs {
		if err := s.raiseHorizon(ctx, req); err != nil {
			return sum, err
		}
		n, err := s.inChunks(ctx, req.Max, func(ctx context.Context, r runner, now moment, max int) (int, error) {
			return s.strip(ctx, r, now, req.Kind, max)
		})
		sum.Stripped += n
		if err != nil {
			return sum, err
		}
		n, err = s.inChunks(ctx, req.Max, func(ctx context.Context, r runner, _ moment, max int) (int, error) {
			return s.forget(ctx, r, req.Kind, max)
		})
		sum.Deleted += n
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// raiseHorizon moves the horizon of the kind in every shard; it never moves back.
func (s *Store) raiseHorizon(ctx context.Context, req semel.PurgeRequest) error {
	return plain("purge", s.write(ctx, "purge", func(ctx context.Context, r runner, now moment) error {
		for shard := range semel.Shards {
			_, err := r.exec(ctx, `INSERT INTO semel_horizon (shard, kind, horizon_at) VALUES (?, ?, ?)
				ON CONFLICT (shard, kind) DO UPDATE SET horizon_at = excluded.horizon_at WHERE excluded.horizon_at > horizon_at`,
				shard, req.Kind, moment{now.t.Add(-req.Retention)}.ms())
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// inChunks repeats a step, in a transaction of its own, until it finds nothing more
// or max is reached.
func (s *Store) inChunks(ctx context.Context, max int, step func(context.Context, runner, moment, int) (int, error)) (total int, err error) {
	for total < max {
		chunk, n := min(purgeChunk, max-total), 0
		err = plain("purge", s.write(ctx, "purge", func(ctx context.Context, r runner, now moment) (err error) {
			n, err = step(ctx, r, now, chunk)
			return err
		}))
		if err != nil {
			return total, err
		}
		total += n
		if n < chunk {
			break
		}
	}
	return total, nil
}

// strip takes everything but the identity from settled rows whose time is over.
func (s *Store) strip(ctx context.Context, r runner, now moment, kind string, max int) (int, error) {
	up := newUpkeep()
	keys, err := purgeable(ctx, r, `SELECT account, operation_id FROM semel_operation WHERE kind = ?
		AND expired = 0 AND expires_at > 0 AND expires_at <= ? ORDER BY expires_at LIMIT ?`, kind, now.ms(), max)
	if err != nil {
		return 0, err
	}
	stripped := 0
	for _, key := range keys {
		var state semel.State
		done, err := r.row(ctx, `UPDATE semel_operation SET expired = 1, params = NULL, request = NULL, result = NULL, as_sent = '',
			fingerprint = '', schema_version = '', progress = NULL, progress_note = '', failure_code = NULL, failure_message = ''
			WHERE `+isKey+` AND state IN ('succeeded', 'failed', 'abandoned') AND expired = 0 AND expires_at > 0 AND expires_at <= ?
			RETURNING state`, s.keyArgs(key, now.ms()), &state)
		if err != nil {
			return 0, err
		}
		if !done {
			continue
		}
		stripped++
		up.moved(kind, state, semel.None)
		for _, query := range []string{
			`DELETE FROM semel_execution WHERE ` + isKey,
			`DELETE FROM semel_attempt WHERE ` + isKey,
			`DELETE FROM semel_verdict WHERE ` + isKey,
		} {
			if _, err := r.exec(ctx, query, s.keyArgs(key)...); err != nil {
				return 0, err
			}
		}
	}
	return stripped, up.flush(ctx, r)
}

// forget deletes stripped rows that the horizon answers for. A purge raises the
// horizons of a kind in all shards at once, so one of them finds the candidates;
// what is deleted is held against its own.
func (s *Store) forget(ctx context.Context, r runner, kind string, max int) (int, error) {
	horizon, err := s.horizon(ctx, r, 0, kind)
	if err != nil {
		return 0, err
	}
	keys, err := purgeable(ctx, r, `SELECT account, operation_id FROM semel_operation WHERE kind = ?
		AND expired = 1 AND id_time IS NOT NULL AND id_time <= created_at AND id_time <= ? ORDER BY id_time LIMIT ?`, kind, horizon, max)
	if err != nil {
		return 0, err
	}
	deleted := 0
	for _, key := range keys {
		n, err := r.exec(ctx, `DELETE FROM semel_operation WHERE `+isKey+` AND state IN ('succeeded', 'failed', 'abandoned')
			AND expired = 1 AND id_time IS NOT NULL AND id_time <= created_at
			AND id_time <= (SELECT horizon_at FROM semel_horizon AS h WHERE h.shard = semel_operation.shard AND h.kind = semel_operation.kind)`,
			s.keyArgs(key)...)
		if err != nil {
			return 0, err
		}
		deleted += int(n)
	}
	return deleted, nil
}

// purgeable collects up to max keys of a kind.
func purgeable(ctx context.Context, r runner, query, kind string, limit int64, max int) ([]semel.Key, error) {
	var keys []semel.Key
	err := r.each(ctx, query, []any{kind, limit, max}, func(rows *sql.Rows) error {
		key := semel.Key{Kind: kind}
		err := rows.Scan(&key.Account, &key.ID)
		keys = append(keys, key)
		return err
	})
	return keys, err
}
