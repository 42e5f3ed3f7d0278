package schema_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/schema"
	"github.com/semel-dev/semel/sqlite"
)

// A schema changes between two sends of one request, and nodes with the old and the
// new one run side by side: no retry conflicts with itself, none makes a second
// operation, and what really differs is still told.
func TestSchemaChangesBetweenTwoSends(t *testing.T) {
	ctx, file := t.Context(), filepath.Join(t.TempDir(), "semel.db")
	node := func(definition string) *semel.Ledger {
		canon, err := schema.Compile("menu", []byte(definition), nil)
		if err != nil {
			t.Fatal(err)
		}
		store, err := sqlite.Open(ctx, file, nil)
		if err != nil {
			t.Fatal(err)
		}
		ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "menu", Canon: canon}}, Recompile: func(kind string, definition []byte) (semel.Canon, error) { return schema.Recompile(kind, definition) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ledger.Close()
			store.Close()
		})
		return ledger
	}
	before := node(`{"type":"object","properties":{"title":{"type":"string"},"width":{"type":"integer","default":800}}}`)
	after := node(`{"type":"object","properties":{"title":{"type":"string"},"width":{"type":"integer","default":1024},"theme":{"type":"string","default":"dark"}}}`)
	strict := node(`{"type":"object","properties":{"title":{"type":"string","minLength":10},"width":{"type":"integer"}},"required":["width"]}`)

	for i, first := range []*semel.Ledger{before, after} {
		second := []*semel.Ledger{after, before}[i]
		width := []string{"800", "1024"}[i] // by the schema that it was accepted under
		key := semel.Key{Account: "acme", Kind: "menu", ID: semel.NewID()}
		accepted, err := first.Accept(ctx, semel.Request{Key: key, Params: []byte(`{"title":"本周菜单"}`)})
		if err != nil || accepted.Replayed {
			t.Fatalf("%+v, %v", accepted, err)
		}
		for name, ledger := range map[string]*semel.Ledger{"the same node": first, "a node with another schema": second, "a node whose schema refuses it": strict} {
			for _, params := range []string{`{"title":"本周菜单"}`, `{ "title" : "\u672c周菜单" }`, `{"width":` + width + `,"title":"本周菜单"}`} {
				again, err := ledger.Accept(ctx, semel.Request{Key: key, Params: []byte(params)})
				if err != nil || !again.Replayed || string(again.Operation.Params) != string(accepted.Operation.Params) {
					t.Errorf("%s, %s: %+v, %v", name, params, again, err)
				}
			}
			_, err := ledger.Accept(ctx, semel.Request{Key: key, Params: []byte(`{"title":"本周菜单","width":640}`)})
			if e := semel.AsError("", err); !errors.Is(err, semel.ErrMismatch) || !slices.Equal(e.Fields, []string{"/width"}) {
				t.Errorf("%s, another width: %v", name, err)
			}
		}
	}
	if _, err := strict.Accept(ctx, semel.Request{Key: semel.Key{Account: "acme", Kind: "menu", ID: semel.NewID()}, Params: []byte(`{"title":"本周菜单"}`)}); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("a new request is answered with %v", err)
	}
}
