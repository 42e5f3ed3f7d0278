package semel

import (
	"context"
	"math"
	"sync"
	"time"
)

// Limits are caps per account. Each process counts by itself, in memory: no row
// is locked. A refusal is [CodeTooMany] with RetryAfter; nothing is recorded, and
// the same key may be sent again.
//
// A repeat is answered whatever was spent on new operations. So a request beyond
// that is looked for in the store before it is refused: one read, out of the
// allowance for look-ups, and no write. Where that is spent too, nothing is read. A
// repeat that this process has not met before (another node has, or it was before a
// restart) looks new until the insertion finds its record; it then gives back what
// it took, and counts as a look-up.
type Limits struct {
	// NewPerSecond is how many new operations an account may ask for each second,
	// in the long run. Defaults to no limit.
	NewPerSecond float64
	// Burst is how many it may ask for at once. Defaults to ten seconds' worth.
	Burst int
	// LooksPerSecond is the allowance for repeats and look-ups, with a burst of ten
	// seconds' worth. It is separate, so that a caller who asks too much can still
	// learn what became of its operations. Defaults to 20 × NewPerSecond.
	LooksPerSecond float64
	// Pending is how many operations of an account may wait at a time. The count
	// comes from the store in the background, at most once a second for an account,
	// plus what this process accepted since. Defaults to no limit.
	Pending int
}

// limiter keeps count for each account; nil limits nothing.
type limiter struct {
	limits   Limits
	store    Store
	now      func() time.Time
	mu       sync.Mutex
	accounts map[string]*accountLoad
}

// accountLoad is what is known of one account.
type accountLoad struct {
	fresh, looks bucket
	pending      int       // by the store's last count, plus what was accepted since
	generation   uint64    // how many counts have begun: what was accepted before belongs to one of them
	countedAt    time.Time // of the last count
	counting     bool
}

func newLimiter(limits *Limits, store Store) *limiter {
	if limits == nil || limits.NewPerSecond <= 0 && limits.Pending <= 0 {
		return nil
	}
	l := &limiter{limits: *limits, store: store, now: time.Now, accounts: map[string]*accountLoad{}}
	if l.limits.Burst <= 0 {
		l.limits.Burst = int(math.Ceil(10 * l.limits.NewPerSecond))
	}
	if l.limits.LooksPerSecond <= 0 {
		l.limits.LooksPerSecond = 20 * l.limits.NewPerSecond
	}
	return l
}

// admit takes one new operation, or says how long to wait. The generation is what
// giveBack wants to know.
func (l *limiter) admit(account string) (generation uint64, refused *Error) {
	if l == nil {
		return 0, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.load(account)
	if l.limits.Pending > 0 {
		if a.pending >= l.limits.Pending/2 {
			l.count(account, a)
		}
		if a.pending >= l.limits.Pending {
			return 0, tooMany(time.Second, "too many operations of this account are waiting")
		}
	}
	if wait := a.fresh.take(l.now(), l.limits.NewPerSecond, float64(l.limits.Burst)); wait > 0 {
		return 0, tooMany(wait, "this account asks for new operations too fast")
	}
	a.pending++
	return a.generation, nil
}

// giveBack takes a new operation back that admit let in and that was not made: it
// does not wait. If the store was asked since, it is out of pending already, or will
// be: the store's number never had it. If it was a repeat, it counts as one. That
// can't be refused any more, so what is beyond the allowance is let go.
func (l *limiter) giveBack(account string, generation uint64, repeat bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.load(account)
	if a.generation == generation {
		a.pending = max(0, a.pending-1)
	}
	if repeat {
		a.fresh.spent = max(0, a.fresh.spent-1)
		a.looks.take(l.now(), l.limits.LooksPerSecond, 10*l.limits.LooksPerSecond)
	}
}

// look takes one repeat or look-up, or says how long to wait.
func (l *limiter) look(account string) *Error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	rate := l.limits.LooksPerSecond
	if wait := l.load(account).looks.take(l.now(), rate, 10*rate); wait > 0 {
		return tooMany(wait, "this account looks up too fast")
	}
	return nil
}

func tooMany(wait time.Duration, msg string) *Error {
	return &Error{Code: CodeTooMany, RetryAfter: wait, Msg: msg, Hint: "wait, then send the same request with the same key"}
}

// load returns the account's counts. Called with mu held, it also drops, now and
// then, accounts of which nothing is left to count.
func (l *limiter) load(account string) *accountLoad {
	a := l.accounts[account]
	if a != nil {
		return a
	}
	now := l.now()
	if n := len(l.accounts); n > 0 && n%1024 == 0 {
		for name, old := range l.accounts {
			if !old.counting && now.Sub(old.fresh.at) > time.Minute && now.Sub(old.looks.at) > time.Minute {
				delete(l.accounts, name)
			}
		}
	}
	a = &accountLoad{}
	l.accounts[account] = a
	return a
}

// count asks the store, in the background, how many operations of the account
// wait. Called with mu held.
func (l *limiter) count(account string, a *accountLoad) {
	if a.counting || l.now().Sub(a.countedAt) < time.Second {
		return
	}
	a.counting = true
	a.generation++
	before := a.pending
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		counts, err := l.store.Pending(ctx, []string{account}, l.limits.Pending)
		l.mu.Lock()
		defer l.mu.Unlock()
		a.counting, a.countedAt = false, l.now()
		if err == nil {
			a.pending = counts[0] + a.pending - before
		}
	}()
}

// A bucket holds tokens; the zero bucket is full.
type bucket struct {
	spent float64
	at    time.Time
}

// take takes a token, or returns how long until there is one. A rate of zero
// limits nothing.
func (b *bucket) take(now time.Time, rate, burst float64) time.Duration {
	before := b.at
	b.at = now
	if rate <= 0 {
		return 0
	}
	b.spent = max(0, b.spent-now.Sub(before).Seconds()*rate)
	if b.spent+1 <= burst {
		b.spent++
		return 0
	}
	return time.Duration((b.spent + 1 - burst) / rate * float64(time.Second))
}
