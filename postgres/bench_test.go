package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/postgres"
)

// durable is one server for all benchmarks, with fsync on.
var durable struct {
	once   sync.Once
	server *pgtest.Server
	err    error
}

func stopDurable() {
	if durable.server != nil {
		durable.server.Stop()
	}
}

func benchStore(b *testing.B, options *postgres.Options) (*semel.Ledger, *postgres.Store, string) {
	b.Helper()
	durable.once.Do(func() { durable.server, durable.err = pgtest.Start() })
	if durable.err != nil {
		pgtest.Missing(b, durable.err)
	}
	ctx, url := context.Background(), durable.server.Database(b)
	store, err := postgres.Open(ctx, url, options)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "note"}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ledger.Close() })
	return ledger, store, url
}

var benchParams = []byte(`{"title":"本周菜单","days":[{"day":"周一","dishes":["番茄炒蛋","麻婆豆腐"]}],"width":1280}`)

func benchRequest() semel.Request {
	return semel.Request{Key: semel.Key{Account: "acme", Kind: "note", ID: semel.NewID()}, Params: benchParams}
}

// spread runs f b.N times in n goroutines.
func spread(b *testing.B, n int, f func(worker, i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for w := range n {
		all.Go(func() {
			for i := int(next.Add(1)); i <= b.N; i = int(next.Add(1)) {
				f(w, i)
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func BenchmarkAccept(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			ledger, _, _ := benchStore(b, nil)
			spread(b, n, func(int, int) {
				if _, err := ledger.Accept(context.Background(), benchRequest()); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// BenchmarkAcceptUnbatched is what group commit is measured against: one
// transaction for each operation, on sixteen connections.
func BenchmarkAcceptUnbatched(b *testing.B) {
	_, store, _ := benchStore(b, &postgres.Options{MaxConns: 16})
	spread(b, 64, func(int, int) {
		req := benchRequest()
		at, _ := semel.IDTime(req.Key.ID)
		_, err := store.Insert(context.Background(), []semel.Insertion{{Key: req.Key, State: semel.Accepted, Params: req.Params, IDTime: at,
			AsSent: "v1:sha256:0123456789", Fingerprint: "v1:sha256:0123456789", Owner: semel.NewID()}})
		if err != nil {
			b.Error(err)
		}
	})
}

// bareRead reads what a replay answers with, and nothing else happens.
const bareRead = `SELECT account, kind, operation_id, state, owner, as_sent, fingerprint, schema_version, attempts, executions, progress,
	progress_note, acknowledged, contradicted, expired, revision, token, cleared_token, created_at, updated_at, expires_at, failure_code,
	failure_message, params, request, result
FROM semel_operation WHERE shard = $1 AND account = $2 AND kind = $3 AND operation_id = $4`

func BenchmarkReplay(b *testing.B) {
	ledger, _, url := benchStore(b, nil)
	ctx := context.Background()
	reqs := make([]semel.Request, 10000)
	var all sync.WaitGroup
	for w := range 50 {
		all.Go(func() {
			for i := w; i < len(reqs); i += 50 {
				reqs[i] = benchRequest()
				ledger.Accept(ctx, reqs[i])
			}
		})
	}
	all.Wait()
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("ledger/goroutines=%d", n), func(b *testing.B) {
			spread(b, n, func(_, i int) {
				acc, err := ledger.Accept(ctx, reqs[i%len(reqs)])
				if err != nil || !acc.Replayed {
					b.Error(err)
				}
			})
		})
		b.Run(fmt.Sprintf("bare/goroutines=%d", n), func(b *testing.B) {
			cfg, _ := pgxpool.ParseConfig(url)
			cfg.MaxConns = 10
			pool, err := pgxpool.NewWithConfig(ctx, cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer pool.Close()
			shard := semel.ShardByAccount.Shard(reqs[0].Key)
			spread(b, n, func(_, i int) {
				k := reqs[i%len(reqs)].Key
				var op semel.Operation
				var progress *float64
				var code *string
				var note, message string
				var created, updated, expires int64
				err := pool.QueryRow(ctx, bareRead, shard, k.Account, k.Kind, k.ID).Scan(&op.Key.Account, &op.Key.Kind, &op.Key.ID,
					(*string)(&op.State), &op.Owner, &op.AsSent, &op.Fingerprint, &op.SchemaVersion, &op.Attempts, &op.Executions, &progress, &note,
					&op.Acknowledged, &op.Contradicted, &op.Expired, &op.Revision, &op.Token, &op.ClearedToken, &created, &updated, &expires,
					&code, &message, (*[]byte)(&op.Params), &op.Request, (*[]byte)(&op.Result))
				if err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// BenchmarkLife is accept, claim, a no-op effect and its record, all at once.
func BenchmarkLife(b *testing.B) {
	ledger, _, _ := benchStore(b, nil)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan struct{}, 1<<20)
	go benchWorker(ctx, b, ledger, 500, done)
	spread(b, 64, func(int, int) {
		if _, err := ledger.Accept(context.Background(), benchRequest()); err != nil {
			b.Error(err)
		}
	})
	b.StartTimer()
	for range b.N {
		<-done
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func BenchmarkBurnDown(b *testing.B) {
	ledger, store, _ := benchStore(b, nil)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	fill(b, store, b.N, func(i int) (string, time.Duration) { return "acme", 0 })
	done := make(chan struct{}, 1<<20)
	b.ResetTimer()
	go benchWorker(ctx, b, ledger, 1000, done)
	for range b.N {
		<-done
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func fill(b *testing.B, store *postgres.Store, n int, place func(i int) (account string, due time.Duration)) {
	b.Helper()
	for at := 0; at < n; at += 2000 {
		var batch []semel.Insertion
		for i := at; i < min(n, at+2000); i++ {
			account, due := place(i)
			batch = append(batch, semel.Insertion{Key: semel.Key{Account: account, Kind: "note", ID: semel.NewID()}, State: semel.Accepted,
				Params: benchParams, AsSent: "v1:sha256:0123456789", Fingerprint: "v1:sha256:0123456789", Owner: semel.NewID(), Due: due})
		}
		if _, err := store.Insert(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

// benchWorker claims and finishes; each lease is finished by a goroutine of its
// own, as a worker's is.
func benchWorker(ctx context.Context, b *testing.B, ledger *semel.Ledger, room int, done chan<- struct{}) {
	slots := make(chan struct{}, room)
	req := semel.ClaimRequest{Worker: "bench", Kinds: []semel.ClaimKind{{Kind: "note", Lease: time.Minute, Contract: `{"shape":"idempotent"}`, BeginNow: true}}}
	for ctx.Err() == nil {
		if req.Max = room - len(slots); req.Max < room/4 {
			time.Sleep(time.Millisecond)
			continue
		}
		leases, err := ledger.Claim(ctx, req)
		if err != nil && ctx.Err() == nil {
			b.Error(err)
			return
		}
		if len(leases) == 0 {
			time.Sleep(time.Millisecond)
		}
		for _, l := range leases {
			slots <- struct{}{}
			go func() {
				_, err := ledger.Finish(context.Background(), l, semel.Ending{Outcome: semel.Applied, Result: []byte(`{}`)})
				if err != nil {
					b.Error(err)
				}
				<-slots
				done <- struct{}{}
			}()
		}
	}
}
