package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/postgres"
	"github.com/semel-dev/semel/sqlite"
)

// lines are the lines of the table.
var lines = append([]func(context.Context, *place) (line, error){
	acceptPgbench, acceptUnbatched, acceptAlone, replay, life, burnDown, sqliteAccept,
}, append(claimLines("", onPostgres), claimLines("SQLite: ", onSQLite)...)...)

var params = []byte(`{"title":"本周菜单","days":[{"day":"周一","dishes":["番茄炒蛋","麻婆豆腐"]}],"width":1280}`)

func request() semel.Request {
	return semel.Request{Key: semel.Key{Account: "acme", Kind: "export", ID: semel.NewID()}, Params: params}
}

func accept(ctx context.Context, ledger *semel.Ledger) func() error {
	return func() error {
		_, err := ledger.Accept(ctx, request())
		return err
	}
}

func insertion(account string, due time.Duration) semel.Insertion {
	id := semel.NewID()
	at, _ := semel.IDTime(id)
	return semel.Insertion{Key: semel.Key{Account: account, Kind: "export", ID: id}, State: semel.Accepted, Params: params, IDTime: at,
		AsSent:      "v1:sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		Fingerprint: "v1:sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", SchemaVersion: "bytes", Owner: id, Due: due}
}

const bareTable = `CREATE TABLE bare (account text NOT NULL, kind text NOT NULL, id text NOT NULL, params bytea, PRIMARY KEY (account, kind, id))`

// acceptPgbench: 64 callers against what PostgreSQL can do for 16 with the least
// there is to do: one small row.
func acceptPgbench(ctx context.Context, p *place) (line, error) {
	ledger, _, url, err := p.ledger(ctx, nil)
	if err != nil {
		return line{}, err
	}
	bare, err := p.database(ctx)
	if err != nil {
		return line{}, err
	}
	pool, err := pgxpool.New(ctx, bare)
	if err != nil {
		return line{}, err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, bareTable); err != nil {
		return line{}, err
	}
	_ = url
	return line{name: "accept, 64 goroutines", aim: "≥ 1.0", against: "pgbench, 16 clients, prepared one-row INSERT",
		ours:     func(ctx context.Context) (sample, error) { return p.spread(64, accept(ctx, ledger)) },
		baseline: func(ctx context.Context) (sample, error) { return p.pgbench(ctx, bare) }}, nil
}

var tps = regexp.MustCompile(`tps = ([0-9.]+)`)

func (p *place) pgbench(ctx context.Context, url string) (sample, error) {
	script := filepath.Join(p.dir, "insert.sql")
	text := `\set id random(1, 1000000000000000)
INSERT INTO bare (account, kind, id, params) VALUES ('acme', 'export', 'op-' || :id, '` + string(params) + `') ON CONFLICT (account, kind, id) DO NOTHING;
`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		return sample{}, err
	}
	program, err := pgtest.Program("pgbench")
	if err != nil {
		return sample{}, err
	}
	m := p.measure()
	out, err := exec.CommandContext(ctx, program, "-n", "-M", "prepared", "-c", "16", "-j", "2",
		"-T", strconv.Itoa(int(length.Seconds())), "-f", script, url).CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	found := tps.FindSubmatch(out)
	if found == nil {
		return sample{}, fmt.Errorf("pgbench said:\n%s", out)
	}
	rate, err := strconv.ParseFloat(string(found[1]), 64)
	return sample{rate: rate, cpu: m.sample(int(rate * length.Seconds())).cpu}, err
}

// acceptUnbatched: what group commit brings.
func acceptUnbatched(ctx context.Context, p *place) (line, error) {
	ledger, _, url, err := p.ledger(ctx, nil)
	if err != nil {
		return line{}, err
	}
	single, err := postgres.Open(ctx, url, &postgres.Options{MaxConns: 16})
	if err != nil {
		return line{}, err
	}
	p.later(func() { single.Close() })
	return line{name: "accept, 64 goroutines", aim: "≥ 3", against: "our own, one transaction each, 16 connections",
		ours: func(ctx context.Context) (sample, error) { return p.spread(64, accept(ctx, ledger)) },
		baseline: func(ctx context.Context) (sample, error) {
			return p.spread(64, func() error {
				_, err := single.Insert(ctx, []semel.Insertion{insertion("acme", 0)})
				return err
			})
		}}, nil
}

// acceptAlone: the time of one caller who is alone, half of the calls being faster.
func acceptAlone(ctx context.Context, p *place) (line, error) {
	ledger, _, url, err := p.ledger(ctx, nil)
	if err != nil {
		return line{}, err
	}
	pool, err := p.pool(ctx, url, 1)
	if err != nil {
		return line{}, err
	}
	if _, err := pool.Exec(ctx, bareTable); err != nil {
		return line{}, err
	}
	return line{name: "accept, one client alone, p50", aim: "≤ 1.8", against: "the bare statement, p50",
		ours: func(ctx context.Context) (sample, error) { return p.median(accept(ctx, ledger)) },
		baseline: func(ctx context.Context) (sample, error) {
			return p.median(func() error {
				_, err := pool.Exec(ctx, `INSERT INTO bare (account, kind, id, params) VALUES ($1, $2, $3, $4) ON CONFLICT (account, kind, id) DO NOTHING`,
					"acme", "export", semel.NewID(), params)
				return err
			})
		}}, nil
}

// bareRead reads what a replay answers with, and nothing else happens.
const bareRead = `SELECT account, kind, operation_id, state, owner, as_sent, fingerprint, schema_version, attempts, executions, progress,
	progress_note, acknowledged, contradicted, expired, revision, token, cleared_token, created_at, updated_at, expires_at, failure_code,
	failure_message, params, request, result
FROM semel_operation WHERE shard = $1 AND account = $2 AND kind = $3 AND operation_id = $4`

func replay(ctx context.Context, p *place) (line, error) {
	ledger, _, url, err := p.ledger(ctx, nil)
	if err != nil {
		return line{}, err
	}
	reqs := make([]semel.Request, 10000)
	for i := range reqs {
		reqs[i] = request()
	}
	if err := inParallel(50, len(reqs), func(i int) error { _, err := ledger.Accept(ctx, reqs[i]); return err }); err != nil {
		return line{}, err
	}
	pool, err := p.pool(ctx, url, 10)
	if err != nil {
		return line{}, err
	}
	var next atomic.Int64
	shard := semel.ShardByAccount.Shard(reqs[0].Key)
	return line{name: "replay, 16 goroutines", aim: "≥ 0.9", against: "a bare pgx read by primary key",
		ours: func(ctx context.Context) (sample, error) {
			return p.spread(16, func() error {
				acc, err := ledger.Accept(ctx, reqs[int(next.Add(1))%len(reqs)])
				if err == nil && !acc.Replayed {
					err = fmt.Errorf("%s was not known", acc.Operation.Key)
				}
				return err
			})
		},
		baseline: func(ctx context.Context) (sample, error) {
			return p.spread(16, func() error {
				k := reqs[int(next.Add(1))%len(reqs)].Key
				var op semel.Operation
				var progress *float64
				var code *string
				var note, message string
				var created, updated, expires int64
				return pool.QueryRow(ctx, bareRead, shard, k.Account, k.Kind, k.ID).Scan(&op.Key.Account, &op.Key.Kind, &op.Key.ID,
					(*string)(&op.State), &op.Owner, &op.AsSent, &op.Fingerprint, &op.SchemaVersion, &op.Attempts, &op.Executions, &progress, &note,
					&op.Acknowledged, &op.Contradicted, &op.Expired, &op.Revision, &op.Token, &op.ClearedToken, &created, &updated, &expires,
					&code, &message, (*[]byte)(&op.Params), &op.Request, (*[]byte)(&op.Result))
			})
		}}, nil
}

// sqliteAccept: the same call on SQLite.
func sqliteAccept(ctx context.Context, p *place) (line, error) {
	store, err := sqlite.Open(ctx, filepath.Join(p.dir, "bench.db"), nil)
	if err != nil {
		return line{}, err
	}
	p.later(func() { store.Close() })
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "export"}}})
	if err != nil {
		return line{}, err
	}
	p.later(func() { ledger.Close() })
	return line{name: "SQLite: accept, 64 goroutines", aim: "≥ 3", against: "one row in each transaction",
		ours: func(ctx context.Context) (sample, error) { return p.spread(64, accept(ctx, ledger)) },
		baseline: func(ctx context.Context) (sample, error) {
			return p.spread(64, func() error {
				_, err := store.Insert(ctx, []semel.Insertion{insertion("acme", 0)})
				return err
			})
		}}, nil
}
