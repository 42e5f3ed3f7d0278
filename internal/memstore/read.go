package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/semel-dev/semel"
)

// List implements [semel.Store].
func (s *Store) List(ctx context.Context, q semel.Query) (semel.Page, error) {
	after, err := q.Start()
	if err != nil {
		return semel.Page{}, err
	}
	_, leave, err := s.enter(ctx)
	if err != nil {
		return semel.Page{}, err
	}
	defer leave()
	var found []semel.Place
	for key, r := range s.data.rows {
		at := semel.PlaceOf(r.op)
		if r.op.Expired || q.Accounts != nil && !slices.Contains(q.Accounts, key.Account) || q.Kind != "" && q.Kind != key.Kind ||
			q.State != "" && q.State != r.op.State || q.Unacknowledged && r.op.Acknowledged || after.Compare(at) >= 0 {
			continue
		}
		found = append(found, at)
	}
	slices.SortFunc(found, semel.Place.Compare)
	page := semel.Page{}
	if len(found) > q.Size {
		found = found[:q.Size]
		page.Next = found[q.Size-1].Token()
	}
	for _, at := range found {
		op := copyOf(s.data.rows[at.Key()].op)
		op.Params, op.Result, op.Request = nil, nil, nil
		page.Operations = append(page.Operations, *op)
	}
	return page, nil
}

// History implements [semel.Store].
func (s *Store) History(ctx context.Context, key semel.Key) (semel.History, error) {
	_, leave, err := s.enter(ctx)
	if err != nil {
		return semel.History{}, err
	}
	defer leave()
	h := semel.History{Attempts: []semel.Attempt{}, Executions: []semel.Execution{}, Verdicts: []semel.Verdict{}}
	if r := s.data.rows[key]; r != nil {
		h.Attempts = append(h.Attempts, r.attempts...)
		h.Executions = append(h.Executions, cloneExecutions(r.executions)...)
		h.Verdicts = append(h.Verdicts, r.verdicts...)
	}
	return h, nil
}

// Pending implements [semel.Store].
func (s *Store) Pending(ctx context.Context, accounts []string, limit int) ([]int, error) {
	_, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	counts := make([]int, len(accounts))
	for i, account := range accounts {
		for key, r := range s.data.rows {
			if key.Account == account && r.working && counts[i] < limit {
				counts[i]++
			}
		}
	}
	return counts, nil
}

// Stats implements [semel.Store].
func (s *Store) Stats(ctx context.Context) (semel.Stats, error) {
	now, leave, err := s.enter(ctx)
	if err != nil {
		return semel.Stats{}, err
	}
	defer leave()
	kinds := map[string]*semel.KindStats{}
	for key, r := range s.data.rows {
		if r.op.Expired {
			continue
		}
		k := kinds[key.Kind]
		if k == nil {
			k = &semel.KindStats{Kind: key.Kind, States: map[semel.State]int64{}}
			kinds[key.Kind] = k
		}
		k.States[r.op.State]++
		if r.working && !r.due.After(now) {
			k.OldestDue = max(k.OldestDue, now.Sub(r.due))
		}
		if r.op.State == semel.NeedsReconciliation && !r.op.Acknowledged {
			k.Unreconciled++
			k.OldestUnreconciled = max(k.OldestUnreconciled, now.Sub(r.op.CreatedAt))
		}
		if r.op.Contradicted {
			k.Contradicted++
		}
	}
	stats := semel.Stats{At: now}
	for _, k := range kinds {
		stats.Kinds = append(stats.Kinds, *k)
	}
	slices.SortFunc(stats.Kinds, func(a, b semel.KindStats) int { return cmp.Compare(a.Kind, b.Kind) })
	return stats, nil
}

// SaveDefinition implements [semel.Store].
func (s *Store) SaveDefinition(ctx context.Context, kind, version string, definition []byte) error {
	_, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if name := [2]string{kind, version}; s.data.definitions[name] == nil {
		s.data.definitions[name] = append([]byte{}, definition...)
	}
	return nil
}

// Definition implements [semel.Store].
func (s *Store) Definition(ctx context.Context, kind, version string) ([]byte, error) {
	_, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return slices.Clone(s.data.definitions[[2]string{kind, version}]), nil
}

// Ping implements [semel.Store].
func (s *Store) Ping(ctx context.Context) error {
	_, leave, err := s.enter(ctx)
	if err == nil {
		leave()
	}
	return err
}

// Close implements [semel.Store]; the data stay.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}
