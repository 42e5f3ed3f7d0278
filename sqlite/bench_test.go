package sqlite_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlite"
)

var ctx = context.Background()

func benchStore(b *testing.B) *sqlite.Store {
	store, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "semel.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	return store
}

func benchLedger(b *testing.B, store *sqlite.Store) *semel.Ledger {
	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: "note"}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ledger.Close() })
	return ledger
}

var params = []byte(`{"title":"本周菜单","days":[{"day":"周一","dishes":["番茄炒蛋","米饭"]}],"theme":"light","width":800}`)

func newRequest(n int64) semel.Request {
	return semel.Request{Key: semel.Key{Account: fmt.Sprintf("acc-%d", n%100), Kind: "note", ID: semel.NewID()}, Params: params}
}

// parallel runs the benchmark in that many goroutines.
func parallel(b *testing.B, goroutines int, f func(n int64) error) {
	var n atomic.Int64
	b.SetParallelism(goroutines) // times GOMAXPROCS, which the caller sets to 1 where it matters
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := f(n.Add(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
}

// The group commit of the ledger against one row for each transaction, both by 64
// goroutines (32 for each of two processors).
func BenchmarkAccept(b *testing.B) {
	b.Run("grouped", func(b *testing.B) {
		ledger := benchLedger(b, benchStore(b))
		parallel(b, 32, func(n int64) error { _, err := ledger.Accept(ctx, newRequest(n)); return err })
	})
	b.Run("single", func(b *testing.B) {
		store := benchStore(b)
		parallel(b, 32, func(n int64) error {
			r := newRequest(n)
			at, _ := semel.IDTime(r.Key.ID)
			_, err := store.Insert(ctx, []semel.Insertion{{Key: r.Key, State: semel.Accepted, AsSent: "v1:sha256:…", Fingerprint: "v1:sha256:…",
				Params: r.Params, IDTime: at, Owner: rand.Text()}})
			return err
		})
	})
	b.Run("alone", func(b *testing.B) {
		ledger := benchLedger(b, benchStore(b))
		for n := range b.N {
			if _, err := ledger.Accept(ctx, newRequest(int64(n))); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A repeat is one read.
func BenchmarkReplay(b *testing.B) {
	ledger := benchLedger(b, benchStore(b))
	var known []semel.Request
	for n := range 1000 {
		known = append(known, newRequest(int64(n)))
		if _, err := ledger.Accept(ctx, known[n]); err != nil {
			b.Fatal(err)
		}
	}
	parallel(b, 32, func(n int64) error {
		acc, err := ledger.Accept(ctx, known[n%1000])
		if err == nil && !acc.Replayed {
			err = fmt.Errorf("not replayed")
		}
		return err
	})
}

// The whole life: accept, claim, no effect, finish.
func BenchmarkLife(b *testing.B) {
	ledger := benchLedger(b, benchStore(b))
	req := semel.ClaimRequest{Worker: "w", Max: 100, Kinds: []semel.ClaimKind{{Kind: "note", Lease: time.Minute, BeginNow: true}}}
	finished := make(chan struct{}, 1024)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	slots := make(chan struct{}, 100)
	go func() {
		for ctx.Err() == nil {
			leases, err := ledger.Claim(ctx, req)
			if err != nil && ctx.Err() == nil {
				b.Error(err)
				return
			}
			for _, lease := range leases {
				slots <- struct{}{}
				go func() {
					defer func() { <-slots }()
					if _, err := ledger.Finish(ctx, lease, semel.Ending{Outcome: semel.Applied, Result: []byte(`{}`)}); err != nil {
						b.Error(err)
					}
					finished <- struct{}{}
				}()
			}
			if len(leases) == 0 {
				time.Sleep(time.Millisecond) // as a worker polls
			}
		}
	}()
	go parallelAccepts(b, ledger)
	b.ResetTimer()
	for range b.N {
		<-finished
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
}

// parallelAccepts accepts b.N operations, 64 at a time.
func parallelAccepts(b *testing.B, ledger *semel.Ledger) {
	var n atomic.Int64
	for range 64 {
		go func() {
			for {
				i := n.Add(1)
				if i > int64(b.N) {
					return
				}
				if _, err := ledger.Accept(ctx, newRequest(i)); err != nil {
					b.Error(err)
				}
			}
		}()
	}
}

// How long a claim of 50 takes with 1,000 and with 1,000,000 rows waiting.
func BenchmarkClaim(b *testing.B) {
	for _, c := range []struct {
		name    string
		account func(int) string
		due     time.Duration
	}{
		{"one account, all due", func(int) string { return "acme" }, 0},
		{"many accounts, all due", func(n int) string { return fmt.Sprintf("acc-%d", n) }, 0},
		{"one account, all in the future", func(int) string { return "acme" }, 24 * time.Hour},
		{"many accounts, all in the future", func(n int) string { return fmt.Sprintf("acc-%d", n) }, 24 * time.Hour},
	} {
		for _, waiting := range []int{1000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, waiting), func(b *testing.B) { benchClaim(b, waiting, c.account, c.due) })
		}
	}
}

func benchClaim(b *testing.B, waiting int, account func(int) string, due time.Duration) {
	now := time.Now()
	store, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "semel.db"), &sqlite.Options{Clock: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	insert := func(from, to int, due time.Duration) {
		for ; from < to; from += 5000 {
			var batch []semel.Insertion
			for n := from; n < min(to, from+5000); n++ {
				batch = append(batch, semel.Insertion{Key: semel.Key{Account: account(n), Kind: "note", ID: semel.NewID()},
					State: semel.Accepted, Params: params, Owner: "o", Due: due})
			}
			if _, err := store.Insert(ctx, batch); err != nil {
				b.Fatal(err)
			}
		}
	}
	insert(0, waiting, due)
	req := semel.ClaimRequest{Worker: "w", Max: 50, Kinds: []semel.ClaimKind{{Kind: "note", Lease: time.Hour, BeginNow: true}}}
	next := waiting
	defer func() { b.ReportMetric(residentMB(), "rss-MB") }()
	b.ResetTimer()
	for range b.N {
		if due > 0 { // what is claimed lies among what waits
			b.StopTimer()
			insert(next, next+50, 0)
			next += 50
			b.StartTimer()
		}
		got, err := store.Claim(ctx, req)
		if err != nil || len(got) != 50 {
			b.Fatal(len(got), err)
		}
		if due == 0 { // as many wait as before
			b.StopTimer()
			insert(next, next+50, 0)
			next += 50
			b.StartTimer()
		}
	}
}

// What is counted or listed over everything, with 300,000 operations there.
func BenchmarkOverview(b *testing.B) {
	store := benchStore(b)
	for from := 0; from < 300_000; from += 5000 {
		var batch []semel.Insertion
		for n := from; n < from+5000; n++ {
			batch = append(batch, semel.Insertion{Key: semel.Key{Account: fmt.Sprintf("acc-%d", n%1000), Kind: "note", ID: semel.NewID()},
				State: semel.Accepted, Params: params, Owner: "o"})
		}
		if _, err := store.Insert(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("stats", func() error { _, err := store.Stats(ctx); return err })
	run("list all", func() error { _, err := store.List(ctx, semel.Query{Size: 50}); return err })
	run("list account", func() error {
		_, err := store.List(ctx, semel.Query{Size: 50, Accounts: []string{"acc-7"}})
		return err
	})
	run("pending", func() error { _, err := store.Pending(ctx, []string{"acc-7"}, 1000); return err })
}

// residentMB is the memory of this process, most of which is SQLite's page cache;
// 0 where there is no /proc.
func residentMB() float64 {
	var size, resident int64
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fmt.Sscan(string(text), &size, &resident)
	return float64(resident*int64(os.Getpagesize())) / (1 << 20)
}
