// Package expect says what an operation must come to when its worker is killed.
package expect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
)

// A Want is what one operation must come to.
type Want struct {
	// Least and Most bound its effects outside.
	Least, Most int
	// States are those that it may end in.
	States []semel.State
}

// String says it in words.
func (w Want) String() string {
	effects := Plural(w.Least, "effect")
	if w.Least != w.Most {
		effects = fmt.Sprintf("%d to %s", w.Least, Plural(w.Most, "effect"))
	}
	var states []string
	for _, s := range w.States {
		states = append(states, string(s))
	}
	return effects + ", " + strings.Join(states, " or ")
}

// Wrong says what is not as wanted; nil if all is.
func (w Want) Wrong(effects int, state semel.State) []string {
	var wrong []string
	if effects < w.Least || effects > w.Most {
		wrong = append(wrong, Plural(effects, "effect"))
	}
	if !slices.Contains(w.States, state) {
		wrong = append(wrong, "it is "+string(state))
	}
	return wrong
}

// Plural is a number with its noun.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// A Point is where in an execution its worker is killed.
type Point string

// The points, in their order.
const (
	BeforeBegin Point = "before begin" // before it is on record that the effect may happen
	AfterBegin  Point = "after begin"  // the begin mark is written, nothing was sent
	Sent        Point = "sent"         // the request is on its way, and arrives
	Done        Point = "done"         // the effect happened; the answer is not there
	Answered    Point = "answered"     // the answer is there, and is not written back
	Writing     Point = "writing"      // within the write-back
)

// Once is an operation of which nothing stays unknown.
var Once = Want{1, 1, []semel.State{semel.Succeeded}}

// AfterDeath is what an operation must come to whose worker was killed at a point.
// Where the service can neither be called again nor asked (it is opaque), what may
// be said is decided by whether the call may have gone out.
func AfterDeath(opaque bool, at Point) Want {
	if !opaque {
		return Once
	}
	nobody := []semel.State{semel.NeedsReconciliation}
	switch at {
	case AfterBegin:
		return Want{0, 0, nobody}
	case Sent:
		return Want{0, 1, nobody}
	case Done, Answered:
		return Want{1, 1, nobody}
	case Writing: // either it was written, or it was not
		return Want{1, 1, []semel.State{semel.Succeeded, semel.NeedsReconciliation}}
	}
	return Once
}
