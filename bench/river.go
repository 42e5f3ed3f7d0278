package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/semel-dev/semel"
)

// riverQueue is River with the settings that its own benchmark uses, or better.
type riverQueue struct {
	pool   *pgxpool.Pool
	adder  *river.Client[pgx.Tx]
	worked *counter
}

type riverArgs struct {
	ID     string `json:"id"`
	Params string `json:"params"`
}

func (riverArgs) Kind() string { return "export" }

func (riverArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
}

func (*riverWorker) Work(context.Context, *river.Job[riverArgs]) error { return nil }

func newRiver(ctx context.Context, p *place) (*riverQueue, error) {
	url, err := p.database(ctx)
	if err != nil {
		return nil, err
	}
	pool, err := p.pool(ctx, url, 20)
	if err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	adder, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return &riverQueue{pool: pool, adder: adder, worked: newCounter()}, nil
}

func (q *riverQueue) insert(ctx context.Context) error {
	_, err := q.adder.Insert(ctx, riverArgs{semel.NewID(), string(params)}, nil)
	return err
}

func (q *riverQueue) fill(ctx context.Context, n int) error {
	for at := 0; at < n; at += 2000 {
		var batch []river.InsertManyParams
		for range min(2000, n-at) {
			batch = append(batch, river.InsertManyParams{Args: riverArgs{semel.NewID(), string(params)}})
		}
		if _, err := q.adder.InsertManyFast(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// start runs a client that works; what is completed is counted when it is recorded.
func (q *riverQueue) start(ctx context.Context) (stop func(), err error) {
	types := river.NewWorkers()
	river.AddWorker(types, &riverWorker{})
	client, err := river.NewClient(riverpgxv5.New(q.pool), &river.Config{
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:           types,
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	events, cancel := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: 1 << 18, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	go func() {
		for range events {
			q.worked.add()
		}
	}()
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	return func() {
		client.Stop(context.WithoutCancel(ctx))
		cancel()
	}, nil
}
