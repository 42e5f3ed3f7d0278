package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
)

// claims: how long one claim takes with many rows waiting, against few.
func claims(what string, where func(i int) (string, time.Duration)) func(context.Context, *place) (line, error) {
	return func(ctx context.Context, p *place) (line, error) {
		name := fmt.Sprintf("claim of 100 with %d waiting: %s", *many, what)
		l := line{name: name, aim: "≤ 1.3", against: "with 1000 waiting"}
		if !wanted(name) {
			return l, nil
		}
		full, err := claimer(ctx, p, *many, where)
		if err != nil {
			return l, err
		}
		few, err := claimer(ctx, p, 1000, where)
		l.ours, l.baseline = full, few
		return l, err
	}
}

// claimer measures claims; what they take is given back in between.
func claimer(ctx context.Context, p *place, n int, where func(i int) (string, time.Duration)) (turn, error) {
	_, store, url, err := p.ledger(ctx, nil)
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, store, n, where); err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return nil, err
	}
	req := semel.ClaimRequest{Worker: "bench", Max: 100, Kinds: []semel.ClaimKind{{Kind: "export", Lease: time.Hour, Contract: "{}", BeginNow: true}}}
	return func(ctx context.Context) (sample, error) {
		var times []time.Duration
		m := p.measure()
		for end := time.Now().Add(*length); time.Now().Before(end); {
			begin := time.Now()
			claimed, err := store.Claim(ctx, req)
			if err != nil {
				return sample{}, err
			}
			times = append(times, time.Since(begin))
			if len(claimed) == 0 {
				continue
			}
			back := make([]semel.Change, len(claimed))
			for i, c := range claimed {
				back[i] = semel.Change{Key: c.Operation.Key, Revision: c.Operation.Revision, Token: c.Operation.Token, Owner: semel.NewID(),
					State: semel.Accepted, Work: semel.WorkDue, Execution: &semel.ExecutionChange{Token: c.Operation.Token, End: true, Outcome: semel.NotApplied}}
			}
			if _, err := store.Apply(ctx, back); err != nil {
				return sample{}, err
			}
		}
		cpu := m.sample(len(times)).cpu
		slices.Sort(times)
		return sample{each: times[len(times)/2], cpu: cpu}, nil
	}, nil
}
