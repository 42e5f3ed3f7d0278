package postgres

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/pgtest"
)

// The list of a kind that has little is not read by way of a long queue of other
// kinds that wait for a person.
func TestListOfASmallKindBesideALongQueue(t *testing.T) {
	ctx, url := t.Context(), pgtest.Database(t)
	s, err := Open(ctx, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	wait := func(kind string, n int) {
		t.Helper()
		if _, err := conn.Exec(ctx, `INSERT INTO semel_operation (created_at, shard, account, kind, operation_id, as_sent, fingerprint, schema_version,
	updated_at, revision, token, attempts, executions, state, filed, owner)
SELECT i, i % 16, 'acme', $1, i::text, '', '', '', i, 2, 1, 0, 1, 'needs_reconciliation', 'needs_reconciliation', '' FROM generate_series(1, $2) i`, kind, n); err != nil {
			t.Fatal(err)
		}
	}
	ways := map[string]string{listKind: "by its kind", listAll: "by time"}
	for _, step := range []struct {
		kind string // that comes to wait
		n    int
		way  string
	}{{"small", 3, "by its kind"}, {"other", fewOfKind, "by time"}} {
		wait(step.kind, step.n)
		q := semel.Query{Kind: "small", Size: 10}
		sql, _, err := s.listOf(ctx, q)
		if err != nil || ways[sql] != step.way {
			t.Errorf("with %d of %q it is read %s, want %s; %v", step.n, step.kind, ways[sql], step.way, err)
		}
		page, err := s.List(ctx, q)
		var ids []string
		for _, op := range page.Operations {
			ids = append(ids, op.Key.ID)
		}
		if want := []string{"3", "2", "1"}; err != nil || !slices.Equal(ids, want) {
			t.Errorf("with %d of %q it lists %q, want %q; %v", step.n, step.kind, ids, want, err)
		}
	}
}
