package idempotency_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
	"github.com/semel-dev/semel/postgres"
)

// before makes a Begin whose transactions do something before their commit.
func before(begin func(context.Context) (*idempotency.Transaction, error), commit func()) func(context.Context) (*idempotency.Transaction, error) {
	return func(ctx context.Context) (*idempotency.Transaction, error) {
		tx, err := begin(ctx)
		if err != nil {
			return nil, err
		}
		changed := *tx
		changed.Commit = func() error { commit(); return tx.Commit() }
		return &changed, nil
	}
}

// Rivals that take no lock on the key (a guarded handler, one who gives it up, a
// transaction that was begun otherwise) may overtake a handler until its commit. Then
// nothing of it is left, and its client is told what is on record: the mismatch before
// everything else, as always.
func TestOvertakenAtTheCommit(t *testing.T) {
	answers := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Error(w, "rival", status) }
	}
	for name, c := range map[string]struct {
		handle       http.HandlerFunc // of the rival; nil: see below
		stays        bool             // the rival's handler runs until the test is over
		status       int
		code         semel.Code // empty: replayed
		retries      bool       // there is a Retry-After
		otherRequest bool
	}{
		"it happened":                        {handle: created, status: 201},
		"it happened, another request":       {handle: created, status: 422, code: semel.CodeMismatch, otherRequest: true},
		"it was refused":                     {handle: answers(403), status: 403},
		"nobody knows":                       {handle: answers(500), status: 409, code: semel.CodeOutcomeUnknown},
		"nobody knows, another request":      {handle: answers(500), status: 422, code: semel.CodeMismatch, otherRequest: true},
		"it is in progress":                  {handle: created, stays: true, status: 409, code: semel.CodeInProgress, retries: true},
		"it is in progress, another request": {handle: created, stays: true, status: 422, code: semel.CodeMismatch, otherRequest: true},
		"the key is free again":              {handle: answers(429), status: 409, code: semel.CodeInProgress, retries: true},
		"it was given up":                    {status: 409, code: semel.CodeAbandoned},
		"a transaction is open":              {status: 409, code: semel.CodeInProgress, retries: true, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "postgres")
			rival, key, over := w.node(nil), newKey(), make(chan struct{})
			arrived, left := make(chan struct{}, 1), make(chan struct{})
			var n *node
			overtake := func() {
				ctx, its := context.Background(), semel.Key{Account: "acme", Kind: idempotency.KindName("POST /orders"), ID: key}
				switch {
				case c.handle == nil && c.stays:
					conn, err := pgx.Connect(ctx, w.dsn)
					if err != nil {
						t.Error(err)
						return
					}
					t.Cleanup(func() { conn.Close(ctx) })
					tx, err := conn.Begin(ctx)
					if err == nil {
						_, err = rival.ledger.In(postgres.Tx(rival.database.store.(*postgres.Store), tx)).Accept(ctx, semel.Request{Key: its, Fingerprint: "f"})
					}
					if err != nil {
						t.Error(err)
					}
				case c.handle == nil:
					if _, err := rival.ledger.Abandon(ctx, its); err != nil {
						t.Error(err)
					}
				default:
					body := `{}`
					if c.otherRequest {
						body = `{"other":1}`
					}
					go func() { defer close(left); rival.send("POST", "/orders", key, body) }()
					<-arrived
					if !c.stays {
						<-left
					}
				}
			}
			n = w.node(func(o *idempotency.Options, d *database) { o.Begin = before(d.begin, overtake) })
			n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
				insertOrder(r.Context(), keyIn(r))
				w.WriteHeader(http.StatusAccepted)
			})
			rival.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
				arrived <- struct{}{}
				if c.stays {
					<-over
				}
				c.handle(w, r)
			})
			a := n.send("POST", "/orders", key, `{}`)
			close(over)
			if a.status != c.status || a.code() != string(c.code) && c.code != "" || a.replayed() != (c.code == "") || (a.header.Get("Retry-After") != "") != c.retries {
				t.Errorf("it got %s", a)
			}
			if rows := n.count("SELECT count(*) FROM shop_order"); rows != 0 {
				t.Errorf("%d orders are left", rows)
			}
		})
	}
}

// A job whose commit came second is told that nothing of it is recorded; one whose
// commit nobody heard of, that nobody knows.
func TestDoInOvertaken(t *testing.T) {
	w := newWorld(t, "postgres")
	n := w.node(nil)
	ctx, key := context.Background(), jobKey()
	do := func(begin func(context.Context) (*idempotency.Transaction, error)) (json.RawMessage, error) {
		return idempotency.DoIn(ctx, n.ledger, begin, key, []byte(`{}`), func(ctx context.Context) (json.RawMessage, error) {
			return json.RawMessage(`"mine"`), insertOrder(ctx, key.ID)
		})
	}
	lost := func(ctx context.Context) (*idempotency.Transaction, error) {
		tx, err := n.begin(ctx)
		changed := *tx
		changed.Commit = func() error { tx.Rollback(); return errors.New("connection reset by peer") }
		return &changed, err
	}
	if _, err := do(lost); codeOf(err) != semel.CodeUnavailable || semel.AsError("", err).WasRecorded() != semel.RecordedUnknown {
		t.Errorf("the answer was lost: %v", err)
	}
	overtake := func() {
		if _, err := idempotency.Do(ctx, n.ledger, key, []byte(`{}`), func(context.Context) (json.RawMessage, error) { return json.RawMessage(`"theirs"`), nil }); err != nil {
			t.Error(err)
		}
	}
	_, err := do(before(n.begin, overtake))
	if e := semel.AsError("", err); e == nil || e.Code != semel.CodeRetryTransaction || e.WasRecorded() != semel.RecordedNo || e.Op != "do" || e.Key != key {
		t.Errorf("overtaken: %v", err)
	}
	if rows := n.count("SELECT count(*) FROM shop_order"); rows != 0 {
		t.Errorf("%d orders are left", rows)
	}
	if result, err := do(n.begin); err != nil || string(result) != `"theirs"` {
		t.Errorf("once more: %s, %v", result, err)
	}
}

// A handler that ends its transaction itself, which it should not, is not run twice
// for it, and its success is not told if it left no record. If it has committed, it is
// on record at once that nobody knows how it ended.
func TestHandlerEndsItsTransaction(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(context.Context, pgx.Tx) error
		status int
		code   semel.Code
		state  semel.State // empty: no row
		orders int         // after a repeat as well
		runs   int
	}{
		"commit":   {func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }, 409, semel.CodeOutcomeUnknown, semel.NeedsReconciliation, 1, 1},
		"rollback": {func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) }, 503, semel.CodeUnavailable, "", 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "postgres")
			key, n, runs := newKey(), w.node(transactional), 0
			n.handle("POST /orders", func(w http.ResponseWriter, r *http.Request) {
				runs++
				tx, _ := idempotency.Tx[pgx.Tx](r.Context())
				insertOrder(r.Context(), keyIn(r))
				if err := c.end(r.Context(), tx); err != nil {
					t.Error(err)
				}
				created(w, r)
			})
			for range 2 {
				if a := n.send("POST", "/orders", key, `{}`); a.status != c.status || a.code() != string(c.code) || strings.Contains(a.body, "rolled back") {
					t.Errorf("it got %s", a)
				}
				its := semel.Key{Account: "acme", Kind: idempotency.KindName("POST /orders"), ID: key}
				op, err := n.ledger.Get(t.Context(), its)
				if op.State != c.state || c.state == "" && codeOf(err) != semel.CodeNotFound {
					t.Errorf("on record: %+v, %v", op, err)
				}
				if history, _ := n.ledger.History(t.Context(), its); c.state != "" {
					if x := history.Executions; len(x) != 1 || x[0].Outcome != semel.Unknown || x[0].EndedAt.IsZero() {
						t.Errorf("executions: %+v", x)
					}
				}
			}
			if rows := n.count("SELECT count(*) FROM shop_order"); rows != c.orders || runs != c.runs {
				t.Errorf("%d orders after %d runs", rows, runs)
			}
		})
	}
}
