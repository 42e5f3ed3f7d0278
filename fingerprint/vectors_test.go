package fingerprint_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/semel-dev/semel/fingerprint"
)

// vectors is the folder of the shared vectors.
func vectors(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", "vectors")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the vectors are missing: %v", err)
		}
		t.Skipf("the vectors are missing: %v", err)
	}
	return dir
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(entries), err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestVectorsPairs(t *testing.T) {
	var pairs []struct {
		ID, A, B, Expect string
		AHex             string `json:"a_hex"`
	}
	if err := json.Unmarshal(read(t, filepath.Join(vectors(t), "fingerprint.json")), &pairs); err != nil {
		t.Fatal(err)
	}
	for _, p := range pairs {
		t.Run(p.ID, func(t *testing.T) {
			a := []byte(p.A)
			if p.AHex != "" {
				a, _ = hex.DecodeString(p.AHex)
			}
			da, errA := fingerprint.Of("order", a)
			db, errB := fingerprint.Of("order", []byte(p.B))
			if errB != nil {
				t.Fatalf("b: %v", errB)
			}
			got := "different"
			switch {
			case errA != nil:
				got = "a refused"
			case da == db:
				got = "equal"
			}
			if got != p.Expect {
				t.Errorf("got %s (%v), want %s", got, errA, p.Expect)
			}
		})
	}
}

// The canonical form is RFC 8785's, byte for byte, but for these numbers, which
// a double cannot hold exactly.
func TestVectorsJCS(t *testing.T) {
	inexact := map[string][2]string{ // file: what RFC 8785 makes of the number, what it is
		"values.json": {"333333333.3333333,", "333333333.33333329,"},
	}
	dir := filepath.Join(vectors(t), "jcs")
	for _, name := range files(t, filepath.Join(dir, "input")) {
		t.Run(name, func(t *testing.T) {
			want := bytes.TrimSuffix(read(t, filepath.Join(dir, "output", name)), []byte("\n"))
			if n, ok := inexact[name]; ok {
				if bytes.Count(want, []byte(n[0])) != 1 {
					t.Fatalf("%s is not in the vector any more", n[0])
				}
				want = bytes.Replace(want, []byte(n[0]), []byte(n[1]), 1)
			}
			got, err := fingerprint.Canonical(read(t, filepath.Join(dir, "input", name)))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// What parsers read differently is refused, or stays different.
func TestVectorsTransform(t *testing.T) {
	refused := map[string]fingerprint.Fault{
		"object_same_key_different_values.json":    fingerprint.DuplicateName,
		"object_same_key_same_value.json":          fingerprint.DuplicateName,
		"object_same_key_unclear_values.json":      fingerprint.DuplicateName,
		"string_1_escaped_invalid_codepoint.json":  fingerprint.LoneSurrogate,
		"string_2_escaped_invalid_codepoints.json": fingerprint.LoneSurrogate,
		"string_3_escaped_invalid_codepoints.json": fingerprint.LoneSurrogate,
		"string_1_invalid_codepoint.json":          fingerprint.InvalidUTF8,
		"string_2_invalid_codepoints.json":         fingerprint.InvalidUTF8,
		"string_3_invalid_codepoints.json":         fingerprint.InvalidUTF8,
	}
	accepted := map[string]string{
		"number_-9223372036854775808.json": `[-9223372036854775808]`,
		"number_-9223372036854775809.json": `[-9223372036854775809]`,
		"number_1.0.json":                  `[1]`,
		"number_1.000000000000000005.json": `[1.000000000000000005]`,
		"number_1000000000000000.json":     `[1000000000000000]`,
		"number_10000000000000000999.json": `[10000000000000000999]`,
		"number_1e-999.json":               `[1e-999]`,
		"number_1e6.json":                  `[1000000]`,
		"number_9223372036854775807.json":  `[9223372036854775807]`,
		"number_9223372036854775808.json":  `[9223372036854775808]`,
		// One object in two orders. NFC and NFD are two names in it.
		"object_key_nfc_nfd.json":       "{\"e\u0301\":\"NFD\",\"\u00e9\":\"NFC\"}",
		"object_key_nfd_nfc.json":       "{\"e\u0301\":\"NFD\",\"\u00e9\":\"NFC\"}",
		"string_with_escaped_NULL.json": `["A\u0000B"]`,
	}
	dir := filepath.Join(vectors(t), "json-transform")
	seen := map[string]string{}
	for _, name := range files(t, dir) {
		doc := read(t, filepath.Join(dir, name))
		got, err := fingerprint.Canonical(doc)
		if fault, ok := refused[name]; ok {
			var bad *fingerprint.SyntaxError
			if !errors.As(err, &bad) || bad.Fault != fault {
				t.Errorf("%s: got %s, %v; want %s", name, got, err, fault)
			}
			continue
		}
		if want, ok := accepted[name]; !ok || err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", name, got, err, want)
			continue
		}
		digest, err := fingerprint.Of("order", doc)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[digest]; ok && !sameButForOrder(name, other) {
			t.Errorf("%s and %s have one fingerprint", name, other)
		}
		seen[digest] = name
	}
}

func sameButForOrder(a, b string) bool {
	names := []string{a, b}
	slices.Sort(names)
	return strings.Join(names, " ") == "object_key_nfc_nfd.json object_key_nfd_nfc.json"
}
