package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"github.com/semel-dev/semel"
)

// List implements [semel.Store]. Every page is a merge of index ranges: of the
// accounts asked for and the kinds that there are, or of kinds and states.
func (s *Store) List(ctx context.Context, q semel.Query) (semel.Page, error) {
	after, err := q.Start()
	if err != nil {
		return semel.Page{}, err
	}
	page := semel.Page{Operations: []semel.Operation{}}
	err = s.snapshot(ctx, "list", func(ctx context.Context, r runner) error {
		places, err := s.places(ctx, r, q, after)
		if err != nil {
			return err
		}
		if len(places) > q.Size {
			places = places[:q.Size]
			page.Next = places[q.Size-1].Token()
		}
		for _, p := range places {
			var c scanner
			ok, err := r.row(ctx, `SELECT `+lightColumns+` FROM semel_operation WHERE `+isKey, s.keyArgs(p.Key()), c.light()...)
			if err != nil {
				return err
			}
			if ok {
				page.Operations = append(page.Operations, *c.operation())
			}
		}
		return nil
	})
	return page, err
}

const (
	placesWhere = `expired = 0 AND (?3 = '' OR state = ?3) AND (?4 = 0 OR acknowledged = 0)
		AND created_at BETWEEN ?10 AND ?5 AND (created_at, account, kind, operation_id) < (?5, ?6, ?7, ?8)`

	placesOfAccount = `SELECT created_at, account, kind, operation_id FROM semel_operation WHERE kind = ?1 AND account = ?2 AND ` + placesWhere + `
		ORDER BY created_at DESC, operation_id DESC LIMIT ?9`
	placesOfState = `SELECT created_at, account, kind, operation_id FROM semel_operation WHERE kind = ?1 AND state = ?2 AND ` + placesWhere + `
		ORDER BY created_at DESC, account DESC, operation_id DESC LIMIT ?9`
	placesOfStateIn = `SELECT created_at, account, kind, operation_id FROM semel_operation WHERE kind = ?1 AND state = ?2 AND ` + placesWhere + `
		AND account IN (SELECT value FROM json_each(?11))
		ORDER BY created_at DESC, account DESC, operation_id DESC LIMIT ?9`
)

// fewOfState is how many operations are looked through for those of some accounts,
// rather than all that these accounts have for those in the state.
const fewOfState = 10000

// A span is one index range of a list: of a kind, and of an account or a state.
type span struct{ kind, of string }

// spans picks the index that a list is read by.
func (s *Store) spans(ctx context.Context, r runner, q semel.Query) (query string, spans []span, err error) {
	var states []span
	var kinds []string
	var operations int64
	err = r.each(ctx, `SELECT kind, state, operations FROM semel_count WHERE operations > 0`, nil, func(rows *sql.Rows) error {
		var c span
		var n int64
		err := rows.Scan(&c.kind, &c.of, &n)
		if (q.Kind == "" || c.kind == q.Kind) && (q.State == "" || c.of == string(q.State)) {
			states, operations = append(states, c), operations+n
			if !slices.Contains(kinds, c.kind) {
				kinds = append(kinds, c.kind)
			}
		}
		return err
	})
	switch {
	case q.Accounts == nil:
		return placesOfState, states, err
	case q.State != "" && operations <= fewOfState:
		return placesOfStateIn, states, err
	}
	for _, account := range slices.Compact(slices.Sorted(slices.Values(q.Accounts))) {
		for _, kind := range kinds {
			spans = append(spans, span{kind, account})
		}
	}
	return placesOfAccount, spans, err
}

// places returns the first Size+1 places behind after.
func (s *Store) places(ctx context.Context, r runner, q semel.Query, after semel.Place) ([]semel.Place, error) {
	query, spans, err := s.spans(ctx, r, q)
	if err != nil {
		return nil, err
	}
	var best []semel.Place
	oldest := int64(0) // that still has a place on the page
	for _, sp := range spans {
		args := []any{sp.kind, sp.of, string(q.State), flag(q.Unacknowledged),
			after.CreatedAt, after.Account, after.Kind, after.ID, q.Size + 1, oldest}
		if query == placesOfStateIn {
			accounts, err := json.Marshal(q.Accounts)
			if err != nil {
				return nil, err
			}
			args = append(args, string(accounts))
		}
		err := r.each(ctx, query, args, func(rows *sql.Rows) error {
			var p semel.Place
			err := rows.Scan(&p.CreatedAt, &p.Account, &p.Kind, &p.ID)
			best = append(best, p)
			return err
		})
		if err != nil {
			return nil, err
		}
		if best = keepFirst(best, q.Size+1); len(best) > q.Size {
			oldest = best[q.Size].CreatedAt
		}
	}
	return best, nil
}

func keepFirst(places []semel.Place, n int) []semel.Place {
	slices.SortFunc(places, semel.Place.Compare)
	return places[:min(n, len(places))]
}
