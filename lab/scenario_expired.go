package lab

import (
	"fmt"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/service"
)

var expired = Scenario{
	Name:   "expired",
	Title:  "the user comes back with an ID that is no longer remembered",
	Unsafe: "old rows are deleted, and nothing remembers that they were there",
	Expect: Expect{Operations: 0, Effects: 1, Most: 1, Visible: "410 operation-expired"},
	run: func(s *stage) (c Counts, err error) {
		const remembered = 6 * time.Second // the first answer has to be read before
		shop, err := s.shop(service.Opaque, serviceSetup{}, func(k *kindSetup) {
			unhurried(k)
			k.Retention = remembered
		})
		if err != nil {
			return c, err
		}
		if s.unsafe {
			if _, err := shop.replaceByNaive(remembered); err != nil {
				return c, err
			}
		} else {
			// This node executes and forgets; every node may.
			if _, err := s.start("lab-node", s.node("worker", nodeSetup{Work: true, Purge: 50 * time.Millisecond, Kinds: []kindSetup{shop.kind}})); err != nil {
				return c, err
			}
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
		if first.String() != "succeeded" {
			return c, fmt.Errorf("the first time it is %s", first)
		}
		for { // there is no signal for being forgotten
			a, err := client.do(s.ctx, http.MethodGet, operationPath(shop.kind.Name, id), "")
			if err != nil {
				return c, err
			}
			if a.Status != http.StatusOK {
				break
			}
			if err := pause(s.ctx, 20*time.Millisecond); err != nil {
				return c, err
			}
		}
		seen, err := client.ask(s.ctx, shop.kind.Name, id, order("tea", 1))
		if err != nil {
			return c, err
		}
		c.Visible, c.Sends = seen.String(), sends("PUT", network)
		return c, shop.tally(&c)
	},
}
