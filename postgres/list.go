package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

// Every list is a merge of index ranges, each of them read no further than one
// page. The filters look at rows of these ranges only.
const (
	anyKind, oneKind = `($1 = '' OR o.kind = $1)`, `o.kind = $1` // the second is looked up in the index

	listFilter = `AND NOT o.expired AND ` + anyKind + ` AND ($2 = '' OR o.state = $2) AND NOT ($3 AND o.acknowledged)
	AND o.created_at <= $4 AND (o.created_at, o.account, o.kind, o.operation_id) < ($4, $5, $6, $7)`

	listOrder = `o.created_at DESC, o.account DESC, o.kind DESC, o.operation_id DESC`

	listHead = `SELECT ` + lightColumns + ` FROM `

	listAccounts = listHead + `unnest($9::smallint[], $10::text[]) AS u(shard, account)
CROSS JOIN LATERAL (SELECT * FROM semel_operation o WHERE o.shard = u.shard AND o.account = u.account ` + listFilter + `
	ORDER BY o.created_at DESC, o.kind DESC, o.operation_id DESC LIMIT $8) o
ORDER BY ` + listOrder + ` LIMIT $8`

	// What few are in is looked through for some accounts' share of it.
	listFiledIn = listHead + `unnest($9::smallint[]) AS u(shard)
CROSS JOIN LATERAL (SELECT * FROM semel_operation o WHERE o.shard = u.shard AND o.filed = $2 AND o.filed IS NOT NULL AND o.account = ANY($10::text[]) ` + listFilter + `
	ORDER BY ` + listOrder + ` LIMIT $8) o
ORDER BY ` + listOrder + ` LIMIT $8`

	listAll = listHead + `unnest($9::smallint[]) AS u(shard)
CROSS JOIN LATERAL (SELECT * FROM semel_operation o WHERE o.shard = u.shard ` + listFilter + `
	ORDER BY ` + listOrder + ` LIMIT $8) o
ORDER BY ` + listOrder + ` LIMIT $8`

	listFiled = listHead + `unnest($9::smallint[]) AS u(shard)
CROSS JOIN LATERAL (SELECT * FROM semel_operation o WHERE o.shard = u.shard AND o.filed = $2 AND o.filed IS NOT NULL ` + listFilter + `
	ORDER BY ` + listOrder + ` LIMIT $8) o
ORDER BY ` + listOrder + ` LIMIT $8`

	// While little is pending, its work rows are the shortest way to it.
	listWork = listHead + `(SELECT w.shard, w.account, w.kind, w.operation_id FROM unnest($9::smallint[]) AS u(shard)
	CROSS JOIN LATERAL (SELECT * FROM semel_work w WHERE w.shard = u.shard) w) u
CROSS JOIN LATERAL (SELECT * FROM semel_operation o WHERE ` + onKey + ` ` + listFilter + ` OFFSET 0) o
ORDER BY ` + listOrder + ` LIMIT $8`

	listWorkIn = listHead + `(SELECT w.shard, w.account, w.kind, w.operation_id FROM unnest($9::smallint[], $10::text[]) AS u(shard, account)
	CROSS JOIN LATERAL (SELECT * FROM semel_work w WHERE w.shard = u.shard AND w.account = u.account) w) u
CROSS JOIN LATERAL (SELECT * FROM semel_operation o WHERE ` + onKey + ` ` + listFilter + ` OFFSET 0) o
ORDER BY ` + listOrder + ` LIMIT $8`

	// An operation that is not expired is in one of three places by its kind: among those
	// that settled, those with work, and those that wait for a person. While a kind has
	// few, they are the shortest way to it.
	listKind = listHead + `(SELECT e.shard, e.account, e.kind, e.operation_id FROM unnest($9::smallint[]) AS u(shard)
	CROSS JOIN LATERAL (SELECT * FROM semel_expiry e WHERE e.shard = u.shard AND e.kind = $1) e
	UNION SELECT w.shard, w.account, w.kind, w.operation_id FROM unnest($10::text[]) AS u(lane)
	CROSS JOIN LATERAL (SELECT * FROM semel_work w WHERE ` + inLane + ` AND w.kind = $1) w
	UNION SELECT o.shard, o.account, o.kind, o.operation_id FROM unnest($9::smallint[]) AS u(shard)
	CROSS JOIN LATERAL (SELECT * FROM semel_operation o WHERE o.shard = u.shard AND o.filed = 'needs_reconciliation' AND o.filed IS NOT NULL
		AND NOT o.expired AND o.kind = $1) o) u
CROSS JOIN LATERAL (SELECT * FROM semel_operation o WHERE ` + onKey + ` AND ($11::text[] IS NULL OR o.account = ANY($11)) ` + listFilter + ` OFFSET 0) o
ORDER BY ` + listOrder + ` LIMIT $8`

	// inLane is the lanes of a kind: of no account, and of each. ('0' follows '/'.)
	inLane = `w.lane >= u.lane AND w.lane < left(u.lane, -1) || '0'`

	// kindUpTo counts what listKind would read: of those that wait for a person, which
	// are filed by time, it reads all kinds.
	kindUpTo = `SELECT count(*) FROM ((SELECT 1 FROM unnest($1::smallint[]) AS u(shard)
	CROSS JOIN LATERAL (SELECT 1 FROM semel_expiry e WHERE e.shard = u.shard AND e.kind = $3 LIMIT $2) e LIMIT $2)
UNION ALL (SELECT 1 FROM unnest($4::text[]) AS u(lane) CROSS JOIN LATERAL (SELECT 1 FROM semel_work w WHERE ` + inLane + ` LIMIT $2) w LIMIT $2)
UNION ALL (SELECT 1 FROM unnest($1::smallint[]) AS u(shard)
	CROSS JOIN LATERAL (SELECT 1 FROM semel_operation o WHERE o.shard = u.shard AND o.filed = 'needs_reconciliation' AND o.filed IS NOT NULL
		AND NOT o.expired LIMIT $2) o LIMIT $2)) l`

	workUpToIn = `SELECT count(*) FROM (SELECT 1 FROM unnest($1::smallint[], $3::text[]) AS u(shard, account)
CROSS JOIN LATERAL (SELECT 1 FROM semel_work w WHERE w.shard = u.shard AND w.account = u.account LIMIT $2) w LIMIT $2) l`

	workUpTo = `SELECT count(*) FROM (SELECT 1 FROM unnest($1::smallint[]) AS u(shard)
CROSS JOIN LATERAL (SELECT 1 FROM semel_work w WHERE w.shard = u.shard LIMIT $2) w LIMIT $2) l`
)

// How many rows of other tables are read for a list, rather than looking for their
// operations among all: of work, which is what pages ask for all the time, and of
// one kind.
const fewPending, fewOfKind = 5000, 1000

// List implements [semel.Store].
func (s *Store) List(ctx context.Context, q semel.Query) (semel.Page, error) {
	after, err := q.Start()
	if err != nil {
		return semel.Page{}, err
	}
	page := semel.Page{Operations: []semel.Operation{}}
	sql, more, err := s.listOf(ctx, q)
	if err != nil {
		return page, err
	}
	if q.Kind != "" {
		sql = strings.Replace(sql, anyKind, oneKind, 1)
	}
	args := append([]any{q.Kind, string(q.State), q.Unacknowledged, after.CreatedAt, after.Account, after.Kind, after.ID, q.Size + 1}, more...)
	err = s.read(ctx, "list", func(b *batch) {
		page.Operations = page.Operations[:0]
		b.each(sql, args, func(rows pgx.Rows) error {
			var c scanner
			err := rows.Scan(c.light()...)
			page.Operations = append(page.Operations, *c.operation())
			return err
		})
	})
	if err != nil {
		return semel.Page{}, err
	}
	if len(page.Operations) > q.Size {
		page.Operations = page.Operations[:q.Size]
		page.Next = semel.PlaceOf(page.Operations[q.Size-1]).Token()
	}
	return page, nil
}

// listOf picks the index that a list is read by, and returns its own arguments.
func (s *Store) listOf(ctx context.Context, q semel.Query) (sql string, args []any, err error) {
	if q.Accounts != nil {
		return s.listOfAccounts(ctx, q)
	}
	switch q.State {
	case semel.Failed, semel.NeedsReconciliation, semel.Abandoned:
		return listFiled, []any{allShards()}, nil
	case semel.Accepted, semel.Processing:
		few, err := s.few(ctx, workUpTo, fewPending, allShards())
		if err != nil {
			return "", nil, err
		}
		if few {
			return listWork, []any{allShards()}, nil
		}
	}
	if sql, args, err = s.listOfKind(ctx, q, allShards()); sql != "" || err != nil {
		return sql, args, err
	}
	return listAll, []any{allShards()}, nil
}

// listOfKind returns nothing if there is no kind asked for, or it has many operations.
func (s *Store) listOfKind(ctx context.Context, q semel.Query, shards []int16) (sql string, args []any, err error) {
	if q.Kind == "" {
		return "", nil, nil
	}
	lanes := make([]string, len(shards))
	for i, shard := range shards {
		lanes[i] = laneOf(shard, q.Kind)
	}
	few, err := s.few(ctx, kindUpTo, fewOfKind, shards, q.Kind, lanes)
	if !few || err != nil {
		return "", nil, err
	}
	return listKind, []any{shards, lanes, q.Accounts}, nil
}

func (s *Store) listOfAccounts(ctx context.Context, q semel.Query) (sql string, args []any, err error) {
	shards, accounts := []int16{}, []string{} // pairs
	for _, account := range slices.Compact(slices.Sorted(slices.Values(q.Accounts))) {
		for _, shard := range s.shardsOf(account) {
			shards, accounts = append(shards, shard), append(accounts, account)
		}
	}
	switch q.State {
	case semel.Failed, semel.NeedsReconciliation, semel.Abandoned:
		return listFiledIn, []any{slices.Compact(slices.Sorted(slices.Values(shards))), accounts}, nil
	case semel.Accepted, semel.Processing:
		few, err := s.few(ctx, workUpToIn, fewPending, shards, accounts)
		if err != nil {
			return "", nil, err
		}
		if few {
			return listWorkIn, []any{shards, accounts}, nil
		}
	}
	if sql, args, err = s.listOfKind(ctx, q, slices.Compact(slices.Sorted(slices.Values(shards)))); sql != "" || err != nil {
		return sql, args, err
	}
	return listAccounts, []any{shards, accounts}, nil
}

// few reports whether a statement counts less than so many rows.
func (s *Store) few(ctx context.Context, count string, many int, shards []int16, more ...any) (bool, error) {
	n := 0
	err := s.read(ctx, "list", func(b *batch) {
		b.each(count, append([]any{shards, many}, more...), func(rows pgx.Rows) error { return rows.Scan(&n) })
	})
	return n < many, err
}
