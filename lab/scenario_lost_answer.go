package lab

import (
	"errors"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/service"
)

var lostAnswer = Scenario{
	Name:   "lost-answer",
	Title:  "accepted, and the answer is lost; the client sends the same again",
	Unsafe: "the client makes a new ID for each attempt",
	Expect: once("succeeded"),
	run: func(s *stage) (c Counts, err error) {
		shop, err := s.shop(service.Idempotent, serviceSetup{}, nil)
		if err != nil {
			return c, err
		}
		if _, err := s.work(shop.kind); err != nil {
			return c, err
		}
		client, network, err := s.proxy(shop.caller, "lose-answer nth=1 method=PUT")
		if err != nil {
			return c, err
		}
		id := semel.NewID()
		if _, err := client.put(s.ctx, shop.kind.Name, id, order("tea", 1), 0); err == nil {
			return c, errors.New("the answer was not lost")
		}
		if s.unsafe {
			id = semel.NewID()
		}
		seen, err := client.ask(s.ctx, shop.kind.Name, id, order("tea", 1))
		if err != nil {
			return c, err
		}
		c.Visible, c.Sends = seen.String(), sends("PUT", network)
		return c, shop.tally(&c)
	},
}
