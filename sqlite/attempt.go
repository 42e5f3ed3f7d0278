package sqlite

import (
	"context"

	"github.com/semel-dev/semel"
)

// RecordAttempts implements [semel.Store].
func (s *Store) RecordAttempts(ctx context.Context, batch []semel.Attempt) error {
	if len(batch) == 0 {
		return nil
	}
	return plain("attempts", s.write(ctx, "attempts", func(ctx context.Context, r runner, now moment) error {
		for _, a := range batch {
			if err := s.recordAttempt(ctx, r, a, now); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (s *Store) recordAttempt(ctx context.Context, r runner, a semel.Attempt, now moment) error {
	var number int64
	known, err := r.row(ctx, `UPDATE semel_operation SET attempts = attempts + 1 WHERE `+isKey+` AND expired = 0 RETURNING attempts`,
		s.keyArgs(a.Key), &number)
	if !known || err != nil {
		return err
	}
	if err := s.addAttempt(ctx, r, a.Key, number, a.ID, now); err != nil {
		return err
	}
	_, err = r.exec(ctx, `DELETE FROM semel_attempt WHERE `+isKey+` AND number <= ?`, s.keyArgs(a.Key, number-semel.MaxAttempts)...)
	return err
}

func (s *Store) addAttempt(ctx context.Context, r runner, k semel.Key, number int64, id string, now moment) error {
	_, err := r.exec(ctx, `INSERT INTO semel_attempt (shard, account, kind, operation_id, number, attempt_id, at)
		VALUES (?, ?, ?, ?, ?, ?, ?)`, s.keyArgs(k, number, id, now.ms())...)
	return err
}
