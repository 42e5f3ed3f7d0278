package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/postgres"
)

// another is one more pool on the shop's database.
func (s *shop) another(change func(*pgxpool.Config)) *pgxpool.Pool {
	s.Helper()
	cfg := s.pool.Config()
	cfg.ConnConfig.Tracer = nil
	change(cfg)
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	s.must(err)
	s.Cleanup(pool.Close)
	return pool
}

// rows are the ledger's rows of an operation, as JSON, without what differs from one
// operation to the next: the ID and the marks. Times are reckoned from the creation,
// those of the end from the last change.
func (s *shop) rows(id string) string {
	s.Helper()
	ctx := context.Background()
	var all []string
	var created, updated float64
	for _, table := range []string{"semel_operation", "semel_work", "semel_expiry", "semel_execution", "semel_attempt", "semel_verdict"} {
		rows, err := s.pool.Query(ctx, "SELECT to_jsonb(t) FROM "+table+" t WHERE operation_id = $1", id)
		s.must(err)
		found, err := pgx.CollectRows(rows, pgx.RowTo[map[string]any])
		s.must(err)
		for _, row := range found {
			if table == "semel_operation" {
				created, updated = row["created_at"].(float64), row["updated_at"].(float64)
			}
			for _, name := range slices.Collect(maps.Keys(row)) {
				at, _ := row[name].(float64)
				switch {
				case name == "operation_id" || name == "owner" || name == "updated_at" || name == "id_time":
					delete(row, name)
				case at > 0 && (name == "run_ended_at" || name == "expires_at" || name == "due_at"):
					row[name] = at - updated
				case at > 0 && (name == "at" || strings.HasSuffix(name, "_at")):
					row[name] = at - created
				}
			}
			text, err := json.Marshal(row)
			s.must(err)
			all = append(all, table+" "+string(text))
		}
	}
	return strings.Join(all, "\n")
}

// However an operation ends, and however the statements are sent, what it leaves is
// the same as in a transaction that was begun otherwise, and is what was told.
func TestBeginWritesTheSame(t *testing.T) {
	ctx, s := context.Background(), newShop(t, nil)
	failure := &semel.Failure{Code: "http-402", Message: `no "money", it's said: \x41`}
	ends := map[string]*semel.Ending{
		"open":          nil,
		"applied":       {Outcome: semel.Applied, Result: []byte(`{"a":"\\x41 'q'"}`), Evidence: []byte(`{"status":201}`)},
		"bare":          {Outcome: semel.Applied},
		"refused":       {Outcome: semel.Refused, Result: []byte(`{"b":2}`), Failure: failure},
		"spent":         {Outcome: semel.NotApplied, Failure: failure},
		"again":         {Outcome: semel.NotApplied, Failure: failure, Again: true},
		"unknown":       {Outcome: semel.Unknown, Failure: failure},
		"unknown again": {Outcome: semel.Unknown, Again: true, In: 1500},
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			pool := s.another(func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
			for name, end := range ends {
				for _, attempt := range []string{"", "try"} {
					left := map[string]string{}
					for way, begin := range ways {
						req := orderRequest(semel.NewID())
						req.AttemptID, req.Params = attempt, []byte(`{"x":"\\x41"}`)
						tx, err := begin(ctx, pool)
						s.must(err)
						defer tx.Rollback(ctx)
						in := s.ledger.In(postgres.Tx(s.store, tx))
						acc, err := in.Accept(ctx, req)
						s.must(err)
						done := func() semel.Operation { return acc.Operation }
						if end != nil {
							done, err = in.FinishLast(ctx, *acc.Lease, *end)
							s.must(err)
						}
						s.must(tx.Commit(ctx))
						op, err := s.ledger.Get(ctx, req.Key)
						s.must(err)
						if told := done(); !reflect.DeepEqual(told, op) {
							t.Errorf("%s, %s: told\n%+v, there is\n%+v", name, way, told, op)
						}
						left[way] = s.rows(req.Key.ID)
					}
					if left["Begin"] != left["pool.Begin"] {
						t.Errorf("%s leaves\n%s\nand in a transaction begun otherwise\n%s", name, left["Begin"], left["pool.Begin"])
					}
				}
			}
		})
	}
}

// What the caller does with its memory after a call is not seen in what is recorded.
func TestBeginKeepsNoMemory(t *testing.T) {
	ctx, s := context.Background(), newShop(t, nil)
	buffer := []byte(`{"params":"as they were"}`)
	req := orderRequest("memory")
	req.Params = buffer
	tx := s.begin()
	defer tx.Rollback(ctx)
	in := s.ledger.In(postgres.Tx(s.store, tx))
	acc, err := in.Accept(ctx, req)
	s.must(err)
	copy(buffer, `{"result":"it is done"}   `)
	end := semel.Ending{Outcome: semel.Refused, Result: buffer[:23], Evidence: []byte(`{"status":402}`), Failure: &semel.Failure{Code: "http-402"}}
	_, err = in.FinishLast(ctx, *acc.Lease, end)
	s.must(err)
	copy(buffer, `{"next":"another request"}`)
	copy(end.Evidence, `{"status":500}`)
	end.Failure.Code = "http-500"
	s.must(tx.Commit(ctx))
	op, err := s.ledger.Get(ctx, req.Key)
	s.must(err)
	history, err := s.ledger.History(ctx, req.Key)
	s.must(err)
	if string(op.Params) != `{"params":"as they were"}` || string(op.Result) != `{"result":"it is done"}` || op.Failure.Code != "http-402" ||
		string(history.Executions[0].Evidence) != `{"status":402}` {
		t.Errorf("recorded: %s, %s, %s, %s", op.Params, op.Result, op.Failure.Code, history.Executions[0].Evidence)
	}
}

// Above READ COMMITTED a transaction does not see what its rival has committed since:
// the one that waited is told before it does its work in vain.
func TestBeginAboveReadCommitted(t *testing.T) {
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			ctx, s := context.Background(), newShop(t, &postgres.Options{LockTimeout: time.Minute})
			pool := s.another(func(c *pgxpool.Config) {
				c.MaxConns = 2
				c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
			})
			begin := func() *postgres.Transaction {
				tx, err := postgres.Begin(ctx, pool)
				s.must(err)
				t.Cleanup(func() { tx.Rollback(ctx) })
				return tx
			}
			first, second := begin(), begin()
			in := s.ledger.In(postgres.Tx(s.store, first))
			acc, err := in.Accept(ctx, orderRequest("both"))
			s.must(err)
			_, err = in.FinishLast(ctx, *acc.Lease, semel.Ending{Outcome: semel.Applied})
			s.must(err)
			pid, met := pidOf(s, second), make(chan error, 1)
			go func() {
				_, err := s.ledger.In(postgres.Tx(s.store, second)).Accept(ctx, orderRequest("both"))
				met <- err
			}()
			s.waits(pid)
			s.must(first.Commit(ctx))
			if err := <-met; !errors.Is(err, semel.ErrRetryTransaction) {
				t.Errorf("the one who waited: %v", err)
			}
			s.must(second.Rollback(ctx))
			acc, err = s.ledger.In(postgres.Tx(s.store, begin())).Accept(ctx, orderRequest("both"))
			if err != nil || !acc.Replayed || acc.Operation.State != semel.Succeeded {
				t.Errorf("once more: %+v, %v", acc, err)
			}
		})
	}
}

// The same key in two schemas of one database is two operations, which do not wait
// for each other: one may even be asked for within the other.
func TestBeginInTwoSchemas(t *testing.T) {
	ctx, s := context.Background(), newShop(t, &postgres.Options{LockTimeout: time.Minute})
	_, err := s.pool.Exec(ctx, "CREATE SCHEMA other")
	s.must(err)
	url, err := url.Parse(s.pool.Config().ConnString())
	s.must(err)
	q := url.Query()
	q.Set("search_path", "other")
	url.RawQuery = q.Encode()
	store, err := postgres.Open(ctx, url.String(), nil)
	s.must(err)
	defer store.Close()
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "order"}}})
	s.must(err)
	defer ledger.Close()
	pool := s.another(func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["search_path"] = "other" })

	outer, err := postgres.Begin(ctx, s.pool)
	s.must(err)
	defer outer.Rollback(ctx)
	_, err = s.ledger.In(postgres.Tx(s.store, outer)).Accept(ctx, orderRequest("passed-on"))
	s.must(err)
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	inner, err := postgres.Begin(ctx, pool)
	s.must(err)
	defer inner.Rollback(ctx)
	acc, err := ledger.In(postgres.Tx(store, inner)).Accept(bounded, orderRequest("passed-on"))
	if err != nil || acc.Lease == nil {
		t.Errorf("within the other: %+v, %v", acc, err)
	}
}

// pidOf is the process that serves tx. It is asked for in SQL, since a transaction
// whose connection is handed out keeps nothing back any more.
func pidOf(s *shop, tx pgx.Tx) (pid int) {
	s.Helper()
	s.must(tx.QueryRow(context.Background(), "SELECT pg_backend_pid()").Scan(&pid))
	return pid
}

// waits returns once that process waits for a lock.
func (s *shop) waits(pid int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	s.must(err)
	defer conn.Close(context.Background())
	for waits := false; !waits; {
		s.must(conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE pid = $1 AND NOT granted)", pid).Scan(&waits))
	}
}
