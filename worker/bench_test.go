package worker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

// fill puts n accepted operations of an account into the store, in batches.
func (w *world) fill(account, kind string, n int) {
	w.t.Helper()
	for i := 0; i < n; i += 500 {
		var batch []semel.Insertion
		for j := i; j < min(i+500, n); j++ {
			batch = append(batch, semel.Insertion{Key: semel.Key{Account: account, Kind: kind, ID: fmt.Sprint(j)}, State: semel.Accepted,
				Owner: fmt.Sprint(account, j), AsSent: "x", Fingerprint: "x", Params: []byte(`{}`)})
		}
		if _, err := w.store.Insert(context.Background(), batch); err != nil {
			w.t.Fatal(err)
		}
	}
}

// BenchmarkExecutions is the cost of one execution of an effect of 1 ms, from
// claim to outcome, with many at a time.
func BenchmarkExecutions(b *testing.B) {
	for _, name := range []string{contract.Idempotent, contract.Opaque} {
		for _, concurrency := range []int{8, 64} {
			b.Run(fmt.Sprintf("%s/%d", name, concurrency), func(b *testing.B) {
				w := newWorld(b)
				w.fill("acme", "order", b.N)
				done := make(chan struct{}, b.N)
				c, err := contract.Preset(name)
				if err != nil {
					b.Fatal(err)
				}
				k := quick(c, effect.Func(func(context.Context, *effect.Call) effect.Result {
					time.Sleep(time.Millisecond)
					done <- struct{}{}
					return effect.Applied(1)
				}))
				k.Concurrency = concurrency
				b.ResetTimer()
				stop := w.start([]Kind{k}, nil)
				for range b.N {
					<-done
				}
				stop()
			})
		}
	}
}

// Fairness at full size: one account has queued 100,000 operations, another one
// then queues a single one, which is done within 2 s.
func BenchmarkOneBehindAHundredThousand(b *testing.B) {
	w := newWorld(b)
	w.fill("many", "order", 100_000)
	c, err := contract.Preset(contract.Idempotent)
	if err != nil {
		b.Fatal(err)
	}
	stop := w.start([]Kind{quick(c, effect.Func(func(context.Context, *effect.Call) effect.Result {
		time.Sleep(time.Millisecond)
		return effect.Applied(1)
	}))}, nil)
	defer stop()
	b.ResetTimer()
	for i := range b.N {
		began := time.Now()
		w.settled(w.accept("few", "order", fmt.Sprint("single-", i)))
		if took := time.Since(began); took > 2*time.Second {
			b.Errorf("it took %s", took)
		}
	}
}
