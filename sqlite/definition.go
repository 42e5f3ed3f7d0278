package sqlite

import (
	"context"
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
	return plain("definition", s.write(ctx, "definition", func(ctx context.Context, r runner, _ moment) error {
		_, err := r.exec(ctx, `INSERT INTO semel_definition (kind, version, definition) VALUES (?, ?, ?)
			ON CONFLICT (kind, version) DO NOTHING`, kind, version, definition)
		return err
	}))
}

// Definition implements [semel.Store].
func (s *Store) Definition(ctx context.Context, kind, version string) (definition []byte, err error) {
	err = s.read(ctx, "definition", func(ctx context.Context, r runner) error {
		_, err := r.row(ctx, `SELECT definition FROM semel_definition WHERE kind = ? AND version = ?`, []any{kind, version}, bytesIn{&definition})
		return err
	})
	return definition, err
}
