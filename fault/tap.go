package fault

import (
	"bytes"
	"context"
	"slices"
	"sync"
)

// tailSize is how much of what the client has sent is remembered, so that
// contains= is found across packets.
const tailSize = 1 << 10

// tap decides what happens to the bytes of one connection. It moves none
// itself: whoever does asks before, and does what the cue says.
type tap struct {
	*record

	mu       sync.Mutex
	opening  *Rule         // for the whole connection, until it is spent
	tail     []byte        // the last bytes from the client, in lower case
	passed   int64         // bytes from the client
	turn     int           // how often the client has begun to speak
	answered bool          // the server has spoken since
	answer   *Rule         // for what the server says next
	sent     chan struct{} // closed when the server has what answer waits for
	returned int64         // bytes from the server since answer was set
	muted    bool          // nothing more is returned
}

// cue is what happens to a piece of bytes: wait for each of waits, let pass
// bytes through, then cut if cut is set.
type cue struct {
	waits []*Rule
	pass  int
	cut   *Rule
	after <-chan struct{} // the cut waits for this; nil: it does not
}

// newTap opens the entry of a connection and counts it.
func (in *Injector) newTap(remote string) *tap {
	t := &tap{record: in.open(Entry{Proto: "tcp", Remote: remote})}
	t.opening = in.pick(func(r *Rule) bool { return r.Contains == "" && r.Fault != ReplayOldConnection })
	if t.opening != nil && t.opening.Fault == CutAfter {
		t.arm(t.opening)
	}
	return t
}

// refused returns the rule that cuts the connection before it carries anything.
func (t *tap) refused() *Rule {
	if t.opening != nil && t.opening.Fault == CutBefore {
		return t.opening
	}
	return nil
}

// arm sets what happens to the server's next bytes, unless that is set.
func (t *tap) arm(rule *Rule) {
	if t.answer == nil {
		t.answer, t.returned = rule, 0
		t.sent = make(chan struct{})
	}
}

// delivered says that everything from the client so far has reached the server.
func (t *tap) delivered(n int) {
	t.edit(func(e *Entry) { e.Sent += int64(n) })
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sent != nil {
		select {
		case <-t.sent:
		default:
			close(t.sent)
		}
	}
}

// client decides about bytes from the client.
func (t *tap) client(chunk []byte) cue {
	t.mu.Lock()
	defer t.mu.Unlock()
	begins := t.speaks()
	c := cue{pass: len(chunk)}
	if t.begin(&c, begins, len(chunk)); c.cut != nil {
		return c
	}
	if t.find(&c, chunk); c.cut != nil {
		return c
	}
	t.passed += int64(len(chunk))
	return c
}

// speaks notes that the client sends, and reports whether this begins a turn.
func (t *tap) speaks() bool {
	begins := t.turn == 0 || t.answered
	if begins {
		t.turn++
	}
	t.answered = false
	return begins
}

// begin applies the rules that look at the connection, not at its bytes.
func (t *tap) begin(c *cue, begins bool, size int) {
	if rule := t.opening; rule != nil {
		switch {
		case rule.Fault == CutDuring:
			if left := rule.cutPoint(1<<62) - t.passed; int64(size) >= left {
				c.pass, c.cut = int(left), rule
				return
			}
		default:
			t.opening = nil
			t.apply(c, rule, 0, 0)
		}
	}
	if begins && t.turn > 1 {
		rule := t.in.pick(func(r *Rule) bool { return r.Contains == "" && r.Fault == ReplayOldConnection })
		if rule != nil {
			t.apply(c, rule, 0, 0)
		}
	}
}

// find applies the rules that look for bytes, in the order in which these end.
func (t *tap) find(c *cue, chunk []byte) {
	text := append(t.tail, lower(chunk)...)
	before := len(t.tail)
	for _, end := range t.ends(text, before) {
		found := func(r *Rule) bool {
			return r.Contains != "" && bytes.HasSuffix(text[:end], lower([]byte(r.Contains))) &&
				(r.Fault != ReplayOldConnection || t.turn > 1)
		}
		rule := t.in.pick(found)
		if rule == nil {
			continue
		}
		t.apply(c, rule, end-before-len(rule.Contains), end-before)
		if c.cut != nil {
			return
		}
	}
	t.tail = slices.Clone(text[max(0, len(text)-tailSize):])
}

// ends returns where in text, behind before, the bytes of a rule end.
func (t *tap) ends(text []byte, before int) []int {
	var ends []int
	for _, s := range t.in.Rules() {
		want := lower([]byte(s.Rule.Contains))
		if len(want) == 0 {
			continue
		}
		for from := max(0, before-len(want)+1); ; {
			i := bytes.Index(text[from:], want)
			if i < 0 {
				break
			}
			ends = append(ends, from+i+len(want))
			from += i + 1
		}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}

// apply adds rule to the cue; its bytes are chunk[start:end].
func (t *tap) apply(c *cue, rule *Rule, start, end int) {
	switch {
	case rule.Fault == CutBefore, rule.Fault == ReplayOldConnection && rule.at() == Before:
		c.pass, c.cut = 0, rule
	case rule.Fault == CutDuring && rule.Bytes != 0:
		c.pass, c.cut = int(rule.cutPoint(int64(c.pass))), rule
	case rule.Fault == CutDuring:
		c.pass, c.cut = max(0, start+(end-start)/2), rule
	case (rule.Fault == Delay || rule.Fault == Hold) && rule.at() == Before:
		c.waits = append(c.waits, rule)
	default:
		t.arm(rule)
	}
}

// server decides about bytes from the server.
func (t *tap) server(chunk []byte) cue {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := cue{pass: len(chunk)}
	rule := t.answer
	switch {
	case t.muted:
		c.pass = 0
	case rule == nil:
	case rule.Fault == Delay, rule.Fault == Hold:
		c.waits, t.answer = []*Rule{rule}, nil
	case rule.Fault == CutAfter:
		left := rule.cutPoint(1<<62) - t.returned
		if int64(len(chunk)) >= left {
			c.pass, c.cut = int(left), rule
		}
	default: // LoseAnswer, ReplayOldConnection
		c.pass, c.cut, c.after = 0, rule, t.sent
	}
	t.returned += int64(c.pass)
	t.answered = t.answered || t.turn > 0
	return c
}

// returnedBytes notes bytes that have reached the client.
func (t *tap) returnedBytes(n int) {
	t.edit(func(e *Entry) { e.Received += int64(n) })
}

// await does the waiting of a cue. It returns an error where the connection
// has ended meanwhile.
func (t *tap) await(ctx context.Context, c cue) error {
	for _, rule := range c.waits {
		if err := t.wait(ctx, rule); err != nil {
			return err
		}
		t.faulted(rule)
	}
	if c.after != nil {
		select {
		case <-c.after:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// lower returns p with the letters A to Z in lower case.
func lower(p []byte) []byte {
	out := slices.Clone(p)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}
