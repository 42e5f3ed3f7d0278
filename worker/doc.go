// Package worker executes operations: it claims due work from a ledger, makes
// the external call under its contract, and writes down what that proved.
//
//	w, err := worker.New(ledger, []worker.Kind{{
//		Name:     "order",
//		Contract: contract, // what the external service promises about repeats
//		Effect:   call,     // package effect: HTTP from data, or a function
//	}}, nil)
//	…
//	err = w.Run(ctx) // until ctx ends; then it drains
//
// Any number of workers may run on one store, in any number of processes. Each
// may die at any instant.
//
// # One lease, one act
//
// A claim gives a [semel.Lease]. Under it the worker does one thing: call, or
// look up, or hand the work back; then it finishes the lease with what it saw.
// What is to be done is decided by [Step], a pure function of the lease, the
// contract and what was observed:
//
//	nothing is in doubt                    → begin mark (opaque kinds), call
//	an earlier execution is in doubt       → what its own contract allows:
//	    inside the downstream's retention  → the same key and bytes again
//	    a look-up exists                   → look up
//	        found done, found failed       → that is the outcome
//	        absent, absent_after has passed→ nothing happened: it runs anew
//	        absent so far, or can't tell   → look again later; that is no execution
//	    the call may still be on its way   → wait
//	    nothing of these                   → needs reconciliation: a person decides
//
// The contract that counts after a doubt is the one that was stored with the
// first doubtful execution, whatever today's configuration says. Retention is
// counted from when that execution began, with a margin of one call's timeout
// and a fiftieth of the retention. "Absent" counts from the end of the last
// doubtful lease plus the call's timeout.
//
// A proof covers one transmission. After a doubt, "refused" or "not sent" leaves
// the operation in doubt unless it speaks for the key.
//
// # Leases
//
// The end of a lease is counted by the process's monotonic clock from before the
// claim was asked for, so it is never taken to be later than the store has it.
// Leases are renewed together, at a third of their length. Where renewal fails,
// the effect's context ends a tenth of the lease before the lease does. A result
// that comes too late is handed to the ledger all the same, which keeps it as
// evidence. A call's timeout is shorter than the lease; [New] checks that.
//
// # Retries
//
// Provably nothing happened: it is tried again after a random time between zero
// and a bound that doubles (full jitter), at most [Retry.MaxExecutions] times and
// within [Retry.Budget]; then the operation fails. A Retry-After is a lower
// bound; one that does not fit into the budget ends it. The budget is that of one
// operation since its first execution, or since a person's verdict.
//
// # Outages
//
// Kinds with the same [Kind.Host] share that host's limit. Five troubles in a row
// pause the host; it is then tried with one call at a time, and each success
// lets one more in. While it is paused nothing is claimed for it, so an outage
// spends no budgets but those of the probes.
//
// # Stopping
//
// When the context of [Worker.Run] ends, claiming ends too. Work that has not
// begun is handed back at once. Calls under way have [Options.DrainTimeout] to
// end by themselves; then they are cancelled, which leaves an unknown outcome to
// be recovered like any other.
//
// # Evidence
//
// Every execution ends with a [Report] as its evidence: what was done, what it
// proves, wire facts, counts, times. Parameters, results and secrets are neither
// in it nor in any log line.
package worker
