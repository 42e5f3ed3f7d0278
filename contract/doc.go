// Package contract holds what an API promises about repeated requests, as plain data, and everything that follows
// from it by reasoning alone: what an answer proves, what all the transmissions of one operation prove together,
// and what may be done next when nobody knows the outcome.
//
// # The data
//
// A [Contract] is a tree of small structs, one for each axis on which APIs differ: where the key travels
// ([Carrier]), what it must look like ([KeyGrammar]), when it counts ([Use]), within what it is unique ([Scope]), how
// long it is kept and what happens then ([Retention]), what is compared ([Compare]), what the API answers when the
// key comes with another request ([Mismatch]) or while the first is still running ([InProgress]), what a repeat is
// given ([Replay]), which outcomes are stored ([Stored]), what the other answers prove ([Answers]), how an operation
// is looked up ([LookUp]) and whether a new key may take over ([Successor]).
// The zero value of every field means "the contract says nothing about it", and nothing is ever concluded from that.
// A Contract can be written in a configuration file ([Parse]), checked ([Contract.Validate],
// [Contract.CheckBudget]), stored as JSON with each execution, and told in plain words ([Contract.Words]).
// [Preset] returns the ones that are built in.
//
// # The reasoning
//
// Reasoning goes in three steps, and only the last two may decide anything.
//
//  1. [Contract.Classify] looks at one transmission: the request, what was seen on the wire, and the answer if there
//     was one. It returns a [Proof]: not sent, not applied, refused, applied, in progress, or unknown. A status code
//     alone never proves anything; "I have no answer" never becomes "nothing happened".
//  2. [Evidence] folds the proofs of all transmissions of one operation, because a proof covers one transmission.
//     Once one of them is unknown, a later "not sent" or "refused" changes nothing: only an answer for that key, a
//     look-up or a verdict ends it. [Contract.ClassifyLookUp] turns the result of a look-up into a proof, and knows
//     that "not found" proves nothing before the contract says so.
//  3. [Contract.Recover] takes the fold and a few durations and says what to do next: settle, run, call again, look
//     up, wait, or give the operation to a person. [Contract.Again] answers the smaller question of a transport: may
//     this request go out once more?
//
// Everything here is pure: no clock, no goroutine, no input or output. Values are safe for concurrent use as long as
// nobody changes them; [Tracer] alone has state of its own, and locks it.
//
// # From the wire
//
// [WireFrom] turns the error of an [net/http.Client] and the facts that a [Tracer] collected into a [Wire]. It is
// careful in one direction only: what it does not recognise is unknown.
package contract
