// Package metrics counts what a ledger does, for Prometheus.
//
// Give [Metrics.Observe] to the ledger, and [Metrics.Handler] to the server:
//
//	m := metrics.New()
//	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: kinds, Observe: m.Observe})
//	m.Watch(ledger)
//	http.Handle("/metrics", m.Handler())
//
// Labels are bounded: the kind (one that the ledger knows, else "other"), and
// words from fixed lists. Nothing identifies an account or an operation.
//
// semel_retries_total counts calls by the worker for an operation that was called
// before. Its reason says how safe that was: "not_applied" (certainly nothing had
// happened), "unknown" or "lease_lost" (something may have, and the contract allows
// the same call again with the same key).
//
// There is no count of what is unconfirmed. That is the client's word for "no answer
// from the server yet", and a server can't know whether its answers arrive, nor of
// requests that never reached it. Clients count it: package retryhttp as
// semel.retryhttp.unconfirmed, package client in its journal (Client.Pending lists
// it; Unconfirmed.Since of the oldest entry is the age). Two of the metrics here come
// near to it: semel_replays_total, since most repeats are of somebody who got no
// answer; and semel_unreconciled, with the age of the oldest, of which the server
// itself got no answer.
//
// The gauges come from [semel.Ledger.Stats], read when scraped, but at most once
// in [StatsAge]. docs/operating.md says what to do when one of them is high.
package metrics

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/semel-dev/semel"
)

// StatsAge is how old the counts of the store may be when scraped.
const StatsAge = 5 * time.Second

// Metrics holds the counters of one process. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	counters map[string]*prometheus.CounterVec
	kinds    atomic.Pointer[map[string]bool]
}

// observed lists what a ledger tells, and what it is counted as.
var observed = []struct{ name, metric, help, label string }{
	{"accept", "semel_accepts_total", "New operations.", ""},
	{"replay", "semel_replays_total", "Requests answered from the record, by the operation's state.", "state"},
	{"reject", "semel_rejections_total", "Requests refused, by error code.", "code"},
	{"abandon", "semel_abandons_total", "Operations abandoned.", ""},
	{"claim", "semel_claims_total", "Leases given.", ""},
	{"lease_lost", "semel_lease_losses_total", "Leases that ended before their execution did.", ""},
	{"finish", "semel_executions_total", "Executions ended, by outcome, or by error code where the end was not recorded.", "outcome"},
	{"late", "semel_late_results_total", "Results that came after their lease was lost, by outcome.", "outcome"},
	{"contradicted", "semel_contradicted_total", "Late results that say otherwise than the record.", ""},
	{"needs_reconciliation", "semel_needs_reconciliation_total", "Operations that came to need reconciliation.", ""},
	{"call", "semel_calls_total", "External calls made, by what they proved.", "proof"},
	{"retry", "semel_retries_total", "External calls that were not the first for their operation (among semel_calls_total), by why it was called again.", "reason"},
	{"look_up", "semel_look_ups_total", "Look-ups at external services, by what they found.", "found"},
	{"hidden_sends", "semel_hidden_sends_total", "Calls within which more than one request went out.", ""},
	{"panic", "semel_panics_total", "Effects that panicked.", ""},
	{"lease_ending", "semel_leases_ending_total", "Effects cancelled because their lease could not be renewed.", ""},
	{"handed_back", "semel_handed_back_total", "Leases handed back before anything was begun.", ""},
	{"host_closed", "semel_host_pauses_total", "Times that an external service was paused after troubles in a row.", ""},
	{"resolve", "semel_resolutions_total", "Verdicts by people.", "verdict"},
}

// New makes metrics with a registry of their own, together with those of the Go
// runtime and the process.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), counters: map[string]*prometheus.CounterVec{}}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, o := range observed {
		labels := []string{"kind"}
		if o.label != "" {
			labels = append(labels, o.label)
		}
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: o.metric, Help: o.help}, labels)
		m.registry.MustRegister(c)
		m.counters[o.name] = c
	}
	return m
}

// Observe counts one thing that happened; names that are not known are ignored.
func (m *Metrics) Observe(o semel.Observation) {
	c := m.counters[o.Name]
	if c == nil {
		return
	}
	kind := o.Kind
	if known := m.kinds.Load(); known != nil && !(*known)[kind] {
		kind = "other"
	}
	for _, known := range observed {
		if known.name == o.Name && known.label != "" {
			c.WithLabelValues(kind, o.Label).Inc()
			return
		}
	}
	c.WithLabelValues(kind).Inc()
}

// Watch adds the gauges of a ledger: operations by state, and the ages of what
// waits; and it lets the counters of its kinds begin at zero. Call it once, before
// the first request.
func (m *Metrics) Watch(ledger *semel.Ledger) {
	kinds := map[string]bool{}
	for _, k := range ledger.Kinds() {
		kinds[k.Name] = true
	}
	m.kinds.Store(&kinds)
	for _, o := range observed { // a counter that begins at 1 has no increase to be alerted by
		for kind := range kinds {
			if o.label == "" {
				m.counters[o.name].WithLabelValues(kind)
			}
		}
	}
	m.registry.MustRegister(&statsCollector{ledger: ledger, kinds: kinds})
}

// Register adds another collector to the same page.
func (m *Metrics) Register(c prometheus.Collector) error { return m.registry.Register(c) }

// Handler serves the page in the Prometheus text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

var (
	operations = prometheus.NewDesc("semel_operations", "Operations recorded, by state.", []string{"kind", "state"}, nil)
	unresolved = prometheus.NewDesc("semel_unreconciled", "Operations that need reconciliation and are not acknowledged.", []string{"kind"}, nil)
	oldestOpen = prometheus.NewDesc("semel_unreconciled_oldest_seconds", "Age of the oldest of them.", []string{"kind"}, nil)
	oldestDue  = prometheus.NewDesc("semel_queue_oldest_seconds", "How long the oldest due work has been waiting.", []string{"kind"}, nil)
	flagged    = prometheus.NewDesc("semel_contradicted", "Operations flagged as contradicted.", []string{"kind"}, nil)
	storeUp    = prometheus.NewDesc("semel_store_up", "1 if the store answered the last count, else 0.", nil, nil)
)

// statsCollector reads the store's counts when it is scraped.
type statsCollector struct {
	ledger *semel.Ledger
	kinds  map[string]bool
	mu     sync.Mutex
	last   semel.Stats
	readAt time.Time
	err    error
}

// Describe implements [prometheus.Collector].
func (c *statsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{operations, unresolved, oldestOpen, oldestDue, flagged, storeUp} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *statsCollector) Collect(ch chan<- prometheus.Metric) {
	stats, err := c.read()
	up := 1.0
	if err != nil {
		up = 0
	}
	ch <- prometheus.MustNewConstMetric(storeUp, prometheus.GaugeValue, up)
	if err != nil {
		return
	}
	for _, k := range stats.Kinds {
		if !c.kinds[k.Kind] {
			continue // of a kind that is no longer configured
		}
		for state, n := range k.States {
			ch <- prometheus.MustNewConstMetric(operations, prometheus.GaugeValue, float64(n), k.Kind, string(state))
		}
		ch <- prometheus.MustNewConstMetric(unresolved, prometheus.GaugeValue, float64(k.Unreconciled), k.Kind)
		ch <- prometheus.MustNewConstMetric(oldestOpen, prometheus.GaugeValue, k.OldestUnreconciled.Seconds(), k.Kind)
		ch <- prometheus.MustNewConstMetric(oldestDue, prometheus.GaugeValue, k.OldestDue.Seconds(), k.Kind)
		ch <- prometheus.MustNewConstMetric(flagged, prometheus.GaugeValue, float64(k.Contradicted), k.Kind)
	}
}

func (c *statsCollector) read() (semel.Stats, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.readAt) > StatsAge {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c.last, c.err = c.ledger.Stats(ctx)
		c.readAt = time.Now()
	}
	return c.last, c.err
}
