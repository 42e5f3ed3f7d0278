// Package history judges what happened.
//
// Whoever makes faults on purpose, be it the fault lab over real processes or an
// exhaustive exploration in one, records what callers sent and were told, what
// happened outside, and what is on record in the end. That recording is a
// [History]. Every promise of this module is a [Rule] over it: a pure function
// that returns the [Violation]s it found.
//
//	var rec history.Recorder
//	rec.Add(history.Event{What: history.Sent, Key: key, Verb: "PUT", Content: "1", Attempt: "a"})
//	…
//	violations := history.Check(rec.History(kinds))
//
// The rules do not depend on the order in which answers arrive, since an answer
// may be old when it is read: what was seen is ordered by the revisions that the
// operations themselves carry.
//
// # The rules
//
//	one effect           an operation has at most one effect outside
//	asked for            there is no effect that nobody asked for, or that was not begun on record
//	truth                succeeded is exactly one effect, failed and abandoned are none
//	settled stays        a settled operation never looks different again
//	answers              every answer is what the record says, or once said
//	nothing lost         what was acknowledged is on record
//	one meaning          a key never stands for two different requests
//	unknown              needs_reconciliation only where the contract has nothing better, and an execution is in doubt
//	nothing stuck        in the end every operation is settled, or needs reconciliation
//	one outcome          an operation has at most one applied outcome, and each execution a token of its own
//	told                 what a client says of an intent is so, and in the end it says how it has ended
//	one intent           an intent has at most one effect, whatever keys it was asked for under
//
// [Rules] has them as data, so that a program can print them or leave some out.
//
// [Linearizable] does look at the order of calls and answers. It needs a recording
// that has all calls, also those of workers and operators.
package history
