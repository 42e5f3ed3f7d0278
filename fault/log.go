package fault

import (
	"context"
	"slices"
	"time"
)

// logCap is how many requests a log remembers. Soaks run for hours, and the
// totals in [Progress] stay exact without the entries.
const logCap = 10_000

// Outcomes of a request, in [Entry.Outcome].
const (
	Passed       = "passed"        // nothing was done to it
	Faulted      = "faulted"       // the rule was carried out
	Failed       = "failed"        // it failed by itself, Err says how; no rule was carried out
	ClientGone   = "client-gone"   // the client gave up first; Sends says whether the upstream got it
	StillRunning = "still-running" // not done yet
)

// Entry is what happened to one request, or to one connection where there are
// only bytes. It holds no parameters, no bodies, and of the headers only
// Idempotency-Key.
type Entry struct {
	Seq      int64     `json:"seq"` // from 1
	Method   string    `json:"method,omitempty"`
	Host     string    `json:"host,omitempty"`
	Path     string    `json:"path,omitempty"`
	Proto    string    `json:"proto,omitempty"`  // of the client
	Key      string    `json:"key,omitempty"`    // Idempotency-Key, as sent
	Remote   string    `json:"remote,omitempty"` // of the client; empty in a Transport
	Rule     string    `json:"rule,omitempty"`   // that was applied; the last one, for a connection
	Faults   int       `json:"faults"`           // rules carried out
	Outcome  string    `json:"outcome"`
	Held     bool      `json:"held,omitempty"`     // is held now
	Sends    int       `json:"sends"`              // times it went out to the upstream, hidden re-sends included
	Upstream []int     `json:"upstream,omitempty"` // statuses that the upstream answered with
	Status   int       `json:"status,omitempty"`   // that the client was told; 0 for a cut
	Sent     int64     `json:"sent_bytes"`         // of bodies, or bytes, to the upstream
	Received int64     `json:"received_bytes"`     // of bodies, or bytes, to the client
	Err      string    `json:"error,omitempty"`
	Begun    time.Time `json:"begun"`
	Ended    time.Time `json:"ended,omitzero"`
}

// Progress is how far the log has got. Started and Done count requests, or
// connections where there are only bytes; Held those that wait for
// [Injector.Release]; Faults the rules that were carried out.
type Progress struct {
	Started int `json:"started"`
	Done    int `json:"done"`
	Held    int `json:"held"`
	Faults  int `json:"faults"`
}

type history struct {
	progress Progress
	seq      int64
	entries  []*Entry
}

// record is one request under way. It is done when every part of it is: the
// caller's, and what goes on after the caller has left.
type record struct {
	in    *Injector
	entry *Entry // guarded by in.mu
	parts int    // guarded by in.mu
}

// open begins an entry with one part.
func (in *Injector) open(e Entry) *record {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.log.seq++
	e.Seq, e.Outcome, e.Begun = in.log.seq, StillRunning, time.Now()
	rec := &record{in: in, entry: &e, parts: 1}
	in.log.entries = append(in.log.entries, rec.entry)
	if len(in.log.entries) > logCap {
		in.log.entries = slices.Delete(in.log.entries, 0, len(in.log.entries)-logCap)
	}
	in.log.progress.Started++
	in.wake()
	return rec
}

// edit changes the entry.
func (rec *record) edit(f func(*Entry)) {
	rec.in.mu.Lock()
	defer rec.in.mu.Unlock()
	f(rec.entry)
}

// add announces one more part.
func (rec *record) add() {
	rec.edit(func(*Entry) { rec.parts++ })
}

// done ends one part; the last one ends the entry.
func (rec *record) done() {
	rec.in.mu.Lock()
	defer rec.in.mu.Unlock()
	if rec.parts--; rec.parts > 0 {
		return
	}
	if rec.entry.Outcome == StillRunning {
		rec.entry.Outcome = Passed
	}
	rec.entry.Ended = time.Now()
	rec.in.log.progress.Done++
	rec.in.wake()
}

// faulted notes that rule was carried out.
func (rec *record) faulted(rule *Rule) {
	rec.in.mu.Lock()
	defer rec.in.mu.Unlock()
	e := rec.entry
	e.Rule, e.Outcome, e.Faults = rule.String(), Faulted, e.Faults+1
	rec.in.log.progress.Faults++
	rec.in.wake()
}

// ended notes how the request ended, unless a rule was carried out, which says more.
func (rec *record) ended(outcome string, err error) {
	rec.edit(func(e *Entry) {
		if err != nil {
			e.Err = err.Error()
		}
		if e.Outcome == StillRunning {
			e.Outcome = outcome
		}
	})
}

// Log returns a copy of the entries, oldest first: the last 10,000 at most.
func (in *Injector) Log() []Entry {
	in.mu.Lock()
	defer in.mu.Unlock()
	entries := make([]Entry, len(in.log.entries))
	for i, e := range in.log.entries {
		entries[i] = *e
		entries[i].Upstream = slices.Clone(e.Upstream)
	}
	return entries
}

// Progress returns how far the log has got.
func (in *Injector) Progress() Progress {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.log.progress
}

// WaitDone blocks until n requests (or connections), counted from the
// beginning, are done in every part. It returns ctx's error, or [ErrClosed]
// where that can no longer happen.
func (in *Injector) WaitDone(ctx context.Context, n int) error {
	return in.await(ctx, func(p Progress) bool { return p.Done >= n })
}

// WaitStarted blocks until n requests (or connections), counted from the
// beginning, have arrived. Errors are those of [Injector.WaitDone].
func (in *Injector) WaitStarted(ctx context.Context, n int) error {
	return in.await(ctx, func(p Progress) bool { return p.Started >= n })
}

// WaitHeld blocks until at least n requests are held at once. Errors are those
// of [Injector.WaitDone].
func (in *Injector) WaitHeld(ctx context.Context, n int) error {
	return in.await(ctx, func(p Progress) bool { return p.Held >= n })
}

// WaitFaults blocks until n rules, counted from the beginning, have been
// carried out. Errors are those of [Injector.WaitDone].
func (in *Injector) WaitFaults(ctx context.Context, n int) error {
	return in.await(ctx, func(p Progress) bool { return p.Faults >= n })
}

func (in *Injector) await(ctx context.Context, reached func(Progress) bool) error {
	for {
		in.mu.Lock()
		progress, closed, changed := in.log.progress, in.closed, in.changed
		in.mu.Unlock()
		switch {
		case reached(progress):
			return nil
		case closed && progress.Done == progress.Started:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
