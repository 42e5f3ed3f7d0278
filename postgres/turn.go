package postgres

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/semel-dev/semel"
)

// A pick is one piece of due work.
type pick struct {
	key        semel.Key
	due, token int64
	kind       int // in the request
	place      int // among the work of its lane in its shard, from 1
	lane       *lane
}

// A laneKey names the due work of one account and kind.
type laneKey struct{ kind, account string }

// A chain is the lanes of one kind in one shard.
type chain struct {
	shard int16
	kind  string
}

// turns is what this process remembers of its own claims, so that no account
// starves another: when it served which lane, and where it stands in a rotation
// through more lanes than it can look at. It is a memory for fairness only; a
// process that has just started is as correct without it.
type turns struct {
	mu         sync.Mutex
	spread     int // in how many shards one account has lanes
	served     map[laneKey]served
	longAgo    map[laneKey]served // the older generation
	generation int                // entries in one generation
	reached    map[chain]string   // where the rotation stands
	crowd      int                // so many more claims are expected to meet others
}

// crowded reports whether others were lately at the same work.
func (t *turns) crowded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.crowd > 0
}

// met notes how much of a claim others had taken.
func (t *turns) met(lost int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.crowd = max(t.crowd-1, 0); lost > 0 {
		t.crowd = 20
	}
}

// served says when a lane was last served, and how often.
type served struct{ at, times int64 }

func newTurns() *turns {
	return &turns{served: map[laneKey]served{}, reached: map[chain]string{}, generation: 20000, spread: 1}
}

func (t *turns) of(k laneKey) served {
	if v, ok := t.served[k]; ok {
		return v
	}
	return t.longAgo[k]
}

func (t *turns) note(k laneKey, now int64) {
	v := t.of(k)
	if len(t.served) >= t.generation {
		t.longAgo, t.served = t.served, make(map[laneKey]served, t.generation)
	}
	t.served[k] = served{now, v.times + 1}
}

const (
	// What has become due moves to its lane, the oldest first, a bounded number. (The
	// conditions on w are written so that it is found by its key alone.)
	promote = `UPDATE semel_work w SET lane = w.lane || w.account
FROM unnest($2::text[]) AS a(lane)
CROSS JOIN LATERAL (SELECT p.shard, p.account, p.kind, p.operation_id, p.lane FROM semel_work p
	WHERE p.lane = a.lane AND p.due_at <= ` + nowMS + ` ORDER BY p.due_at LIMIT $3 `
	promoteUnlocked  = `FOR UPDATE SKIP LOCKED`
	promoteCondition = `) d
WHERE w.shard = d.shard AND w.account = d.account AND w.kind = d.kind AND w.operation_id = d.operation_id
	AND w.lane || '' = d.lane AND w.due_at + 0 <= ` + nowMS

	// The lanes of the kinds that are asked for, each found by one step in the index
	// from the one before it, and the oldest due work of each.
	selectLanes = `WITH RECURSIVE lanes AS (
	SELECT a.k, f.lane, a.beyond FROM unnest($2::text[], $3::text[], $4::bigint[]) AS a(behind, beyond, k)
	CROSS JOIN LATERAL (SELECT w.lane FROM semel_work w WHERE w.lane > a.behind AND w.lane < a.beyond ORDER BY w.lane LIMIT 1) f
	UNION ALL
	SELECT l.k, f.lane, l.beyond FROM lanes l
	CROSS JOIN LATERAL (SELECT w.lane FROM semel_work w WHERE w.lane > l.lane AND w.lane < l.beyond ORDER BY w.lane LIMIT 1) f
), seen AS (SELECT * FROM lanes LIMIT $5), counted AS (SELECT count(*) AS n FROM seen),
share AS (SELECT least($7::bigint, greatest(1, $6::bigint / greatest(1, n))) AS n FROM counted)
SELECT l.k, d.account, d.operation_id, d.due_at, d.token, d.place, (SELECT n FROM counted), (SELECT n FROM share), ` + nowMS + `
FROM seen l
CROSS JOIN LATERAL (SELECT w.account, w.operation_id, w.due_at, w.token, row_number() OVER (ORDER BY w.due_at) AS place FROM semel_work w
	WHERE w.lane = l.lane AND w.due_at <= ` + nowMS + ` ORDER BY w.due_at LIMIT (SELECT n FROM share)) d`
)

// A look collects the lanes that one claim has seen.
type look struct {
	max, width int // of operations, and of lanes
	kinds      []semel.ClaimKind
	chains     []chain  // for each kind, all shards
	behind     []string // for each chain, the lane to go on from
	reached    []string // for each chain, the last lane of the last round trip
	now        int64
	seen       int // lanes in the last round trip
	lanes      map[laneKey]*lane
	known      map[semel.Key]bool // nil in the first round trip
}

// A lane with its due work, the oldest first.
type lane struct {
	laneKey
	kind  int
	picks []pick
	more  bool // there may be more than these
	turn  served
}

// choose returns up to most pieces of due work.
func (s *Store) choose(ctx context.Context, most int, kinds []semel.ClaimKind) ([]pick, error) {
	l := s.turns.begin(most, kinds)
	if err := s.look(ctx, l, 4*most); err != nil {
		return nil, err
	}
	begun := slices.ContainsFunc(l.behind, func(lane string) bool { return lane != "" })
	if begun && l.seen < l.width { // the rotation has come to its end
		clear(l.behind)
		if err := s.look(ctx, l, 4*most); err != nil {
			return nil, err
		}
	}
	s.turns.remember(l)
	picks, short := l.share()
	if short { // some lane has more, and others had no use for their share
		if err := s.look(ctx, l, most*max(l.seen, 1)); err != nil {
			return nil, err
		}
		s.turns.remember(l)
		picks, _ = l.share()
	}
	s.turns.end(l, picks)
	slices.SortFunc(picks, func(a, b pick) int { return a.key.Compare(b.key) }) // everybody locks in this order
	return picks, nil
}

// look is one round trip: up to quota pieces of due work, in equal shares of the
// lanes behind l.behind. The first one also moves what has become due.
func (s *Store) look(ctx context.Context, l *look, quota int) error {
	lanes, behind, beyond, numbers := make([]string, len(l.chains)), make([]string, len(l.chains)), make([]string, len(l.chains)), make([]int64, len(l.chains))
	for i, c := range l.chains {
		lanes[i], numbers[i] = laneOf(c.shard, c.kind), int64(i)
		behind[i] = lanes[i] + l.behind[i]
		beyond[i] = lanes[i][:len(lanes[i])-1] + "0" // what comes behind every text that begins with the lane
	}
	first := l.known == nil && len(l.lanes) == 0
	if !first {
		l.known = map[semel.Key]bool{}
		for _, at := range l.lanes {
			at.more = false
			for _, p := range at.picks {
				l.known[p.key] = true
			}
		}
	}
	l.seen = 0
	fill := func(b *batch) {
		now := s.now()
		if first {
			b.queue(s.promote(), now, lanes, l.max)
		}
		b.each(selectLanes, []any{now, behind, beyond, numbers, l.width, quota, l.max}, l.scan)
	}
	if !first {
		return s.read(ctx, "claim", fill)
	}
	err := s.write(ctx, "claim", s.opts.BatchLockTimeout, fill)
	if isLost(err) { // a promotion may be made again, or not
		return refusal("claim", err)
	}
	return err
}

func (s *Store) promote() string {
	if s.opts.NoSkipLocked {
		return promote + promoteCondition
	}
	return promote + promoteUnlocked + promoteCondition
}

func (l *look) scan(rows pgx.Rows) error {
	var p pick
	var number, count, share int
	if err := rows.Scan(&number, &p.key.Account, &p.key.ID, &p.due, &p.token, &p.place, &count, &share, &l.now); err != nil {
		return err
	}
	p.kind = number / semel.Shards
	p.key.Kind = l.kinds[p.kind].Kind
	l.seen, l.reached[number] = count, max(l.reached[number], p.key.Account)
	k := laneKey{p.key.Kind, p.key.Account}
	at := l.lanes[k]
	if at == nil {
		at = &lane{laneKey: k, kind: p.kind}
		l.lanes[k] = at
	}
	at.more = at.more || p.place == share
	if p.lane = at; !l.known[p.key] {
		at.picks = append(at.picks, p)
	}
	return nil
}

// share takes equal shares from all lanes, the longest waiting first, and shares
// out again what some of them had no use for. It reports whether it got less than
// it wanted although some lane may have more.
func (l *look) share() (picks []pick, short bool) {
	lanes := make([]*lane, 0, len(l.lanes))
	for _, at := range l.lanes {
		lanes = append(lanes, at)
	}
	slices.SortFunc(lanes, func(a, b *lane) int {
		return cmp.Or(cmp.Compare(max(a.picks[0].due, a.turn.at), max(b.picks[0].due, b.turn.at)),
			cmp.Compare(a.turn.times, b.turn.times), cmp.Compare(a.account, b.account), cmp.Compare(a.kind, b.kind))
	})
	left := make([]int, len(l.kinds))
	for i, k := range l.kinds {
		if left[i] = l.max; k.Max > 0 {
			left[i] = min(l.max, k.Max)
		}
	}
	taken := make([]int, len(lanes))
	for open := true; open && len(picks) < l.max; {
		open = false
		each := (l.max - len(picks) + len(lanes) - 1) / max(len(lanes), 1)
		for i, at := range lanes {
			n := min(each, l.max-len(picks), left[at.kind], len(at.picks)-taken[i])
			picks = append(picks, at.picks[taken[i]:taken[i]+n]...)
			taken[i] += n
			left[at.kind] -= n
			open = open || n > 0
		}
	}
	for i, at := range lanes {
		short = short || at.more && taken[i] == len(at.picks) && left[at.kind] > 0
	}
	return picks, short && len(picks) < l.max
}

// begin makes a look at the lanes whose turn it is.
func (t *turns) begin(most int, kinds []semel.ClaimKind) *look {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(kinds) * semel.Shards
	l := &look{max: most, width: 2*most + 32*t.spread, kinds: kinds, lanes: map[laneKey]*lane{},
		chains: make([]chain, n), behind: make([]string, n), reached: make([]string, n)}
	for i := range n {
		l.chains[i] = chain{int16(i % semel.Shards), kinds[i/semel.Shards].Kind}
		l.behind[i] = t.reached[l.chains[i]]
	}
	return l
}

// remember puts into each lane when it was served last, and its work in order.
func (t *turns) remember(l *look) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, at := range l.lanes {
		at.turn = t.of(k)
		slices.SortStableFunc(at.picks, func(a, b pick) int { return cmp.Compare(a.due, b.due) })
	}
}

// end notes who is served, and where the rotation goes on.
func (t *turns) end(l *look, picks []pick) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, c := range l.chains {
		if l.seen >= l.width && l.reached[i] != "" {
			t.reached[c] = l.reached[i]
		} else {
			delete(t.reached, c)
		}
	}
	noted := map[*lane]bool{}
	for _, p := range picks {
		if !noted[p.lane] {
			noted[p.lane] = true
			t.note(p.lane.laneKey, l.now)
		}
	}
}
