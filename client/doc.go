// Package client is a durable client: it owns an intent from before its first
// send until somebody has told how it ended, through lost answers, restarts and
// crashes.
//
// A program that sends a request and gets no answer must not guess, and must not
// forget. A [Client] writes the intent down before it sends anything, sends the
// same bytes under the same key for as long as that is safe, asks where asking is
// possible, and has an honest word for "nobody knows yet".
//
//	journal, err := client.OpenJournal("/var/lib/shop/intents.db", nil)
//	…
//	api, err := client.Semel("https://semel.example", &client.SemelOptions{Authorize: client.Bearer(token)})
//	…
//	c, err := client.New(api, journal, nil)
//	…
//	outcome, err := c.Do(ctx, client.Intent{Kind: "menu-export", Body: params})
//	switch o := outcome.(type) {
//	case client.Settled: // o.Operation says how it ended: succeeded, failed or abandoned
//	case client.Rejected: // it was refused, and nothing happened: o.Problem says why
//	case client.Unconfirmed: // nobody knows yet; it stays in the journal, and o.Next says what to do
//	}
//
// # Four steps
//
// [Client.Begin] writes an [Intent] into the journal: identity, kind, the exact
// bytes of the request, where they go. When it returns, the intent survives a
// crash; until then nothing has been sent.
//
// [Client.Submit] sends it and sees it through. Where no answer comes, it looks
// the operation up; where that finds nothing, it sends the same bytes under the
// same key again ("not found" is no proof of absence: the first request may still
// be on its way); and where the budget ends, the outcome is [Unconfirmed], and
// never a failure.
//
// [Client.Forget] removes the intent, once the caller has written down what became
// of it. Until then the outcome can be asked for again, also after a crash.
//
// [Client.Resume], at the next start, takes up everything that the journal holds,
// hands each outcome to the caller, and forgets what was taken.
//
// [Client.Do] is Begin, Submit and Forget in one call. [Client.Pending] lists what
// the journal holds. [Client.Wait] waits for an outcome without ever sending.
// [Client.Abandon] makes sure that an intent never happens, and its outcome is a
// proof of that: an operation in state abandoned, or the one that was faster.
//
// # What the outcome rests on
//
// What an answer proves is decided by the API's contract (package contract), and a
// proof covers one transmission. Before each transmission a mark goes into the
// journal, so that after a crash one can tell "certainly never sent" from "may have
// arrived". All proofs of an intent are folded together, over any number of
// restarts: once one transmission is unknown, a later 401 or refused connection
// does not make the intent rejected. Only an answer for its key, or a look-up,
// does.
//
// Repeats end when the API may forget the key, counted from the first transmission.
// Answer 410 of a Semel server says that it no longer remembers so old an ID: then
// the outcome is [Unconfirmed] if an earlier transmission may have arrived, and
// [Rejected] if none did.
//
// # Which APIs
//
// [Semel] is a Semel server. [HTTP] is any HTTP API that has a contract: the
// request is kept as data, and the caller gives [API.LookUp] where the API can be
// asked. For anything else, such as another protocol or somebody's SDK, make an
// [API] of a contract and two functions.
//
// # The journal
//
// A [Journal] keeps intents. [OpenJournal] keeps them in a file (bbolt; every write
// is synced; mode 0600), [NewMemoryJournal] as long as the process lives. It holds
// URL, key, content type and body, never credentials: a callback attaches them
// anew to every transmission. The body is erased as soon as the intent is settled
// or rejected, its old copies in the file's free pages included.
//
// Any number of processes may use one journal file at once. A transaction holds
// the file for moments only. An intent is worked on by one client at a time, and
// nothing else sends it meanwhile: who it is stands in the record, and whether that
// one is still alive is told by a lock of the operating system, which ends with
// its process and not before. So there is no lease to outlive, and what a killed
// process leaves is taken up at once. The second one gets [semel.CodeInProgress],
// and its Resume goes on without that intent. The file must be on a local disk.
//
// # Time
//
// The age of a key is counted by this machine's clock, the only one that outlives
// the process. A clock that was set back does not make an intent younger: the
// journal remembers the latest time that it has seen.
//
// # Logs
//
// One record per transmission and look-up: identity, attempt, start, duration, what
// it proves, category. Never URLs, bodies, results or credentials.
package client
