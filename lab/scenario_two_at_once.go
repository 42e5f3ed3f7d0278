package lab

import (
	"errors"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/lab/service"
)

var twoAtOnce = Scenario{
	Name:   "two-at-once",
	Title:  "two identical requests at the same moment, at two servers",
	Unsafe: "the server looks whether it knows the ID, calls, and inserts",
	Expect: once("succeeded"),
	run: func(s *stage) (c Counts, err error) {
		think := 100 * time.Millisecond
		if s.unsafe {
			think = 2 * time.Second // a busy machine lets the second request in as much later
		}
		shop, err := s.shop(service.Opaque, serviceSetup{Think: think}, unhurried)
		if err != nil {
			return c, err
		}
		second, err := s.serve(shop.kind)
		if err != nil {
			return c, err
		}
		if s.unsafe {
			if _, err := shop.replaceByNaive(0); err != nil {
				return c, err
			}
			second = shop.caller
		} else if _, err := s.work(shop.kind); err != nil {
			return c, err
		}
		seen, networks, err := atOnce(s, shop, second)
		if err != nil {
			return c, err
		}
		c.Visible, c.Sends = seen[0].String(), sends("PUT", networks...)
		if other := seen[1].String(); other != c.Visible {
			c.complain("one client sees %s, the other %s", c.Visible, other)
		}
		if seen[0].Replayed == seen[1].Replayed {
			c.complain("not exactly one of the two was the first")
		}
		return c, shop.tally(&c)
	},
}

// atOnce sends one request through two networks, which let go of it together.
func atOnce(s *stage, shop *shop, second *caller) (seen [2]answer, networks []*fault.Proxy, err error) {
	id := semel.NewID()
	var errs [2]error
	done := make(chan struct{}, 2)
	for i, server := range []*caller{shop.caller, second} {
		client, network, err := s.proxy(server, "hold at=before count=1 method=PUT")
		if err != nil {
			return seen, nil, err
		}
		networks = append(networks, network)
		go func() {
			seen[i], errs[i] = client.put(s.ctx, shop.kind.Name, id, order("tea", 1), 30*time.Second)
			done <- struct{}{}
		}()
	}
	for _, network := range networks {
		if err := network.WaitHeld(s.ctx, 1); err != nil {
			return seen, nil, err
		}
	}
	for _, network := range networks {
		network.Release()
	}
	<-done
	<-done
	return seen, networks, errors.Join(errs[:]...)
}
