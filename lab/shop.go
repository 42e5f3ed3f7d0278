package lab

import (
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/internal/child"
	"github.com/semel-dev/semel/lab/service"
)

// A shop is what most scenarios need: an external service under one promise, a
// server, and, where asked for, a worker.
type shop struct {
	*caller
	stage  *stage
	orders *orders
	kind   kindSetup
}

// shop opens one, at a service that is set up so; change changes its kind before
// anything uses it, and may be nil.
func (s *stage) shop(p service.Promise, setup serviceSetup, change func(*kindSetup)) (*shop, error) {
	o, err := s.orders(setup)
	if err != nil {
		return nil, err
	}
	k := s.kind(o, p)
	if change != nil {
		change(&k)
	}
	c, err := s.serve(k)
	return &shop{c, s, o, k}, err
}

// order is what a user wants; the external service counts by its name.
func order(name string, amount int) string {
	return fmt.Sprintf(`{"order":%q,"amount":%d}`, name, amount)
}

// tally waits until every operation has ended or needs a person, and counts:
// operations on record, and effects outside.
func (s *shop) tally(counts *Counts) error {
	ops, err := s.list(s.stage.ctx)
	if err != nil {
		return err
	}
	for _, op := range ops {
		if over(&op) || op.Key.Account == "naive" {
			continue
		}
		if _, err := s.await(s.stage.ctx, op.Key.Kind, op.Key.ID); err != nil {
			return err
		}
	}
	counts.Operations = len(ops)
	books, err := s.orders.books()
	for _, b := range books {
		counts.Effects += b.Done
	}
	return err
}

// accepted asks for one operation, and returns its ID once it is on record.
func (s *shop) accepted(name string) (id string, err error) {
	id = semel.NewID()
	a, err := s.put(s.stage.ctx, s.kind.Name, id, order(name, 1), 0)
	if err == nil && a.Status != 201 {
		err = fmt.Errorf("not accepted: %s: %s", a, a.Detail)
	}
	return id, err
}

// replaceByNaive puts the naive server in the place of Semel's.
func (s *shop) replaceByNaive(keep time.Duration) (*child.Process, error) {
	p, url, err := s.stage.startServing("lab-naive", naiveSetup{URL: s.kind.URL, Keep: keep})
	s.caller = newCaller(url, s.token, nil)
	return p, err
}
