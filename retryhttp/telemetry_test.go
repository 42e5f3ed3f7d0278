package retryhttp_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/retryhttp"
)

// There is one record for each transmission, with six things and nothing else.
func TestOneRecordPerTransmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var ids []string
		s := &script{do: []step{loses, says(503), says(201)}}
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			ids = append(ids, r.Header.Get("Attempt-Id"))
			time.Sleep(3 * time.Second)
			return s.RoundTrip(r)
		})
		o := quick(preset(t, contract.Idempotent))
		o.Logger = slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		req := request(t, retryhttp.WithKey(t.Context(), "once"), "POST", "http://api.example/secret?token=secret", "secret")
		req.Header.Set("Authorization", "secret")
		resp, err := retryhttp.New(base, o).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		text(t, resp)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || strings.Contains(out.String(), "secret") {
			t.Fatalf("%s", out.String())
		}
		want := []struct{ level, state, category string }{{"INFO", "unknown", "other"}, {"INFO", "unknown", "intermediary"}, {"DEBUG", "applied", "success"}}
		for i, line := range lines {
			var record map[string]any
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatal(err)
			}
			names := []string{}
			for name := range record {
				names = append(names, name)
			}
			slices.Sort(names)
			if !slices.Equal(names, []string{"attempt", "category", "duration", "identity", "level", "msg", "start", "state", "time"}) {
				t.Errorf("the record has %v", names)
			}
			if record["identity"] != "once" || record["attempt"] != ids[i] || record["duration"] != float64(3*time.Second) ||
				record["level"] != want[i].level || record["state"] != want[i].state || record["category"] != want[i].category {
				t.Errorf("%s", line)
			}
		}
	})
}

// Spans: one for the call, and one for each transmission below it, under the caller's.
func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		tp := trace.NewTracerProvider(trace.WithSpanProcessor(recorder))
		ctx, parent := tp.Tracer("test").Start(t.Context(), "caller")
		s := &script{do: []step{loses, says(201)}}
		o := quick(preset(t, contract.Idempotent))
		o.TracerProvider = tp
		resp, err := retryhttp.New(s, o).RoundTrip(request(t, retryhttp.WithKey(ctx, "once"), "POST", "http://api.example:81/secret?token=secret", "secret"))
		if err != nil {
			t.Fatal(err)
		}
		text(t, resp)
		spans := recorder.Ended()
		if len(spans) != 3 {
			t.Fatalf("%d spans", len(spans))
		}
		call := spans[2]
		if call.Name() != "semel.call" || call.Parent().SpanID() != parent.SpanContext().SpanID() {
			t.Errorf("%s", call.Name())
		}
		value := func(s trace.ReadOnlySpan, name string) string {
			set := attribute.NewSet(s.Attributes()...)
			v, _ := set.Value(attribute.Key(name))
			return v.String()
		}
		if value(call, "semel.call.attempts") != "2" || value(call, "semel.call.sends") != "2" || value(call, "semel.call.state") != "applied" || value(call, "semel.call.stopped") != "settled" {
			t.Errorf("%v", call.Attributes())
		}
		for i, want := range []map[string]string{
			{"http.request.resend_count": "0", "error.type": "other", "semel.attempt.proves": "unknown", "http.response.status_code": ""},
			{"http.request.resend_count": "1", "error.type": "", "semel.attempt.proves": "applied", "http.response.status_code": "201"},
		} {
			span := spans[i]
			if span.Name() != "POST" || span.Parent().SpanID() != call.SpanContext().SpanID() || value(span, "server.address") != "api.example" || value(span, "semel.attempt.id") == "" {
				t.Errorf("%s: %v", span.Name(), span.Attributes())
			}
			for name, v := range want {
				if value(span, name) != v {
					t.Errorf("span %d: %s is %q", i, name, value(span, name))
				}
			}
			for _, kv := range span.Attributes() {
				if strings.Contains(kv.Value.String(), "secret") {
					t.Errorf("%v", kv)
				}
			}
		}
	})
}

func TestCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := metric.NewManualReader()
		o := quick(preset(t, contract.Idempotent))
		o.MeterProvider = metric.NewMeterProvider(metric.WithReader(reader))
		o.MaxAttempts = 3
		call := func(method, key string, do ...step) {
			resp, err := retryhttp.New(&script{do: do}, o).RoundTrip(request(t, retryhttp.WithKey(t.Context(), key), method, "http://api.example/", "a=1"))
			if err == nil {
				text(t, resp)
			}
		}
		call("POST", "a", says(201))
		call("POST", "b", loses, says(201))
		call("POST", "c", loses)                          // unconfirmed, attempts
		call("POST", "d", says(503, "Retry-After", "60")) // unconfirmed, wait
		call("POST", "e", loses, says(401))               // unconfirmed, but no budget
		call("POST", "f", says(404))                      // refused
		call("GET", "", loses)                            // nothing that could be confirmed
		var data metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &data); err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for _, m := range data.ScopeMetrics[0].Metrics {
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				name := strings.TrimPrefix(m.Name, "semel.retryhttp.")
				for _, kv := range p.Attributes.ToSlice() {
					name += " " + kv.Value.String()
				}
				got[name] = p.Value
			}
		}
		want := map[string]int64{
			"calls applied": 2, "calls unconfirmed": 4, "calls refused": 1,
			"attempts first": 7, "attempts repeat": 1 + 2 + 1 + 2, "sends": 13,
			"unconfirmed": 3, "exhausted attempts": 2, "exhausted wait": 1,
		}
		for name, v := range want {
			if got[name] != v {
				t.Errorf("%s is %d, want %d", name, got[name], v)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%v", got)
		}
	})
}
