/*
Package httpapi serves a [semel.Ledger] over HTTP.

One URL is one operation, and three verbs speak to it:

	PUT    /v1/operations/{kind}/{operation_id}   create once: 201 new, 200 already known
	GET    /v1/operations/{kind}/{operation_id}   look up
	DELETE /v1/operations/{kind}/{operation_id}   abandon: make sure that it never happens

The client makes the operation ID before it sends anything ([semel.NewID]), and
sends the same PUT until it has an answer. There is nothing else to it. File
openapi.yaml beside this one, served under /openapi.yaml, describes every route,
header and status; a test holds it against the handlers.

# Running it

	ledger, err := semel.New(ctx, store, &semel.Options{Kinds: kinds})
	…
	tokens, err := httpapi.NewTokens([]httpapi.Token{{Hash: httpapi.HashToken(secret), Account: "acme"}})
	…
	server := httpapi.New(ledger, &httpapi.Options{Tokens: tokens})
	return httpapi.NewHTTPServer(":8787", server).ListenAndServe()

[Server] is an [http.Handler]. It does not clean paths and does not redirect, so
that a path that is not exactly a route is a 404 and never a second name for an
operation; a mux in front of it should leave paths alone too ([http.ServeMux]
redirects "//" and ".."). Under a prefix, use [http.StripPrefix] and say the
prefix in [Options.BasePath]. [NewHTTPServer] has time-outs that bound slow
clients and leave event streams alone; with a server of your own, set at least
ReadHeaderTimeout, ReadTimeout and MaxHeaderBytes.

# Who asks

The account comes from the credential, never from the request. [Tokens] knows
bearer tokens by their hashes; [Options.Authenticate] is the hook for anything
else. Everything is looked up under the asker's own account, so the operation of
somebody else is answered, to the byte, as one that never existed.

Pages sign in with POST /v1/session: a bearer token is exchanged for a cookie
(HttpOnly, SameSite=Strict, Secure on TLS) that no script can read. A request
that is authenticated by this cookie alone and is not GET or HEAD must come from
a page of this very server, by Sec-Fetch-Site or Origin. There is no CORS unless
[Options.CORS] lists origins; they get no cookies.

Operators ([Identity].Operator) list, read and resolve operations of the accounts
in [Identity].Accounts. Anything else is not found.

# What a request may say

PUT and POST take JSON, parsed strictly: a repeated member name, invalid UTF-8, a
lone surrogate or anything after the value is 400, because two readers would see
two requests. Content-Type must be JSON (415) and Content-Encoding absent (415).

POST /v1/operations/{kind} is PUT for clients that speak the IETF header
Idempotency-Key: abc and "abc" name the operation abc. Two header lines are 400,
and a mismatch is 422 there, as the draft says.

Prefer: wait=10 answers when the operation is settled or needs a person, or else
after 10 seconds (60 at most), and Preference-Applied says what was done. A
preference that can't be read is ignored, as RFC 7240 wants it.

Accept-Until: 2026-11-30T12:00:00Z refuses an unknown operation after that time
(412). It is a promise, so one that can't be read is 400.

Attempt-Id names this transmission, in the grammar of operation IDs. It decides
nothing, so one that can't be read is ignored.

ETag is the revision. Attempts and progress do not change it.

In a list, a query parameter that is not known, or is there twice, is 400: a
misspelt filter must not list everything.

# Events

GET …/events is a stream of Server-Sent Events: "state" with the revision as id
and the operation as data, and "progress" without id and without parameters and
result. It ends when the operation is settled. Last-Event-ID leaves out what was
seen; when nothing can follow any more the answer is 204, which tells an
EventSource to stop. The credential is looked at again with every heartbeat, and
a stream whose credential has ended ends.

# Errors

Every error is problem+json; package problem has the form and the table. A panic
is a 500 with recorded "unknown", and never "it did not run". A request for no
route is invalid-operation with 404, to be told from operation-not-found.
Answers that net/http gives before a handler runs (a malformed request line, 431
for huge headers) are plain text.

# What is logged

One record per request: route, status, time, identity, attempt ID, state and
error code. Never parameters, results, tokens, header values or query values.
*/
package httpapi
