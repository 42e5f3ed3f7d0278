package postgres

import (
	"fmt"
	"strings"
)

// insertStatements are those of an insertion. Their texts name the columns of the
// members in braces; a column is an array of the batch, or one value where all
// members have the same. There are three shapes of them.
type insertStatements struct{ operations, work, tombstones, attempts, others memberStatement }

var (
	insertMany  = newInsertStatements()
	insertAlike = newInsertStatements("state", "accept_until", "token", "schema_version", "due", "retain")
	insertOne   = newInsertStatements("shard", "account", "kind", "operation_id", "owner", "state", "as_sent", "fingerprint", "id_time", "accept_until",
		"attempts", "token", "schema_version", "due", "retain", "params", "request", "attempt_id", "lane", "n")
)

// memberColumns says where the columns come from and what they are.
var memberColumns = map[string]struct {
	sql   string
	array func(*insertBatch) any
	first func(*insertBatch) any
}{
	"shard":          {"smallint", func(c *insertBatch) any { return c.shards }, func(c *insertBatch) any { return c.shards[0] }},
	"account":        {"text", func(c *insertBatch) any { return c.accounts }, func(c *insertBatch) any { return c.accounts[0] }},
	"kind":           {"text", func(c *insertBatch) any { return c.kinds }, func(c *insertBatch) any { return c.kinds[0] }},
	"operation_id":   {"text", func(c *insertBatch) any { return c.id }, func(c *insertBatch) any { return c.id[0] }},
	"owner":          {"text", func(c *insertBatch) any { return c.owners }, func(c *insertBatch) any { return c.owners[0] }},
	"state":          {"text", func(c *insertBatch) any { return c.states }, func(c *insertBatch) any { return c.states[0] }},
	"as_sent":        {"text", func(c *insertBatch) any { return c.asSent }, func(c *insertBatch) any { return c.asSent[0] }},
	"fingerprint":    {"text", func(c *insertBatch) any { return c.fingerprints }, func(c *insertBatch) any { return c.fingerprints[0] }},
	"id_time":        {"bigint", func(c *insertBatch) any { return c.idTimes }, func(c *insertBatch) any { return c.idTimes[0] }},
	"accept_until":   {"bigint", func(c *insertBatch) any { return c.acceptUntil }, func(c *insertBatch) any { return c.acceptUntil[0] }},
	"attempts":       {"bigint", func(c *insertBatch) any { return c.attempts }, func(c *insertBatch) any { return c.attempts[0] }},
	"token":          {"bigint", func(c *insertBatch) any { return c.tokens }, func(c *insertBatch) any { return c.tokens[0] }},
	"schema_version": {"text", func(c *insertBatch) any { return c.versions }, func(c *insertBatch) any { return c.versions[0] }},
	"due":            {"bigint", func(c *insertBatch) any { return c.dues }, func(c *insertBatch) any { return c.dues[0] }},
	"retain":         {"bigint", func(c *insertBatch) any { return c.retains }, func(c *insertBatch) any { return c.retains[0] }},
	"params":         {"bytea", func(c *insertBatch) any { return c.params }, func(c *insertBatch) any { return c.params[0] }},
	"request":        {"bytea", func(c *insertBatch) any { return c.requests }, func(c *insertBatch) any { return c.requests[0] }},
	"attempt_id":     {"text", func(c *insertBatch) any { return c.attemptIDs }, func(c *insertBatch) any { return c.attemptIDs[0] }},
	"lane":           {"text", func(c *insertBatch) any { return c.lanes() }, func(c *insertBatch) any { return c.lanes()[0] }},
	"n":              {"bigint", func(c *insertBatch) any { return c.positions }, func(c *insertBatch) any { return c.positions[0] }},
}

// A memberStatement is a statement about members of a batch.
type memberStatement struct {
	text   string
	values []func(*insertBatch) any
}

// args are the arguments, with others before them.
func (m memberStatement) args(c *insertBatch, before ...any) []any {
	args := append(make([]any, 0, len(before)+len(m.values)), before...)
	for _, value := range m.values {
		args = append(args, value(c))
	}
	return args
}

// newMemberStatement builds a statement of some columns, of which the alike ones
// are single values. {members} stands for the row source.
func newMemberStatement(text string, before int, alike []string, columns ...string) memberStatement {
	var m memberStatement
	var arrays, names, replace []string
	for i, name := range columns {
		c, place := memberColumns[name], fmt.Sprintf("$%d::%s", before+i+1, memberColumns[name].sql)
		if strings.Contains(" "+strings.Join(alike, " ")+" ", " "+name+" ") {
			m.values = append(m.values, c.first)
			replace = append(replace, "{"+name+"}", place)
			continue
		}
		m.values = append(m.values, c.array)
		arrays, names = append(arrays, place+"[]"), append(names, name)
		replace = append(replace, "{"+name+"}", "u."+name)
	}
	source := "(SELECT 1) AS u"
	if len(arrays) > 0 {
		source = "unnest(" + strings.Join(arrays, ", ") + ") AS u(" + strings.Join(names, ", ") + ")"
	}
	m.text = strings.NewReplacer(append(replace, "{members}", source)...).Replace(text)
	return m
}

func newInsertStatements(alike ...string) insertStatements {
	const key = `o.shard = {shard} AND o.account = {account} AND o.kind = {kind} AND o.operation_id = {operation_id}`
	// Those that this transaction has created: their row has their mark.
	const created = `
FROM {members} CROSS JOIN LATERAL (SELECT * FROM semel_operation o WHERE ` + key + ` AND o.owner = {owner} OFFSET 0) o`

	return insertStatements{
		operations: newMemberStatement(`INSERT INTO semel_operation (shard, account, kind, operation_id, state, as_sent, fingerprint,
	schema_version, id_time, attempts, executions, revision, token, owner, created_at, updated_at, due_at, expires_at, filed, params, request)
SELECT {shard}, {account}, {kind}, {operation_id}, {state}, {as_sent}, {fingerprint}, {schema_version},
	nullif({id_time}, 9223372036854775807), {attempts}, {token}, 1, {token}, {owner}, t.now, t.now,
	CASE WHEN {state} <> 'abandoned' THEN t.now + {due} END,
	CASE WHEN {state} = 'abandoned' THEN t.now + {retain} ELSE 0 END,
	CASE WHEN {state} = 'abandoned' THEN {state} END, {params}, {request}
FROM (SELECT `+nowMS+` AS now) t, {members}
WHERE t.now <= {accept_until}
	AND NOT EXISTS (SELECT 1 FROM semel_horizon h WHERE h.shard = {shard} AND h.kind = {kind} AND h.horizon_at >= {id_time})
ON CONFLICT (shard, account, kind, operation_id) DO NOTHING
RETURNING owner, created_at, expires_at`, 1, alike, "shard", "account", "kind", "operation_id", "owner", "state", "as_sent", "fingerprint",
			"id_time", "accept_until", "attempts", "token", "schema_version", "due", "retain", "params", "request"),

		// The horizon may have passed an ID since the statement before, and its row may
		// have been deleted since. Then this one stops the transaction, and the next try
		// sees the horizon.
		work: newMemberStatement(`INSERT INTO semel_work (shard, account, kind, operation_id, lane, due_at, token)
SELECT o.shard, o.account, o.kind, o.operation_id, {lane} || CASE WHEN {due} <= 0 THEN o.account ELSE '' END,
	o.due_at / CASE WHEN EXISTS (SELECT 1 FROM semel_horizon h WHERE h.shard = o.shard AND h.kind = o.kind AND h.horizon_at >= o.id_time)
		THEN 0 ELSE 1 END, o.token`+created+` WHERE o.due_at IS NOT NULL
ON CONFLICT (shard, account, kind, operation_id) DO NOTHING`, 0, alike, "shard", "account", "kind", "operation_id", "owner", "due", "lane"),

		tombstones: newMemberStatement(`INSERT INTO semel_expiry (shard, kind, expires_at, account, operation_id)
SELECT o.shard, o.kind, o.expires_at, o.account, o.operation_id`+created+` WHERE o.expires_at > 0
ON CONFLICT (shard, kind, expires_at, account, operation_id) DO NOTHING`, 0, alike, "shard", "account", "kind", "operation_id", "owner"),

		attempts: newMemberStatement(`INSERT INTO semel_attempt (shard, account, kind, operation_id, number, attempt_id, at)
SELECT o.shard, o.account, o.kind, o.operation_id, 1, {attempt_id}, o.created_at`+created+` WHERE {attempt_id} <> ''
ON CONFLICT (shard, account, kind, operation_id, number) DO NOTHING`, 0, alike, "shard", "account", "kind", "operation_id", "owner", "attempt_id"),

		// The rows of the members that were not created, and whether the horizon is why.
		others: newMemberStatement(`SELECT o.shard IS NOT NULL, {n}, coalesce({id_time} <= (SELECT h.horizon_at FROM semel_horizon h
	WHERE h.shard = {shard} AND h.kind = {kind}), false), `+fullColumns+`
FROM {members} LEFT JOIN LATERAL (SELECT * FROM semel_operation o WHERE `+key+` OFFSET 0) o ON true
WHERE o.owner IS NULL OR o.owner <> {owner}`, 0, alike, "shard", "account", "kind", "operation_id", "owner", "id_time", "n"),
	}
}

// beginInserted gives members that begin at once their execution.
const beginInserted = `UPDATE semel_operation o SET run_token = 1, run_worker = u.worker, run_contract = u.contract, run_step = '',
	run_claimed_at = o.created_at, run_ends_at = o.created_at + u.lease, run_begun_at = o.created_at
FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[])
	AS u(shard, account, kind, operation_id, owner, lease, worker, contract)
WHERE ` + onKey + ` AND o.owner = u.owner`
