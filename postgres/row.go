package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

// onKey joins the primary key of a table o to the arrays u.
const onKey = `o.shard = u.shard AND o.account = u.account AND o.kind = u.kind AND o.operation_id = u.operation_id`

// The columns of an operation o: for lists, for everything else, and for rows of
// which key, state and owner are known.
const (
	lightColumns = identColumns + otherColumns
	fullColumns  = identColumns + otherColumns + blobColumns
	knownColumns = otherColumns + blobColumns

	identColumns = `o.account, o.kind, o.operation_id, o.state, o.owner, `
	otherColumns = `o.as_sent, o.fingerprint, o.schema_version, o.attempts, o.executions, o.progress, o.progress_note,
	o.acknowledged, o.contradicted, o.expired, o.revision, o.token, o.cleared_token, o.created_at, o.updated_at, o.expires_at,
	o.failure_code, o.failure_message`
	blobColumns = `, o.params, o.request, o.result`
)

// A scanner holds what the columns of an operation are scanned into.
type scanner struct {
	op                        semel.Operation
	progress                  *float64
	note, message             string
	code                      *string
	created, updated, expires int64
}

func (c *scanner) ident() []any {
	op := &c.op
	return append(make([]any, 0, 32), &op.Key.Account, &op.Key.Kind, &op.Key.ID, (*string)(&op.State), &op.Owner)
}

func (c *scanner) other(dest []any) []any {
	op := &c.op
	return append(dest, &op.AsSent, &op.Fingerprint, &op.SchemaVersion, &op.Attempts, &op.Executions, &c.progress, &c.note,
		&op.Acknowledged, &op.Contradicted, &op.Expired, &op.Revision, &op.Token, &op.ClearedToken, &c.created, &c.updated, &c.expires,
		&c.code, &c.message)
}

func (c *scanner) blobs(dest []any) []any {
	op := &c.op
	return append(dest, (*[]byte)(&op.Params), &op.Request, (*[]byte)(&op.Result))
}

func (c *scanner) light() []any { return c.other(c.ident()) }

func (c *scanner) full() []any { return c.blobs(c.other(c.ident())) }

func (c *scanner) operation() *semel.Operation {
	op := &c.op
	if c.progress != nil {
		op.Progress = &semel.Progress{Fraction: *c.progress, Note: c.note}
	}
	if c.code != nil {
		op.Failure = &semel.Failure{Code: *c.code, Message: c.message}
	}
	op.CreatedAt, op.UpdatedAt, op.ExpiresAt = timeOf(c.created), timeOf(c.updated), timeOf(c.expires)
	return op
}

// scanRow reads one row of fullColumns.
func scanRow(rows pgx.Rows) (*semel.Operation, error) {
	var c scanner
	if err := rows.Scan(c.full()...); err != nil {
		return nil, err
	}
	return c.operation(), nil
}

// scanKnown reads one row: some columns, and then knownColumns. What they lack is
// in the operation that find returns once the first columns are read.
func scanKnown(rows pgx.Rows, find func() semel.Operation, first ...any) (*semel.Operation, error) {
	var c scanner
	dest := c.blobs(c.other(append(make([]any, 0, 32), first...)))
	if err := rows.Scan(dest...); err != nil {
		return nil, err
	}
	known := find()
	c.op.Key, c.op.State, c.op.Owner = known.Key, known.State, known.Owner
	return c.operation(), nil
}

// scanMaybe is scanRow for rows whose operation may be missing, which is what the
// first column says.
func scanMaybe(rows pgx.Rows, exists *bool, first ...any) (*semel.Operation, error) {
	dest := make([]any, len(rows.FieldDescriptions())) // nil skips a column
	dest[0] = exists
	copy(dest[1:], first)
	if err := rows.Scan(dest...); err != nil || !*exists {
		return nil, err
	}
	var c scanner
	clear(dest)
	copy(dest[1+len(first):], c.full())
	if err := rows.Scan(dest...); err != nil {
		return nil, err
	}
	return c.operation(), nil
}
