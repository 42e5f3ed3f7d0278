// Package idempotency makes handlers that you already have safe to repeat. A client
// sends a key with its request and the same key with every repeat; the handler
// runs once, and every repeat is answered from the record.
//
//	ledger, err := semel.New(ctx, store, &semel.Options{
//		Kinds: idempotency.Kinds(idempotency.Route{Pattern: "POST /orders"}),
//	})
//	…
//	mux.Handle("POST /orders", idempotency.NewHandler(createOrder, ledger, &idempotency.Options{Account: whoAsks}))
//	go idempotency.RecoverEvery(ctx, ledger, 10*time.Second, nil)
//
// [NewHandler] is a plain net/http middleware, so it fits every router that takes
// one; file routers.md shows it behind chi, gin and echo. [Do] is the same for a queue consumer or a cron job.
//
// # What a client meets
//
//	first request                        the handler's own answer
//	repeat                               the same answer, with Idempotency-Replayed: true
//	repeat while the first runs          409 in-progress, with Retry-After; or, with Prefer: wait=10, the answer
//	another request with an old key      422 fingerprint-mismatch, with the fields that differ
//	no key, two keys, a malformed key    400
//	the outcome is not known             409 outcome-unknown, without Retry-After
//	done, but the answer is not kept     the first status, with a problem "answer-not-kept"
//	the store can't be reached           503, before anything was run
//
// The key travels in Idempotency-Key, as a quoted string or bare: abc and "abc" are
// the same key. Refusals are problem+json; file answers.md lists every code, those of
// [semel.Codes] and the one that is this package's own, [CodeAnswerNotKept]. A [contract.Contract]
// changes the header, the statuses and codes, what is compared, which answers are
// final and what is replayed: [DefaultContract] says what holds without one, and
// with the preset stripe-v1 the answers are Stripe's. What a contract can't change
// is that nothing is run again blindly; so two promises of some contracts are kept
// more strictly than made: a forgotten key is refused and not run as a new one,
// and after a server error the outcome is unknown even where the error is
// replayed.
//
// # One intent
//
// An operation is identified by account, method, route and key. The account comes
// from your authentication ([Options.Account]); there is no default, since keys of
// strangers must never meet. The route is the pattern of the router, not the path:
// see [KindName]. What else belongs to an intent (path, query, chosen headers, the
// body) is compared with the first request: JSON by its meaning ([fingerprint]),
// anything else by its bytes. Two keys with equal requests are two intents, and
// both run.
//
// # Two modes
//
// Transactional ([Options.Begin]): for handlers whose whole effect is in the
// database that the ledger is in. The handler gets a transaction from [Tx]; its
// rows, the operation and the answer commit together. A crash, a panic, a lost
// connection leave all or nothing, and the next repeat runs or replays: nothing is
// ever unknown. An answer of 400 or above rolls the handler's rows back; if it is
// final, it is recorded by itself. The first call is one transaction. Nothing of
// the answer goes out before the commit, so it is held in memory, Flush does nothing,
// and Hijack is refused. Call nothing outside from such a handler.
//
// Guarded (without Begin): for handlers with effects outside. The intent is durable
// before the handler runs, with a lease that is renewed while it runs. How it ends
// is recorded before the answer goes out:
//
//	2xx, 3xx                         succeeded; the answer is stored
//	4xx                              failed; the answer is stored all the same
//	408, 409, 425, 429               the key is not used up, and a repeat runs again
//	NotApplied, or its header        likewise, whatever the status
//	5xx, a panic, no answer          unknown
//	the process died                 unknown, once the lease has ended
//	the outcome can't be recorded    the client gets its answer; recording goes on,
//	                                 and is unknown if the process dies before
//
// What is unknown is looked up by the route's own [Route].LookUp, and else needs a
// person's verdict ([semel.Ledger.Resolve]): until then a repeat is told
// outcome-unknown. It is never run again blindly, and is never "in progress" for
// longer than a lease. A verdict "not_applied, retry" frees the key for the next
// repeat; "applied" may carry an answer as JSON, in the form of the stored one.
//
// # The handler's context
//
// It has the values and the deadline of the request's context, but it does not end
// when the client leaves: what has begun is finished and recorded, and the client
// finds it when it comes back. It ends when the lease is lost
// ([ErrLeaseLost], [ErrLeaseEnded] as [context.Cause]): then nothing that the handler
// does from here on counts, and it should stop. The body has been read, so the
// handler may take its time with it.
//
// # The answer
//
// Status, the header lines that the contract lists (never Set-Cookie, anything of
// authentication, Date, Retry-After, rate limits or the connection), trailers and
// bytes. The handler is offered gzip at most, and only if the client takes it; a
// client that repeats without gzip gets the bytes unpacked. Flush and answers
// beyond [Options.MaxAnswer] go out at once in guarded mode; from there on a write
// fails when the client has gone. A flushed answer is kept if it is small enough.
// After Hijack, or beyond MaxAnswer, the operation is recorded as done, and a repeat
// is told so.
//
// Put authentication and logging outside of the middleware, compression on either
// side.
//
// # The load
//
// Repeats of one key that meet in a process share one read, and those that come
// while it runs there need none. A replay is one read by primary key. A first call
// in guarded mode is two commits, shared with whatever else the process commits at
// that moment.
package idempotency
