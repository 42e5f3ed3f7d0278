package sqlite

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/semel-dev/semel"
)

const unreconciled = `SELECT count(*), coalesce(min(created_at), 0) FROM semel_operation WHERE
	kind = ? AND state = 'needs_reconciliation' AND expired = 0 AND acknowledged = 0`

// Stats implements [semel.Store].
func (s *Store) Stats(ctx context.Context) (semel.Stats, error) {
	now := s.now()
	kinds := map[string]*semel.KindStats{}
	kind := func(name string) *semel.KindStats {
		if kinds[name] == nil {
			kinds[name] = &semel.KindStats{Kind: name, States: map[semel.State]int64{}}
		}
		return kinds[name]
	}
	count := func(r runner, query string, use func(k *semel.KindStats, n, at int64)) error {
		return r.each(ctx, query, nil, func(rows *sql.Rows) error {
			var name string
			var n, at int64
			if err := rows.Scan(&name, &n, &at); err != nil {
				return err
			}
			use(kind(name), n, at)
			return nil
		})
	}
	err := s.snapshot(ctx, "stats", func(ctx context.Context, r runner) error {
		err := r.each(ctx, `SELECT kind, state, operations FROM semel_count WHERE operations > 0`, nil, func(rows *sql.Rows) error {
			var name string
			var state semel.State
			var n int64
			if err := rows.Scan(&name, &state, &n); err != nil {
				return err
			}
			kind(name).States[state] = n
			return nil
		})
		if err != nil {
			return err
		}
		err = count(r, `SELECT kind, count(*), min(due_at) FROM semel_queue GROUP BY kind`, func(k *semel.KindStats, _, at int64) {
			k.OldestDue = max(0, timeOf(now.ms()).Sub(timeOf(at)))
		})
		if err != nil {
			return err
		}
		for _, k := range kinds {
			if k.States[semel.NeedsReconciliation] == 0 {
				continue
			}
			var n, at int64
			_, err := r.row(ctx, unreconciled, []any{k.Kind}, &n, &at)
			if err != nil {
				return err
			}
			if n > 0 {
				k.Unreconciled, k.OldestUnreconciled = n, max(0, timeOf(now.ms()).Sub(timeOf(at)))
			}
		}
		return count(r, `SELECT kind, count(*), 0 FROM semel_operation WHERE contradicted = 1 AND expired = 0 GROUP BY kind`,
			func(k *semel.KindStats, n, _ int64) { k.Contradicted = n })
	})
	stats := semel.Stats{At: timeOf(now.ms()), Kinds: []semel.KindStats{}}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		stats.Kinds = append(stats.Kinds, *kinds[name])
	}
	return stats, err
}
