package metrics_test

import (
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/metrics"
	"github.com/semel-dev/semel/sqlite"
)

// scrape reads the metrics of a ledger on a real store, after the traffic.
func scrape(t *testing.T, traffic func(*semel.Ledger, *metrics.Metrics)) string {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	m := metrics.New()
	ledger, err := semel.New(t.Context(), store, &semel.Options{Kinds: []semel.Kind{{Name: "order"}}, Observe: m.Observe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ledger.Close() })
	m.Watch(ledger)
	if traffic != nil {
		traffic(ledger, m)
	}
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	text, _ := io.ReadAll(rec.Body)
	return string(text)
}

// page scrapes after a little traffic.
func page(t *testing.T) string {
	t.Helper()
	return scrape(t, func(ledger *semel.Ledger, m *metrics.Metrics) {
		for _, req := range []semel.Request{
			{Key: semel.Key{Account: "acme", Kind: "order", ID: "1"}, Params: []byte("a")},
			{Key: semel.Key{Account: "acme", Kind: "order", ID: "1"}, Params: []byte("a")},
			{Key: semel.Key{Account: "acme", Kind: "order", ID: "1"}, Params: []byte("b")},
			{Key: semel.Key{Account: "acme", Kind: "made-up-by-a-client", ID: "1"}},
		} {
			ledger.Accept(t.Context(), req)
		}
		for _, name := range []string{"abandon", "claim", "lease_lost", "finish", "late", "contradicted", "needs_reconciliation",
			"call", "retry", "look_up", "hidden_sends", "panic", "lease_ending", "handed_back", "host_closed", "resolve", "not-a-name"} {
			m.Observe(semel.Observation{Name: name, Kind: "order", Label: "applied"})
		}
	})
}

func TestCounts(t *testing.T) {
	text := page(t)
	for _, want := range []string{
		`semel_accepts_total{kind="order"} 1`,
		`semel_replays_total{kind="order",state="accepted"} 1`,
		`semel_rejections_total{code="fingerprint-mismatch",kind="order"} 1`,
		`semel_rejections_total{code="unknown-kind",kind="other"} 1`,
		`semel_operations{kind="order",state="accepted"} 1`,
		`semel_executions_total{kind="order",outcome="applied"} 1`,
		`semel_retries_total{kind="order",reason="applied"} 1`,
		`semel_store_up 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(text, "made-up") || strings.Contains(text, "acme") {
		t.Error("a label is not bounded")
	}
}

// A counter that is not there until it is 1 has no increase: an alert on the
// increase would miss the first time. So what needs no further label is there from
// the start.
func TestCountersBeginAtZero(t *testing.T) {
	text := scrape(t, nil)
	for _, name := range []string{"semel_accepts_total", "semel_hidden_sends_total", "semel_host_pauses_total", "semel_lease_losses_total",
		"semel_needs_reconciliation_total", "semel_contradicted_total"} {
		if !strings.Contains(text, "\n"+name+`{kind="order"} 0`+"\n") {
			t.Errorf("before anything happened, %s is not 0", name)
		}
	}
	if strings.Contains(text, `kind="other"`) {
		t.Error("a kind that nobody asked for is counted")
	}
}
