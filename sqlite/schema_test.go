package sqlite

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// A file of a newer release is refused and left alone; the owner's user_version is
// none of our business.
func TestSchemaVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	db, err := OpenDB(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA user_version = 42; CREATE TABLE meta (x); CREATE TABLE operation (x)"); err != nil {
		t.Fatal(err)
	}
	s, err := Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	var version int
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil || version != 42 {
		t.Errorf("user_version is %d, %v", version, err)
	}
	if _, err := db.Exec("UPDATE semel_meta SET value = '999' WHERE name = 'schema_version'"); err != nil {
		t.Fatal(err)
	}
	_, err = Open(ctx, path, nil)
	refused(t, err, semel.CodeInvalid, "schema version 999")
}

// Every statement finds its rows by an index and sorts nothing, so its cost does
// not grow with what is stored. Counting everything is the exception.
func TestPlans(t *testing.T) {
	s := openTest(t, &Options{Readers: 1})
	useEverything(t, s)
	whole := map[string]bool{ // they count all there is
		"SELECT kind, state, operations FROM semel_coun": true,
		"SELECT kind, count(*), min(due_at) FROM semel_": true,
		"SELECT count(*), coalesce(min(created_at), 0) ": true,
		"SELECT kind, count(*), 0 FROM semel_operation ": true,
	}
	w, r := <-s.writer, <-s.readers
	statements := map[string]bool{}
	for _, session := range []*session{w, r} {
		for text := range session.stmts {
			statements[text] = true
		}
	}
	s.writer <- w
	s.readers <- r
	if len(statements) < 30 {
		t.Fatalf("only %d statements were used", len(statements))
	}
	for text := range statements {
		if !strings.Contains(text, "semel_") || strings.Contains(text, "sqlite_schema") {
			continue
		}
		counts := false
		for start := range whole {
			counts = counts || strings.HasPrefix(text, start)
		}
		rows, err := s.db.QueryContext(ctx, "EXPLAIN QUERY PLAN "+text, make([]any, strings.Count(text, "?"))...)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			scans := strings.HasPrefix(detail, "SCAN semel_") && !strings.Contains(detail, "COVERING INDEX semel_queue")
			sorts := strings.Contains(detail, "TEMP B-TREE")
			if (scans || sorts) && !counts {
				t.Errorf("%s\n  %s", text, detail)
			}
		}
		rows.Close()
	}
}

// useEverything makes the store prepare every statement that it has.
func useEverything(t *testing.T, s *Store) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dated := insertion(semel.NewID())
	dated.IDTime, _ = semel.IDTime(dated.Key.ID)
	dated.AttemptID = "a"
	begun := insertion("begun")
	begun.State, begun.Due, begun.Begun = semel.Processing, time.Hour, &semel.Begun{Lease: time.Hour}
	_, err := s.Insert(ctx, []semel.Insertion{dated, begun, insertion("b"), insertion("b")})
	must(err)
	for range 2 {
		_, err = s.Claim(ctx, semel.ClaimRequest{Worker: "w", Max: 1, Kinds: []semel.ClaimKind{{Kind: "note", Lease: time.Hour}}})
		must(err)
	}
	found, err := s.Get(ctx, []semel.Key{dated.Key, begun.Key, {Account: "x", Kind: "note", ID: semel.NewID()}})
	must(err)
	op := found[0].Operation
	_, err = s.Renew(ctx, []semel.Renewal{{Key: op.Key, Token: op.Token, Lease: time.Hour, Progress: &semel.Progress{Fraction: 1}}})
	must(err)
	must(s.KeepLate(ctx, semel.Late{Key: op.Key, Token: op.Token, Outcome: semel.Unknown}))
	must(s.RecordAttempts(ctx, []semel.Attempt{{Key: op.Key, ID: "b"}}))
	_, err = s.Apply(ctx, []semel.Change{
		{Key: op.Key, Revision: op.Revision, Token: op.Token, Owner: "o", State: semel.Accepted, Work: semel.WorkDue, Verdict: &semel.Verdict{},
			Execution: &semel.ExecutionChange{Token: op.Token, Begin: true, End: true}},
		{Key: begun.Key, Revision: 1, Token: 1, Owner: "o", State: semel.Failed, Work: semel.WorkDone}})
	must(err)
	for _, q := range []semel.Query{{Size: 1}, {Size: 1, Accounts: []string{"acme"}}, {Size: 1, Accounts: []string{"acme"}, State: semel.Accepted}} {
		_, err = s.List(ctx, q)
		must(err)
	}
	_, err = s.History(ctx, op.Key)
	must(err)
	_, err = s.Pending(ctx, []string{"acme"}, 5)
	must(err)
	_, err = s.Stats(ctx)
	must(err)
	must(s.SaveDefinition(ctx, "note", "v", nil))
	_, err = s.Purge(ctx, []semel.PurgeRequest{{Kind: "note", Retention: time.Nanosecond, Max: 5}})
	must(err)
	must(s.Ping(ctx))
}

// Every connection is in WAL mode and waits for the disk at each commit: kill -9
// would not notice if it did not.
func TestPragmas(t *testing.T) {
	s := openTest(t, nil)
	db, err := OpenDB(filepath.Join(t.TempDir(), "mine.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	w := <-s.writer
	defer func() { s.writer <- w }()
	for _, c := range []struct {
		name string
		row  func(string) *sql.Row
	}{
		{"the writer", func(q string) *sql.Row { return w.conn.QueryRowContext(ctx, q) }},
		{"OpenDB", func(q string) *sql.Row { return db.QueryRow(q) }},
	} {
		var mode string
		var synchronous int
		if err := c.row("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
			t.Errorf("%s: journal mode %q, %v", c.name, mode, err)
		}
		if err := c.row("PRAGMA synchronous").Scan(&synchronous); err != nil || synchronous != 2 {
			t.Errorf("%s: synchronous is %d, want 2 (FULL), %v", c.name, synchronous, err)
		}
	}
}
