package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

const countPending = `SELECT u.n, c.pending FROM unnest($1::smallint[], $2::text[], $3::bigint[]) AS u(shard, account, n)
CROSS JOIN LATERAL (SELECT count(*) AS pending FROM (SELECT 1 FROM semel_work w WHERE w.shard = u.shard AND w.account = u.account LIMIT $4) l) c`

// Pending implements [semel.Store]. It reads at most limit rows of each shard that
// may hold an account.
func (s *Store) Pending(ctx context.Context, accounts []string, limit int) ([]int, error) {
	counts := make([]int, len(accounts))
	if len(accounts) == 0 {
		return counts, nil
	}
	var shards []int16
	var names []string
	var positions []int64
	for i, account := range accounts {
		for _, shard := range s.shardsOf(account) {
			shards, names, positions = append(shards, shard), append(names, account), append(positions, int64(i))
		}
	}
	err := s.read(ctx, "pending", func(b *batch) {
		clear(counts)
		b.each(countPending, []any{shards, names, positions, max(0, limit)}, func(rows pgx.Rows) error {
			var i int64
			var n int
			err := rows.Scan(&i, &n)
			counts[i] = min(counts[i]+n, max(0, limit))
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// shardsOf returns the shards that may hold operations of the account.
func (s *Store) shardsOf(account string) []int16 {
	if s.sharding == semel.ShardByAccount {
		return []int16{s.shard(semel.Key{Account: account})}
	}
	return allShards()
}

func allShards() []int16 {
	all := make([]int16, semel.Shards)
	for i := range all {
		all[i] = int16(i)
	}
	return all
}
