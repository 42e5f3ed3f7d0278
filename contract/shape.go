package contract

import "strings"

// Shape is what a contract comes down to when something has gone wrong: may one call again, and may one look? It is
// derived from the axes, never stated. A contract may be both idempotent and queryable; one that is neither is opaque.
type Shape struct {
	// Idempotent: a repeat under the same key has no second effect for a stated time.
	Idempotent bool
	// Queryable: an operation can be found without repeating it.
	Queryable bool
}

// Opaque reports whether neither a repeat nor a look-up can tell the outcome: unknown stays unknown.
func (s Shape) Opaque() bool { return !s.Idempotent && !s.Queryable }

// String returns "idempotent", "queryable", "idempotent+queryable" or "opaque".
func (s Shape) String() string {
	var words []string
	if s.Idempotent {
		words = append(words, "idempotent")
	}
	if s.Queryable {
		words = append(words, "queryable")
	}
	if len(words) == 0 {
		return "opaque"
	}
	return strings.Join(words, "+")
}

// MarshalText returns the text of [Shape.String].
func (s Shape) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Shape derives the shape from the axes.
//
// A contract is idempotent when a key travels ([Carrier]), when its retention is stated (a minimum, or for ever), and
// when a second request does not run beside the first ([ConcurrentRuns]). It is queryable when it has a [LookUp]. What
// is missing is never assumed: a contract that says nothing is opaque.
func (c Contract) Shape() Shape {
	return Shape{
		Idempotent: c.Carrier.In != "" && c.Retention.stated() && c.InProgress.Do != ConcurrentRuns,
		Queryable:  c.LookUp.By != "",
	}
}

// stated reports whether the contract says how long a key is kept at the least.
func (r Retention) stated() bool { return r.Minimum > 0 || r.After == AfterKeptForEver }
