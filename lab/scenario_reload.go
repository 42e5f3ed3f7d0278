package lab

import (
	"context"
	"net/http"
	"os"
	"path/filepath"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/service"
)

var reload = Scenario{
	Name:   "reload",
	Title:  "the page is reloaded while it waits, closed, and opened again",
	Unsafe: "the page keeps the ID in its memory only",
	Expect: once("succeeded"),
	run: func(s *stage) (c Counts, err error) {
		shop, err := s.shop(service.Idempotent, serviceSetup{}, nil)
		if err != nil {
			return c, err
		}
		if _, err := s.work(shop.kind); err != nil {
			return c, err
		}
		client, network, err := s.proxy(shop.caller)
		if err != nil {
			return c, err
		}
		// The service is slow with the first order, so the page is left while it waits.
		if err := shop.orders.rules("hold at=before count=1"); err != nil {
			return c, err
		}
		browser := storage{filepath.Join(s.dir, "local-storage"), s.unsafe}
		id, err := browser.id()
		if err != nil {
			return c, err
		}
		page, leave := context.WithCancel(s.ctx)
		left := make(chan struct{})
		go func() {
			client.ask(page, shop.kind.Name, id, order("tea", 1))
			close(left)
		}()
		err = shop.orders.call(http.MethodGet, "/faults/log?held=1", "", nil)
		leave()
		<-left
		if err != nil {
			return c, err
		}
		// The second page asks, and is closed too; the third one stays.
		if id, err = browser.id(); err != nil {
			return c, err
		}
		if _, err := client.put(s.ctx, shop.kind.Name, id, order("tea", 1), 0); err != nil {
			return c, err
		}
		if err := shop.orders.call(http.MethodPost, "/faults/release", "", nil); err != nil {
			return c, err
		}
		if id, err = browser.id(); err != nil {
			return c, err
		}
		seen, err := client.ask(s.ctx, shop.kind.Name, id, order("tea", 1))
		if err != nil {
			return c, err
		}
		c.Visible, c.Sends = seen.String(), sends("PUT", network)
		return c, shop.tally(&c)
	},
}

// storage is what a page finds when it is opened: a file that outlives it.
type storage struct {
	file    string
	forgets bool
}

// id returns the ID of the order that is under way, or begins one. It is on disk
// before anything is sent.
func (b storage) id() (string, error) {
	if text, err := os.ReadFile(b.file); err == nil && !b.forgets {
		return string(text), nil
	}
	id := semel.NewID()
	return id, os.WriteFile(b.file, []byte(id), 0o600)
}
