// Package storetest is the judge of every [semel.Store]: a store that passes it
// needs no other test of meaning.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness {
//			path, clock := filepath.Join(t.TempDir(), "semel.db"), storetest.NewClock()
//			return storetest.Harness{
//				Clock: clock,
//				Open: func() (semel.Store, error) {
//					return sqlite.Open(context.Background(), path, &sqlite.Options{Clock: clock.Now})
//				},
//			}
//		})
//	}
//
// # What it does
//
// [Run] makes a harness for every test, so each begins with an empty database.
// The tests go through the contract of [semel.Store] sentence by sentence: what a
// call answers, what it leaves alone, who wins a race, what a lost caller leaves
// behind, what is there after a restart. A random walk compares the store, row by
// row, with a model that is as plain as the contract.
//
// # The invariants
//
// Every store is watched while it is tested: a witness between the test and the
// store notes every row that any call ever answered with. In the cleanup of each
// test, whatever it was about, the notes and the whole database are judged:
//
//   - an operation succeeds at most once, and has at most one applied outcome;
//   - revisions have no gaps, and no two writes made the same one; what a revision
//     looked like never changes;
//   - tokens never fall, and each claim has one of its own; no lease was given
//     while another one ran;
//   - a settled operation stays as it is, but for its flags and its expiry;
//   - there is a work row exactly while an operation is accepted or processing;
//   - an execution's token is not above the operation's, and Executions counts
//     those that began;
//   - ExpiresAt is set exactly when the operation is settled;
//   - nothing is gone that was not settled and behind the horizon;
//   - lists, counts and single reads tell the same.
//
// # The ledger, too
//
// [RunLedger] tests the rules of a [semel.Ledger] through [LedgerAPI], which a
// ledger satisfies by itself and a client of its HTTP interface through a small
// adapter. It is the proof that both say the same.
package storetest
