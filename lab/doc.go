// Package lab makes the interruptions that retries are about, on purpose, and
// counts what came of them: over real HTTP, with real processes that are really
// killed, on a real database.
//
//	semel lab                        every scenario; one table
//	semel lab notes                  one group of them; `semel lab list` has the names
//	semel lab --unsafe lost-answer   a scenario without what protects it: watch the duplicate appear
//	semel lab crash                  the worker, killed at every point of an execution
//	semel lab soak --for 60s         random kills and faults, many clients, then the same checks
//
// # Scenarios
//
// A [Scenario] is one interruption. It starts what it needs (servers, workers, an
// external service with books of its own), causes the interruption, and ends with
// three counts and a verdict: what the user sees, how many operations are on
// record, and how many effects there were outside. The books of the external
// service are what counts: they know nothing of Semel.
//
// [Scenarios] lists them; [Run] runs some. Most have an unsafe variant, in which
// one thing is done as it is often done: a key for each attempt, a look before an
// insert, a worker that simply runs again. Then the verdict is no.
//
// The group "notes" is the smallest case: [github.com/semel-dev/semel/examples/notes]
// with its right and its wrong client, and the answer lost after the write. Its
// rows also hold which key each send carried. Some of them show a mistake, and are
// as they should be when the mistake does its harm. The notes are in SQLite
// whatever store the lab is given.
//
// # Crash matrix
//
// [Crash] kills a worker process with SIGKILL at each point of an execution, under
// each promise of the external service, and lets another one recover:
//
//	before begin     before it is on record that the effect may happen
//	after begin      the begin mark is written, nothing was sent
//	sent             the request is with the service, which kills the worker and then does it
//	done             the effect happened; the service kills the worker and holds the answer
//	answered         the answer is there, and is not written back
//	writing          within the write-back
//
// # Soak
//
// [Soak] runs several nodes and many clients for a while, with lost answers, cuts
// and kills at random moments, and judges the whole recording with package
// history: no duplicate, nothing lost that was acknowledged, nothing stuck.
//
// # Processes
//
// A process of the lab is the same program in one of the [Roles]. A worker ends
// itself at a named point, or the external service kills it; either way it is
// SIGKILL, and nothing is cleaned up. Package worker has no hook for this: the
// points are in the store, the effect and the socket that its process gives it.
//
// # Your own
//
// Package [github.com/semel-dev/semel/lab/labtest] plays the interruptions with an
// effect or a handler of yours, in go test.
//
// # Adding a scenario
//
// One file, scenario_name.go, with a variable of type [Scenario] (or a function that
// returns a group of them); and one line in the list in scenarios.go. Then the table
// in the README, from semel lab --markdown.
package lab
