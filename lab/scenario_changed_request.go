package lab

import (
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/service"
)

var changedRequest = Scenario{
	Name:   "changed-request",
	Title:  "the same ID comes again with another amount",
	Unsafe: "the server does not compare, and answers with what it did before",
	Expect: once("409 fingerprint-mismatch /amount"),
	run: func(s *stage) (c Counts, err error) {
		shop, err := s.shop(service.Idempotent, serviceSetup{}, nil)
		if err != nil {
			return c, err
		}
		if s.unsafe {
			if _, err := shop.replaceByNaive(0); err != nil {
				return c, err
			}
		} else if _, err := s.work(shop.kind); err != nil {
			return c, err
		}
		client, network, err := s.proxy(shop.caller)
		if err != nil {
			return c, err
		}
		id := semel.NewID()
		first, err := client.ask(s.ctx, shop.kind.Name, id, order("tea", 1))
		if err != nil {
			return c, err
		}
		seen, err := client.ask(s.ctx, shop.kind.Name, id, order("tea", 2))
		if err != nil {
			return c, err
		}
		after, err := client.await(s.ctx, shop.kind.Name, id)
		if err != nil {
			return c, err
		}
		if after.Revision != first.Operation.Revision {
			c.complain("the recorded operation has changed")
		}
		c.Visible, c.Sends = seen.String(), sends("PUT", network)
		return c, shop.tally(&c)
	},
}
