package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

const (
	selectOne = `SELECT ` + fullColumns + ` FROM semel_operation o WHERE o.shard = $1 AND o.account = $2 AND o.kind = $3 AND o.operation_id = $4`

	selectHorizon = `SELECT h.horizon_at FROM semel_horizon h WHERE h.shard = $1 AND h.kind = $2`

	selectMany = `SELECT o.shard IS NOT NULL, u.n, coalesce(u.id_time <= (SELECT h.horizon_at FROM semel_horizon h
	WHERE h.shard = u.shard AND h.kind = u.kind), false), ` + fullColumns + `
FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
	AS u(shard, account, kind, operation_id, id_time, n)
LEFT JOIN LATERAL (SELECT * FROM semel_operation o WHERE ` + onKey + ` OFFSET 0) o ON true`
)

// Get implements [semel.Tx]: one read by primary key for each, and no write.
func (s *Store) Get(ctx context.Context, keys []semel.Key) ([]semel.Found, error) {
	switch len(keys) {
	case 0:
		return nil, nil
	case 1:
		found, err := s.getOne(ctx, keys[0])
		if err != nil {
			return nil, err
		}
		return []semel.Found{found}, nil
	}
	var out []semel.Found
	err := s.read(ctx, "get", func(b *batch) { out = s.queueGet(b, keys) })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// getOne asks for the horizon only if there is no row. The horizon is read later
// than the row: a row that a purge took was behind it by then.
func (s *Store) getOne(ctx context.Context, key semel.Key) (found semel.Found, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout) // others wait for the connection
	defer cancel()
	err = s.query(ctx, "get", selectOne, []any{s.shard(key), key.Account, key.Kind, key.ID}, func(rows pgx.Rows) (err error) {
		found.Operation, err = scanRow(rows)
		return err
	})
	at, dated := semel.IDTime(key.ID)
	if err != nil || found.Operation != nil || !dated {
		return found, err
	}
	err = s.query(ctx, "get", selectHorizon, []any{s.shard(key), key.Kind}, func(rows pgx.Rows) error {
		var horizon int64
		err := rows.Scan(&horizon)
		found.PastHorizon = at.UnixMilli() <= horizon
		return err
	})
	return found, err
}

// queueGet adds a look-up of many keys, and returns where its answers will be.
func (s *Store) queueGet(b *batch, keys []semel.Key) []semel.Found {
	out := make([]semel.Found, len(keys))
	c := s.columnsOf(len(keys), func(i int) semel.Key { return keys[i] })
	times, positions := make([]int64, len(keys)), make([]int64, len(keys))
	for i, key := range keys {
		times[i], positions[i] = noTime, int64(i)
		if at, dated := semel.IDTime(key.ID); dated {
			times[i] = at.UnixMilli()
		}
	}
	b.each(selectMany, []any{c.shards, c.accounts, c.kinds, c.id, times, positions}, func(rows pgx.Rows) error {
		var n int64
		var exists, past bool
		op, err := scanMaybe(rows, &exists, &n, &past)
		if err != nil {
			return err
		}
		out[n] = semel.Found{Operation: op, PastHorizon: past && op == nil}
		return nil
	})
	return out
}
