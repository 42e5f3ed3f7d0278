package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Shapes are the contract shapes.
var Shapes = []string{"idempotent", "queryable", "opaque"}

// Scripts are what callers do. The first five are callers without a client, who
// repeat as they like:
//
//   - submit: ask, and ask again until there is an answer; look it up in the end.
//   - two: two callers ask for the same at the same time.
//   - changed: after the answer, ask for something else with the same key.
//   - abandon: ask; where there is no answer, abandon; then ask once more.
//   - expire: when it is settled, let its retention pass, purge, and ask again.
//
// The others are programs with a durable client and a journal, which start anew
// when they have died:
//
//   - journal: begin, submit, forget, with an ID that the client makes: where the
//     journal holds nothing, nothing was sent, and it begins again with another ID.
//   - do: all three in one call, with an ID of the caller's own, again after a crash.
//   - resume: begin, and leave everything else to resume; the first outcome is not
//     taken, so that it has to come again.
//   - give-up: submit, leave after the first answer, or none, and abandon.
//   - rival: another client with a journal of its own asks for the same meanwhile.
//   - clash: another client asks for something else with the same key.
//   - outlive: leave after the first answer, or none; come back when the retention
//     has passed.
//   - direct: no server of ours is between the client and the external service.
var Scripts = []string{"submit", "two", "changed", "abandon", "expire",
	"journal", "do", "resume", "give-up", "rival", "clash", "outlive", "direct"}

// A Kind is a kind of fault.
type Kind string

// The faults. What "before" and "after" mean is the boundary's matter: a call to
// the store that fails before or after its commit, a request that is lost before
// or after it was carried out.
const (
	ErrorBefore Kind = "error-before"
	ErrorAfter  Kind = "error-after"
	CrashBefore Kind = "crash-before"
	CrashAfter  Kind = "crash-after"
	Lost        Kind = "lost"       // it is lost on its way, after it was sent
	Duplicate   Kind = "duplicate"  // it is delivered twice
	Late        Kind = "late"       // it is lost now and arrives later
	Stray       Kind = "stray"      // it is delivered, and a copy of it arrives much later
	LostLease   Kind = "lost-lease" // the lease ends here, and another worker has its turn first
	Overtaken   Kind = "overtaken"  // another caller asks for the same, and a worker has its turn, first
	Asleep      Kind = "asleep"     // the client's machine sleeps for two days
	SetBack     Kind = "set-back"   // the client's clock goes back an hour
)

// A boundary is a place where something can go wrong.
type boundary string

const (
	toServer   boundary = "message"      // from a caller to the server, and back
	toRead     boundary = "read"         // the same for a look-up
	toEvents   boundary = "events"       // the same for a stream of events
	toJournal  boundary = "journal"      // from a client
	toClock    boundary = "clock"        // a client waits
	toClaim    boundary = "claim"        // a worker's claim in the store
	toStore    boundary = "store"        // what else a worker writes there
	fromServer boundary = "server-store" // what a server writes there
	toRow      boundary = "row"          // a worker reads there
	fromRow    boundary = "server-row"   // a server reads there
	toPurge    boundary = "purge"        // a server forgets there
	toService  boundary = "service"      // a call that may have an effect
	toLookUp   boundary = "look-up"
)

// faults are those of each boundary that make a difference there: a read that
// fails after it is as one that fails before, and whoever fails to claim does as one
// that crashes.
var faults = map[boundary][]Kind{
	toServer:   {ErrorBefore, Lost, ErrorAfter, CrashBefore, CrashAfter, Duplicate, Late, Stray},
	toRead:     {ErrorAfter, CrashAfter},
	toEvents:   {ErrorAfter, CrashAfter},
	toJournal:  {ErrorBefore, ErrorAfter, CrashBefore, CrashAfter},
	toClock:    {CrashBefore, Asleep, SetBack},
	toClaim:    {ErrorBefore, CrashAfter},
	toRow:      {ErrorBefore, CrashBefore, LostLease},
	fromRow:    {ErrorBefore, CrashBefore, Overtaken},
	toPurge:    {ErrorBefore, CrashAfter, Overtaken},
	toStore:    {ErrorBefore, ErrorAfter, CrashBefore, CrashAfter, LostLease},
	fromServer: {ErrorBefore, ErrorAfter, CrashBefore, CrashAfter, Overtaken},
	toService:  {ErrorBefore, ErrorAfter, CrashBefore, CrashAfter, Duplicate, Late, LostLease},
	toLookUp:   {ErrorBefore, CrashBefore, CrashAfter, LostLease},
}

func faultsAt(b boundary) []Kind { return faults[b] }

func known(k Kind) bool {
	for _, kinds := range faults {
		if slices.Contains(kinds, k) {
			return true
		}
	}
	return false
}

// A Fault is a fault at the boundary of that number, counted from 0 in the order
// in which a run meets them.
type Fault struct {
	At   int
	Kind Kind
}

// A Schedule is all that a run depends on.
type Schedule struct {
	Shape, Script string
	Faults        []Fault
}

func (s Schedule) with(f Fault) Schedule {
	s.Faults = append(slices.Clone(s.Faults), f)
	return s
}

// String returns a text such as "opaque/submit:3=error-after,9=crash-before".
func (s Schedule) String() string {
	var faults []string
	for _, f := range s.Faults {
		faults = append(faults, fmt.Sprintf("%d=%s", f.At, f.Kind))
	}
	return s.Shape + "/" + s.Script + ":" + strings.Join(faults, ",")
}

// ParseSchedule reads what String wrote.
func ParseSchedule(text string) (Schedule, error) {
	head, tail, _ := strings.Cut(text, ":")
	shape, script, ok := strings.Cut(head, "/")
	s := Schedule{Shape: shape, Script: script}
	if !ok || !slices.Contains(Shapes, shape) || !slices.Contains(Scripts, script) {
		return s, fmt.Errorf("%q: a schedule begins with SHAPE/SCRIPT: one of %s, and one of %s", text,
			strings.Join(Shapes, ", "), strings.Join(Scripts, ", "))
	}
	for one := range strings.SplitSeq(tail, ",") {
		if one == "" {
			continue
		}
		at, kind, _ := strings.Cut(one, "=")
		n, err := strconv.Atoi(at)
		if err != nil || n < 0 || !known(Kind(kind)) {
			return s, fmt.Errorf("%q is not NUMBER=FAULT, as in 7=crash-after", one)
		}
		s.Faults = append(s.Faults, Fault{n, Kind(kind)})
	}
	return s, nil
}
