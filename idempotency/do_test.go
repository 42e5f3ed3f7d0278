package idempotency_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
)

func jobKey() semel.Key { return semel.Key{Account: "acme", Kind: "nightly", ID: newKey()} }

func codeOf(err error) semel.Code {
	if err == nil {
		return ""
	}
	return semel.AsError("", err).Code
}

// A job runs once; how it ended is what every repeat is told.
func TestDo(t *testing.T) {
	broken := errors.New("broken pipe")
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(nil)
		ctx := context.Background()
		for _, c := range []struct {
			name        string
			fn          func(ctx context.Context) (json.RawMessage, error)
			first, then func(result json.RawMessage, err error) bool
			runs        int64
		}{
			{"a result", func(context.Context) (json.RawMessage, error) { return json.RawMessage(`{"n":1}`), nil },
				func(r json.RawMessage, err error) bool { return string(r) == `{"n":1}` && err == nil },
				func(r json.RawMessage, err error) bool { return string(r) == `{"n":1}` && err == nil }, 1},
			{"no result", func(context.Context) (json.RawMessage, error) { return nil, nil },
				func(r json.RawMessage, err error) bool { return err == nil },
				func(r json.RawMessage, err error) bool { return err == nil }, 1},
			{"no JSON", func(context.Context) (json.RawMessage, error) { return json.RawMessage("x"), nil },
				func(r json.RawMessage, err error) bool { return codeOf(err) == semel.CodeInvalid },
				func(r json.RawMessage, err error) bool { return err == nil && string(r) == "null" }, 1},
			{"an error", func(context.Context) (json.RawMessage, error) { return nil, broken },
				func(r json.RawMessage, err error) bool {
					return errors.Is(err, semel.ErrOutcomeUnknown) && errors.Is(err, broken)
				},
				func(r json.RawMessage, err error) bool { return errors.Is(err, semel.ErrOutcomeUnknown) }, 1},
			{"not applied", func(ctx context.Context) (json.RawMessage, error) { idempotency.NotApplied(ctx); return nil, broken },
				func(r json.RawMessage, err error) bool { return err == broken },
				func(r json.RawMessage, err error) bool { return err == broken }, 3},
			{"refused", func(context.Context) (json.RawMessage, error) {
				return nil, idempotency.Refused("no-funds", "there is no money")
			},
				func(r json.RawMessage, err error) bool {
					code, ok := idempotency.IsRefused(err)
					return ok && code == "no-funds"
				},
				func(r json.RawMessage, err error) bool {
					code, ok := idempotency.IsRefused(err)
					return ok && code == "no-funds"
				}, 1},
		} {
			t.Run(c.name, func(t *testing.T) {
				var runs atomic.Int64
				key := jobKey()
				for i := range 3 {
					result, err := idempotency.Do(ctx, n.ledger, key, []byte(`{"day":1}`), func(ctx context.Context) (json.RawMessage, error) {
						if k, ok := idempotency.KeyOf(ctx); !ok || k != key {
							t.Errorf("the key is %v", k)
						}
						runs.Add(1)
						return c.fn(ctx)
					})
					if check := map[bool]func(json.RawMessage, error) bool{true: c.first, false: c.then}[i == 0]; !check(result, err) {
						t.Errorf("call %d: %s, %v", i, result, err)
					}
				}
				if runs.Load() != c.runs {
					t.Errorf("%d runs", runs.Load())
				}
				_, err := idempotency.Do(ctx, n.ledger, key, []byte(`{"day":2}`), func(context.Context) (json.RawMessage, error) { t.Error("ran"); return nil, nil })
				if e := semel.AsError("", err); e.Code != semel.CodeMismatch || !slices.Equal(e.Fields, []string{"/day"}) {
					t.Errorf("another request: %v %v", err, e.Fields)
				}
			})
		}
	})
}

// Consumers that get one message at the same time, and one that panics.
func TestDoTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		nodes := []*node{w.node(nil), w.node(nil)}
		ctx, key := context.Background(), jobKey()
		var runs, busy atomic.Int64
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				_, err := idempotency.Do(ctx, nodes[i%2].ledger, key, nil, func(context.Context) (json.RawMessage, error) {
					runs.Add(1)
					return nil, nil
				})
				if errors.Is(err, semel.ErrInProgress) {
					busy.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if runs.Load() != 1 {
			t.Errorf("%d runs, %d told to come back", runs.Load(), busy.Load())
		}

		key = jobKey()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic got lost")
				}
			}()
			idempotency.Do(ctx, nodes[0].ledger, key, nil, func(context.Context) (json.RawMessage, error) { panic("x") })
		}()
		if _, err := idempotency.Do(ctx, nodes[1].ledger, key, nil, func(context.Context) (json.RawMessage, error) { t.Error("ran"); return nil, nil }); !errors.Is(err, semel.ErrOutcomeUnknown) {
			t.Errorf("after a panic: %v", err)
		}
		for _, c := range []struct {
			key     semel.Key
			request string
			code    semel.Code
		}{{semel.Key{Account: "acme", Kind: "unknown", ID: "x"}, `{}`, semel.CodeUnknownKind}, {semel.Key{Account: "acme", Kind: "nightly", ID: "a b"}, `{}`, semel.CodeInvalid},
			{jobKey(), `{"a":1,"a":2}`, semel.CodeInvalid}} {
			_, err := idempotency.Do(ctx, nodes[0].ledger, c.key, []byte(c.request), func(context.Context) (json.RawMessage, error) { t.Error("ran"); return nil, nil })
			if codeOf(err) != c.code {
				t.Errorf("%v %s: %v", c.key, c.request, err)
			}
		}
	})
}

// In a transaction of the consumer's, an error leaves nothing.
func TestDoIn(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n := w.node(nil)
		ctx, key := context.Background(), jobKey()
		var fail error = errors.New("not today")
		var runs int
		do := func() (json.RawMessage, error) {
			return idempotency.DoIn(ctx, n.ledger, n.begin, key, []byte(`{}`), func(ctx context.Context) (json.RawMessage, error) {
				runs++
				if err := insertOrder(ctx, key.ID); err != nil {
					return nil, err
				}
				return json.RawMessage(`"done"`), fail
			})
		}
		rows := func() int { return n.count("SELECT count(*) FROM shop_order WHERE id = '" + key.ID + "'") }
		if _, err := do(); err != fail || rows() != 0 {
			t.Errorf("%v, %d rows", err, rows())
		}
		fail = nil
		for range 3 {
			if r, err := do(); err != nil || string(r) != `"done"` || rows() != 1 {
				t.Errorf("%s %v, %d rows", r, err, rows())
			}
		}
		if runs != 2 {
			t.Errorf("%d runs", runs)
		}
	})
}
