package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// A Doubt is something that the file may say, and hardly means.
type Doubt struct {
	// At is "file:line: member".
	At string
	// Msg is what follows from it.
	Msg string
}

// Doubts returns what is accepted, but hardly meant, in the file's order of
// accounts and kinds.
func (c *Config) Doubts() []Doubt {
	var list []Doubt
	doubt := func(path []string, format string, args ...any) {
		place := dotted(path)
		if c.doc != nil {
			place = c.doc.line(path) + ": " + place
		}
		list = append(list, Doubt{place, fmt.Sprintf(format, args...)})
	}
	if len(c.Accounts) == 0 && len(c.Operators) == 0 {
		doubt(at("accounts"), "there are no accounts and no operators, so nobody may ask for anything")
	}
	ended := func(t Time, path ...string) {
		if !t.T().IsZero() && t.T().Before(time.Now()) {
			doubt(append(path, "expires"), "this token has expired, and is refused")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Accounts)) {
		for i, t := range c.Accounts[name].Tokens {
			ended(t.Expires, "accounts", name, "tokens", strconv.Itoa(i))
		}
	}
	for i, o := range c.Operators {
		ended(o.Expires, "operators", strconv.Itoa(i))
	}
	if poll := c.Worker.Poll.D(); poll > time.Minute {
		doubt(at("worker", "poll"), "work may wait for %s before a worker looks", poll)
	}
	if drain := c.Worker.Drain.D(); drain > 10*time.Minute {
		doubt(at("worker", "drain"), "this process may take %s to stop", drain)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Kinds)) {
		c.Kinds[name].doubts(func(member, format string, args ...any) { doubt(at("kinds", name, member), format, args...) })
	}
	return list
}

func (k Kind) doubts(doubt func(member, format string, args ...any)) {
	timeout, lease := k.times()
	switch {
	case lease <= time.Hour:
	case k.Lease.D() > 0:
		doubt("lease", "a worker that dies in an execution is noticed only after %s", lease)
	default:
		doubt("timeout", "one call may take %s, so the lease is %s, and a worker that dies in an execution is noticed only then", timeout, lease)
	}
	if budget := k.Budget.D(); budget > 0 && budget < timeout {
		doubt("budget", "an operation is tried for %s, which is less than the %s that one call may take", budget, timeout)
	}
	if kept := k.Retention.D(); kept > 0 && kept < time.Minute {
		doubt("retention", "a repeat later than %s is not answered from the record any more", kept)
	}
}
