package bench

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// Where the processor's time goes, one call at a time: here, and in the database.
func BenchmarkCalls(b *testing.B) {
	s := newShop(b)
	bare := s.bare()
	transactional, plainly, reading, plain := s.transactional(s.begin), s.transactional(s.beginPlainly), s.guarded(bare, -1), s.plain(bare)
	known := semel.NewID()
	post(transactional, known)
	post(plain, known)
	fresh := func(string) string { return semel.NewID() }
	same := func(known string) string { return known }
	for _, c := range []struct {
		name string
		key  func(string) string
		contender
	}{
		{"first/bare", fresh, contender{send: func(key string) (int, string) { return post(bare, key) }}},
		{"first/semel", fresh, contender{send: func(key string) (int, string) { return post(transactional, key) }}},
		{"first/semel, pool.Begin", fresh, contender{send: func(key string) (int, string) { return post(plainly, key) }}},
		{"first/by hand", fresh, contender{send: func(key string) (int, string) { return post(plain, key) }}},
		{"replay/semel", same, contender{send: func(key string) (int, string) { return post(transactional, key) }}},
		{"replay/semel, no memory", same, contender{send: func(key string) (int, string) { return post(reading, key) }}},
		{"replay/by hand", same, contender{send: func(key string) (int, string) { return post(plain, key) }}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for range 10 {
				c.send(c.key(known)) // prepares
			}
			own, all := s.cpus()
			for b.Loop() {
				if status, body := c.send(c.key(known)); status != 201 {
					b.Fatal(status, body)
				}
			}
			ownAfter, allAfter := s.cpus()
			per := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(b.N) }
			b.ReportMetric(per(ownAfter-own), "own-µs/op")
			b.ReportMetric(per(allAfter-all-(ownAfter-own)), "db-µs/op")
		})
	}
}
