package contract_test

import (
	"testing"

	"github.com/semel-dev/semel/contract"
)

// A transport classifies every answer that it sees, so this must cost next to nothing beside a call.
func BenchmarkClassify(b *testing.B) {
	stripe, _ := contract.Preset(contract.StripeV1)
	r := contract.Request{Method: "POST", Keyed: true, Replayable: true}
	for _, bm := range []struct {
		name string
		a    *contract.Answer
	}{
		{"200", &contract.Answer{Status: 200, Body: []byte(`{"id":"ch_1"}`)}},
		{"402", &contract.Answer{Status: 402, Body: []byte(`{"error":{"type":"card_error"}}`)}},
		{"409", &contract.Answer{Status: 409, Body: []byte(`{"error":{"code":"idempotency_key_in_use"}}`)}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				stripe.Classify(r, complete, bm.a)
			}
		})
	}
}
