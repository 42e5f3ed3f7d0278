package idempotency_test

import (
	"context"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotency"
	"pgregory.net/rapid"
)

func TestKindName(t *testing.T) {
	for pattern, want := range map[string]string{
		"POST /orders":                  "post.orders",
		"POST  /orders":                 "post.orders",
		"/orders":                       "any.orders",
		"POST /orders/{id}/refund":      "post.orders._.refund",
		"POST /orders/{orderID}/refund": "post.orders._.refund",
		"PATCH /files/{path...}":        "patch.files._rest",
		"POST /files/{$}":               "post.files._exact",
		"POST /files/":                  "post.files._any",
		"POST /":                        "post._any",
		"POST /Orders":                  "r.post-orders.qlkbs2yplmwqn5kyy6ibtl6dxt",
		"nightly-report":                "nightly-report",
	} {
		if got := idempotency.KindName(pattern); got != want {
			t.Errorf("%s is %s, want %s", pattern, got, want)
		}
	}
	seen := map[string]string{}
	for _, pattern := range []string{"POST /a/b", "POST /a.b", "POST /a-b", "POST /a_b", "POST /a/_b", "POST /a/_", "POST /a/{x}", "POST /a/{x...}", "POST /a/{$}",
		"POST /a/", "POST /a", "PUT /a", "/a", "ANY /a", "POST /A", "POST /a//b", "POST host/a", "POST /a/{id:[0-9]+}", "POST /a/_rest", "POST /a/_any", "POST /a/_exact",
		"POST /" + strings.Repeat("a", 80), "POST /" + strings.Repeat("a", 81), "POST /é"} {
		name := idempotency.KindName(pattern)
		if !semel.ValidName(name) {
			t.Errorf("%s: %q is no kind", pattern, name)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s are both %s", pattern, other, name)
		}
		seen[name] = pattern
	}
}

// Whatever a client calls its key, and a service its accounts: the image is in the
// grammar, the same each time, and no two meet.
func TestMappings(t *testing.T) {
	images := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9._~-]{1,130}`), rapid.Map(rapid.StringMatching(`[a-z]{1,3}`), idempotency.OperationID),
			rapid.Map(rapid.StringMatching(`[ -~]{1,3}`), idempotency.OperationID)).Draw(t, "key")
		id, name := idempotency.OperationID(key), idempotency.AccountName(key)
		if !semel.ValidID(id) || !semel.ValidName(name) {
			t.Fatalf("%q becomes %q and %q", key, id, name)
		}
		for _, image := range []string{"id " + id, "name " + name} {
			if other, taken := images[image]; taken && other != key {
				t.Fatalf("%q and %q are both %q", key, other, image)
			}
			images[image] = key
		}
	})
	uuid := semel.NewID()
	if idempotency.OperationID(uuid) != uuid {
		t.Error("a UUIDv7 loses its date")
	}
	image := idempotency.OperationID("not in the grammar")
	if idempotency.OperationID(image) == image {
		t.Error("somebody can choose the image of another key")
	}
}

// Nobody can create an operation of a route past the middleware, where nothing
// would run it.
func TestKindsAreOurs(t *testing.T) {
	w := newWorld(t, "sqlite")
	n := w.node(nil)
	_, err := n.ledger.Accept(context.Background(), semel.Request{Key: semel.Key{Account: "acme", Kind: "post.orders", ID: "x"}, Params: []byte(`{}`)})
	if semel.AsError("", err) == nil || semel.AsError("", err).Code != semel.CodeInvalid {
		t.Errorf("accepted: %v", err)
	}
}
