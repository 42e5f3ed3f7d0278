package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlite"
)

// claimLines are those of one store.
func claimLines(in string, open func(context.Context, *place) (waiting, error)) (all []func(context.Context, *place) (line, error)) {
	for _, soon := range []struct {
		what string
		due  time.Duration
	}{{"due", 0}, {"in the future", time.Hour}} {
		all = append(all,
			claims(in, open, "one account, all "+soon.what, func(int) (string, time.Duration) { return "acme", soon.due }),
			claims(in, open, "a million accounts, all "+soon.what, func(i int) (string, time.Duration) { return fmt.Sprintf("a%d", i), soon.due }))
	}
	return all
}

// claims: how long one claim takes with many rows waiting, against few.
func claims(in string, open func(context.Context, *place) (waiting, error), what string, where func(i int) (string, time.Duration)) func(context.Context, *place) (line, error) {
	return func(ctx context.Context, p *place) (line, error) {
		name := fmt.Sprintf("%sclaim of 100 with %d waiting: %s", in, *many, what)
		l := line{name: name, aim: "≤ 1.3", against: "with 1000 waiting", heap: true}
		if !wanted(name) {
			return l, nil
		}
		full, err := claimer(ctx, p, open, *many, where)
		if err != nil {
			return l, err
		}
		few, err := claimer(ctx, p, open, 1000, where)
		l.ours, l.baseline = full, few
		return l, err
	}
}

// waiting is a new store, and what its database is told once the rows are in it.
type waiting struct {
	semel.Store
	filled func(context.Context) error
}

func onPostgres(ctx context.Context, p *place) (waiting, error) {
	_, store, url, err := p.ledger(ctx, nil)
	return waiting{store, func(ctx context.Context) error {
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		_, err = pool.Exec(ctx, "VACUUM ANALYZE")
		return err
	}}, err
}

func onSQLite(ctx context.Context, p *place) (waiting, error) {
	store, err := sqlite.Open(ctx, filepath.Join(p.dir, semel.NewID()+".db"), nil)
	if err == nil {
		p.later(func() { store.Close() })
	}
	return waiting{store, func(context.Context) error { return nil }}, err
}

// claimer measures claims. What they take is settled, and as much put in its place: a
// claim reads the earlier executions too, so none may have more of them than others.
func claimer(ctx context.Context, p *place, open func(context.Context, *place) (waiting, error), n int, where func(i int) (string, time.Duration)) (turn, error) {
	store, err := open(ctx, p)
	if err != nil {
		return nil, err
	}
	filled := 0
	add := func(ctx context.Context, n int) error {
		begin := filled
		filled += n
		return fill(ctx, store, n, func(i int) (string, time.Duration) { return where(begin + i) })
	}
	if err := add(ctx, n); err != nil {
		return nil, err
	}
	if err := store.filled(ctx); err != nil {
		return nil, err
	}
	req := semel.ClaimRequest{Worker: "bench", Max: 100, Kinds: []semel.ClaimKind{{Kind: "export", Lease: time.Hour, Contract: "{}", BeginNow: true}}}
	return func(ctx context.Context) (sample, error) {
		var times []time.Duration
		var heap uint64
		m := p.measure()
		for end := time.Now().Add(*length); time.Now().Before(end); {
			before, begin := allocated(), time.Now()
			claimed, err := store.Claim(ctx, req)
			if err != nil {
				return sample{}, err
			}
			times = append(times, time.Since(begin))
			heap += allocated() - before
			if err := finish(ctx, store, claimed); err != nil {
				return sample{}, err
			}
			if err := add(ctx, len(claimed)); err != nil {
				return sample{}, err
			}
		}
		s := m.sample(len(times))
		slices.Sort(times)
		return sample{each: times[len(times)/2], cpu: s.cpu, heap: float64(heap) / float64(len(times))}, nil
	}, nil
}

// finish records that what was claimed has succeeded.
func finish(ctx context.Context, store semel.Store, claimed []semel.Claimed) error {
	if len(claimed) == 0 {
		return nil
	}
	changes := make([]semel.Change, len(claimed))
	for i, c := range claimed {
		changes[i] = semel.Change{Key: c.Operation.Key, Revision: c.Operation.Revision, Token: c.Operation.Token, Owner: semel.NewID(),
			State: semel.Succeeded, Retain: time.Hour, Work: semel.WorkDone,
			Execution: &semel.ExecutionChange{Token: c.Operation.Token, End: true, Outcome: semel.Applied}}
	}
	out, err := store.Apply(ctx, changes)
	for _, o := range out {
		if err == nil && !o.Applied {
			err = fmt.Errorf("not settled: %v", o.Err)
		}
	}
	return err
}
