package storetest

import (
	"maps"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

// A model is the contract of a store as plain as it can be said: maps, and no
// thought of speed, of failure or of anybody else.
type model struct {
	now     time.Time
	rows    map[semel.Key]*modelRow
	horizon map[string]time.Time
}

type modelRow struct {
	op         semel.Operation
	due        time.Time // zero: no work row
	executions []semel.Execution
	attempts   []semel.Attempt
	verdicts   []semel.Verdict
	idTime     time.Time
}

func newModel(now time.Time) *model {
	return &model{now: now, rows: map[semel.Key]*modelRow{}, horizon: map[string]time.Time{}}
}

func (m *model) past(kind string, id time.Time) bool {
	h, set := m.horizon[kind]
	return set && !id.IsZero() && !id.After(h)
}

func (m *model) insert(i semel.Insertion) semel.InsertVerdict {
	switch {
	case m.rows[i.Key] != nil:
		return semel.Exists
	case m.past(i.Key.Kind, i.IDTime):
		return semel.PastHorizon
	case !i.AcceptUntil.IsZero() && m.now.After(i.AcceptUntil):
		return semel.PastDeadline
	}
	r := &modelRow{idTime: i.IDTime, op: semel.Operation{Key: i.Key, State: i.State, AsSent: i.AsSent, Fingerprint: i.Fingerprint,
		SchemaVersion: i.SchemaVersion, Params: i.Params, Request: i.Request, Owner: i.Owner, Revision: 1, CreatedAt: m.now, UpdatedAt: m.now}}
	if i.State.Settled() {
		r.op.ExpiresAt = m.now.Add(i.Retain)
	} else {
		r.due = m.now.Add(i.Due)
	}
	if b := i.Begun; b != nil {
		r.op.Token, r.op.Executions = 1, 1
		r.executions = []semel.Execution{{Token: 1, Worker: b.Worker, Contract: b.Contract, ClaimedAt: m.now, BegunAt: m.now, LeaseEndsAt: m.now.Add(b.Lease)}}
	}
	if i.AttemptID != "" {
		r.attempt(i.AttemptID, m.now)
	}
	m.rows[i.Key] = r
	return semel.Created
}

func (r *modelRow) attempt(id string, now time.Time) {
	r.op.Attempts++
	r.attempts = append(r.attempts, semel.Attempt{Key: r.op.Key, ID: id, At: now})
}

func (m *model) apply(c semel.Change) bool {
	r := m.rows[c.Key]
	if r == nil || r.op.Revision != c.Revision || r.op.Token != c.Token {
		return false
	}
	op := &r.op
	if c.State.Settled() && !op.State.Settled() {
		op.ExpiresAt = m.now.Add(c.Retain)
	}
	op.State, op.Owner, op.UpdatedAt, op.Revision = c.State, c.Owner, m.now, op.Revision+1
	if c.NextToken != 0 {
		op.Token = c.NextToken
	}
	if c.ClearedToken != 0 {
		op.ClearedToken = c.ClearedToken
	}
	if c.Result != nil {
		op.Result = c.Result
	}
	if c.Failure != nil {
		op.Failure = c.Failure
	} else if c.State == semel.Succeeded || c.State == semel.Abandoned {
		op.Failure = nil
	}
	op.Acknowledged, op.Contradicted = op.Acknowledged || c.Acknowledged, op.Contradicted || c.Contradicted
	if c.Begun {
		op.Executions++
	}
	switch c.Work {
	case semel.WorkDue:
		r.due = m.now.Add(c.Due)
	case semel.WorkDone:
		r.due = time.Time{}
	}
	if c.Execution != nil {
		r.execute(*c.Execution, m.now)
	}
	if c.Verdict != nil {
		v := *c.Verdict
		v.At = m.now
		r.verdicts = append(r.verdicts, v)
	}
	return true
}

func (r *modelRow) execute(c semel.ExecutionChange, now time.Time) {
	for i := range r.executions {
		x := &r.executions[i]
		if x.Token != c.Token {
			continue
		}
		if c.Begin && x.BegunAt.IsZero() {
			x.BegunAt = now
		}
		if c.End {
			x.EndedAt, x.Outcome, x.Evidence = now, c.Outcome, c.Evidence
		}
	}
}

// due returns what can be claimed now, of one kind.
func (m *model) due(kind string) map[semel.Key]bool {
	keys := map[semel.Key]bool{}
	for key, r := range m.rows {
		if key.Kind == kind && !r.due.IsZero() && !r.due.After(m.now) {
			keys[key] = true
		}
	}
	return keys
}

// claim leases one operation, which must be due. The owner is the store's.
func (m *model) claim(key semel.Key, k semel.ClaimKind, worker, owner string) (op semel.Operation, begun bool, prior []semel.Execution) {
	r := m.rows[key]
	prior = slices.Clone(r.executions)
	begun = k.BeginNow && r.op.State == semel.Accepted
	r.op.State, r.op.Owner, r.op.UpdatedAt = semel.Processing, owner, m.now
	r.op.Token++
	r.op.Revision++
	x := semel.Execution{Token: r.op.Token, Worker: worker, Contract: k.Contract, ClaimedAt: m.now, LeaseEndsAt: m.now.Add(k.Lease)}
	if begun {
		r.op.Executions++
		x.BegunAt = m.now
	}
	r.executions = append(r.executions, x)
	r.due = x.LeaseEndsAt
	return r.op, begun, prior
}

func (m *model) renew(b semel.Renewal) bool {
	r := m.rows[b.Key]
	if r == nil || r.op.State != semel.Processing || r.op.Token != b.Token {
		return false
	}
	r.due = m.now.Add(b.Lease)
	for i := range r.executions {
		if r.executions[i].Token == b.Token {
			r.executions[i].LeaseEndsAt = r.due
		}
	}
	if b.Progress != nil {
		p := *b.Progress
		r.op.Progress = &p
	}
	return true
}

func (m *model) keepLate(l semel.Late) {
	if r := m.rows[l.Key]; r != nil {
		for i := range r.executions {
			if x := &r.executions[i]; x.Token == l.Token && x.LateAt.IsZero() {
				x.LateOutcome, x.LateEvidence, x.LateAt = l.Outcome, l.Evidence, m.now
			}
		}
	}
}

func (m *model) record(a semel.Attempt) {
	if r := m.rows[a.Key]; r != nil && !r.op.Expired {
		r.attempt(a.ID, m.now)
	}
}

// purge does the whole of what many bounded steps do.
func (m *model) purge(kind string, retention time.Duration) (p semel.Purged) {
	if h, set := m.horizon[kind]; !set || m.now.Add(-retention).After(h) {
		m.horizon[kind] = m.now.Add(-retention)
	}
	for key, r := range m.rows {
		if key.Kind != kind || !r.op.State.Settled() {
			continue
		}
		if !r.op.Expired && !r.op.ExpiresAt.After(m.now) {
			p.Stripped++
			op := &r.op
			op.Expired, op.Params, op.Request, op.Result = true, nil, nil, nil
			op.AsSent, op.Fingerprint, op.SchemaVersion, op.Failure, op.Progress = "", "", "", nil, nil
			r.executions, r.attempts, r.verdicts = nil, nil, nil
		}
		if r.op.Expired && m.past(kind, r.idTime) && !r.idTime.After(r.op.CreatedAt) {
			p.Deleted++
			delete(m.rows, key)
		}
	}
	return p
}

// list returns the operations that a list shows, in the order of a list as far
// as the contract says: newest first.
func (m *model) list(q semel.Query) map[semel.Key]bool {
	keys := map[semel.Key]bool{}
	for key, r := range m.rows {
		op := r.op
		if !op.Expired && (q.Accounts == nil || slices.Contains(q.Accounts, key.Account)) && (q.Kind == "" || q.Kind == key.Kind) &&
			(q.State == "" || q.State == op.State) && !(q.Unacknowledged && op.Acknowledged) {
			keys[key] = true
		}
	}
	return keys
}

func (m *model) pending(account string) (n int) {
	for key, r := range m.rows {
		if key.Account == account && !r.due.IsZero() {
			n++
		}
	}
	return n
}

// stats are those of one kind; nil if there is nothing of it.
func (m *model) stats(kind string) *semel.KindStats {
	k := semel.KindStats{Kind: kind, States: map[semel.State]int64{}}
	for key, r := range m.rows {
		if key.Kind != kind || r.op.Expired {
			continue
		}
		k.States[r.op.State]++
		if !r.due.IsZero() {
			k.OldestDue = max(k.OldestDue, m.now.Sub(r.due))
		}
		if r.op.State == semel.NeedsReconciliation && !r.op.Acknowledged {
			k.Unreconciled++
			k.OldestUnreconciled = max(k.OldestUnreconciled, m.now.Sub(r.op.CreatedAt))
		}
		if r.op.Contradicted {
			k.Contradicted++
		}
	}
	if len(k.States) == 0 {
		return nil
	}
	return &k
}

// sameRow names the first difference between a row of the store and of the model.
func sameRow(got, want semel.Operation) string {
	if want.Expired { // of these, the contract says nothing
		got.SchemaVersion, got.Failure, got.Progress = "", nil, nil
	}
	return difference(got, want)
}

func sameExecutions(got, want []semel.Execution) string {
	return sameList(got, want, "executions")
}

func sameList[T any](got, want []T, what string) string {
	if len(got) != len(want) {
		return show(len(got)) + " " + what + ", want " + show(len(want))
	}
	for i := range got {
		if d := difference(got[i], want[i]); d != "" {
			return what + ": " + d
		}
	}
	return ""
}

func (r *modelRow) sameHistory(h semel.History) string {
	for _, d := range []string{sameExecutions(h.Executions, r.executions), sameList(h.Verdicts, r.verdicts, "verdicts")} {
		if d != "" {
			return d
		}
	}
	if len(h.Attempts) < min(len(r.attempts), semel.MaxAttempts) || len(h.Attempts) > len(r.attempts) {
		return show(len(h.Attempts)) + " attempts of " + show(len(r.attempts))
	}
	return sameList(h.Attempts, r.attempts[len(r.attempts)-len(h.Attempts):], "attempts")
}

func sortedKeys(set map[semel.Key]bool) []semel.Key {
	return slices.SortedFunc(maps.Keys(set), semel.Key.Compare)
}
