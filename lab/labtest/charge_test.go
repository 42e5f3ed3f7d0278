package labtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/lab/labtest"
)

// A complete example: an effect as a team has it, its test, and a fake of what it
// calls. Copy this file.

// NewCharge is the effect under test: it charges a customer at a bank.
func NewCharge(bank string) effect.Effect {
	return effect.Func(func(ctx context.Context, call *effect.Call) effect.Result {
		key, err := call.DownstreamKey() // the same at every try
		if err != nil {
			return effect.Refused("no-key", err.Error())
		}
		req, err := http.NewRequestWithContext(ctx, "POST", bank+"/charges", strings.NewReader(string(call.Request)))
		if err != nil {
			return effect.NotApplied("no-request", err.Error())
		}
		req.Header.Set("Idempotency-Key", key)
		resp, err := call.Client().Do(req)
		if err != nil {
			return effect.Unknown("no-answer", "the bank did not answer")
		}
		defer resp.Body.Close()
		var charge struct{ ID string }
		switch err := json.NewDecoder(resp.Body).Decode(&charge); {
		case resp.StatusCode == http.StatusCreated && err == nil:
			return effect.Applied(charge)
		case resp.StatusCode == http.StatusPaymentRequired:
			return effect.Refused("declined", "the card was declined")
		}
		return effect.Unknown("no-outcome", "the bank answered "+resp.Status)
	})
}

func TestCharge(t *testing.T) {
	bank := &fakeBank{charges: map[string]charge{}}
	labtest.TestEffect(t, labtest.Effect{
		New:      func(place labtest.Place) (effect.Effect, error) { return NewCharge(place.Service), nil },
		Contract: bankContract,
		Service:  bank,
		Params:   func(id string) string { return fmt.Sprintf(`{"customer":%q,"amount":5}`, id) },
		Count:    bank.count,
	})
}

// bankContract is what the bank promises in its documentation.
var bankContract = contract.Contract{
	Name:       "bank",
	Carrier:    contract.Carrier{Place: contract.Place{In: contract.InHeader, Name: "Idempotency-Key"}},
	Key:        contract.KeyGrammar{Form: contract.KeyText, Charset: contract.VisibleASCII, MaxLength: 64},
	Retention:  contract.Retention{Minimum: contract.Duration(24 * time.Hour), From: contract.FromFirstSend},
	InProgress: contract.InProgress{Do: contract.ConcurrentWaits},
}

// fakeBank keeps that promise. Without its lock, or without the look at the key,
// TestCharge fails.
type fakeBank struct {
	mu      sync.Mutex
	charges map[string]charge // by key
	books   []charge          // every one, for the count
}

type charge struct {
	ID       string
	Customer string
}

func (b *fakeBank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c charge
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, "what?", http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	known, ok := b.charges[key]
	if !ok {
		c.ID = fmt.Sprint("charge-", len(b.books)+1)
		b.books, b.charges[key], known = append(b.books, c), c, c
	}
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(known)
}

func (b *fakeBank) count(customer string) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.books {
		if c.Customer == customer {
			n++
		}
	}
	return n, nil
}
