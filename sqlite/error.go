package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"

	"github.com/semel-dev/semel"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// refusal returns err as a *semel.Error that says in words what is the matter
// with the file. Whoever calls it knows that nothing was written.
func refusal(op string, err error) *semel.Error {
	var e *semel.Error
	if errors.As(err, &e) {
		named := *e
		if named.Op == "" {
			named.Op = op
		}
		return &named
	}
	e = &semel.Error{Op: op, Code: semel.CodeUnavailable, Recorded: semel.RecordedNo, Err: err}
	switch resultCode(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		e.Msg = "another writer holds the database file locked"
		e.Hint = "look for a transaction that was left open, or ask again"
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		e.Msg = "the database file is damaged, or is not an SQLite database"
		e.Hint = "stop, keep a copy of the file, and restore the last good backup"
	case lib.SQLITE_FULL:
		e.Msg = "the disk is full"
		e.Hint = "make room; nothing that was acknowledged is lost"
	case lib.SQLITE_READONLY, lib.SQLITE_PERM:
		e.Msg = "the database file can't be written"
		e.Hint = "check the owner and the mode of the file and of its directory"
	case lib.SQLITE_CANTOPEN:
		e.Msg = "the database file can't be opened"
		e.Hint = "check that its directory exists and may be written"
	case lib.SQLITE_IOERR:
		e.Msg = "the disk reports an error"
	case lib.SQLITE_TOOBIG:
		e.Code, e.Msg = semel.CodeTooLarge, "a value is larger than the database takes"
	case lib.SQLITE_CONSTRAINT, lib.SQLITE_MISMATCH:
		e.Code, e.Msg = semel.CodeInternal, "a row breaks the schema"
	case lib.SQLITE_INTERRUPT:
		e.Msg = "the caller left before the answer"
	default:
		e.Msg = "the database gave an error"
		var path *fs.PathError
		switch {
		case errors.Is(err, errTurn):
			e.Msg = "too many other writers wait for the database file"
			e.Hint = "ask again"
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			e.Msg = "the caller left before the answer"
		case errors.Is(err, sql.ErrConnDone), errors.Is(err, sql.ErrTxDone):
			e.Msg = "the store is closed, or the transaction is over"
		case errors.As(err, &path):
			e.Msg = "the database file can't be opened"
		}
	}
	return e
}

// resultCode returns the primary result code of SQLite, 0 for other errors.
func resultCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// concernsOne reports whether err may be the fault of one member of a batch, so
// that the others deserve a try of their own.
func concernsOne(err error) bool {
	switch resultCode(err) {
	case lib.SQLITE_TOOBIG, lib.SQLITE_CONSTRAINT, lib.SQLITE_MISMATCH, lib.SQLITE_RANGE:
		return true
	}
	return false
}

func isBusy(err error) bool {
	code := resultCode(err)
	return code == lib.SQLITE_BUSY || code == lib.SQLITE_LOCKED
}

// A commitError is a COMMIT that was answered with an error: what was written
// may be there or not, and must be read back.
type commitError struct{ err error }

func (c *commitError) Error() string { return "commit: " + c.err.Error() }
func (c *commitError) Unwrap() error { return c.err }

// unknown is what is left to say when the read-back could not tell.
func unknown(op string, err error) *semel.Error {
	e := refusal(op, err)
	e.Code, e.Recorded = semel.CodeUnavailable, semel.RecordedUnknown
	e.Hint = "ask again with the same key"
	return e
}
