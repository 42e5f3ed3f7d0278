package lab

import (
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/lab/service"
)

// plain are the three promises that matter for recovery.
var plain = []service.Promise{service.Idempotent, service.Queryable, service.Opaque}

// workerDies: the external service is done, and the worker dies before the
// write-back. What is then possible depends on the service's promise.
func workerDies() []Scenario {
	var all []Scenario
	for _, p := range plain {
		s := Scenario{
			Name:   "worker-dies-" + string(p),
			Group:  "worker-dies",
			Title:  "the service is done; the worker dies before it hears of it (" + string(p) + " service)",
			Expect: once("succeeded"),
			run:    func(s *stage) (Counts, error) { return workerDiesUnder(s, p) },
		}
		if p != service.Idempotent {
			s.Unsafe = "the worker runs again when a lease ends, whatever the service promises"
		}
		if p == service.Opaque {
			s.Expect = once("needs_reconciliation")
		}
		all = append(all, s)
	}
	return all
}

// believed is what a worker believes that runs everything again: that every
// service knows keys.
func believed(p service.Promise) contract.Contract {
	c := promised(service.Idempotent)
	c.Name = "believed-" + string(p)
	return c
}

func workerDiesUnder(s *stage, p service.Promise) (c Counts, err error) {
	shop, err := s.shop(p, serviceSetup{}, func(k *kindSetup) {
		if s.unsafe {
			k.Contract = believed(p)
		}
	})
	if err != nil {
		return c, err
	}
	client, network, err := s.proxy(shop.caller)
	if err != nil {
		return c, err
	}
	id := semel.NewID()
	if _, err := client.put(s.ctx, shop.kind.Name, id, order("tea", 1), 0); err != nil {
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
	if _, err := s.work(shop.kind); err != nil {
		return c, err
	}
	seen, err := client.ask(s.ctx, shop.kind.Name, id, order("tea", 1))
	if err != nil {
		return c, err
	}
	c.Visible, c.Sends = seen.String(), sends("PUT", network)
	return c, shop.tally(&c)
}
