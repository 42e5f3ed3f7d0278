package semel_test

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// A page token is read back as it was written, and nothing else is read at all.
func FuzzPageToken(f *testing.F) {
	f.Add(semel.PlaceOf(semel.Operation{Key: semel.Key{Account: "acme", Kind: "note", ID: "id"}, CreatedAt: time.UnixMilli(1)}).Token())
	f.Add("")
	f.Add("W10")
	f.Fuzz(func(t *testing.T, token string) {
		p, err := semel.Query{Size: 1, After: token}.Start()
		if err == nil && token != "" && p.Token() != token {
			t.Errorf("%q was read as %+v", token, p)
		}
	})
}
