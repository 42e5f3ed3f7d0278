package sqlite

import (
	"context"

	"github.com/semel-dev/semel"
)

// Get implements [semel.Tx]: one read by primary key for each, and no write.
func (s *Store) Get(ctx context.Context, keys []semel.Key) (out []semel.Found, err error) {
	err = s.read(ctx, "get", func(ctx context.Context, r runner) error {
		out, err = s.getIn(ctx, r, keys)
		return err
	})
	return out, err
}

func (s *Store) getIn(ctx context.Context, r runner, keys []semel.Key) ([]semel.Found, error) {
	out := make([]semel.Found, len(keys))
	known := horizons{}
	for i, key := range keys {
		op, err := s.load(ctx, r, key)
		if err != nil {
			return nil, err
		}
		out[i].Operation = op
		if at, dated := semel.IDTime(key.ID); op == nil && dated {
			h, err := known.of(ctx, s, r, key)
			if err != nil {
				return nil, err
			}
			out[i].PastHorizon = at.UnixMilli() <= h
		}
	}
	return out, nil
}
