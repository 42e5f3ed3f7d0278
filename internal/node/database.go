package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/postgres"
	"github.com/semel-dev/semel/sqlite"
)

// OpenStore opens the database of that name and brings its tables up to date: a
// postgres:// URL, or else a file for SQLite, with or without "sqlite:" before it.
func OpenStore(ctx context.Context, database string, sharding semel.Sharding) (semel.Store, error) {
	if IsPostgres(database) {
		store, err := postgres.Open(ctx, database, &postgres.Options{Sharding: sharding})
		if err != nil {
			return nil, told("", err)
		}
		return store, nil
	}
	if scheme, _, ok := strings.Cut(database, "://"); ok { // the rest may hold a password
		return nil, fmt.Errorf("there is no database for %q: write postgres://user:password@host/name, or the name of a file", scheme+"://")
	}
	file := strings.TrimPrefix(database, "sqlite:")
	if err := mayUse(file); err != nil {
		return nil, fmt.Errorf("%s: this user may not both read and write it: %w; check its owner and its mode", file, err)
	}
	store, err := sqlite.Open(ctx, file, &sqlite.Options{Sharding: sharding})
	if err != nil {
		return nil, told(file+": ", err)
	}
	return store, nil
}

// IsPostgres reports whether a database's name is the URL of a PostgreSQL one.
func IsPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// An openError is why a database can't be opened, for whoever runs the node.
type openError struct {
	text string
	err  error
}

func (e *openError) Error() string { return e.text }
func (e *openError) Unwrap() error { return e.err }

// told says it without codes, and with the hint.
func told(which string, err error) error {
	var e *semel.Error
	if !errors.As(err, &e) || e.Msg == "" {
		return fmt.Errorf("%s%w", which, err)
	}
	text := which + e.Msg
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return &openError{text, err}
}
