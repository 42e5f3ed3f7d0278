package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

// Apply implements [semel.Tx]. The batch is one transaction and one round trip,
// unless somebody holds a row of it for long: then its members go one by one.
func (s *Store) Apply(ctx context.Context, members []semel.Change) ([]semel.Applying, error) {
	if len(members) == 0 {
		return nil, nil
	}
	out := make([]semel.Applying, len(members))
	which := sortChanges(members, out)
	if len(which) == 0 {
		return out, nil
	}
	lock := s.opts.BatchLockTimeout
	if len(which) == 1 {
		lock = s.opts.LockTimeout
	}
	some, err := s.applyAll(ctx, pickOf(members, which), lock)
	if err != nil && len(which) > 1 && concernsOne(err) {
		for _, i := range which {
			one, err := s.applyAll(ctx, members[i:i+1], s.opts.LockTimeout)
			if err != nil {
				out[i].Err = err
			} else {
				out[i] = one[0]
			}
		}
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	for n, i := range which {
		out[i] = some[n]
	}
	return out, nil
}

// sortChanges answers what can't be, and returns the others in order of keys.
func sortChanges(members []semel.Change, out []semel.Applying) []int {
	which := make([]int, 0, len(members))
	for i, c := range members {
		if !c.State.Valid() {
			out[i].Err = &semel.Error{Op: "apply", Code: semel.CodeInvalid, Key: c.Key, Recorded: semel.RecordedNo,
				Msg: fmt.Sprintf("there is no state %q", c.State)}
			continue
		}
		which = append(which, i)
	}
	slices.SortStableFunc(which, func(a, b int) int { return members[a].Key.Compare(members[b].Key) })
	return which
}

// applyAll makes changes in one transaction. If its answer is lost they are made
// again under other marks, which waits for what may be left of the first try; what
// that one changed is then known by its mark.
func (s *Store) applyAll(ctx context.Context, members []semel.Change, lock time.Duration) (out []semel.Applying, err error) {
	a := s.newApply(members)
	if err = s.write(ctx, "apply", lock, a.steps()...); err == nil {
		return a.out, nil
	}
	if !isLost(err) {
		return nil, err
	}
	lost := err
	var rows []semel.Found
	err = s.settle(ctx, "apply", err, func(ctx context.Context, try int) error {
		again := slices.Clone(members)
		keys := make([]semel.Key, len(members))
		for i := range again {
			again[i].Owner = nextMark(again[i].Owner, try)
			keys[i] = again[i].Key
		}
		a = s.newApply(again)
		look := func(b *batch) { rows = s.queueGet(b, keys) }
		return s.write(ctx, "apply", lock, append(a.steps(), look)...)
	})
	if err != nil {
		return nil, err
	}
	out = a.out
	for i := range out {
		switch op := rows[i].Operation; {
		case out[i].Applied:
		case op != nil && isMark(op.Owner, members[i].Owner):
			out[i] = semel.Applying{Applied: true, Operation: op}
		case op == nil || op.Revision > members[i].Revision+1:
			out[i] = semel.Applying{Err: unknown("apply", lost)} // changed again since, by us or before us
		}
	}
	return out, nil
}

const (
	settledStates = `('succeeded', 'failed', 'abandoned')`

	// What a change leaves as it is stays; see semel.Change for each.
	updateOperations = `UPDATE semel_operation o SET state = u.state, owner = u.owner, updated_at = t.now, revision = o.revision + 1,
	token = CASE WHEN u.next_token <> 0 THEN u.next_token ELSE o.token END,
	cleared_token = CASE WHEN u.cleared_token <> 0 THEN u.cleared_token ELSE o.cleared_token END,
	executions = o.executions + u.begun,
	acknowledged = o.acknowledged OR u.acknowledged, contradicted = o.contradicted OR u.contradicted,
	result = coalesce(u.result, o.result),
	failure_code = CASE WHEN u.has_failure THEN u.failure_code WHEN u.state IN ('succeeded', 'abandoned') THEN NULL ELSE o.failure_code END,
	failure_message = CASE WHEN u.has_failure THEN u.failure_message WHEN u.state IN ('succeeded', 'abandoned') THEN '' ELSE o.failure_message END,
	expires_at = CASE WHEN u.state IN ` + settledStates + ` AND o.state NOT IN ` + settledStates + ` THEN t.now + u.retain ELSE o.expires_at END,
	filed = CASE WHEN u.state IN ('failed', 'needs_reconciliation', 'abandoned') THEN u.state END,
	due_at = CASE u.work WHEN 1 THEN t.now + u.due WHEN 2 THEN NULL ELSE o.due_at END,
	run_begun_at = CASE WHEN u.begin AND o.run_token = u.run AND o.run_begun_at IS NULL THEN t.now ELSE o.run_begun_at END,
	run_ended_at = CASE WHEN u.ended AND o.run_token = u.run THEN t.now ELSE o.run_ended_at END,
	run_outcome = CASE WHEN u.ended AND o.run_token = u.run THEN u.outcome ELSE o.run_outcome END,
	run_evidence = CASE WHEN u.ended AND o.run_token = u.run THEN u.evidence ELSE o.run_evidence END
FROM (SELECT ` + nowMS + ` AS now) t, unnest($2::smallint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::text[],
	$10::bigint[], $11::bigint[], $12::bigint[], $13::boolean[], $14::boolean[], $15::bytea[], $16::boolean[], $17::text[], $18::text[],
	$19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[], $23::bigint[], $24::boolean[], $25::boolean[], $26::text[], $27::bytea[])
	AS u(shard, account, kind, operation_id, revision, token, owner, state,
	next_token, cleared_token, begun, acknowledged, contradicted, result, has_failure, failure_code, failure_message,
	retain, work, due, n, run, begin, ended, outcome, evidence)
WHERE ` + onKey + ` AND o.revision = u.revision AND o.token = u.token
RETURNING u.n, coalesce(o.due_at, 0), ` + knownColumns

	// endOperations is updateOperations for a batch of executions that ended in the
	// same way, which is what a busy ledger writes most: less to send, less to decide.
	endOperations = `UPDATE semel_operation o SET state = $2, owner = u.owner, updated_at = t.now, revision = o.revision + 1,
	cleared_token = o.token, result = coalesce(u.result, o.result),
	failure_code = CASE WHEN $2 <> 'succeeded' THEN o.failure_code END, failure_message = CASE WHEN $2 <> 'succeeded' THEN o.failure_message ELSE '' END,
	expires_at = CASE WHEN o.state NOT IN ` + settledStates + ` THEN t.now + $3::bigint ELSE o.expires_at END,
	filed = CASE WHEN $2 <> 'succeeded' THEN $2 END, due_at = NULL,
	run_ended_at = CASE WHEN o.run_token = o.token THEN t.now ELSE o.run_ended_at END,
	run_outcome = CASE WHEN o.run_token = o.token THEN $4 ELSE o.run_outcome END,
	run_evidence = CASE WHEN o.run_token = o.token THEN u.evidence ELSE o.run_evidence END
FROM (SELECT ` + nowMS + ` AS now) t, unnest($5::smallint[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::text[],
	$12::bytea[], $13::bytea[], $14::bigint[])
	AS u(shard, account, kind, operation_id, revision, token, owner, result, evidence, n)
WHERE ` + onKey + ` AND o.revision = u.revision AND o.token = u.token
RETURNING u.n, coalesce(o.due_at, 0), ` + knownColumns

	unnestKeys = ` unnest($1::smallint[], $2::text[], $3::text[], $4::text[]`

	deleteWork = `DELETE FROM semel_work o USING` + unnestKeys + `) AS u(shard, account, kind, operation_id) WHERE ` + onKey

	putWork = `INSERT INTO semel_work (shard, account, kind, operation_id, lane, due_at, token)
SELECT u.shard, u.account, u.kind, u.operation_id, u.lane, u.due_at, u.token
FROM` + unnestKeys + `, $5::text[], $6::bigint[], $7::bigint[]) AS u(shard, account, kind, operation_id, lane, due_at, token)
ON CONFLICT (shard, account, kind, operation_id) DO UPDATE SET lane = excluded.lane, due_at = excluded.due_at, token = excluded.token`

	tellWorkToken = `UPDATE semel_work o SET token = u.token
FROM` + unnestKeys + `, $5::bigint[]) AS u(shard, account, kind, operation_id, token) WHERE ` + onKey

	putExpiry = `INSERT INTO semel_expiry (shard, account, kind, operation_id, expires_at)
SELECT u.shard, u.account, u.kind, u.operation_id, u.expires_at
FROM` + unnestKeys + `, $5::bigint[]) AS u(shard, account, kind, operation_id, expires_at)
ON CONFLICT (shard, kind, expires_at, account, operation_id) DO NOTHING`

	// Executions before the latest one.
	updateExecutions = `UPDATE semel_execution o SET
	begun_at = CASE WHEN u.begin AND o.begun_at IS NULL THEN u.at ELSE o.begun_at END,
	ended_at = CASE WHEN u.ended THEN u.at ELSE o.ended_at END,
	outcome = CASE WHEN u.ended THEN u.outcome ELSE o.outcome END,
	evidence = CASE WHEN u.ended THEN u.evidence ELSE o.evidence END
FROM` + unnestKeys + `, $5::bigint[], $6::bigint[], $7::boolean[], $8::boolean[], $9::text[], $10::bytea[])
	AS u(shard, account, kind, operation_id, at, token, begin, ended, outcome, evidence)
WHERE ` + onKey + ` AND o.token = u.token`

	insertVerdicts = `INSERT INTO semel_verdict (shard, account, kind, operation_id, at, revision, token, verdict, then_do, evidence, by_whom, result)
SELECT u.shard, u.account, u.kind, u.operation_id, u.at, u.revision, u.token, u.verdict, u.then_do, u.evidence, u.by_whom, u.result
FROM` + unnestKeys + `, $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[], $12::bytea[])
	AS u(shard, account, kind, operation_id, at, revision, token, verdict, then_do, evidence, by_whom, result)
ON CONFLICT (shard, operation_id, account, kind, revision) DO NOTHING`
)

// An apply is a batch of changes on its way.
type apply struct {
	s       *Store
	members []semel.Change
	out     []semel.Applying
	due     []int64 // of those that were applied, 0 for none
}

func (s *Store) newApply(members []semel.Change) *apply {
	return &apply{s, members, make([]semel.Applying, len(members)), make([]int64, len(members))}
}

// steps are two round trips: the first one decides, and the second one writes what
// goes with the members that were applied. There is no second one where nothing can
// go with them.
func (a *apply) steps() []step {
	for _, c := range a.members {
		if c.Work != semel.WorkKeep || c.NextToken != 0 || c.State.Settled() || c.Verdict != nil || c.Execution != nil && c.Execution.Token != c.Token {
			return []step{a.decide, a.follow}
		}
	}
	return []step{a.decide}
}

func (a *apply) decide(b *batch) {
	clear(a.out)
	sql, args := a.statement()
	b.each(sql, args, func(rows pgx.Rows) error {
		var n, due int64
		op, err := scanKnown(rows, func() semel.Operation {
			c := &a.members[n]
			return semel.Operation{Key: c.Key, State: c.State, Owner: c.Owner}
		}, &n, &due)
		if err == nil {
			a.out[n], a.due[n] = semel.Applying{Applied: true, Operation: op}, due
		}
		return err
	})
}

// statement is the short one if it says all that the members ask for.
func (a *apply) statement() (sql string, args []any) {
	first := a.members[0]
	for _, c := range a.members {
		x := c.Execution
		if x == nil || !x.End || x.Begin || x.Token != c.Token || c.ClearedToken != c.Token || c.NextToken != 0 || c.Begun || c.Acknowledged ||
			c.Contradicted || c.Failure != nil || c.Work != semel.WorkDone || c.Verdict != nil || c.State != semel.Succeeded ||
			c.State != first.State || c.Retain != first.Retain || x.Outcome != first.Execution.Outcome {
			return updateOperations, a.s.changeArgs(a.members)
		}
	}
	n := len(a.members)
	k := a.s.columnsOf(n, func(i int) semel.Key { return a.members[i].Key })
	numbers, owners, blobs := make([]int64, 3*n), make([]string, n), make([][]byte, 2*n)
	for i, c := range a.members {
		numbers[i], numbers[n+i], numbers[2*n+i] = c.Revision, c.Token, int64(i)
		owners[i], blobs[i], blobs[n+i] = c.Owner, c.Result, c.Execution.Evidence
	}
	return endOperations, []any{a.s.now(), string(first.State), a.s.span(first.Retain), string(first.Execution.Outcome),
		k.shards, k.accounts, k.kinds, k.id, numbers[:n], numbers[n : 2*n], owners, blobs[:n], blobs[n:], numbers[2*n:]}
}

// which returns the members that were applied and for which want holds.
func (a *apply) which(want func(semel.Change) bool) []int {
	var which []int
	for i, c := range a.members {
		if a.out[i].Applied && want(c) {
			which = append(which, i)
		}
	}
	return which
}

// queue adds a statement for some members: their keys come first in its arguments,
// and then a number for each of some more columns.
func (a *apply) queue(b *batch, sql string, which []int, numbers ...func(i int) int64) {
	if len(which) == 0 {
		return
	}
	b.queue(sql, a.args(which, numbers...)...)
}

func (a *apply) args(which []int, numbers ...func(i int) int64) []any {
	c := a.s.columnsOf(len(which), func(n int) semel.Key { return a.members[which[n]].Key })
	args := []any{c.shards, c.accounts, c.kinds, c.id}
	for _, number := range numbers {
		column := make([]int64, len(which))
		for n, i := range which {
			column[n] = number(i)
		}
		args = append(args, column)
	}
	return args
}

func (a *apply) follow(b *batch) {
	token := func(i int) int64 { return a.out[i].Operation.Token }
	a.queue(b, deleteWork, a.which(func(c semel.Change) bool { return c.Work == semel.WorkDone }))
	a.queue(b, tellWorkToken, a.which(func(c semel.Change) bool { return c.Work == semel.WorkKeep && c.NextToken != 0 }), token)
	if which := a.which(func(c semel.Change) bool { return c.Work == semel.WorkDue }); len(which) > 0 {
		lanes := make([]string, len(which))
		for n, i := range which {
			op := a.out[i].Operation
			if lanes[n] = laneOf(a.s.shard(op.Key), op.Key.Kind); a.due[i] <= op.UpdatedAt.UnixMilli() {
				lanes[n] += op.Key.Account
			}
		}
		args := a.args(which, func(i int) int64 { return a.due[i] }, token)
		b.queue(putWork, slices.Insert(args, 4, any(lanes))...)
	}
	var settled []int
	for _, i := range a.which(func(c semel.Change) bool { return c.State.Settled() }) {
		if !a.out[i].Operation.Expired {
			settled = append(settled, i)
		}
	}
	a.queue(b, putExpiry, settled, func(i int) int64 { return a.out[i].Operation.ExpiresAt.UnixMilli() })
	a.followExecutions(b)
	a.followVerdicts(b)
}

func (a *apply) at(i int) int64 { return a.out[i].Operation.UpdatedAt.UnixMilli() }

func (a *apply) followExecutions(b *batch) {
	which := a.which(func(c semel.Change) bool { return c.Execution != nil && c.Execution.Token != c.Token })
	n := len(which)
	if n == 0 {
		return
	}
	begin, end, outcomes, evidence := make([]bool, n), make([]bool, n), make([]string, n), make([][]byte, n)
	for n, i := range which {
		x := a.members[i].Execution
		begin[n], end[n], outcomes[n], evidence[n] = x.Begin, x.End, string(x.Outcome), x.Evidence
	}
	args := a.args(which, a.at, func(i int) int64 { return a.members[i].Execution.Token })
	b.queue(updateExecutions, append(args, begin, end, outcomes, evidence)...)
}

func (a *apply) followVerdicts(b *batch) {
	which := a.which(func(c semel.Change) bool { return c.Verdict != nil })
	n := len(which)
	if n == 0 {
		return
	}
	results := make([][]byte, n)
	verdicts, then, evidence, by := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for n, i := range which {
		v := a.members[i].Verdict
		verdicts[n], then[n], evidence[n], by[n], results[n] = v.Verdict, v.Then, v.Evidence, v.By, v.Result
	}
	args := a.args(which, a.at, func(i int) int64 { return a.out[i].Operation.Revision }, func(i int) int64 { return a.members[i].Verdict.Token })
	b.queue(insertVerdicts, append(args, verdicts, then, evidence, by, results)...)
}

func (s *Store) changeArgs(members []semel.Change) []any {
	n := len(members)
	k := s.columnsOf(n, func(i int) semel.Key { return members[i].Key })
	numbers, texts, flags, blobs := make([]int64, 10*n), make([]string, 5*n), make([]bool, 5*n), make([][]byte, 2*n)
	number := func(i int) []int64 { return numbers[i*n : (i+1)*n] }
	text := func(i int) []string { return texts[i*n : (i+1)*n] }
	flag := func(i int) []bool { return flags[i*n : (i+1)*n] }
	for i, c := range members {
		for col, v := range [...]int64{c.Revision, c.Token, c.NextToken, c.ClearedToken, 0, s.span(c.Retain), int64(c.Work), s.span(c.Due), int64(i)} {
			numbers[col*n+i] = v
		}
		if c.Begun {
			number(4)[i] = 1
		}
		text(0)[i], text(1)[i] = c.Owner, string(c.State)
		flag(0)[i], flag(1)[i], flag(2)[i] = c.Acknowledged, c.Contradicted, c.Failure != nil
		if c.Failure != nil {
			text(2)[i], text(3)[i] = c.Failure.Code, c.Failure.Message
		}
		blobs[i] = c.Result
		if x := c.Execution; x != nil {
			number(9)[i], flag(3)[i], flag(4)[i], text(4)[i], blobs[n+i] = x.Token, x.Begin, x.End, string(x.Outcome), x.Evidence
		}
	}
	return []any{s.now(), k.shards, k.accounts, k.kinds, k.id, number(0), number(1), text(0), text(1),
		number(2), number(3), number(4), flag(0), flag(1), blobs[:n], flag(2), text(2), text(3),
		number(5), number(6), number(7), number(8), number(9), flag(3), flag(4), text(4), blobs[n:]}
}
