package retryhttp_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel/retryhttp"
)

// However many take and give at once, no host gets more than its reserve and its share.
func TestQuotaIsExactUnderConcurrency(t *testing.T) {
	q := &retryhttp.Quota{Ratio: 0.25, Reserve: 20}
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 100 {
				if q.Take("a") {
					taken.Add(1)
				}
				q.Answered("a")
			}
		})
	}
	wg.Wait()
	if n := taken.Load(); n < 1000 || n > 20+1250 {
		t.Errorf("%d of 5000 were given a token", n)
	}
}

// A quota does not grow with the number of hosts, and full buckets take no memory: the
// hosts beyond share one.
func TestQuotaIsBounded(t *testing.T) {
	q := &retryhttp.Quota{Reserve: 1}
	given := 0
	for i := range 10_000 {
		if q.Take(fmt.Sprint("host", i)) {
			given++
		}
	}
	if given != 4096+1 {
		t.Errorf("%d hosts had a bucket", given)
	}
	for range 10 {
		q.Answered("host1")
	}
	if !q.Take("host1") || q.Take("host1") {
		t.Error("the bucket was not filled again")
	}
}
