package page

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/examples/menuexport"
	"github.com/semel-dev/semel/httpapi/problem"
)

// counts tells how many operations the asker's account has, and how often the
// generator really ran.
func (s *Site) counts(w http.ResponseWriter, r *http.Request) {
	who, err := s.server.Identify(r)
	if err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	// The generator is somebody else's and knows no accounts, so it counts for all.
	var told struct {
		Operations    int `json:"operations"`
		AllOperations int `json:"all_operations"`
		Executions    int `json:"executions"`
		Images        int `json:"images"`
	}
	if told.AllOperations, err = s.all(r.Context()); err == nil {
		told.Operations, err = s.own(r.Context(), who.Account, told.AllOperations)
	}
	if err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if err := getJSON(ctx, s.opts.Generator.JoinPath("stats").String(), &told); err != nil {
		problem.Write(w, problem.Of(&semel.Error{Op: "counts", Code: semel.CodeUnavailable, Msg: "the generator does not answer", Err: err}))
		return
	}
	writeJSON(w, told)
}

// A count is how many operations an account had.
type count struct {
	own, all int
	newest   string
	at       time.Time
}

// recount is how long a count may be carried on.
const recount = time.Minute

// own counts the operations of an account. The page asks every second, so where
// only new ones have come since, these alone are counted; operations that were
// purged show in the number of all, or else with the next whole count.
func (s *Site) own(ctx context.Context, account string, all int) (int, error) {
	s.mu.Lock()
	last, known := s.counted[account]
	s.mu.Unlock()
	query := semel.Query{Accounts: []string{account}, Kind: menuexport.KindName, Size: 100}
	now := count{all: all, at: time.Now()}
	for {
		page, err := s.ledger.List(ctx, query)
		if err != nil {
			return 0, err
		}
		if query.After == "" && len(page.Operations) > 0 {
			now.newest = page.Operations[0].Key.ID
		}
		since := slices.IndexFunc(page.Operations, func(op semel.Operation) bool { return op.Key.ID == last.newest })
		if query.After == "" && known && since >= 0 && all >= last.all && now.at.Sub(last.at) < recount {
			now.own, now.at = last.own+since, last.at
			break
		}
		now.own += len(page.Operations)
		if query.After, query.Size = page.Next, 1000; page.Next == "" {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted[account] = now
	return now.own, nil
}

func (s *Site) all(ctx context.Context) (n int, err error) {
	stats, err := s.ledger.Stats(ctx)
	for _, kind := range stats.Kinds {
		if kind.Kind == menuexport.KindName {
			for _, count := range kind.States {
				n += int(count)
			}
		}
	}
	return n, err
}

func getJSON(ctx context.Context, url string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(to)
}
