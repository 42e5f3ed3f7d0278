package sqlite

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/semel-dev/semel"
)

//go:embed migrations/*.sql
var migrations embed.FS

// The version lies in a table of ours and not in PRAGMA user_version, which the
// owner of the file may use.
const createMeta = `CREATE TABLE IF NOT EXISTS semel_meta (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`

// migrate brings the schema up to date and settles the sharding. The write lock
// lets one process do it; the others find it done.
func (s *Store) migrate(ctx context.Context, want semel.Sharding) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	if done, err := s.upToDate(ctx, len(files), want); done || err != nil {
		return err
	}
	return s.write(ctx, "open", func(ctx context.Context, r runner, _ moment) error {
		if _, err := r.exec(ctx, createMeta); err != nil {
			return err
		}
		version, err := metaNumber(ctx, r, "schema_version")
		if err != nil {
			return err
		}
		if version > len(files) {
			return &semel.Error{Code: semel.CodeInvalid, Recorded: semel.RecordedNo,
				Msg:  fmt.Sprintf("the file has schema version %d; this release knows %d", version, len(files)),
				Hint: "use the release that wrote it, or a later one"}
		}
		for ; version < len(files); version++ {
			text, err := migrations.ReadFile(files[version])
			if err != nil {
				return err
			}
			if err := r.script(ctx, string(text)); err != nil {
				return fmt.Errorf("%s: %w", files[version], err)
			}
		}
		if err := setMeta(ctx, r, "schema_version", strconv.Itoa(len(files))); err != nil {
			return err
		}
		return s.settleSharding(ctx, r, want)
	})
}

// upToDate spares a look under the write lock, which somebody may hold for long.
func (s *Store) upToDate(ctx context.Context, newest int, want semel.Sharding) (done bool, err error) {
	err = s.snapshot(ctx, "open", func(ctx context.Context, r runner) error {
		var one int
		there, err := r.row(ctx, `SELECT 1 FROM sqlite_schema WHERE name = 'semel_meta'`, nil, &one)
		if err != nil || !there {
			return err
		}
		version, err := metaNumber(ctx, r, "schema_version")
		if err != nil || version != newest {
			return err
		}
		have, err := meta(ctx, r, "sharding")
		if have != "" && (want == "" || string(want) == have) {
			s.sharding, done = semel.Sharding(have), true
		}
		return err
	})
	return done, err
}

// settleSharding keeps the sharding that the file was made with: with another
// one, no row would be found again.
func (s *Store) settleSharding(ctx context.Context, r runner, want semel.Sharding) error {
	have, err := meta(ctx, r, "sharding")
	if err != nil {
		return err
	}
	switch {
	case have == "" && want == "":
		s.sharding = semel.ShardByAccount
	case have == "":
		s.sharding = want
	case want != "" && string(want) != have:
		return &semel.Error{Code: semel.CodeInvalid, Recorded: semel.RecordedNo,
			Msg:  fmt.Sprintf("the file was made with sharding by %q, and was opened with %q", have, want),
			Hint: "leave the sharding out, or begin a new file"}
	default:
		s.sharding = semel.Sharding(have)
		return nil
	}
	return setMeta(ctx, r, "sharding", string(s.sharding))
}

func meta(ctx context.Context, r runner, name string) (value string, err error) {
	_, err = r.row(ctx, `SELECT value FROM semel_meta WHERE name = ?`, []any{name}, &value)
	return value, err
}

func metaNumber(ctx context.Context, r runner, name string) (int, error) {
	value, err := meta(ctx, r, name)
	if err != nil || value == "" {
		return 0, err
	}
	return strconv.Atoi(value)
}

func setMeta(ctx context.Context, r runner, name, value string) error {
	_, err := r.exec(ctx, `INSERT INTO semel_meta (name, value) VALUES (?, ?)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value <> excluded.value`, name, value)
	return err
}
