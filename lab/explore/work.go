package explore

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/worker"
)

const (
	lease   = 20 * time.Second
	timeout = 5 * time.Second
)

// turn gives a new worker process one turn: it claims what is due and works it to
// its end, or dies.
func (w *world) turn(ctx context.Context) {
	p := w.newProcess(ctx, true)
	defer p.close()
	if w.err != nil {
		return
	}
	kind, err := worker.NewKind(worker.Kind{Name: kindName, Contract: w.contract, Effect: caller{p}, Timeout: timeout, Lease: lease,
		Retry: worker.Retry{Base: time.Second, Cap: 10 * time.Second}})
	if err != nil {
		w.err = err
		return
	}
	rules, err := json.Marshal(w.contract)
	if err != nil {
		w.err = err
		return
	}
	asked := w.base.time()
	keys := slices.Clone(w.keys)
	told := w.calling("CLAIM", keys, 0)
	leases, err := p.ledger.Claim(ctx, semel.ClaimRequest{Worker: "worker", Max: 1, Kinds: []semel.ClaimKind{{
		Kind: kindName, Lease: lease, Contract: string(rules), BeginNow: !w.contract.Shape().Opaque()}}})
	if p.dead && err == nil {
		err = unavailable(semel.RecordedUnknown)
	}
	for i, key := range keys {
		told(i, leased(leases, key), err)
	}
	if err != nil {
		return
	}
	for _, l := range leases {
		(&hand{p: p, kind: kind, lease: l, asked: asked, got: w.base.time()}).work(ctx)
	}
}

func leased(leases []semel.Lease, key semel.Key) *semel.Operation {
	for _, l := range leases {
		if l.Operation.Key == key {
			return &l.Operation
		}
	}
	return nil
}

// A hand works one lease, as a worker does: it does what the step function says.
type hand struct {
	p          *process
	kind       worker.Kind
	lease      semel.Lease
	asked, got time.Time
}

func (h *hand) facts(saw *worker.Observation, stopping bool) worker.Facts {
	now := h.p.w.base.time()
	_, finder := h.kind.Effect.(effect.Finder)
	return worker.Facts{Kind: &h.kind, Lease: h.lease, Asked: now.Sub(h.asked), Held: now.Sub(h.got),
		CanLookUp: finder && h.kind.Contract.LookUp.By != "", Stopping: stopping, Saw: saw, Random: 0.5}
}

func (h *hand) work(ctx context.Context) {
	var saw *worker.Observation
	for !h.p.dead {
		late := saw == nil && h.p.w.base.time().Sub(h.asked)+timeout+lease/10 > lease
		a := worker.Step(h.facts(saw, late))
		switch a.Act {
		case worker.ActBegin:
			if !h.begin(ctx) {
				return
			}
		case worker.ActCall:
			result := effect.Do(ctx, h.kind.Effect, h.call(a))
			saw = &worker.Observation{Call: &result}
		case worker.ActLookUp:
			sent := h.p.w.base.time().Sub(h.got)
			result := effect.LookUp(ctx, h.kind.Effect.(effect.Finder), h.call(a))
			saw = &worker.Observation{LookUp: &result, Sent: sent}
		default:
			h.finish(ctx, a)
			return
		}
	}
}

func (h *hand) call(a worker.Action) *effect.Call {
	return &effect.Call{Key: h.lease.Operation.Key, Token: h.lease.Token, Params: h.lease.Operation.Params,
		Request: h.lease.Request(), Contract: *a.Contract, FirstSent: a.FirstSent, Repeat: a.Repeat}
}

// begin writes the begin mark; where nobody knows whether it was written, the
// work is handed back.
func (h *hand) begin(ctx context.Context) bool {
	told := h.p.w.calling("BEGIN", []semel.Key{h.lease.Operation.Key}, h.lease.Operation.Revision)
	begun, err := h.p.ledger.Begin(ctx, h.lease)
	told(0, &begun.Operation, err)
	if err == nil {
		h.lease = begun
		return true
	}
	if semel.AsError("begin", err).Code != semel.CodeUnavailable || h.p.dead {
		return false
	}
	op, err := h.p.ledger.Get(ctx, h.lease.Operation.Key)
	if err == nil && op.Token == h.lease.Token {
		h.lease.Operation = op
		h.finish(ctx, worker.Step(h.facts(nil, true)))
	}
	return false
}

// finish writes the end, again while the store can't be reached.
func (h *hand) finish(ctx context.Context, a worker.Action) {
	a.Ending.Evidence, _ = json.Marshal(a.Report)
	for range 3 {
		if h.p.dead {
			return
		}
		told := h.p.w.calling("FINISH", []semel.Key{h.lease.Operation.Key}, h.lease.Operation.Revision)
		op, err := h.p.ledger.Finish(ctx, h.lease, a.Ending)
		told(0, &op, err)
		if err == nil || semel.AsError("finish", err).Code != semel.CodeUnavailable {
			return
		}
	}
}
