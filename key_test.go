package semel_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

func ExampleNewID() {
	id := semel.NewID()
	made, ok := semel.IDTime(id)
	fmt.Println(len(id), ok, time.Since(made) < time.Minute)
	// Output: 36 true true
}

func TestKeyGrammar(t *testing.T) {
	long := strings.Repeat("a", 129)
	for _, tt := range []struct {
		account, kind, id string
		ok                bool
	}{
		{"acme", "menu-export", "0197-x_y~z.A", true},
		{strings.Repeat("a", 64), "k", strings.Repeat("Z", 128), true},
		{"", "k", "1", false},
		{"Acme", "k", "1", false},
		{"-acme", "k", "1", false},
		{"acme", "k/k", "1", false},
		{"acme", "k", "", false},
		{"acme", "k", ".", false},
		{"acme", "k", "..", false},
		{"acme", "k", "...", true},
		{"acme", "k", "a/b", false},
		{"acme", "k", "a b", false},
		{"acme", "k", "é", false},
		{"acme", "k", long, false},
		{strings.Repeat("a", 65), "k", "1", false},
	} {
		err := semel.Key{Account: tt.account, Kind: tt.kind, ID: tt.id}.Validate()
		if (err == nil) != tt.ok {
			t.Errorf("%q %q %q: %v", tt.account, tt.kind, tt.id, err)
		}
		if err != nil && !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("%v is not an invalid-operation", err)
		}
	}
}

func TestIDTime(t *testing.T) {
	// The example of RFC 9562, appendix A.6.
	got, ok := semel.IDTime("017F22E2-79B0-7CC3-98C4-DC0C0C07398F")
	if want := time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC); !ok || !got.Equal(want) {
		t.Errorf("got %v, %v; want %v", got, ok, want)
	}
	for _, id := range []string{"", "x", "017F22E2-79B0-4CC3-98C4-DC0C0C07398F", "017F22E2-79B0-7CC3-18C4-DC0C0C07398F",
		"017F22E279B07CC398C4DC0C0C07398F", "017F22E2-79B0-7CC3-98C4-DC0C0C07398G"} {
		if _, ok := semel.IDTime(id); ok {
			t.Errorf("%q has a time", id)
		}
	}
}

func TestNewIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 10_000 {
		id := semel.NewID()
		if seen[id] || !semel.ValidID(id) {
			t.Fatalf("%q again, or not valid", id)
		}
		seen[id] = true
	}
}

// The bucket of a key is stored in databases: it must never change.
func TestShardIsPinned(t *testing.T) {
	for _, tt := range []struct {
		sharding semel.Sharding
		key      semel.Key
		want     int
	}{
		{semel.ShardByAccount, semel.Key{Account: "acme", Kind: "order", ID: "1"}, semel.ShardByAccount.Shard(semel.Key{Account: "acme"})},
		{semel.ShardByAccount, semel.Key{Account: "acme"}, 12},
		{semel.ShardByAccount, semel.Key{Account: "demo"}, 1},
		{semel.ShardByKey, semel.Key{Account: "acme", Kind: "order", ID: "1"}, 6},
		{semel.ShardByKey, semel.Key{Account: "acme", Kind: "order", ID: "2"}, 15},
	} {
		if got := tt.sharding.Shard(tt.key); got != tt.want {
			t.Errorf("%s %v: shard %d, want %d", tt.sharding, tt.key, got, tt.want)
		}
	}
	var buckets [semel.Shards]int
	for i := range 16_000 {
		buckets[semel.ShardByAccount.Shard(semel.Key{Account: fmt.Sprint("account-", i)})]++
	}
	for i, n := range buckets {
		if n < 800 || n > 1200 {
			t.Errorf("bucket %d holds %d of 16000", i, n)
		}
	}
}
