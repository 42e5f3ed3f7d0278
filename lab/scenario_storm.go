package lab

import (
	"fmt"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/lab/history"
	"github.com/semel-dev/semel/lab/service"
)

// ways are the ways in which the service fails, each as likely as the others. A
// request that the service gets late is one whose caller has given up.
var ways = []string{
	"cut-before",                 // reset, and nothing was done
	"cut-before",                 //
	"lose-answer",                // done, and the answer is lost
	"lose-answer",                //
	"cut-after",                  // done, and the answer breaks off
	"status code=500",            // done, and then an error
	"status code=502",            // done, and somebody on the way says so
	"status-before code=503",     // nothing was done
	"status-before code=422",     // a mismatch, where there is none
	"delay for=20ms",             // slow
	"delay for=3s at=before",     // timeout; it is done when nobody listens any more
	"delay for=3s at=after",      // timeout; it was done in time
	"status code=504 method=GET", // look-ups fail, too
}

var storm = Scenario{
	Name:   "storm",
	Title:  "a service that fails 30 % of the calls in every way",
	Unsafe: "the worker runs everything again that has not succeeded, whatever the service promises",
	Expect: Expect{Operations: 1000, Effects: 1, Most: 1000, Visible: "every record is true"},
	run: func(s *stage) (Counts, error) {
		n := 1000
		if s.full {
			n = 10_000
		}
		return storms(s, n)
	},
}

func storms(s *stage, n int) (c Counts, err error) {
	o, err := s.orders(serviceSetup{StoreErrors: 0.05, Seed: 7})
	if err != nil {
		return c, err
	}
	if err := o.rules(chances(ways, 0.3, 7)...); err != nil {
		return c, err
	}
	promises := []service.Promise{service.Idempotent, service.Queryable, service.Opaque, service.Stored}
	var kinds []kindSetup
	expected := map[string]history.Promise{}
	for _, p := range promises {
		k := s.kind(o, p)
		k.Concurrency = 16
		if p == service.Queryable {
			k.Contract.LookUp.AbsentAfter = contract.Duration(patient)
		}
		expected[k.Name] = history.Promise{Unknown: p != service.Queryable}
		if s.unsafe {
			k.Contract = believed(p)
		}
		kinds = append(kinds, k)
	}
	client, err := s.serve(kinds...)
	if err != nil {
		return c, err
	}
	for range 2 {
		if _, err := s.work(kinds...); err != nil {
			return c, err
		}
	}

	rec := &history.Recorder{}
	var keys []semel.Key
	for i := range n {
		keys = append(keys, semel.Key{Account: s.account, Kind: kinds[i%len(kinds)].Name, ID: semel.NewID()})
	}
	err = inParallel(n, 16, func(i int) error {
		rec.Add(history.Event{What: history.Sent, Verb: "PUT", Key: keys[i], Attempt: keys[i].ID})
		a, err := client.put(s.ctx, keys[i].Kind, keys[i].ID, order(keys[i].ID, 1), 0)
		if err == nil && a.Status != 201 {
			err = fmt.Errorf("not accepted: %s: %s", a, a.Detail)
		}
		return err
	})
	if err != nil {
		return c, err
	}
	if err := client.drained(s.ctx, kinds); err != nil {
		return c, err
	}
	if err := o.quiet(); err != nil {
		return c, err
	}
	return verdict(s, o, client, rec, keys, expected)
}

// verdict judges what a crowd of operations has come to.
func verdict(s *stage, o *orders, client *caller, rec *history.Recorder, keys []semel.Key, expected map[string]history.Promise) (c Counts, err error) {
	books, err := o.books()
	if err != nil {
		return c, err
	}
	if err := finals(s.ctx, client, rec, keys, books); err != nil {
		return c, err
	}
	h := rec.History(expected)
	broken := history.Check(h)
	count := states(h)
	for _, e := range h.Events {
		switch {
		case e.What == history.Effect:
			c.Effects++
		case e.What == history.Sent && e.Verb == "PUT":
			c.Sends++
		case e.What == history.Final && e.Operation != nil:
			c.Operations++
		}
	}
	c.Visible = "every record is true"
	if len(broken) > 0 {
		c.Visible = fmt.Sprintf("%d records are not true", len(broken))
		for _, v := range broken[:min(len(broken), 5)] {
			c.complain("%s", v)
		}
	}
	c.Notes = append(c.Notes, fmt.Sprint(count))
	least := count[semel.Succeeded]
	c.Expect = &Expect{Operations: len(keys), Effects: least, Most: least + count[semel.NeedsReconciliation], Visible: "every record is true"}
	return c, nil
}
