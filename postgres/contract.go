package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

// contracts keeps the text of each contract once: there are few of them, and an
// execution for each operation. A row of an execution holds the ID.
type contracts struct {
	mu    sync.Mutex
	texts map[string]string // by ID: what is known to be saved
}

// contractID is a digest of the text.
func contractID(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

func (c *contracts) get(id string) (text string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, known = c.texts[id]
	return text, known || id == ""
}

func (c *contracts) put(id, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.texts == nil || len(c.texts) > 1000 {
		c.texts = map[string]string{}
	}
	c.texts[id] = text
}

// saveContract saves a contract that this process has not saved yet: before the
// first execution that is to point to it, and for good, whatever becomes of that.
func (s *Store) saveContract(ctx context.Context, text string) error {
	id := contractID(text)
	if _, known := s.contracts.get(id); known {
		return nil
	}
	err := s.write(ctx, "contract", s.opts.LockTimeout, func(b *batch) {
		b.queue(`INSERT INTO semel_contract (id, contract) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`, id, text)
	})
	if err == nil {
		s.contracts.put(id, text)
	}
	if isLost(err) { // nothing depends on it yet
		return refusal("contract", err)
	}
	return err
}

// saveBegun saves the contracts of operations that begin at once.
func (s *Store) saveBegun(ctx context.Context, members []semel.Insertion) error {
	for _, in := range members {
		if in.Begun != nil {
			if err := s.saveContract(ctx, in.Begun.Contract); err != nil {
				return err
			}
		}
	}
	return nil
}

// readContracts replaces the IDs in executions by the texts.
func (s *Store) readContracts(ctx context.Context, executions []semel.Execution) error {
	var unknown []string
	for _, x := range executions {
		if _, known := s.contracts.get(x.Contract); !known {
			unknown = append(unknown, x.Contract)
		}
	}
	if len(unknown) > 0 {
		err := s.read(ctx, "contract", func(b *batch) {
			b.each(`SELECT c.id, c.contract FROM unnest($1::text[]) AS u(id) JOIN semel_contract c ON c.id = u.id`, []any{unknown}, func(rows pgx.Rows) error {
				var id, text string
				err := rows.Scan(&id, &text)
				s.contracts.put(id, text)
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	for i := range executions {
		executions[i].Contract, _ = s.contracts.get(executions[i].Contract)
	}
	return nil
}
