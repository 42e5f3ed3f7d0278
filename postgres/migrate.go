package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
)

// Migrations run statement by statement, each of them repeatable, while a row of
// semel_meta is locked. So they need neither one transaction around all DDL, nor
// advisory locks, nor a table lock, which not every engine has, and a later one may
// build an index without blocking writers.
//
//go:embed migrations/*.sql
var migrations embed.FS

// Migrate brings the schema of the database at url up to date and does nothing
// else: for installations whose nodes may not change tables. Of the options it looks
// at Sharding and Pooler. Errors as [Open].
func Migrate(ctx context.Context, url string, options *Options) error {
	o := Options{}
	if options != nil {
		o.Sharding, o.Pooler = options.Sharding, options.Pooler
	}
	store, err := Open(ctx, url, &o)
	if err != nil {
		return err
	}
	return store.Close()
}

// schemaFiles are the migrations in their order.
func schemaFiles() []string {
	files, err := fs.Glob(migrations, "migrations/0*.sql")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	return files
}

// prepareSchema brings the schema up to date, unless the options say not to, and
// returns the sharding of the database.
func prepareSchema(ctx context.Context, pool *pgxpool.Pool, o Options) (semel.Sharding, error) {
	version, sharding, err := readMeta(ctx, pool)
	if err != nil {
		return "", err
	}
	newest := len(schemaFiles())
	switch {
	case version > newest:
		return "", tooNew(version, newest)
	case version == newest && sharding != "":
		return settleSharding(sharding, o.Sharding)
	case o.NoMigrate:
		return "", &semel.Error{Code: semel.CodeInvalid, Recorded: semel.RecordedNo,
			Msg:  fmt.Sprintf("the database has schema version %d; this release needs %d", version, newest),
			Hint: "run `semel migrate`"}
	}
	return migrate(ctx, pool, o.Sharding)
}

func tooNew(version, newest int) error {
	return &semel.Error{Code: semel.CodeInvalid, Recorded: semel.RecordedNo,
		Msg:  fmt.Sprintf("the database has schema version %d; this release knows %d", version, newest),
		Hint: "use the release that migrated it, or a later one"}
}

// settleSharding keeps the sharding that the database was made with: with another
// one, no row would be found again.
func settleSharding(have string, want semel.Sharding) (semel.Sharding, error) {
	if want != "" && string(want) != have {
		return "", &semel.Error{Code: semel.CodeInvalid, Recorded: semel.RecordedNo,
			Msg:  fmt.Sprintf("the database was made with sharding by %q, and was opened with %q", have, want),
			Hint: "leave the sharding out, or begin a new database"}
	}
	return semel.Sharding(have), nil
}

// readMeta returns the version 0 where there are no tables yet.
func readMeta(ctx context.Context, pool *pgxpool.Pool) (version int, sharding string, err error) {
	rows, err := pool.Query(ctx, `SELECT name, value FROM semel_meta`)
	var name, value string
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() (err error) {
			switch name {
			case "schema_version":
				version, err = strconv.Atoi(value)
			case "sharding":
				sharding = value
			}
			return err
		})
	}
	if sqlState(err) == "42P01" {
		err = nil
	}
	return version, sharding, err
}

const (
	createMeta = `CREATE TABLE IF NOT EXISTS semel_meta (name text COLLATE "C" NOT NULL PRIMARY KEY, value text NOT NULL)`
	firstMeta  = `INSERT INTO semel_meta (name, value) VALUES ('schema_version', '0') ON CONFLICT (name) DO NOTHING`
	lockMeta   = `SELECT value FROM semel_meta WHERE name = 'schema_version' FOR UPDATE`
	setMeta    = `INSERT INTO semel_meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
)

// migrate lets one node do it; the others wait for the row, and find it done.
func migrate(ctx context.Context, pool *pgxpool.Pool, want semel.Sharding) (semel.Sharding, error) {
	for _, sql := range []string{createMeta, firstMeta} {
		if err := repeat(ctx, func() error { _, err := pool.Exec(ctx, sql); return err }); err != nil {
			return "", err
		}
	}
	err := repeat(ctx, func() error { return migrateLocked(ctx, pool, want) })
	if err != nil {
		return "", err
	}
	_, sharding, err := readMeta(ctx, pool)
	if err != nil {
		return "", err
	}
	return settleSharding(sharding, want)
}

// repeat runs a step again while another node is at the same one: two that create
// a table at once may fail on each other, IF NOT EXISTS or not.
func repeat(ctx context.Context, step func() error) error {
	for try := 1; ; try++ {
		err := step()
		switch sqlState(err) {
		case "23505", "42P07", "42710", "40001", "40P01", "55P03", "XX000":
		default:
			return err
		}
		if try == 100 {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

func migrateLocked(ctx context.Context, pool *pgxpool.Pool, want semel.Sharding) error {
	lock, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer lock.Rollback(context.WithoutCancel(ctx))
	if _, err := lock.Exec(ctx, `SELECT set_config('lock_timeout', '60s', true)`); err != nil {
		return err
	}
	var text string
	if err := lock.QueryRow(ctx, lockMeta).Scan(&text); err != nil {
		return err
	}
	version, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	files := schemaFiles()
	if version > len(files) {
		return tooNew(version, len(files))
	}
	for ; version < len(files); version++ {
		if err := runFile(ctx, pool, files[version], false); err != nil {
			return err
		}
		if err := runFile(ctx, pool, "migrations/tuning.sql", true); err != nil {
			return err
		}
		if _, err := lock.Exec(ctx, setMeta, "schema_version", strconv.Itoa(version+1)); err != nil {
			return err
		}
	}
	if want == "" {
		want = semel.ShardByAccount
	}
	if _, err := lock.Exec(ctx, `INSERT INTO semel_meta (name, value) VALUES ('sharding', $1) ON CONFLICT (name) DO NOTHING`, string(want)); err != nil {
		return err
	}
	return lock.Commit(ctx)
}

// runFile runs the statements of a file, each by itself. Tuning is what an engine
// may not know.
func runFile(ctx context.Context, pool *pgxpool.Pool, file string, tuning bool) error {
	text, err := migrations.ReadFile(file)
	if err != nil {
		return err
	}
	for _, sql := range strings.SplitAfter(string(text), ";\n") {
		if strings.TrimSpace(sql) == "" {
			continue
		}
		_, err := pool.Exec(ctx, sql)
		if state := sqlState(err); tuning && (strings.HasPrefix(state, "0A") || strings.HasPrefix(state, "42") || strings.HasPrefix(state, "22")) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}
