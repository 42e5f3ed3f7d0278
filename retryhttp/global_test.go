package retryhttp_test

import (
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/semel-dev/semel/retryhttp"
)

var globalSpans = tracetest.NewSpanRecorder()

// The global provider counts from the moment at which it is set, also for transports
// that are older. It stays set: what has been delegated once, is for ever.
func TestGlobalProviderThatIsSetLater(t *testing.T) {
	tr := retryhttp.New(&script{do: []step{says(200)}}, nil)
	get := func() int {
		before := len(globalSpans.Ended())
		resp, err := tr.RoundTrip(request(t, t.Context(), "GET", "http://api.example/", ""))
		if err != nil {
			t.Fatal(err)
		}
		text(t, resp)
		return len(globalSpans.Ended()) - before
	}
	get()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(globalSpans)))
	if n := get(); n != 2 {
		t.Errorf("%d spans", n)
	}
}
