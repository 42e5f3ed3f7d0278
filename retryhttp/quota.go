package retryhttp

import "sync"

// A Quota bounds how much load repeats add to each host. Every host has a bucket
// of tokens. A repeat takes one; each request that the host answers puts a part
// of one back. So over any time the repeats sent to a host are at most Ratio of the
// requests that it answered, plus Reserve: while a host is down, that is Reserve
// in all.
//
// One Quota may serve many transports and loops, and is safe for concurrent
// use. Its zero value is ready; its fields must not be changed once it is used.
type Quota struct {
	// Ratio is what each answered request puts back. Defaults to 0.1.
	Ratio float64
	// Reserve is how many tokens a bucket holds at most, and at the beginning.
	// Defaults to 10.
	Reserve float64

	mu    sync.Mutex
	spent map[string]float64 // what is missing in each bucket that is not full
}

// maxBuckets bounds the memory of a Quota. Full buckets need none; where more
// hosts than this are in trouble at once, the others share one bucket.
const maxBuckets = 4096

// grain is less than what anybody would count: tenths don't add up to one.
const grain = 1e-9

// Take takes a token for a repeat to the host, and reports whether there was one.
func (q *Quota) Take(host string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.spent == nil {
		q.spent = map[string]float64{}
	}
	host = q.bucket(host)
	if q.spent[host]+1 > q.reserve()+grain {
		return false
	}
	q.spent[host]++
	return true
}

// Answered notes that the host has served a request, whatever the answer was.
func (q *Quota) Answered(host string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.spent) == 0 {
		return
	}
	host = q.bucket(host)
	spent, ok := q.spent[host]
	if !ok {
		return
	}
	if spent -= q.ratio(); spent <= grain {
		delete(q.spent, host)
		return
	}
	q.spent[host] = spent
}

// bucket returns the name of the host's bucket, which is "" for the shared one.
func (q *Quota) bucket(host string) string {
	own := len(q.spent)
	if _, shared := q.spent[""]; shared {
		own--
	}
	if _, ok := q.spent[host]; !ok && own >= maxBuckets {
		return ""
	}
	return host
}

func (q *Quota) ratio() float64 {
	if q.Ratio <= 0 {
		return 0.1
	}
	return q.Ratio
}

func (q *Quota) reserve() float64 {
	if q.Reserve <= 0 {
		return 10
	}
	return q.Reserve
}
