package httpapi

import (
	"errors"
	"net/http"

	"github.com/semel-dev/semel"
)

// put creates an operation once.
func (c *call) put() error {
	id, there, err := c.idempotencyKey()
	if err != nil {
		return err
	}
	if there && id != c.key.ID {
		return invalid("the path and the Idempotency-Key name different operations")
	}
	return c.accept()
}

// post is put for clients that name the operation by Idempotency-Key.
func (c *call) post() error {
	id, there, err := c.idempotencyKey()
	if err != nil {
		return err
	}
	if !there {
		e := invalid("the header Idempotency-Key is missing")
		e.Hint = "make an operation ID before the first send, and send the same one with every repeat"
		return e
	}
	if err := c.setKey(semel.Key{Account: c.who.Account, Kind: c.path["kind"], ID: id}); err != nil {
		return err
	}
	err = c.accept()
	if errors.Is(err, semel.ErrMismatch) {
		return withStatus(http.StatusUnprocessableEntity, err)
	}
	return err
}

func (c *call) accept() error {
	c.attempt = c.attemptID()
	until, err := c.acceptUntil()
	if err != nil {
		return err
	}
	params, err := c.body()
	if err != nil {
		return err
	}
	acc, err := c.s.ledger.Accept(c.r.Context(), semel.Request{Key: c.key, Params: params, AttemptID: c.attempt, AcceptUntil: until})
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if c.replayed = acc.Replayed; acc.Replayed {
		status = http.StatusOK
		c.w.Header().Set("Idempotency-Replayed", "true")
	}
	c.location(c.key)
	return c.operation(status, c.waiting(acc.Operation))
}

// get looks an operation up.
func (c *call) get() error {
	op, err := c.s.ledger.Get(c.r.Context(), c.key)
	if err != nil {
		return err
	}
	return c.found(c.waiting(op))
}

// found answers a look-up, or says that nothing has changed.
func (c *call) found(op semel.Operation) error {
	if !c.unchanged(op) {
		return c.operation(http.StatusOK, op)
	}
	c.state = op.State
	c.w.Header().Set("ETag", etag(op))
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusNotModified)
	return nil
}

// abandon makes sure that an operation never happens.
func (c *call) abandon() error {
	op, err := c.s.ledger.Abandon(c.r.Context(), c.key)
	if err != nil {
		return err
	}
	return c.operation(http.StatusOK, op)
}

// history tells what happened to an operation.
func (c *call) history() error {
	h, err := c.s.ledger.History(c.r.Context(), c.key)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, viewHistory(h))
}

// list tells the account's own operations.
func (c *call) list() error {
	q, _, err := c.listQuery()
	if err != nil {
		return err
	}
	q.Accounts = []string{c.who.Account}
	return c.page(q)
}

// A pageView is a part of a list.
type pageView struct {
	Operations []semel.Operation `json:"operations"`
	// NextPageToken is absent at the end.
	NextPageToken string `json:"next_page_token,omitempty"`
}

func (c *call) page(q semel.Query) error {
	page, err := c.s.ledger.List(c.r.Context(), q)
	if err != nil {
		return err
	}
	view := pageView{Operations: page.Operations, NextPageToken: page.Next}
	if view.Operations == nil {
		view.Operations = []semel.Operation{}
	}
	return c.json(http.StatusOK, view)
}
