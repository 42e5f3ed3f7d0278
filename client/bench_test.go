package client

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/semel-dev/semel/contract"
)

// instant is an API that answers at once.
func instant() *API {
	a := HTTP(plain(), nil)
	a.Submit = func(context.Context, Intent) Sent {
		return Sent{Proof: contract.Proof{Proves: contract.Applied, Reach: contract.ReachKey}, Result: []byte(`{}`)}
	}
	return a
}

// What the journal costs: all of Do beside the request itself.
func BenchmarkDo(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) Journal{
		"memory": func(*testing.B) Journal { return NewMemoryJournal() },
		"file":   func(b *testing.B) Journal { return openJournal(b, filepath.Join(b.TempDir(), "intents.db")) },
	} {
		b.Run(name, func(b *testing.B) {
			c, err := New(instant(), open(b), nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Do(b.Context(), order()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/64 at once", func(b *testing.B) {
			c, err := New(instant(), open(b), nil)
			if err != nil {
				b.Fatal(err)
			}
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := c.Do(b.Context(), order()); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
