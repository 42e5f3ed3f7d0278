package labtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/lab/labtest"
	"github.com/semel-dev/semel/lab/service"
)

// orders is an effect at the lab's external service, under one of its promises.
func orders(t *testing.T, p service.Promise) labtest.Effect {
	t.Helper()
	books, err := service.New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { books.Close() })
	promise, err := contract.Preset(string(p))
	if err != nil {
		t.Fatal(err)
	}
	if p == service.Queryable {
		promise.LookUp.ConsistentAfter, promise.LookUp.AbsentAfter = 0, contract.Duration(500*time.Millisecond)
	}
	return labtest.Effect{
		Contract: promise,
		Service:  books,
		New: func(place labtest.Place) (effect.Effect, error) {
			spec := effect.HTTPSpec{URL: place.Service + "/orders/" + string(p)}
			if p == service.Queryable {
				spec.LookUp = &effect.LookUpSpec{URL: spec.URL + "/{key}", Absent: []contract.Match{{Status: 404, Code: "no_such_order", At: "/code"}}}
			}
			return effect.NewHTTP(spec, nil)
		},
		Params: func(id string) string { return fmt.Sprintf(`{"order":%q}`, id) },
		Count:  func(id string) (int, error) { return done(books, id) },
	}
}

// done is how often the books say that an order was done.
func done(books http.Handler, order string) (int, error) {
	answer := httptest.NewRecorder()
	books.ServeHTTP(answer, httptest.NewRequest("GET", "/books?order="+order, nil))
	var counts map[string]service.Count
	err := json.Unmarshal(answer.Body.Bytes(), &counts)
	return counts[order].Done, err
}

// The three promises that matter for recovery, on both stores.
func TestEffectUnderEachPromise(t *testing.T) {
	for _, store := range []string{"sqlite", "postgres"} {
		for _, p := range []service.Promise{service.Idempotent, service.Queryable, service.Opaque} {
			t.Run(store+"-"+string(p), func(t *testing.T) {
				e := orders(t, p)
				e.Store = onStore(t, store)
				labtest.TestEffect(t, e)
			})
		}
	}
}
