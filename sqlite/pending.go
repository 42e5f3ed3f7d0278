package sqlite

import (
	"context"

	"github.com/semel-dev/semel"
)

// Pending implements [semel.Store]. It reads at most limit rows of an account.
func (s *Store) Pending(ctx context.Context, accounts []string, limit int) ([]int, error) {
	counts := make([]int, len(accounts))
	err := s.read(ctx, "pending", func(ctx context.Context, r runner) error {
		for i, account := range accounts {
			_, err := r.row(ctx, `SELECT count(*) FROM (SELECT 1 FROM semel_work WHERE shard = ? AND account = ? LIMIT ?)`,
				[]any{laneOf(semel.Key{Account: account}).shard, account, max(0, limit)}, &counts[i])
			if err != nil {
				return err
			}
		}
		return nil
	})
	return counts, err
}
