package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

// A contender answers one request with a key.
type contender struct {
	name string
	send func(key string) (status int, body string)
}

// The costs, in rounds that take turns, so that whatever else the machine does
// meets all of them; the median of the rounds counts.
func TestRatios(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	s := newShop(t)
	s.lease = time.Minute // a machine that is busy may stand still for more than a second
	bare, transactional, plain, fast := s.bare(), s.transactional(s.begin), s.plain(s.bare()), s.fiberInsert()
	plainly := s.transactional(s.beginPlainly)
	guarded, reading := s.guarded(bare, 0), s.guarded(bare, -1)
	all := []contender{
		{"bare handler", func(key string) (int, string) { return post(bare, key) }},
		{"semel, transactional", func(key string) (int, string) { return post(transactional, key) }},
		{"semel, pool.Begin", func(key string) (int, string) { return post(plainly, key) }},
		{"semel, guarded", func(key string) (int, string) { return post(guarded, key) }},
		{"semel, guarded, no memory", func(key string) (int, string) { return post(reading, key) }},
		{"by hand", func(key string) (int, string) { return post(plain, key) }},
		{"fiber and PostgreSQL", func(key string) (int, string) { return postFast(fast, key) }},
	}
	for _, callers := range []int{1, 16} {
		first := s.rates(t, all, callers, func(contender) string { return semel.NewID() })
		report(t, fmt.Sprintf("first calls, %d at a time", callers), all, first)
		if ratio := first[0].rate / first[1].rate; callers == 1 && ratio > 2 {
			t.Errorf("a first call in a transaction costs %.2f × the bare handler's; the budget is 2", ratio)
		}
		keys := map[string][]string{}
		for _, c := range all[1:] {
			for range 1000 {
				key := semel.NewID()
				keys[c.name] = append(keys[c.name], key)
				c.send(key)
			}
		}
		var turn atomic.Int64
		replays := s.rates(t, all[1:], callers, func(c contender) string { return keys[c.name][turn.Add(1)%1000] })
		report(t, fmt.Sprintf("replays, %d at a time", callers), all[1:], replays)
		for i, peer := range all[len(all)-2:] {
			if cost := replays[len(replays)-2+i].cpu; cost < 2*replays[0].cpu {
				t.Errorf("a replay takes %v, and %s %v: less than twice as much", replays[0].cpu, peer.name, cost)
			}
		}
	}
}

// A cost is what one contender took.
type cost struct {
	rate float64       // calls per second
	cpu  time.Duration // of this process and the database, for one call
}

// rates measures in rounds and returns the medians.
func (s *shop) rates(t *testing.T, all []contender, callers int, key func(contender) string) []cost {
	const rounds, length = 7, 300 * time.Millisecond
	rates, cpus := make([][]float64, len(all)), make([][]time.Duration, len(all))
	for round := range rounds + 1 {
		for i, c := range all {
			var calls atomic.Int64
			spent, began := s.cpu(), time.Now()
			var wait sync.WaitGroup
			for range callers {
				wait.Go(func() {
					for time.Since(began) < length {
						if status, body := c.send(key(c)); status != 201 {
							t.Errorf("%s: %d %s", c.name, status, body)
							return
						}
						calls.Add(1)
					}
				})
			}
			wait.Wait()
			if round > 0 { // the first one warms up
				rates[i] = append(rates[i], float64(calls.Load())/time.Since(began).Seconds())
				cpus[i] = append(cpus[i], (s.cpu()-spent)/time.Duration(max(1, calls.Load())))
			}
		}
	}
	medians := make([]cost, len(all))
	for i := range all {
		slices.Sort(rates[i])
		slices.Sort(cpus[i])
		medians[i] = cost{rates[i][rounds/2], cpus[i][rounds/2]}
	}
	return medians
}

func report(t *testing.T, what string, all []contender, costs []cost) {
	text := what + ":\n"
	for i, c := range all {
		text += fmt.Sprintf("  %-26s %8.0f/s   %5.2f × the time of %s   %6d µs of CPU, %5.2f ×\n", c.name, costs[i].rate, costs[0].rate/costs[i].rate, all[0].name,
			costs[i].cpu.Microseconds(), float64(costs[i].cpu)/float64(costs[0].cpu))
	}
	t.Log(text)
}

func (s *shop) cpu() time.Duration {
	_, all := s.cpus()
	return all
}

// cpus are the processor times that this process, and it together with the
// database's, have used. Where the system does not tell that of other processes, they
// are equal.
func (s *shop) cpus() (own, all time.Duration) {
	var self syscall.Rusage
	must(s, syscall.Getrusage(syscall.RUSAGE_SELF, &self))
	own = time.Duration(self.Utime.Nano() + self.Stime.Nano())
	all = own
	rows, err := s.pool.Query(context.Background(), "SELECT pid FROM pg_stat_activity")
	must(s, err)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	must(s, err)
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		if err == nil {
			ns, _, _ := strings.Cut(string(text), " ")
			n, _ := strconv.ParseInt(ns, 10, 64)
			all += time.Duration(n)
		}
	}
	return own, all
}
