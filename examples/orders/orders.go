// Package orders places an order once, at a service that is not Semel.
//
// The flow of a client that may be trusted with a retry:
//
//  1. The order is written down, with its key, before it is sent ([Placer.Place]).
//  2. No answer came? It is not sent again at once. The service is asked for an order
//     with that key.
//  3. It has none? That proves nothing, since the first request may still be on its
//     way. The same bytes go out again under the same key; the service keeps that from
//     becoming a second order.
//  4. No answer to anything? Then the order is "unconfirmed": not failed, not placed
//     anew. It stays written down, and [Placer.Resume] takes it up later.
//
// What the service promises is data ([Contract]): where the key travels, how long it
// is kept, how an order is looked up. All decisions follow from it.
package orders

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/semel-dev/semel/client"
	"github.com/semel-dev/semel/contract"
)

// Contract is what [Service] promises about repeats: a service that runs a request
// once for each key, and lists the order of a key.
const Contract = `{
	"preset": "idempotent",
	"name": "orders",
	"look_up": {"by": "list_filter", "request": "GET /orders?key={key}"}
}`

// An Order is one order. The service gives it a number.
type Order struct {
	Number int    `json:"number,omitempty"`
	Dish   string `json:"dish"`
}

// A Placer places orders. It is safe for concurrent use.
type Placer struct {
	client *client.Client
	url    string
	http   *http.Client
}

// NewPlacer makes a placer for the service at baseURL that writes its orders into
// journal and sends through transport. Options are those of the client.
func NewPlacer(baseURL string, journal client.Journal, transport http.RoundTripper, options *client.Options) (*Placer, error) {
	promise, err := contract.Parse([]byte(Contract))
	if err != nil {
		return nil, err
	}
	p := &Placer{url: baseURL + "/orders", http: &http.Client{Transport: transport}}
	api := client.HTTP(promise, &client.HTTPOptions{Transport: transport})
	api.LookUp = p.lookUp
	p.client, err = client.New(api, journal, options)
	return p, err
}

// Place places the order of a cart. However often it is called for one cart, by
// whatever process, and whatever becomes of the answers: there is one order. Another
// order for the same cart is refused.
func (p *Placer) Place(ctx context.Context, cart string, order Order) (client.Outcome, error) {
	body, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	return p.client.Do(ctx, client.Intent{ID: "cart-" + cart, Kind: "order", Note: cart, URL: p.url, Body: body})
}

// Resume takes up what is unconfirmed, and tells what came of each cart.
func (p *Placer) Resume(ctx context.Context, tell func(cart string, outcome client.Outcome)) error {
	return p.client.Resume(ctx, func(e client.Entry, outcome client.Outcome) error {
		tell(e.Note, outcome)
		return nil
	})
}

// lookUp asks the service for the order of a key. Whatever is not clearly an answer
// can't tell.
func (p *Placer) lookUp(ctx context.Context, in client.Intent) client.Seen {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"?key="+url.QueryEscape(in.Key), nil)
	if err != nil {
		return client.Seen{}
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return client.Seen{}
	}
	defer resp.Body.Close()
	var list []json.RawMessage
	if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(&list) != nil {
		return client.Seen{}
	}
	if len(list) == 0 {
		return client.Seen{Found: contract.FoundNothing}
	}
	return client.Seen{Found: contract.FoundSucceeded, Result: list[0]}
}
