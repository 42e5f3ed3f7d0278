package postgres_test

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/postgres"
)

//go:embed migrations/0*.sql
var migrationFiles embed.FS

// A site is an empty database on which nodes start, with a connection of the test's.
type site struct {
	*testing.T
	ctx  context.Context
	url  string
	conn *pgx.Conn
}

func newSite(t *testing.T) *site {
	s := &site{T: t, ctx: context.Background(), url: pgtest.Database(t)}
	s.conn = s.connect()
	return s
}

func (s *site) connect() *pgx.Conn {
	s.Helper()
	conn, err := pgx.Connect(s.ctx, s.url)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { conn.Close(s.ctx) })
	return conn
}

// begin begins a transaction of somebody else's.
func (s *site) begin(sql string, args ...any) pgx.Tx {
	s.Helper()
	tx, err := s.connect().Begin(s.ctx)
	if err == nil {
		_, err = tx.Exec(s.ctx, sql, args...)
	}
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { tx.Rollback(s.ctx) })
	return tx
}

func (s *site) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.conn.Exec(s.ctx, sql, args...); err != nil {
		s.Fatal(err)
	}
}

// column returns the values of a query's only column.
func (s *site) column(sql string) []string {
	s.Helper()
	rows, err := s.conn.Query(s.ctx, sql)
	if err != nil {
		s.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.Fatal(err)
	}
	return values
}

// tables are those of ours that are there.
func (s *site) tables() []string {
	return s.column(`SELECT relname::text FROM pg_class WHERE relname LIKE 'semel\_%' AND relkind = 'r' ORDER BY relname`)
}

func (s *site) meta() map[string]string {
	m := map[string]string{}
	for _, line := range s.column(`SELECT name || '=' || value FROM semel_meta`) {
		name, value, _ := strings.Cut(line, "=")
		m[name] = value
	}
	return m
}

// newest is the schema version of this release.
func (s *site) newest() string {
	files, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		s.Fatal(err)
	}
	return fmt.Sprint(len(files))
}

// start starts a node; the channel tells what became of it. It waits for locks as
// long as the test holds them.
func (s *site) start(options postgres.Options) chan error {
	options.BatchLockTimeout = time.Minute
	done := make(chan error, 1)
	go func() {
		store, err := postgres.Open(s.ctx, s.url, &options)
		if err == nil {
			err = store.Close()
		}
		done <- err
	}()
	return done
}

// waiting waits until so many connections wait for a lock. PostgreSQL gives no
// signal for that. It is false if a node does not wait, but is done.
func (s *site) waiting(n int, nodes ...chan error) bool {
	s.Helper()
	for {
		there := s.column(`SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		if len(there) == n {
			return true
		}
		for _, node := range nodes {
			select {
			case err := <-node:
				s.Errorf("a node did not wait: %v", err)
				return false
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

func codeOf(err error) semel.Code {
	if err == nil {
		return ""
	}
	return semel.AsError("", err).Code
}

// Of two nodes that start at once, one migrates: while it does, and is held in the
// midst of it, the other one waits, and then finds everything done.
func TestNodesMigrateOnce(t *testing.T) {
	s := newSite(t)
	// The database notes each statement that makes something, and holds it up.
	s.exec(`CREATE TABLE gate (); CREATE TABLE noted (statement text);
	CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
		IF tg_tag LIKE 'CREATE%' AND current_query() NOT LIKE '%semel_meta%' THEN
			LOCK TABLE gate IN ACCESS SHARE MODE;
			INSERT INTO noted VALUES (current_query());
		END IF;
	END $$;
	CREATE EVENT TRIGGER note ON ddl_command_start EXECUTE FUNCTION note()`)
	gate := s.begin(`LOCK TABLE gate IN ACCESS EXCLUSIVE MODE`)
	nodes := []chan error{s.start(postgres.Options{}), s.start(postgres.Options{})}
	if !s.waiting(2, nodes...) {
		return
	}
	if err := gate.Commit(s.ctx); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		if err := <-node; err != nil {
			t.Error(err)
		}
	}
	times := map[string]int{}
	for _, statement := range s.column(`SELECT statement FROM noted`) {
		times[statement]++
	}
	for statement, n := range times {
		if n != 1 {
			t.Errorf("%d times: %.60q", n, statement)
		}
	}
	if len(times) < 10 {
		t.Errorf("%d statements were noted: the test tests nothing", len(times))
	}
	want := map[string]string{"schema_version": s.newest(), "sharding": "account"}
	if have := s.meta(); !maps.Equal(have, want) {
		t.Errorf("then the database says %v, want %v", have, want)
	}
}

// What a node finds when it has waited for another one is what counts.
func TestNodeFindsItMigrated(t *testing.T) {
	for name, c := range map[string]struct {
		version, sharding string
		options           postgres.Options
		code              semel.Code
	}{
		"as it is":         {"newest", "key", postgres.Options{}, ""},
		"a newer release":  {"1000", "account", postgres.Options{}, semel.CodeInvalid},
		"another sharding": {"newest", "key", postgres.Options{Sharding: semel.ShardByAccount}, semel.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.exec(`CREATE TABLE semel_meta (name text COLLATE "C" NOT NULL PRIMARY KEY, value text NOT NULL)`)
			s.exec(`INSERT INTO semel_meta VALUES ('schema_version', '0')`)
			if c.version == "newest" {
				c.version = s.newest()
			}
			first := s.begin(`UPDATE semel_meta SET value = $1 WHERE name = 'schema_version'`, c.version)
			if _, err := first.Exec(s.ctx, `INSERT INTO semel_meta VALUES ('sharding', $1)`, c.sharding); err != nil {
				t.Fatal(err)
			}
			node := s.start(c.options)
			if !s.waiting(1, node) {
				return
			}
			if err := first.Commit(s.ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-node; codeOf(err) != c.code {
				t.Errorf("%v, want code %q", err, c.code)
			}
			if tables := s.tables(); len(tables) != 1 {
				t.Errorf("it made %v", tables)
			}
		})
	}
}

// NoMigrate changes nothing, and opens what is up to date.
func TestNoMigrate(t *testing.T) {
	s := newSite(t)
	must := &postgres.Options{NoMigrate: true}
	refused := func(when string) {
		t.Helper()
		store, err := postgres.Open(s.ctx, s.url, must)
		if err == nil {
			store.Close()
		}
		if e := new(semel.Error); !errors.As(err, &e) || e.Code != semel.CodeInvalid || !strings.Contains(e.Hint, "semel migrate") {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("an empty database")
	if tables := s.tables(); len(tables) != 0 {
		t.Errorf("it made %v", tables)
	}
	if err := postgres.Migrate(s.ctx, s.url, nil); err != nil {
		t.Fatal(err)
	}
	store, err := postgres.Open(s.ctx, s.url, must)
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
	s.exec(`UPDATE semel_meta SET value = '0' WHERE name = 'schema_version'`)
	refused("an older one")
	if v := s.meta()["schema_version"]; v != "0" {
		t.Errorf("the version became %s", v)
	}
}

// Migrate brings an empty database up to date, and one that was left half-way; it
// heeds the sharding, and no NoMigrate.
func TestMigrate(t *testing.T) {
	s := newSite(t)
	byKey := &postgres.Options{Sharding: semel.ShardByKey, NoMigrate: true}
	migrate := func() {
		t.Helper()
		if err := postgres.Migrate(s.ctx, s.url, byKey); err != nil {
			t.Fatal(err)
		}
	}
	migrate()
	whole := s.tables()
	if len(whole) < 5 {
		t.Errorf("it made %v", whole)
	}
	want := map[string]string{"schema_version": s.newest(), "sharding": "key"}
	if have := s.meta(); !maps.Equal(have, want) {
		t.Errorf("the database says %v, want %v", have, want)
	}
	migrate()
	s.exec(`DROP TABLE semel_verdict`)
	s.exec(`DROP INDEX semel_operation_filed`)
	s.exec(`UPDATE semel_meta SET value = '0' WHERE name = 'schema_version'`)
	migrate()
	if have := s.tables(); fmt.Sprint(have) != fmt.Sprint(whole) {
		t.Errorf("after one that was cut short: %v, want %v", have, whole)
	}
	if n := s.column(`SELECT relname::text FROM pg_class WHERE relname = 'semel_operation_filed'`); len(n) != 1 {
		t.Error("the index is not there")
	}
}

// A database of another sharding, and one of a newer release, are refused by
// everybody, and stay as they are.
func TestForeignSchemaIsRefused(t *testing.T) {
	s := newSite(t)
	if err := postgres.Migrate(s.ctx, s.url, nil); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, sharding semel.Sharding) {
		t.Helper()
		before := s.meta()
		for _, noMigrate := range []bool{false, true} {
			o := postgres.Options{Sharding: sharding, NoMigrate: noMigrate}
			store, err := postgres.Open(s.ctx, s.url, &o)
			if err == nil {
				store.Close()
			}
			if codeOf(err) != semel.CodeInvalid {
				t.Errorf("%s, with %+v: %v", what, o, err)
			}
		}
		if err := postgres.Migrate(s.ctx, s.url, &postgres.Options{Sharding: sharding}); codeOf(err) != semel.CodeInvalid {
			t.Errorf("%s: Migrate: %v", what, err)
		}
		if after := s.meta(); !maps.Equal(after, before) {
			t.Errorf("%s: %v became %v", what, before, after)
		}
	}
	refused("another sharding", semel.ShardByKey)
	refused("no sharding", "nonsense")
	s.exec(`UPDATE semel_meta SET value = '1000' WHERE name = 'schema_version'`)
	refused("a newer release", "")
	refused("a newer release", semel.ShardByAccount)
}
