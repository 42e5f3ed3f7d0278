package idempotency

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/httpapi/problem"
)

// Options configure a [Handler]. Account is required.
type Options struct {
	// Account says who asks, from the credential: the same account sees its own
	// operations only, whatever key it sends. Credentials may rotate; the account
	// must not. An error, or an empty account, is answered with 401, or as the
	// [semel.Error] that it is. Any text will do; what is not in the grammar of
	// [semel.Key] is mapped to it.
	Account func(*http.Request) (account string, err error)

	// Begin begins a transaction of yours and makes the handler transactional: what
	// the handler writes with [Tx], the operation and its answer commit together.
	// The context is that of the handler. On PostgreSQL, postgres.Begin makes one in
	// which the ledger costs no round trip. Defaults to none: guarded.
	Begin func(ctx context.Context) (*Transaction, error)

	// Contract is what the handler offers. Defaults to [DefaultContract].
	Contract *contract.Contract

	// Route returns the pattern of the request's route without its method, such as
	// "/orders/{id}", for routers other than [http.ServeMux]. Defaults to the
	// pattern of [http.Request]; where the handler stands in front of a ServeMux, to
	// the one that the mux would choose.
	Route func(*http.Request) string

	// MaxBody is how large a request body may be, in bytes. Defaults to 1 MiB.
	MaxBody int64
	// MaxAnswer is how large an answer may be to be kept, in bytes. A larger one goes
	// out all the same, and a repeat is told that it is done. Defaults to 1 MiB.
	MaxAnswer int
	// MaxBuffer is how large an answer may be in a transaction, where none of it goes
	// out before the commit; beyond it, writing fails. Defaults to 64 MiB.
	MaxBuffer int
	// KeepBody is how large a request body may be, in bytes, to be kept with the
	// operation: for the look-up, for the person who reconciles, and to name the
	// fields that differ in a changed request. Negative keeps none. Defaults to
	// 64 KiB; and to none in a transaction, which never leaves a doubt. Operators see
	// what is kept, and so does whoever reads the database.
	KeepBody int

	// Remember is how much memory, in bytes, is used for settled records, so that
	// repeats which come within a minute need no read. Negative remembers none.
	// Defaults to 8 MiB.
	Remember int

	// Lease is how long after a crash nobody touches the operation; it is renewed
	// while the handler runs. Defaults to 30 s.
	Lease time.Duration
	// MaxWait is how long a repeat may wait for the first answer, if it asks for
	// that with "Prefer: wait=10" or the contract says so. Defaults to 60 s.
	MaxWait time.Duration

	// Refuse answers what is not run and not replayed, with the problem's status.
	// Defaults to problem+json, or the contract's own form.
	Refuse func(http.ResponseWriter, *http.Request, problem.Problem)

	// Logger gets keys, states and error codes. Defaults to [slog.Default].
	Logger *slog.Logger
}

// A Transaction is one of yours, on the database that the ledger's store is in.
type Transaction struct {
	// Tx is the ledger's view of it: sqlite.Tx or postgres.Tx.
	Tx semel.Tx
	// Value is what the handler gets from [Tx].
	Value any
	// Commit and Rollback end it. Rollback is also called after a Commit that
	// failed.
	Commit, Rollback func() error
}

// Validate reports what can't be: the errors for which [NewHandler] panics.
func (o *Options) Validate() error {
	if o == nil || o.Account == nil {
		return errors.New("idempotency: Options.Account is required: there is no account that everybody could share")
	}
	if o.Contract != nil {
		return checkOffer(*o.Contract, o.Begin != nil)
	}
	return nil
}

func (o *Options) setDefaults() {
	if o.Contract == nil {
		c := DefaultContract()
		o.Contract = &c
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 1 << 20
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = 1 << 20
	}
	if o.MaxBuffer <= 0 {
		o.MaxBuffer = 64 << 20
	}
	if o.KeepBody == 0 && o.Begin == nil {
		o.KeepBody = 64 << 10
	}
	if o.Remember == 0 {
		o.Remember = 8 << 20
	}
	if o.Lease <= 0 {
		o.Lease = defaultLease
	}
	if o.MaxWait <= 0 {
		o.MaxWait = time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

const defaultLease = 30 * time.Second
