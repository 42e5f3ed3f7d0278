// Package semel makes an operation happen once, however often it is asked for.
//
// A caller that got no answer does not know whether anything happened. Semel
// ends the guessing: every user intent has one identity, its [Key], made before
// the first send and unchanged through every retry; a [Ledger] lets the
// database decide who created the [Operation] of that key, answers every repeat
// from the record, and refuses a changed request under an old key. What could
// not be found out is called "unknown" and kept as such until somebody can tell.
//
// # The nouns
//
//   - [Key] is account, kind and operation ID. [NewID] makes an ID.
//   - [Operation] is one user intent and all that is known of it. It moves
//     through the states of [State]; [Transitions] is the whole table.
//   - [Ledger] decides. All rules live in it and in the table.
//   - [Store] remembers. It owns no rule; package storetest is its judge, and
//     packages sqlite and postgres are two of them.
//   - [Lease] is the time-limited right to execute one operation. Its token
//     rises with every claim, so a late writer is recognised and refused.
//   - [Error] is every error of this module, with a stable [Code].
//
// # One way to write
//
// [Ledger.Accept] records the operation and its pending work in one commit.
// [Ledger.Claim] leases due work. [Ledger.Begin] marks, before the effect, that
// it may happen. [Ledger.Finish] writes the outcome, if the lease's token is
// still the current one. [Ledger.Abandon] makes sure that something never
// happens, and [Ledger.Resolve] records a person's verdict where nobody else
// can tell.
//
// # In your own transaction
//
// [Ledger.In] gives a ledger that works inside a transaction of yours, so that
// the operation and your business rows commit together or not at all. See
// sqlite.Tx and postgres.Tx.
//
// # Time
//
// Only the store's clock counts. No method compares a stored time with the time
// of the machine that it runs on; durations go down, and the store adds them to
// its own now.
package semel
