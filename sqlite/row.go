package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"github.com/semel-dev/semel"
)

const (
	isKey = `shard = ? AND account = ? AND kind = ? AND operation_id = ?`

	lightColumns = `account, kind, operation_id, state, as_sent, fingerprint, schema_version,
	attempts, executions, progress, progress_note, acknowledged, contradicted, expired,
	revision, token, cleared_token, owner, created_at, updated_at, expires_at, due_at, failure_code, failure_message`

	selectOperation = `SELECT ` + lightColumns + `, params, request, result FROM semel_operation WHERE ` + isKey
)

// keyArgs are the arguments of isKey, with more behind them.
func (s *Store) keyArgs(k semel.Key, more ...any) []any {
	return append([]any{s.shard(k), k.Account, k.Kind, k.ID}, more...)
}

// A scanner holds what the columns of an operation are scanned into.
type scanner struct {
	op                          semel.Operation
	progress                    sql.NullFloat64
	note, message               string
	code                        sql.NullString
	created, updated, expires   int64
	due                         int64
	params, request, result     []byte
	acknowledged, contra, stale int64
}

func (c *scanner) light() []any {
	op := &c.op
	return []any{&op.Key.Account, &op.Key.Kind, &op.Key.ID, &op.State, &op.AsSent, &op.Fingerprint, &op.SchemaVersion,
		&op.Attempts, &op.Executions, &c.progress, &c.note, &c.acknowledged, &c.contra, &c.stale,
		&op.Revision, &op.Token, &op.ClearedToken, &op.Owner, &c.created, &c.updated, &c.expires, &c.due, &c.code, &c.message}
}

func (c *scanner) full() []any {
	return append(c.light(), bytesIn{&c.params}, bytesIn{&c.request}, bytesIn{&c.result})
}

func (c *scanner) operation() *semel.Operation {
	op := c.op
	op.Params, op.Request, op.Result = c.params, c.request, c.result
	if c.progress.Valid {
		op.Progress = &semel.Progress{Fraction: c.progress.Float64, Note: c.note}
	}
	if c.code.Valid {
		op.Failure = &semel.Failure{Code: c.code.String, Message: c.message}
	}
	op.Acknowledged, op.Contradicted, op.Expired = c.acknowledged != 0, c.contra != 0, c.stale != 0
	op.CreatedAt, op.UpdatedAt, op.ExpiresAt = timeOf(c.created), timeOf(c.updated), timeOf(c.expires)
	return &op
}

// load reads one operation; nil if the key has no row.
func (s *Store) load(ctx context.Context, r runner, k semel.Key) (*semel.Operation, error) {
	op, _, err := s.loadDue(ctx, r, k)
	return op, err
}

// loadDue reads one operation and the due time of its work, 0 if there is none.
func (s *Store) loadDue(ctx context.Context, r runner, k semel.Key) (*semel.Operation, int64, error) {
	var c scanner
	ok, err := r.row(ctx, selectOperation, s.keyArgs(k), c.full()...)
	if !ok || err != nil {
		return nil, 0, err
	}
	return c.operation(), c.due, nil
}

// failureArgs are the columns failure_code and failure_message.
func failureArgs(f *semel.Failure) (code any, message string) {
	if f == nil {
		return nil, ""
	}
	return f.Code, f.Message
}

// blob is b as an argument: NULL if nil, and an empty blob if empty.
func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

func ms(m int64, set bool) any {
	if !set {
		return nil
	}
	return m
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// bytesIn scans a blob and keeps NULL and an empty one apart, which a plain []byte
// does not with this driver.
type bytesIn struct{ to *[]byte }

// Scan implements sql.Scanner.
func (b bytesIn) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*b.to = nil
	case []byte:
		*b.to = append([]byte{}, v...)
	case string:
		*b.to = append([]byte{}, v...)
	default:
		return fmt.Errorf("a blob column holds a %T", src)
	}
	return nil
}

func clone(b []byte) []byte { return bytes.Clone(b) }
