package sqlite

import (
	"context"
	"time"

	"github.com/semel-dev/semel"
)

// A lane is the pending work of one account and kind.
type lane struct {
	shard         int
	kind, account string
}

// An upkeep is what a transaction must bring up to date before it commits: the
// lanes that it touched, and the counts.
type upkeep struct {
	lanes  map[lane]*laneChange
	counts map[tally]int64
}

// A tally names one row of semel_count.
type tally struct {
	kind  string
	state semel.State
}

func newUpkeep() *upkeep { return &upkeep{map[lane]*laneChange{}, map[tally]int64{}} }

// A laneChange is the earliest due time that was put into a lane; whether something
// was taken away, so that its row must be looked at again; and the time, if it was
// claimed from.
type laneChange struct {
	put    int64 // noPut: nothing was put
	again  bool
	served int64
}

const noPut = 1<<63 - 1

func (u *upkeep) lane(l lane) *laneChange {
	if u.lanes[l] == nil {
		u.lanes[l] = &laneChange{put: noPut}
	}
	return u.lanes[l]
}

// moved counts an operation that went from one state to another; [semel.None]
// stands for none, and for a stripped row.
func (u *upkeep) moved(kind string, from, to semel.State) {
	if from == to {
		return
	}
	if from != semel.None {
		u.counts[tally{kind, from}]--
	}
	if to != semel.None {
		u.counts[tally{kind, to}]++
	}
}

// laneOf returns the lane of an operation. Work and turns are an account's affair,
// so their bucket is hashed from the account whatever the sharding is: an account
// whose operations are spread has one turn all the same.
func laneOf(k semel.Key) lane {
	return lane{semel.ShardByAccount.Shard(k), k.Kind, k.Account}
}

// moveWork moves the pending record from one due time to another; 0 stands for no
// record. The due_at of the operation's row is the caller's to write.
func moveWork(ctx context.Context, r runner, k semel.Key, from, to int64, up *upkeep) error {
	l := laneOf(k)
	c := up.lane(l)
	if from != 0 && from != to {
		c.again = true
		_, err := r.exec(ctx, `DELETE FROM semel_work WHERE shard = ? AND account = ? AND kind = ? AND due_at = ? AND operation_id = ?`,
			l.shard, k.Account, k.Kind, from, k.ID)
		if err != nil {
			return err
		}
	}
	if to != 0 && from != to {
		c.put = min(c.put, to)
		_, err := r.exec(ctx, `INSERT INTO semel_work (shard, account, kind, due_at, operation_id) VALUES (?, ?, ?, ?, ?)`,
			l.shard, k.Account, k.Kind, to, k.ID)
		return err
	}
	return nil
}

// flush does it. turn_at is a function of the lane's work and of served_at, and
// this is the only place that writes it.
func (u *upkeep) flush(ctx context.Context, r runner) error {
	for l, c := range u.lanes {
		var err error
		if c.again {
			err = l.renew(ctx, r, c.served)
		} else {
			err = l.put(ctx, r, c.put)
		}
		if err != nil {
			return err
		}
	}
	for t, n := range u.counts {
		if n == 0 {
			continue
		}
		_, err := r.exec(ctx, `INSERT INTO semel_count (kind, state, operations) VALUES (?, ?, ?)
			ON CONFLICT (kind, state) DO UPDATE SET operations = operations + excluded.operations`, t.kind, t.state, n)
		if err != nil {
			return err
		}
	}
	return nil
}

// put is renew for a lane that only got more work: one statement, and no write if
// something earlier waits there.
func (l lane) put(ctx context.Context, r runner, due int64) error {
	_, err := r.exec(ctx, `INSERT INTO semel_queue (shard, kind, account, due_at, served_at, turn_at, served) VALUES (?1, ?2, ?3, ?4, 0, ?4, 0)
		ON CONFLICT (shard, kind, account) DO UPDATE SET due_at = excluded.due_at, turn_at = max(excluded.due_at, served_at)
		WHERE excluded.due_at < due_at`, l.shard, l.kind, l.account, due)
	return err
}

func (l lane) renew(ctx context.Context, r runner, served int64) error {
	var due int64
	some, err := r.row(ctx, `SELECT due_at FROM semel_work WHERE shard = ? AND kind = ? AND account = ? ORDER BY due_at LIMIT 1`,
		[]any{l.shard, l.kind, l.account}, &due)
	if err != nil {
		return err
	}
	if !some {
		_, err = r.exec(ctx, `DELETE FROM semel_queue WHERE shard = ? AND kind = ? AND account = ?`, l.shard, l.kind, l.account)
		return err
	}
	_, err = r.exec(ctx, `INSERT INTO semel_queue (shard, kind, account, due_at, served_at, turn_at, served) VALUES (?1, ?2, ?3, ?4, ?5, max(?4, ?5), ?5 > 0)
		ON CONFLICT (shard, kind, account) DO UPDATE SET due_at = excluded.due_at, served_at = max(served_at, excluded.served_at),
			turn_at = max(excluded.due_at, served_at, excluded.served_at), served = served + excluded.served
		WHERE due_at <> excluded.due_at OR excluded.served_at > 0`, l.shard, l.kind, l.account, due, served)
	return err
}

// An execution is a new row of semel_execution.
type execution struct {
	token            int64
	worker, contract string
	lease            time.Duration
	begun            bool
}

func (s *Store) addExecution(ctx context.Context, r runner, k semel.Key, x execution, now moment) error {
	begunAt := int64(0)
	if x.begun {
		begunAt = now.ms()
	}
	_, err := r.exec(ctx, `INSERT INTO semel_execution (shard, account, kind, operation_id, token, worker, contract,
		claimed_at, lease_ends_at, begun_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		s.keyArgs(k, x.token, x.worker, x.contract, now.ms(), now.until(x.lease), begunAt)...)
	return err
}
