package semel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// now is how many batches are on their way.
func (g *group[Q, A]) now() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

func keyFromInt(i int) Key { return Key{Account: "a", Kind: "k", ID: fmt.Sprintf("%04d", i)} }

func TestGroupSharesOneBatchWhileAnotherIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		release := make(chan struct{})
		g := newGroup(10, 1, func(_ context.Context, batch []int) ([]int, error) {
			sizes = append(sizes, len(batch))
			<-release
			return batch, nil
		}, keyFromInt)
		var wg sync.WaitGroup
		ask := func(i int) {
			wg.Go(func() {
				if got, err := g.do(t.Context(), i); err != nil || got != i {
					t.Errorf("%d: got %d, %v", i, got, err)
				}
			})
		}
		ask(99)
		synctest.Wait() // the lone call is on its way at once
		if len(sizes) != 1 {
			t.Fatalf("a lone call waits: %v", sizes)
		}
		for i := range 25 {
			ask(i)
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if fmt.Sprint(sizes) != "[1 10 10 5]" {
			t.Errorf("batches of %v", sizes)
		}
	})
}

func TestGroupSendsFurtherBatchesWhereTheStoreIsWide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sizes []int
		release := make(chan struct{})
		g := newGroup(40, 2, func(_ context.Context, batch []int) ([]int, error) {
			mu.Lock()
			sizes = append(sizes, len(batch))
			mu.Unlock()
			<-release
			return batch, nil
		}, keyFromInt)
		var wg sync.WaitGroup
		ask := func(n int) {
			for i := range n {
				wg.Go(func() {
					if got, err := g.do(t.Context(), i); err != nil || got != i {
						t.Errorf("%d: got %d, %v", i, got, err)
					}
				})
			}
			synctest.Wait()
		}
		ask(1)
		ask(worthwhile - 1)
		if fmt.Sprint(sizes) != "[1]" {
			t.Fatalf("batches of %v: a second one set out for a few calls", sizes)
		}
		ask(1)
		if fmt.Sprint(sizes) != "[1 16]" {
			t.Fatalf("batches of %v", sizes)
		}
		ask(50)
		if len(sizes) != 2 {
			t.Fatalf("batches of %v: more at a time than the store wants", sizes)
		}
		close(release)
		wg.Wait()
		synctest.Wait()
		if n := g.now(); n != 0 {
			t.Errorf("%d loops go on", n)
		}
	})
}

// A light group costs a lone caller nothing, and those who come meanwhile share.
func TestLightGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		release := make(chan struct{})
		g := newGroup(40, 1, func(ctx context.Context, batch []int) ([]int, error) {
			sizes = append(sizes, len(batch))
			select {
			case <-release:
				return batch, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}, keyFromInt)
		g.light = true
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := g.do(ctx, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("the lone caller left, and got %v", err)
			}
		})
		synctest.Wait()
		for i := range 5 {
			wg.Go(func() {
				if got, err := g.do(t.Context(), i); err != nil || got != i {
					t.Errorf("%d: got %d, %v", i, got, err)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(release)
		wg.Wait()
		if fmt.Sprint(sizes) != "[1 5]" {
			t.Errorf("batches of %v", sizes)
		}
		synctest.Wait()
		if got, err := g.do(t.Context(), 7); err != nil || got != 7 || g.now() != 0 {
			t.Errorf("afterwards: %d, %v, %d running", got, err, g.now())
		}
	})
}

func TestGroupSortsByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var second []int
		g := newGroup(10, 1, func(_ context.Context, batch []int) ([]int, error) {
			<-release
			second = batch
			return batch, nil
		}, keyFromInt)
		var wg sync.WaitGroup
		for _, i := range []int{0, 3, 1, 2} {
			wg.Go(func() { g.do(t.Context(), i) })
			synctest.Wait()
		}
		close(release)
		wg.Wait()
		if fmt.Sprint(second) != "[1 2 3]" {
			t.Errorf("order %v", second)
		}
	})
}

func TestACancelledCallerDoesNotCancelTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var wrote []int
		g := newGroup(10, 1, func(ctx context.Context, batch []int) ([]int, error) {
			<-release
			if ctx.Err() != nil {
				t.Error("the batch was cancelled with its first caller")
			}
			wrote = append(wrote, batch...)
			return batch, nil
		}, keyFromInt)
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 3)
		go func() { _, err := g.do(ctx, 1); results <- err }()
		synctest.Wait()
		go func() { _, err := g.do(ctx, 2); results <- err }() // waits for the next batch
		synctest.Wait()
		cancel()
		recorded := map[Recorded]int{}
		for range 2 {
			var e *Error
			if err := <-results; !errors.As(err, &e) || !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			recorded[e.WasRecorded()]++
		}
		if recorded[RecordedNo] != 1 || recorded[RecordedUnknown] != 1 {
			t.Errorf("recorded: %v", recorded)
		}
		close(release)
		synctest.Wait()
		if fmt.Sprint(wrote) != "[1]" {
			t.Errorf("wrote %v: a withdrawn call was written, or a sent one was not", wrote)
		}
	})
}
