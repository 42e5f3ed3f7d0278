// Package fault breaks real connections on purpose, and counts.
//
// Whoever repeats a request after a lost answer has to be able to lose an
// answer. This package does it, and the other things that networks do to
// requests: over real sockets, exactly as often as asked, and without a sleep
// in the test that uses it.
//
// The same rules work in five places:
//
//   - [Transport], an [http.RoundTripper] inside a client;
//   - [Handler], middleware inside a server;
//   - [Listener], a [net.Listener] below a server of any protocol;
//   - [TCPProxy], bytes between a program and its database;
//   - [Proxy], an HTTP proxy with a small HTTP control, for programs in any
//     language (HTTP/1.1 and HTTP/2 on both sides, with and without TLS).
//     [RunProxy] is the whole process.
//
// # Rules
//
// A rule is one line: the fault, then name=value pairs in any order.
//
//	lose-answer after=1 count=1 path=/orders method=POST
//
// The faults, and where they leave the request:
//
//	lose-answer            the upstream completes it; its answer is thrown away; the connection is cut
//	status                 the upstream completes it; the client is told 503
//	status-before          the client is told 503; nothing reaches the upstream
//	cut-before             the connection is cut; nothing reaches the upstream
//	cut-during             half of the request's body reaches the upstream, then both connections are cut
//	cut-after              half of the answer's body reaches the client, then its connection is cut
//	delay                  the request (or the answer) waits
//	hold                   the answer (or the request) waits until it is released
//	duplicate              the upstream gets the request twice; one answer is returned
//	reset-stream           the HTTP/2 stream is reset with a code of your choice
//	replay-old-connection  a reused connection is closed at the moment of the request
//
// What a fault can be told:
//
//	code=503               status, status-before: the status (400 to 599; default 503)
//	code=REFUSED_STREAM    reset-stream: the error code (default INTERNAL_ERROR)
//	bytes=N                cut-during, cut-after: how many bytes of the body pass; 0: only the header
//	for=2s                 delay: how long (needed)
//	at=before|after        before the upstream has the request, or after it has completed it:
//	                       delay, replay-old-connection (default before), hold, reset-stream (default after)
//	parallel=true          duplicate: both at once (default: one after the other)
//	answer=first|second    duplicate: which answer is returned (default first)
//
// Which requests are meant:
//
//	path=/orders/*         glob: * stops at a slash, ** does not, ? is one character
//	method=POST,PUT        any of these
//	host=api.example:*     glob
//	header=Name            the header is there; header="Name: glob" compares its value; may be repeated
//	contains=COMMIT        bytes that the client sends, any case; for a Listener, a TCPProxy, and tcp:// only
//
// Which of these, counted by the rule itself from 1:
//
//	nth=N                  the Nth only
//	after=N                not the first N
//	every=N                each Nth (of those that after= leaves)
//	count=N                N times, then no more
//	prob=0.25 seed=7       by chance; the same seed hits the same numbers
//
// A value with spaces, quotes or # is put in double quotes, with \" and \\ inside.
// A list of rules has one on each line; empty lines, and lines that begin with #,
// are skipped. Every rule counts every request that it selects, whatever other
// rules do with it; the first rule in the list that is due is the one that is
// applied. Counting is exact under concurrency.
//
// # What a client sees
//
// A cut is seen as what a cut is: an error that proves nothing about the
// effect. [Transport] returns an [*Error] that unwraps to ECONNRESET; behind
// [Handler] and [Proxy] an HTTP/1 connection is closed, and an HTTP/2 stream
// is reset with INTERNAL_ERROR while other streams live on.
//
// lose-answer, status, duplicate, cut-after, hold, delay and reset-stream at=after
// carry the request to its end even where the client has given up: the upstream gets
// a context that the client cannot cancel, and the body is read into memory
// first. A request that waits (delay or hold, at=before) is delivered late rather
// than never, because a timeout calls nothing back from a network.
//
// Where the upstream fails by itself (it is not there, say) the client gets
// that failure, and the log says so: a lost answer is only reported where
// there was one.
//
// # Seeing what happened
//
// Each of the five holds an [Injector]: [Injector.SetRules] changes the rules
// at run time, [Injector.Rules] tells how often each was seen and applied,
// [Injector.Log] what happened to every request. [Injector.WaitDone],
// [Injector.WaitHeld] and [Injector.WaitFaults] block until it has happened,
// [Injector.Release] lets go of what is held. Close stops everything, and
// waits for every goroutine.
//
// # Bytes
//
// [Listener] and [TCPProxy] know no protocol. Without contains= a rule counts
// connections; with it, the places where the client sends these bytes, also
// across packets. lose-answer then forwards them, waits until the server has
// answered, and cuts both sides without returning that answer: for a database
// and contains=COMMIT, a commit that is done and not known.
// cut-before forwards nothing of the packet that completes the bytes, cut-during
// stops in the middle of them. They may be 1 KiB long. status, duplicate and reset-stream need a protocol,
// and are refused.
//
// # Limits
//
// The middle of a request is exact over [http.Transport]; another
// RoundTripper gets a body that breaks, and may have sent less. A [Handler]
// cannot choose the code of an HTTP/2 reset in a server of its own (it is
// INTERNAL_ERROR there; behind [Proxy] it is the one that was asked for).
// Bodies are held in memory for all faults but cut-before, status-before and
// cut-after with bytes=.
package fault
