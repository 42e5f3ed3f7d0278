package lab

import (
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/lab/service"
)

var shortRetention = Scenario{
	Name:   "short-retention",
	Title:  "the service keeps keys for 2 s; the worker dies, and another one recovers after 3 s",
	Unsafe: "the worker believes that the service keeps keys for a day",
	Expect: once("needs_reconciliation"),
	run: func(s *stage) (c Counts, err error) {
		const keep = 2 * time.Second
		shop, err := s.shop(service.Idempotent, serviceSetup{Keep: keep}, func(k *kindSetup) {
			k.Timeout, k.Lease = time.Second, 1500*time.Millisecond
			if !s.unsafe {
				k.Contract.Retention.Minimum = contract.Duration(keep)
			}
		})
		if err != nil {
			return c, err
		}
		id, err := shop.accepted("tea")
		if err != nil {
			return c, err
		}
		victim, err := s.victim("", false, shop.kind)
		if err != nil {
			return c, err
		}
		if err := shop.orders.kill("tea", "done", victim, false); err != nil {
			return c, err
		}
		if err := victim.Release(); err != nil {
			return c, err
		}
		if err := victim.Killed(s.ctx); err != nil {
			return c, err
		}
		if err := pause(s.ctx, keep+time.Second); err != nil { // time itself is what this is about
			return c, err
		}
		if _, err := s.work(shop.kind); err != nil {
			return c, err
		}
		op, err := shop.await(s.ctx, shop.kind.Name, id)
		if err != nil {
			return c, err
		}
		n, err := shop.orders.count("tea")
		if err != nil {
			return c, err
		}
		if n.Arrived != 1 {
			c.complain("the service was called %d times", n.Arrived)
		}
		c.Visible, c.Sends = string(op.State), 1
		return c, shop.tally(&c)
	},
}
