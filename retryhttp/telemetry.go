package retryhttp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/semel-dev/semel/contract"
)

const scope = "github.com/semel-dev/semel/retryhttp"

// telemetry is where a transport reports to. Everything that can be made once is
// made once, so that it costs nothing where nobody listens.
type telemetry struct {
	logger *slog.Logger
	tracer trace.Tracer         // nil where spans are certainly dropped
	unset  trace.TracerProvider // the global one, where nobody had set it yet

	calls, attempts, sends, unconfirmed, exhausted metric.Int64Counter

	byState map[State][]metric.AddOption
	byStop  map[Stop][]metric.AddOption
	first   []metric.AddOption
	repeat  []metric.AddOption
}

var (
	callSpan    = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal)}
	attemptSpan = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}
)

func newTelemetry(o *Options) telemetry {
	tp, mp := o.TracerProvider, o.MeterProvider
	if tp == nil {
		tp = otel.GetTracerProvider()
	}
	if mp == nil {
		mp = otel.GetMeterProvider()
	}
	meter := mp.Meter(scope)
	counter := func(name, unit, what string) metric.Int64Counter {
		c, err := meter.Int64Counter("semel.retryhttp."+name, metric.WithUnit(unit), metric.WithDescription(what))
		if err != nil {
			otel.Handle(err)
			return noop.Int64Counter{}
		}
		return c
	}
	t := telemetry{
		logger:      o.Logger,
		calls:       counter("calls", "{call}", "Calls, by what is known of their outcome."),
		attempts:    counter("attempts", "{attempt}", "Transmissions that were begun, first ones and repeats."),
		sends:       counter("sends", "{send}", "Requests that began to go out, hidden re-sends of the base included."),
		unconfirmed: counter("unconfirmed", "{call}", "Calls that may change something, and ended without anybody knowing."),
		exhausted:   counter("exhausted", "{call}", "Calls that would have gone on, by the budget that was used up."),
		byState:     map[State][]metric.AddOption{},
		byStop:      map[Stop][]metric.AddOption{},
		first:       only(attribute.String("attempt", "first")),
		repeat:      only(attribute.String("attempt", "repeat")),
	}
	if _, none := tp.(tracenoop.TracerProvider); !none {
		t.tracer = tp.Tracer(scope)
	}
	if fmt.Sprintf("%T", tp) == "*global.tracerProvider" { // under another name, it only costs more
		t.unset = tp
	}
	for _, s := range []State{Applied, Refused, NotApplied, NotSent, Unconfirmed} {
		t.byState[s] = only(attribute.String("state", string(s)))
	}
	for _, s := range []Stop{StopAttempts, StopBudget, StopWait, StopDeadline, StopQuota, StopRetention} {
		t.byStop[s] = only(attribute.String("budget", string(s)))
	}
	return t
}

func only(kv attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(kv))}
}

// traces reports whether spans may go anywhere. A span costs something even where it
// is dropped.
func (t *telemetry) traces() bool {
	return t.tracer != nil && (t.unset == nil || otel.GetTracerProvider() != t.unset)
}

// startSpan begins the call's span, under which everything below happens.
func (c *call) startSpan() trace.Span {
	if !c.t.tell.traces() {
		return nil
	}
	ctx, span := c.t.tell.tracer.Start(c.ctx, "semel.call", callSpan...)
	if c.spanned = span.IsRecording(); c.spanned {
		c.ctx = ctx
	}
	return span
}

// startAttemptSpan begins the span of one transmission where the call's is recorded.
func (c *call) startAttemptSpan(ctx context.Context) (context.Context, trace.Span) {
	if !c.spanned {
		return ctx, nil
	}
	method := c.req.Method
	if method == "" {
		method = http.MethodGet
	}
	return c.t.tell.tracer.Start(ctx, method, attemptSpan...)
}

// note tells of one transmission.
func (c *call) note(a *attempt) {
	tell := &c.t.tell
	kind := tell.first
	if c.report.Attempts > 1 {
		kind = tell.repeat
	}
	tell.attempts.Add(c.ctx, 1, kind...)
	if a.proof.Sends > 0 {
		tell.sends.Add(c.ctx, int64(a.proof.Sends))
	}
	if tell.logger != nil {
		c.log(a)
	}
	if a.span == nil {
		return
	}
	a.span.SetAttributes(
		attribute.String("http.request.method", c.req.Method),
		attribute.String("server.address", c.req.URL.Hostname()),
		attribute.Int("http.request.resend_count", c.report.Attempts-1),
		attribute.String("semel.attempt.id", a.id[0]),
		attribute.Int("semel.attempt.sends", a.proof.Sends),
		attribute.String("semel.attempt.proves", string(a.proof.Proves)),
	)
	if a.proof.Status != 0 {
		a.span.SetAttributes(attribute.Int("http.response.status_code", a.proof.Status))
	}
	if a.proof.Proves != contract.Applied {
		a.span.SetAttributes(attribute.String("error.type", string(a.proof.Cause)))
	}
	if a.resp == nil {
		a.span.SetStatus(codes.Error, string(a.proof.Cause))
	}
	a.span.End()
}

// log writes the record of one transmission. It holds these six things and nothing
// else.
func (c *call) log(a *attempt) {
	level := slog.LevelInfo
	if a.proof.Proves == contract.Applied || a.proof.Proves == contract.Refused {
		level = slog.LevelDebug
	}
	c.t.tell.logger.LogAttrs(c.ctx, level, "transmission",
		slog.String("identity", c.key.bare),
		slog.String("attempt", a.id[0]),
		slog.Time("start", a.start),
		slog.Duration("duration", a.took),
		slog.String("state", string(a.proof.Proves)),
		slog.String("category", string(a.proof.Cause)))
}

// end tells of the whole call, and returns its error.
func (c *call) end(span trace.Span, failure *Error) error {
	tell := &c.t.tell
	if c.given.Report != nil {
		*c.given.Report = c.report
	}
	state := c.report.State()
	tell.calls.Add(c.ctx, 1, tell.byState[state]...)
	if state == Unconfirmed && !readsOnly(c.req.Method) {
		tell.unconfirmed.Add(c.ctx, 1)
	}
	if c.report.Stopped.exhausted() {
		tell.exhausted.Add(c.ctx, 1, tell.byStop[c.report.Stopped]...)
	}
	if span != nil {
		if span.IsRecording() {
			span.SetAttributes(
				attribute.Int("semel.call.attempts", c.report.Attempts),
				attribute.Int("semel.call.sends", c.report.Sends),
				attribute.String("semel.call.state", string(state)),
				attribute.String("semel.call.stopped", string(c.report.Stopped)))
			if failure != nil {
				span.SetStatus(codes.Error, string(state))
			}
		}
		span.End()
	}
	if failure == nil {
		return nil // and not a nil *Error
	}
	return failure
}
