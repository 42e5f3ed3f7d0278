package effect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
)

// An HTTP effect from data: the contract says where the key travels, the spec
// says which part of the answer is the result.
func ExampleNewHTTP() {
	printer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL.Path, len(r.Header.Get("Idempotency-Key")))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"image":{"url":"/images/1.png"},"took_ms":12}`)
	}))
	defer printer.Close()

	promise, _ := contract.Preset(contract.Idempotent)
	print, err := effect.NewHTTP(effect.HTTPSpec{
		URL:    printer.URL + "/images",
		Result: effect.Mapping{"image_url": "/image/url"},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := effect.Do(context.Background(), print, &effect.Call{
		Key:      semel.Key{Account: "acme", Kind: "image", ID: "1"},
		Contract: promise,
		Request:  []byte(`{"page":1}`),
	})
	fmt.Println(r.Proof.Proves, string(r.Output), r.Sends)
	// Output:
	// POST /images 32
	// applied {"image_url":"/images/1.png"} 1
}

var errDeclined = errors.New("declined")

// An effect in Go, as with an SDK: it says what is proven, and when in doubt it
// says that nobody knows.
func ExampleFunc() {
	pay := func(ctx context.Context, client *http.Client, key string) (string, error) { return "", errDeclined }

	charge := effect.Func(func(ctx context.Context, call *effect.Call) effect.Result {
		key, err := call.DownstreamKey()
		if err != nil {
			return effect.Refused("no-key", "No key can be made.")
		}
		id, err := pay(ctx, call.Client(), key)
		switch {
		case err == nil:
			return effect.Applied(map[string]string{"charge": id})
		case errors.Is(err, errDeclined):
			return effect.Refused("declined", "The card was declined.")
		}
		return effect.Unknown("no-answer", "The payment service did not answer.")
	})

	r := effect.Do(context.Background(), charge, &effect.Call{Key: semel.Key{Account: "acme", Kind: "charge", ID: "1"}})
	fmt.Println(r.Proof.Proves, r.Failure.Code)
	// Output: refused declined
}
