package semel

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// countingStore counts waiting operations, and nothing else is asked of it here.
type countingStore struct {
	Store
	pending, asked int
	answer         chan struct{} // closed when it may answer; nil: at once
}

func (s *countingStore) Pending(context.Context, []string, int) ([]int, error) {
	s.asked++
	if s.answer != nil {
		<-s.answer
	}
	return []int{s.pending}, nil
}

func TestLimiterRefillsAndKeepsAccountsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(&Limits{NewPerSecond: 2, Burst: 3}, nil)
		for range 3 {
			if _, err := l.admit("a"); err != nil {
				t.Fatal(err)
			}
		}
		_, err := l.admit("a")
		if err == nil || err.RetryAfter != 500*time.Millisecond || err.Code != CodeTooMany {
			t.Fatalf("the fourth: %+v", err)
		}
		if _, err := l.admit("b"); err != nil {
			t.Errorf("another account is refused too: %v", err)
		}
		if err := l.look("a"); err != nil {
			t.Errorf("looking up is refused with asking: %v", err)
		}
		time.Sleep(err.RetryAfter) // the bubble's clock
		if _, err := l.admit("a"); err != nil {
			t.Errorf("after waiting as told: %v", err)
		}
	})
}

func TestLimiterCountsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{pending: 4}
		l := newLimiter(&Limits{Pending: 4}, store)
		for range 4 {
			if _, err := l.admit("a"); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			if _, err := l.admit("a"); err == nil {
				t.Fatal("a fifth was let in")
			}
		}
		synctest.Wait()
		if store.asked != 1 {
			t.Errorf("the store was asked %d times within a second", store.asked)
		}
		store.pending = 0 // all are settled
		time.Sleep(time.Second)
		l.admit("a") // refused, and counts anew
		synctest.Wait()
		if _, err := l.admit("a"); err != nil {
			t.Errorf("after all were settled: %v", err)
		}
	})
}

// What was let in and not made is given back: it does not wait. A repeat gives back
// the allowance of new ones too, and takes one of look-ups.
func TestLimiterTakesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(&Limits{NewPerSecond: 1, Burst: 2, LooksPerSecond: 0.2, Pending: 2}, &countingStore{})
		for range 10 {
			generation, err := l.admit("a")
			if err != nil {
				t.Fatal(err)
			}
			l.giveBack("a", generation, true)
		}
		if l.look("a") == nil {
			t.Error("ten repeats took nothing of an allowance of two look-ups")
		}
		for range 2 {
			generation, err := l.admit("a")
			if err != nil {
				t.Fatal(err)
			}
			l.giveBack("a", generation, false)
		}
		if _, err := l.admit("a"); err == nil {
			t.Error("what was refused otherwise took nothing of the allowance")
		}
		time.Sleep(time.Second)
		if _, err := l.admit("a"); err != nil {
			t.Errorf("nothing waits: %v", err)
		}
	})
}

// Repeats that are in flight while the store counts are not in its number, so they
// take nothing from it when they are given back.
func TestLimiterTakesBackOnce(t *testing.T) {
	for name, early := range map[string]bool{"while it counts": true, "after the count": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &countingStore{pending: 8, answer: make(chan struct{})}
				l := newLimiter(&Limits{Pending: 10}, store)
				admit := func(n int) (generations []uint64) {
					t.Helper()
					for range n {
						generation, err := l.admit("a")
						if err != nil {
							t.Fatal(err)
						}
						generations = append(generations, generation)
					}
					return generations
				}
				repeats := admit(5)
				repeats = append(repeats, admit(1)...) // from here on it counts; this one is not in what was before
				synctest.Wait()
				if store.asked != 1 {
					t.Fatalf("the store was asked %d times", store.asked)
				}
				if !early {
					close(store.answer)
					synctest.Wait()
				}
				for _, generation := range repeats {
					l.giveBack("a", generation, true)
				}
				if early {
					close(store.answer)
					synctest.Wait()
				}
				if pending := l.load("a").pending; pending != 8 {
					t.Errorf("%d seem to wait, and 8 do", pending)
				}
				admit(2)
				if _, err := l.admit("a"); err == nil {
					t.Error("one was let in beyond the cap")
				}
			})
		})
	}
}

// What waits is not forgotten while its account asks, however many accounts there are.
func TestLimiterRemembersWhoAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(&Limits{Pending: 2}, &countingStore{pending: 2})
		for range 2 {
			if _, err := l.admit("busy"); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3000 {
			l.admit(fmt.Sprint(i))
		}
		if _, err := l.admit("busy"); err == nil {
			t.Error("its waiting operations are forgotten")
		}
		synctest.Wait()
		time.Sleep(2 * time.Minute) // in the bubble
		for i := range 3000 {
			l.admit(fmt.Sprint("later", i))
		}
		synctest.Wait()
		if _, there := l.accounts["busy"]; there {
			t.Error("it is remembered for ever")
		}
	})
}

func TestNoLimits(t *testing.T) {
	if l := newLimiter(&Limits{}, nil); l != nil {
		t.Error("no limits make a limiter")
	}
	var l *limiter
	l.giveBack("a", 0, true)
	if _, err := l.admit("a"); err != nil || l.look("a") != nil {
		t.Error("a nil limiter refuses")
	}
}
