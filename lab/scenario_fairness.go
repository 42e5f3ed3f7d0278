package lab

import (
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/internal/node"
	"github.com/semel-dev/semel/lab/service"
)

// prompt is how soon the second account has to be served. A machine may stand still for
// a moment, so it may ask again; whoever has to wait for the queue waits each time.
const (
	prompt = 2 * time.Second
	asks   = 3
)

var fairness = Scenario{
	Name:   "fairness",
	Title:  "one account has queued very many orders, and another one asks for one",
	Expect: once("done within 2s"),
	run: func(s *stage) (c Counts, err error) {
		queued := 20_000
		if s.full {
			queued = 100_000
		}
		other := accountName{"other-" + s.tag, httpapi.NewToken(), false}
		s.tokens = append(s.tokens, other)
		shop, err := s.shop(service.Idempotent, serviceSetup{Think: time.Millisecond}, func(k *kindSetup) { k.Concurrency = 8 })
		if err != nil {
			return c, err
		}
		if err := s.queue(shop.kind, queued); err != nil {
			return c, err
		}
		if _, err := s.work(shop.kind); err != nil {
			return c, err
		}
		// The worker is busy with the first account.
		if _, err := shop.awaitDone(100); err != nil {
			return c, err
		}
		client := newCaller(shop.base, other.Token, nil)
		var seen answer
		took, asked := 2*prompt, 0
		for ; took > prompt && asked < asks; asked++ {
			begun := time.Now()
			if seen, err = client.ask(s.ctx, shop.kind.Name, semel.NewID(), order("the other's", 1)); err != nil {
				return c, err
			}
			took = time.Since(begun)
		}
		done, err := shop.awaitDone(0)
		if err != nil {
			return c, err
		}
		c.Visible, c.Sends = "done within "+prompt.String(), asked
		if asked > 1 {
			c.Expect = &Expect{Operations: asked, Effects: asked, Most: asked, Visible: c.Visible}
		}
		if seen.String() != "succeeded" || took > prompt {
			c.Visible = fmt.Sprintf("%s after %s", seen, took.Round(time.Millisecond))
		}
		ops, err := client.list(s.ctx)
		if err != nil {
			return c, err
		}
		n, err := shop.orders.count("the other's")
		c.Operations, c.Effects = len(ops), n.Done
		c.Notes = append(c.Notes, fmt.Sprintf("%d queued by the first account, %d of them done; the other's was done after %s",
			queued, done, took.Round(time.Millisecond)))
		if done >= queued {
			c.complain("the first account's orders were all done already: there was nothing to be fair about")
		}
		return c, err
	},
}

// queue puts many orders of the first account on record, straight into the ledger.
func (s *stage) queue(k kindSetup, n int) error {
	store, err := node.OpenStore(s.ctx, s.database, "")
	if err != nil {
		return err
	}
	defer store.Close()
	ledger, err := semel.New(s.ctx, store, &semel.Options{Kinds: []semel.Kind{k.kind()}})
	if err != nil {
		return err
	}
	defer ledger.Close()
	return inParallel(n, 1000, func(i int) error {
		id := semel.NewID()
		_, err := ledger.Accept(s.ctx, semel.Request{Key: semel.Key{Account: s.account, Kind: k.Name, ID: id}, Params: []byte(order(id, 1))})
		return err
	})
}

// awaitDone waits until so many orders were done, and returns how many were.
func (s *shop) awaitDone(n int) (int, error) {
	for {
		books, err := s.orders.books()
		if err != nil || len(books) >= n {
			return len(books), err
		}
		if err := pause(s.stage.ctx, 20*time.Millisecond); err != nil { // the service does not say
			return 0, err
		}
	}
}
