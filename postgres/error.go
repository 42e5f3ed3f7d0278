package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-dev/semel"
)

// A lostError is a write whose answer did not arrive: it may be there or not.
type lostError struct{ err error }

func (e *lostError) Error() string { return "the answer was lost: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// An unsentError came before anything was sent.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// sqlState returns the SQLSTATE of the database's answer, "" for other errors.
func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// taken reports whether the key of an operation was taken by somebody else.
func taken(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == keptTaken && e.TableName == "semel_operation"
}

// aborted reports whether err is the database's own word that the transaction is
// rolled back.
func aborted(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	severity := e.SeverityUnlocalized
	if severity == "" {
		severity = e.Severity
	}
	return severity == "ERROR" && e.Code != "40003" && !strings.HasPrefix(e.Code, "08")
}

// nothingSent reports whether err came before a byte of the statement was sent.
func nothingSent(err error) bool {
	var unsent *unsentError
	return errors.As(err, &unsent) || pgconn.SafeToRetry(err)
}

// errClosed is what every method answers after Close.
var errClosed = &semel.Error{Code: semel.CodeUnavailable, Recorded: semel.RecordedNo, Msg: "the store is closed"}

func isClosed(err error) bool { return errors.Is(err, errClosed) && errors.As(err, new(*unsentError)) }

// lostRace reports whether the same transaction may succeed if it is run again.
// A division by zero is how a statement of ours stops when it finds that the
// horizon has passed an ID since the statement before it.
func lostRace(err error) bool {
	switch sqlState(err) {
	case "40001", "40P01", noTimeToWrite:
		return aborted(err)
	}
	return false
}

func lockTimedOut(err error) bool { return sqlState(err) == "55P03" }

// concernsOne reports whether err may be the fault of one member of a batch, so
// that the others deserve a try of their own.
func concernsOne(err error) bool {
	switch state := sqlState(err); {
	case lockTimedOut(err):
		return true
	case len(state) == 5:
		class := state[:2]
		return class == "22" || class == "23" || class == "54"
	}
	return false
}

// refusal returns err as a *semel.Error that says in words what is the matter
// with the database. Whoever calls it knows that nothing was written.
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
	state := sqlState(err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Msg = "the caller left, or the time was up, before the answer"
	case state == "":
		e.Msg = "the database can't be reached"
		e.Hint = "check its address, and that it is running"
	default:
		explain(e, state)
	}
	return e
}

// explain says what an SQLSTATE means here.
func explain(e *semel.Error, state string) {
	switch class := state[:2]; {
	case state == "55P03":
		e.Msg = "somebody else's transaction holds the row"
		e.Hint = "look for a transaction that was left open, or ask again"
	case state == "40001" || state == "40P01":
		e.Msg = "the transaction lost one race after another"
		e.Hint = "ask again"
	case state == "42P01" || state == "42703":
		e.Msg = "the ledger's tables are not there, or not up to date"
		e.Hint = "run `semel migrate`"
	case state == "42501":
		e.Msg = "this database user may not do that"
		e.Hint = "grant it the tables whose names begin with semel_"
	case state == "25006":
		e.Msg = "the database is read-only"
		e.Hint = "connect to the primary (target_session_attrs=read-write)"
	case state == "3D000" || class == "28":
		e.Msg = "the database does not let us in"
		e.Hint = "check the database's name, the user and the password"
	case state == "53100":
		e.Msg = "the database's disk is full"
		e.Hint = "make room; nothing that was acknowledged is lost"
	case state == "53300":
		e.Msg = "the database has no connection left"
		e.Hint = "raise its max_connections, or lower pool_max_conns"
	case state == "57014":
		e.Msg = "the statement was cancelled"
	case class == "57":
		e.Msg = "the database is shutting down or starting"
		e.Hint = "ask again"
	case class == "54":
		e.Code, e.Msg = semel.CodeTooLarge, "a value is larger than the database takes"
	case class == "22" || class == "23":
		e.Code, e.Msg = semel.CodeInternal, "a row breaks the schema"
	default:
		e.Msg = "the database gave an error"
	}
}

// unknown is what is left to say when nobody could find out.
func unknown(op string, err error) *semel.Error {
	var lost *lostError
	if errors.As(err, &lost) {
		err = lost.err
	}
	e := refusal(op, err)
	e.Code, e.Recorded = semel.CodeUnavailable, semel.RecordedUnknown
	e.Hint = "ask again with the same key"
	return e
}
