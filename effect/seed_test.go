package effect

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

var testKey = semel.Key{Account: "acme", Kind: "order", ID: "0197f3a2-1c00-7000-8000-000000000001"}

// The derivation is published: this writes it down independently, with its value.
func TestSeedIsPublishedAndStable(t *testing.T) {
	text := "\x00\x00\x00\x00\x00\x00\x00\x0dsemel-seed-v1" +
		"\x00\x00\x00\x00\x00\x00\x00\x04acme" +
		"\x00\x00\x00\x00\x00\x00\x00\x05order" +
		"\x00\x00\x00\x00\x00\x00\x00\x240197f3a2-1c00-7000-8000-000000000001"
	sum := sha256.Sum256([]byte(text))
	want := hex.EncodeToString(sum[:])
	if got := Seed(testKey); got != want {
		t.Errorf("Seed = %s, want %s", got, want)
	}
	const pinned = "1029b43bba92d989c1646ed03a3da2eb306c8038d6d37e01d8ab56143d5509cd"
	if want != pinned {
		t.Errorf("the seed's value moved between releases: %s", want)
	}
}

func TestSeedsOfDifferentKeysDiffer(t *testing.T) {
	keys := []semel.Key{
		{Account: "a", Kind: "bc", ID: "d"}, {Account: "ab", Kind: "c", ID: "d"}, {Account: "a", Kind: "b", ID: "cd"},
		{Account: "a", Kind: "bc", ID: "D"}, {Account: "a", Kind: "b", ID: "c.d"},
	}
	seen := map[string]semel.Key{}
	for _, k := range keys {
		if other, ok := seen[Seed(k)]; ok {
			t.Errorf("%v and %v have one seed", k, other)
		}
		seen[Seed(k)] = k
	}
}

// The key is stable over calls and never shows the account, whatever the grammar.
func TestDownstreamKeyOfEveryPreset(t *testing.T) {
	for _, c := range contract.Presets() {
		name := c.Name
		first := &Call{Key: testKey, Contract: c, Token: 1}
		again := &Call{Key: testKey, Contract: c, Token: 7, Repeat: true}
		a, err := first.DownstreamKey()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, _ := again.DownstreamKey()
		if a != b || a == "" {
			t.Errorf("%s: keys of one operation: %q and %q", name, a, b)
		}
		if strings.Contains(a, "acme") || strings.Contains(a, "0197f3a2") {
			t.Errorf("%s: the key %q shows who or what", name, a)
		}
		other, _ := (&Call{Key: semel.Key{Account: "acme", Kind: "order", ID: "other"}, Contract: c}).DownstreamKey()
		if other == a {
			t.Errorf("%s: two operations have one key", name)
		}
	}
}
