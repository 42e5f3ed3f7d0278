package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// SaveDefinition implements [semel.Store].
func (s *Store) SaveDefinition(ctx context.Context, kind, version string, definition []byte) error {
	known, err := s.Definition(ctx, kind, version)
	if err != nil || known != nil {
		return err
	}
	if definition == nil {
		definition = []byte{}
	}
	return plain("definition", s.write(ctx, "definition", s.opts.LockTimeout, func(b *batch) {
		b.queue(`INSERT INTO semel_definition (kind, version, definition) VALUES ($1, $2, $3)
			ON CONFLICT (kind, version) DO NOTHING`, kind, version, definition)
	}))
}

// Definition implements [semel.Store].
func (s *Store) Definition(ctx context.Context, kind, version string) (definition []byte, err error) {
	err = s.read(ctx, "definition", func(b *batch) {
		b.each(`SELECT definition FROM semel_definition WHERE kind = $1 AND version = $2`, []any{kind, version}, func(rows pgx.Rows) error {
			return rows.Scan(&definition)
		})
	})
	return definition, err
}
