// Package labtest plays the interruptions that retries are about with an effect or a
// handler of your own, in go test, and counts what came of them.
//
// You say how it is built and how its effects are counted. The rest is real: worker
// and server processes that are killed with SIGKILL, a network that loses answers,
// a database.
//
//	func TestCharge(t *testing.T) {
//		bank := &fakeBank{charges: map[string]charge{}}
//		labtest.TestEffect(t, labtest.Effect{
//			New:      func(place labtest.Place) (effect.Effect, error) { return NewCharge(place.Service), nil },
//			Contract: bankContract,
//			Service:  bank,
//			Params:   func(id string) string { return fmt.Sprintf(`{"customer":%q,"amount":5}`, id) },
//			Count:    bank.count,
//		})
//	}
//
// The whole of it, with the effect and the fake, is charge_test.go in this folder; a
// handler is in order_test.go. Both are run as tests.
//
// # An effect
//
// [TestEffect] plays each of these with one operation, and one or two workers:
//
//	undisturbed            nothing goes wrong
//	answer-lost            the answer is lost, after the effect
//	done-then-503          it is done, and the worker is told 503
//	cut-before             the connection breaks before the service has the call,
//	cut-during             in the middle of the call,
//	cut-after              in the middle of the answer
//	duplicated             the network delivers the call twice (where the contract has a key)
//	duplicated-at-once     likewise, at the same moment
//	delivered-late         the call arrives when its caller has long given up
//	two-at-once            two ask for the same at the same moment, and two workers are there
//	changed-request        the same key comes again with another request
//	killed-before-begin    the worker is killed before it is on record that it begins,
//	killed-after-begin     before it calls,
//	killed-sent            while its call is on the way (which arrives),
//	killed-done            between the effect and the answer,
//	killed-answered        between the answer and the write-back,
//	killed-writing         within the write-back,
//	killed-written         when it has written back
//	outlived-before-call   the worker sleeps before its call until another has taken over, and wakes up,
//	outlived-answered      or sleeps with its answer
//
// What must come of it follows from the contract. Where the service knows a key
// again or can be asked, that is one effect and "succeeded", always. Where it can do
// neither (the contract is opaque), it is never more than one effect, and
// "needs_reconciliation" exactly where nobody can know.
//
// So a contract that promises more than the service keeps is found out, and so is an
// effect that makes a new key for each try, sends more than once by itself, says
// "not applied" where it does not know, or goes on when its context has ended.
//
// # A handler
//
// [TestHandler] sends requests with a key to a handler that says of itself that they
// may be repeated: one wrapped by package idempotency, or any other one with a
// [contract.Contract]. It repeats each request until an answer says how it ended, as
// a careful client does, and then once more.
//
//	undisturbed, answer-lost, done-then-503, cut-before, cut-during, cut-after,
//	duplicated, duplicated-at-once, delivered-late, two-at-once, changed-request
//	                       as above, between client and server
//	killed-answered        the answer is lost, and the server is killed after it
//	killed-anywhere        the server is killed at ten moments spread over a request
//	killed-in-call         the server is killed while its call to the service is on the way,
//	killed-done            between the effect and the write-back
//	outlived               the server sleeps there until another has taken over, and wakes up
//	service-answer-lost    the service's answer is lost, after the effect
//
// The last four are for a handler with a Service. These and killed-anywhere may end in "nobody knows", if the handler says so; the others must
// end in one effect and its answer, the same at every repeat.
//
// # Verdict
//
// Each row is a subtest. It ends with three counts (operations on record, effects by
// your own Count, and what the user sees) and with the rules of package history over
// all that was sent, answered and recorded. A row that fails says what was wrong,
// what went over the wire, with keys, and what each worker did:
//
//	--- FAIL: TestCharge/effect/answer-lost (0.65s)
//	    the answer is lost, after the effect
//	      1 operation, 2 effects, succeeded; each operation should be 1 effect, succeeded
//	      wrong: 2 effects
//	      wrong: one effect: 2 effects
//	      wrong: truth: it is succeeded, with 2 effects
//	      21:43:06.009 POST /charges key 01a22e69-5a0e-…: the other side answered [201], but "lose-answer … count=1" (faulted)
//	      21:43:06.097 POST /charges key 01a22e69-5a6f-…: the other side answered [201]
//	      21:43:05.972 worker, execution 1: unknown {"did":"call","contract":"bank",…}
//	      21:43:06.088 worker, execution 2: applied {"did":"call","contract":"bank",…}
//
// (Here the effect had made a new key for each try.)
//
// Run one row with go test -run TestCharge/effect/answer-lost.
//
// # Processes
//
// The processes are your test binary, started again with -test.run for this one
// test. In them your test function runs up to the call of TestEffect or TestHandler,
// which does not return there. So what stands before that call must be harmless when
// it is done again: make the fakes, but put nothing into a shared database. [Child]
// tells a TestMain, or a test, where it is. One test function (or t.Run) plays one
// matrix.
//
// New runs in those processes, and everything else in the test's own. A fake with
// books in memory is therefore fine: it outlives whoever is killed.
//
// # Time
//
// A row without a kill takes a tenth of a second; one with a kill takes a lease,
// which is a little longer than [Effect.Timeout]. Rows run beside each other, as
// many as -parallel says. A contract with a look-up should have a short
// look_up.absent_after in the test, and a handler a short lease.
//
// # Stores
//
// SQLite, in a file of each row's own, needs nothing. For PostgreSQL set Store, or
// SEMEL_LAB_STORE=postgres://… for all tests: it must be a database for tests, as
// the operations are left behind there.
//
// # Limits
//
// The calls of an effect are interrupted on their way to [Place.Service], so they
// must be HTTP. Rows that put a process to sleep are left out where processes can't
// be stopped. "killed-writing" and "killed-anywhere" kill at moments of chance: a
// pass is no proof there, only many are.
package labtest
