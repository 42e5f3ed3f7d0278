package sqlite

import (
	"context"
	"errors"

	"github.com/semel-dev/semel"
)

// Renew implements [semel.Store].
func (s *Store) Renew(ctx context.Context, batch []semel.Renewal) ([]bool, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	held := make([]bool, len(batch))
	err := s.write(ctx, "renew", func(ctx context.Context, r runner, now moment) (err error) {
		up := newUpkeep()
		for i, b := range batch {
			if held[i], err = s.renew(ctx, r, now, b, up); err != nil {
				return err
			}
		}
		return up.flush(ctx, r)
	})
	if err != nil {
		return nil, plain("renew", err)
	}
	return held, nil
}

func (s *Store) renew(ctx context.Context, r runner, now moment, b semel.Renewal, up *upkeep) (bool, error) {
	var state semel.State
	var token, due int64
	found, err := r.row(ctx, `SELECT state, token, due_at FROM semel_operation WHERE `+isKey, s.keyArgs(b.Key), &state, &token, &due)
	if err != nil || !found || state != semel.Processing || token != b.Token {
		return false, err
	}
	ends := now.until(b.Lease)
	if err := moveWork(ctx, r, b.Key, due, ends, up); err != nil {
		return false, err
	}
	if _, err := r.exec(ctx, `UPDATE semel_operation SET due_at = ?5 WHERE shard = ?1 AND account = ?2 AND kind = ?3
		AND operation_id = ?4`, s.keyArgs(b.Key, ends)...); err != nil {
		return false, err
	}
	if _, err := r.exec(ctx, `UPDATE semel_execution SET lease_ends_at = ?6 WHERE shard = ?1 AND account = ?2 AND kind = ?3
		AND operation_id = ?4 AND token = ?5`, s.keyArgs(b.Key, b.Token, ends)...); err != nil {
		return false, err
	}
	if p := b.Progress; p != nil {
		_, err = r.exec(ctx, `UPDATE semel_operation SET progress = ?5, progress_note = ?6 WHERE shard = ?1 AND account = ?2
			AND kind = ?3 AND operation_id = ?4`, s.keyArgs(b.Key, p.Fraction, p.Note)...)
	}
	return err == nil, err
}

// KeepLate implements [semel.Store].
func (s *Store) KeepLate(ctx context.Context, late semel.Late) error {
	return plain("keep late", s.write(ctx, "keep late", func(ctx context.Context, r runner, now moment) error {
		_, err := r.exec(ctx, `UPDATE semel_execution SET late_outcome = ?6, late_evidence = ?7, late_at = ?8
			WHERE shard = ?1 AND account = ?2 AND kind = ?3 AND operation_id = ?4 AND token = ?5 AND late_at = 0`,
			s.keyArgs(late.Key, late.Token, string(late.Outcome), blob(late.Evidence), now.ms())...)
		return err
	}))
}

// plain is for writes that may be repeated: after a commit with an error it is
// not known whether they are there, and nobody needs to know.
func plain(op string, err error) error {
	var lost *commitError
	if errors.As(err, &lost) {
		return unknown(op, lost)
	}
	return err
}
