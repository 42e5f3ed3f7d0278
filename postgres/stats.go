package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

const (
	countStates = `SELECT o.kind, o.state, count(*), count(*) FILTER (WHERE o.contradicted), count(*) FILTER (WHERE NOT o.acknowledged),
	coalesce(min(o.created_at) FILTER (WHERE NOT o.acknowledged), 0)
FROM semel_operation o WHERE NOT o.expired GROUP BY o.kind, o.state`

	oldestDue = `SELECT w.kind, min(w.due_at) FROM semel_work w GROUP BY w.kind`
)

// Stats implements [semel.Store]. It reads all there is: ask once a minute, not
// once a second.
func (s *Store) Stats(ctx context.Context) (semel.Stats, error) {
	var now int64
	var kinds map[string]*semel.KindStats
	kind := func(name string) *semel.KindStats {
		if kinds[name] == nil {
			kinds[name] = &semel.KindStats{Kind: name, States: map[semel.State]int64{}}
		}
		return kinds[name]
	}
	age := func(at int64) time.Duration { return max(0, time.Duration(now-at)*time.Millisecond) }
	err := s.snapshot(ctx, "stats", func(b *batch) {
		kinds = map[string]*semel.KindStats{}
		b.queue(`SELECT set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true)`)
		b.each(`SELECT `+nowMS, []any{s.now()}, func(rows pgx.Rows) error { return rows.Scan(&now) })
		b.each(countStates, nil, func(rows pgx.Rows) error {
			var name, state string
			var n, contradicted, open, oldest int64
			if err := rows.Scan(&name, &state, &n, &contradicted, &open, &oldest); err != nil {
				return err
			}
			k := kind(name)
			k.States[semel.State(state)] = n
			k.Contradicted += contradicted
			if semel.State(state) == semel.NeedsReconciliation && open > 0 {
				k.Unreconciled, k.OldestUnreconciled = open, age(oldest)
			}
			return nil
		})
		b.each(oldestDue, nil, func(rows pgx.Rows) error {
			var name string
			var due int64
			err := rows.Scan(&name, &due)
			kind(name).OldestDue = age(due)
			return err
		})
	})
	stats := semel.Stats{At: timeOf(now), Kinds: []semel.KindStats{}}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		stats.Kinds = append(stats.Kinds, *kinds[name])
	}
	return stats, err
}
