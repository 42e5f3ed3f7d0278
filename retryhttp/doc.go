// Package retryhttp is an [http.RoundTripper] that repeats a request only where
// a repeat is proven to be safe, and that tells exactly what it sent.
//
// A lost answer says nothing about the effect. Most retry layers act as if it
// did: they send a POST again because a connection broke, give up on a GET
// because somebody answered 404, or repeat in three layers at once. A
// [Transport] decides by what each transmission proves, under the contract of
// the API that it talks to (package contract), and when it has to give up it
// says which of three things is true: nothing was sent, it was refused, or
// nobody knows ("unconfirmed"). It never calls the last one a failure.
//
//	ietf, err := contract.Preset(contract.IETF)
//	…
//	transport := retryhttp.New(nil, &retryhttp.Options{Contract: &ietf})
//	client := transport.Client()
//
//	ctx = retryhttp.WithKey(ctx, semel.NewID()) // made once, before the first send
//	req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
//	resp, err := client.Do(req)
//
// # What is repeated
//
// A request is replayable when its body can be had again (it has none, or
// [http.Request.GetBody] is set), and either the contract lets its method be
// repeated, or it carries a key that the contract honours on this method. GET,
// HEAD, OPTIONS and TRACE are always repeatable; PUT and DELETE only if the
// contract says so. The key comes from [WithKey] or [With], or stands in the
// request where the contract says.
//
// Everything else passes through once: the same header, the same bytes, one
// transmission. This also holds where it fails before anything was sent.
//
// After each transmission the contract says what it proves. The answer goes to
// the caller, and nothing is sent after that. It is held back, and the request
// repeated, only where the contract allows it and it is of use: the answer was
// lost, the server could not serve, it asked to be called later, or the first
// request is still in progress. What was refused (400, 401, 403, 404, a 409 or
// 422 for a key that belongs to another request, …) is never repeated, nor is a
// redirect.
//
// # How it is repeated
//
// Waits have full jitter ([Backoff]). Retry-After is a lower bound, in seconds
// or as any of HTTP's dates; a date is compared with the answer's own Date, so
// that no clock has to be right. Where the wait does not fit any more (into
// [Options.MaxWait], the budget, the caller's deadline, or the time for which
// the API keeps the key) the transport stops at once and returns what it has. It
// never sleeps into a deadline, and never asks earlier than it was told to.
// A cancelled context ends a wait at once.
//
// A [Quota] bounds what an outage costs: each repeat takes a token from the
// host's bucket, and answers of that host fill it again, ten of them for each
// token. So all repeats are at most one tenth of the answered requests, beyond
// a small reserve. Asking again after "in progress" takes none.
//
// # What is counted
//
// The standard transport repeats requests by itself, on a reused connection that
// turns out to be dead, and over HTTP/2 after some resets. Each attempt here is a
// clone with a body of its own that it cannot rewind, which stops that, for
// every method. What goes out is counted as well, with [httptrace], so that
// [Report.Sends] is exact even over a base that repeats all the same (a send that
// the base gave up before its first byte may be counted too). Over HTTP/1.1 the
// request looks as ever. Over HTTP/2, a request without a body ends in an empty
// DATA frame, which is the price.
//
// Each transmission of a replayable request carries a fresh Attempt-Id header.
//
// # What comes back
//
// An answer, as far as there is one; its body is not read unless the contract
// needs a machine code from it. The attempt's timer ends with the answer's
// header and never cuts the body. Otherwise an [*Error], which says how many
// attempts and sends there were, since when, the last proof, and why it
// stopped. Test it with [errors.Is] against [ErrUnconfirmed] and [ErrNotSent];
// it also unwraps to its cause, such as [context.Canceled].
//
// In one case an answer is not returned as such. A proof covers one
// transmission: when an earlier one was lost, a later 401 or 429 does not say that
// nothing happened, and would be read so. For a request that may change something
// this is an unconfirmed [*Error] with the answer in [Error.Answer]. Requests that
// only read get their answer always.
//
// [Call.Report] tells the same about a call that went well.
//
// # One layer
//
// Retries that are nested multiply. A Transport marks the context of what it
// sends, and a Transport below stands down: 4 × 4 attempts are 4, under the outer
// one's budget. Whoever repeats requests in another way marks the context with
// [StandDown]. For a caller with a loop of its own, such as a durable client,
// [Transport.Send] makes one transmission and says what it proves; [Backoff],
// [Quota] and [RetryAfter] are the other parts.
//
// # Redirects
//
// A Transport does not follow redirects, but [http.Client] does, and makes a GET
// of a POST on the way, with the same header. The key of a request that was
// redirected to another method is taken off. The client that [Transport.Client]
// returns follows redirects of requests that only read, and leaves others to
// the caller.
//
// # Logs, traces, metrics
//
// With a logger there is one record per transmission: identity (the key), attempt
// (its Attempt-Id), start, duration, state (what it proves), category (why), and
// nothing else. Spans and metrics go through OpenTelemetry's API; see
// [Options.TracerProvider] and [Options.MeterProvider]. None of them hold URLs,
// headers or bodies.
package retryhttp
