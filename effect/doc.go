// Package effect brings about, in the world outside, what an operation asks
// for, and says what became of it.
//
// An [Effect] is one method: [Effect.Do] makes the external call of one
// execution and returns a [Result]. The result does not say "it worked" or "it
// failed"; it says what is proven, as a [contract.Proof], since a missing answer
// proves nothing. An effect that can also find out later whether something
// happened is a [Finder].
//
// # HTTP effects
//
// [NewHTTP] makes an effect from data, an [HTTPSpec]: where the request goes,
// which part of the answer is the result, how an operation is looked up. The
// [contract.Contract] of the kind says where the key travels and what every
// answer proves. Nothing is decided here by a status code.
//
//   - The bytes that were stored with the operation are sent, at every try the
//     same. A key that the contract wants in the JSON body is put in by splicing;
//     everything around it stays as it is, byte for byte.
//   - The key is made from the operation's identity by [Seed] and the contract's
//     grammar. It is the same at every try, on every node, in every release, and
//     does not reveal the account.
//   - Redirects are not followed. The repeats that net/http's transport makes by
//     itself are switched off, and every send is counted.
//   - An opaque call, which nobody could ever find out about, goes out on a fresh
//     connection: one that was kept alive may be closed by the other side at the
//     very moment of the request.
//   - An answer that is too large to keep is still an answer: its status decides,
//     and the result says what was left out (see [Omitted]).
//
// # Effects in Go
//
// A [Func] turns a function into an effect. It ends with [Applied], [Refused],
// [NotApplied] or [Unknown]:
//
//	effect.Func(func(ctx context.Context, call *effect.Call) effect.Result {
//		key, err := call.DownstreamKey()
//		…
//		switch {
//		case err == nil:
//			return effect.Applied(charge)
//		case isCardError(err):
//			return effect.Refused("card_declined", "the card was declined")
//		}
//		return effect.Unknown("no-answer", "the payment service did not answer")
//	})
//
// Only say NotApplied or Refused where that is certain. When in doubt, say
// Unknown: the contract then decides what may be done. A panic is Unknown. So is
// a returned context error: a call that was given up may have arrived.
//
// The context ends before the lease does. Pass it to everything, and return when
// it ends.
//
// # One call is one send
//
// A retry inside the effect is a transmission that Semel does not see: its
// retries are in one layer only. [Call.Client] counts what goes out, and so does
// every client whose transport is [Counting] and whose requests carry the
// context of the effect. More than one send within one call is put into the
// history, and takes the force from a proof that covers the last send only.
//
// SDKs retry by themselves unless told otherwise:
//
//	Stripe (stripe-go)   stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
//	                         MaxNetworkRetries: stripe.Int64(0), HTTPClient: client})
//	                     and params.IdempotencyKey = stripe.String(key)
//	AWS (aws-sdk-go-v2)  config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
//	                     config.WithHTTPClient(client), and the ClientToken of the request
//	Google (gax-go)      an empty call option list for the method, as in
//	                     c.CallOptions.CreateThing = nil, or gax.WithRetry(nil) with one
//	                     call; and the RequestId of the request
//	others               look for MaxRetries, RetryMax, Backoff, "retryable" transports
//
// # What is kept
//
// Evidence names causes, statuses, counts and times. It holds no parameters, no
// results and no secrets; messages of the external service are kept as an
// operation's failure only where the spec names the place ([HTTPSpec.Refusal]).
package effect
