package contract

import "time"

// The presets of public specifications and APIs. Where a comment says "Unverified", the fields named there rest on
// no document that their owner publishes; everything else was read in the sources named.
const (
	// IETF is the Idempotency-Key header of draft-ietf-httpapi-idempotency-key-header-07, which leaves most to the API:
	// lay what your API documents over it.
	//
	// From the draft: the header and its form, an RFC 9651 string (2.1); POST and PATCH (1); that a scope is the
	// resource's to define (2.2); the fingerprint (2.4); 400 for a missing key, 422 for a mismatch, 409 for a request in
	// progress, and that a repeat gets the first result, "success or an error" (2.6, 2.7). Bare keys are read too, since
	// most APIs take them. From RFC 9110: PUT and DELETE may be repeated (9.2.2), and what the client errors mean (15.5).
	//
	// Unverified: retention (the draft wants a policy published and names none; five minutes are less than any published
	// policy known to us), stored.server_errors (whether a server error counts as a result is left open).
	IETF = "ietf"

	// StripeV1 is version 1 of Stripe's API.
	//
	// From docs.stripe.com/api/idempotent_requests and docs.stripe.com/error-low-level: POST only, at most 255
	// characters, a key may be removed once it is 24 hours old and is new afterwards, parameters are compared, the
	// result is stored whatever it was once execution began, including a 500; the rate limiter (429) and authentication
	// (401) stand before the key is looked at. From docs.stripe.com/api/errors: the type idempotency_error. From
	// stripe-ruby issues 503 (400 on a mismatch), 598 (the endpoint is compared) and 905 (Idempotent-Replayed). From
	// stripe-go: Stripe-Should-Retry.
	//
	// Unverified: scope, in_progress.answer (409 idempotency_key_in_use, from issue threads only).
	StripeV1 = "stripe-v1"

	// AIP155 is request identification by Google's AIP-155.
	//
	// From aip.dev/155: the field request_id, 36 ASCII characters, a random UUID recommended and allowed to be the only
	// form; providing it must guarantee idempotency; a repeat should get the previous success, or the current state. From
	// the references of Google's APIs (Edge Container, VM Migration, Channel): at least 60 minutes after the first
	// request in most, and no nil UUID.
	//
	// Unverified: carrier (whether the field is a query parameter or a body member depends on the method's HTTP rule),
	// retention.after, answers.
	AIP155 = "aip-155"

	// Azure is OASIS Repeatable Requests 1.0 as the Azure guidelines ask for it.
	//
	// From the OASIS specification: the headers, among them the time of the first send as an IMF-fixdate, the optional
	// client ID, 412 outside the tracked window, 501 where it is not supported, Repeatability-Result. From the Azure REST
	// guidelines: at least five minutes are tracked. From learn.microsoft.com/rest/api/communication/repeatable-requests:
	// a GUID; 400 with Repeatability-Result "rejected" on a mismatch (and for malformed headers), 409 while in progress,
	// 2xx and 4xx come back as they were, a 5xx is executed again. Nothing promises that such a 5xx left no effect, so
	// Semel does not call again after one.
	//
	// Unverified: scope, in_progress (409 is documented for one service).
	Azure = "azure"

	// Increase is Increase's API.
	//
	// From increase.com/documentation/idempotency-keys: the header, POST, at most 200 characters, at most one object for
	// each key, the object comes back with Idempotent-Replayed, 409 of type idempotency_key_already_used_error with
	// resource_id on other arguments, PATCH and DELETE are idempotent by themselves, every list can be filtered by the
	// key.
	//
	// Unverified: retention (no end is documented; the key is an attribute of the object), look_up (how soon a list shows
	// an object is not documented, so its absence proves nothing), answers.
	Increase = "increase"
)

func ietf() Contract {
	return Contract{
		Name:       IETF,
		Title:      "Idempotency-Key header (IETF draft 07)",
		Carrier:    Carrier{Place: Place{InHeader, "Idempotency-Key"}},
		Key:        KeyGrammar{Form: KeyText, Charset: ASCII, Quoting: Either},
		Use:        Use{Methods: []string{"POST", "PATCH"}, Required: Sometimes, Missing: Match{Status: 400}, Repeatable: []string{"PUT", "DELETE"}},
		Retention:  Retention{Minimum: Duration(5 * time.Minute), From: FromFirstSend, After: AfterRunsAgain},
		Compare:    Compare{What: []Compared{CompareParameters}},
		Mismatch:   Mismatch{Do: MismatchRefused, Answer: Match{Status: 422}},
		InProgress: InProgress{Do: ConcurrentRefused, Answer: Match{Status: 409}},
		Replay:     Replay{Form: ReplayBytes},
		Stored:     Stored{Outcomes: StoresEvery, ServerErrors: ServerErrorReplayed},
		Answers:    Answers{Refused: rejections(422)},
		Successor:  Successor{SuccessorAfterRefusal},
	}
}

var ietfSources = []Source{
	{"carrier", "draft-ietf-httpapi-idempotency-key-header-07, section 2.1", false},
	{"key", "the draft, section 2.1; RFC 9651, section 3.3.3", false},
	{"use", "the draft, sections 1 and 2.7; RFC 9110, section 9.2.2", false},
	{"retention", "left to the API by the draft, section 2.3: an assumption on the careful side", true},
	{"compare", "the draft, section 2.4", false},
	{"mismatch", "the draft, section 2.7", false},
	{"in_progress", "the draft, sections 2.6 and 2.7", false},
	{"replay", "the draft, section 2.6", false},
	{"stored.outcomes", "the draft, section 2.6: \"success or an error\"", false},
	{"stored.server_errors", "the draft, section 2.6, read to include them", true},
	{"answers", "RFC 9110, section 15.5", false},
	{"successor", "the draft, section 2.7: correct the request before sending it again", false},
}

func stripeV1() Contract {
	return Contract{
		Name:       StripeV1,
		Title:      "Stripe API v1",
		Carrier:    Carrier{Place: Place{InHeader, "Idempotency-Key"}},
		Key:        KeyGrammar{Form: KeyText, MaxLength: 255, Unit: Characters, Quoting: Bare},
		Use:        Use{Methods: []string{"POST"}, Required: Optional, Elsewhere: ElsewhereIgnored, Repeatable: []string{"DELETE"}},
		Scope:      Scope{[]ScopePart{ByAccount, ByMode}},
		Retention:  Retention{Minimum: Duration(24 * time.Hour), From: FromFirstSend, After: AfterRunsAgain},
		Compare:    Compare{What: []Compared{CompareParameters, ComparePath}},
		Mismatch:   Mismatch{Do: MismatchRefused, Answer: Match{Status: 400, Code: "idempotency_error", At: "/error/type"}},
		InProgress: InProgress{Do: ConcurrentRefused, Answer: Match{Status: 409, Code: "idempotency_key_in_use"}},
		Replay:     Replay{Form: ReplayBytes, Marker: Mark{"Idempotent-Replayed", "true"}},
		Stored:     Stored{Outcomes: StoresEvery, OnlyOnceBegun: true, ServerErrors: ServerErrorReplayed},
		Answers: Answers{
			CodeAt:          []string{"/error/code"},
			NothingHappened: statuses(429),
			Refused:         rejections(),
			Again:           AgainSign{"Stripe-Should-Retry", "true", "false"},
		},
		Successor: Successor{SuccessorAfterRefusal},
	}
}

var stripeSources = []Source{
	{"carrier", "docs.stripe.com/api/idempotent_requests", false},
	{"key", "docs.stripe.com/api/idempotent_requests", false},
	{"use", "docs.stripe.com/api/idempotent_requests", false},
	{"scope", "general knowledge", true},
	{"retention", "docs.stripe.com/api/idempotent_requests", false},
	{"compare", "docs.stripe.com/api/idempotent_requests; stripe-ruby issue 598", false},
	{"mismatch", "docs.stripe.com/api/errors; stripe-ruby issue 503", false},
	{"in_progress.do", "docs.stripe.com/api/idempotent_requests", false},
	{"in_progress.answer", "issue threads of client libraries", true},
	{"replay", "docs.stripe.com/api/idempotent_requests; stripe-ruby issue 905", false},
	{"stored", "docs.stripe.com/api/idempotent_requests; docs.stripe.com/error-low-level", false},
	{"answers.code_at", "docs.stripe.com/api/errors", false},
	{"answers.nothing_happened", "docs.stripe.com/error-low-level: the rate limiter runs before the key is looked at", false},
	{"answers.refused", "docs.stripe.com/error-low-level; RFC 9110, section 15.5", false},
	{"answers.again", "stripe-go", false},
	{"successor", "docs.stripe.com/error-low-level: a new key for a corrected request", false},
}

func aip155() Contract {
	return Contract{
		Name:      AIP155,
		Title:     "Google AIP-155 request identification",
		Carrier:   Carrier{Place: Place{InQuery, "requestId"}, Or: []Place{{InBody, "/requestId"}}},
		Key:       KeyGrammar{Form: KeyUUID, UUIDVersion: 4, MaxLength: 36},
		Use:       Use{Required: Optional},
		Retention: Retention{Minimum: Duration(time.Hour), From: FromFirstSend, After: AfterRunsAgain},
		Replay:    Replay{Form: ReplayCurrent},
		Stored:    Stored{Outcomes: StoresSuccess, ServerErrors: ServerErrorResumed},
		Answers:   Answers{CodeAt: []string{"/error/status"}, Refused: rejections()},
	}
}

var aipSources = []Source{
	{"carrier", "aip.dev/155 names the field; its place follows from the method's HTTP rule", true},
	{"key", "aip.dev/155; references of Google's APIs", false},
	{"use", "aip.dev/155", false},
	{"retention.minimum", "references of Google's APIs, for example VM Migration", false},
	{"retention.from", "references of Google's APIs, for example VM Migration", false},
	{"retention.after", "not stated: an assumption on the careful side", true},
	{"replay", "aip.dev/155", false},
	{"stored", "aip.dev/155: a request ID must guarantee idempotency; the previous success comes back", false},
	{"answers", "RFC 9110, section 15.5; the place of the status is general knowledge", true},
}

func azure() Contract {
	return Contract{
		Name:    Azure,
		Title:   "Azure, by OASIS Repeatable Requests 1.0",
		Carrier: Carrier{Place: Place{InHeader, "Repeatability-Request-ID"}, FirstSent: "Repeatability-First-Sent", Client: "Repeatability-Client-ID"},
		Key:     KeyGrammar{Form: KeyUUID, UUIDVersion: 4, CaseInsensitive: true, Quoting: Bare},
		Use: Use{
			Methods: []string{"POST"}, Required: Optional,
			Elsewhere: ElsewhereRefused, Unsupported: Match{Status: 501}, Repeatable: []string{"PUT", "DELETE"},
		},
		Scope:      Scope{[]ScopePart{ByEndpoint, ByClient}},
		Retention:  Retention{Minimum: Duration(5 * time.Minute), From: FromFirstSend, After: AfterRefused, Refusal: Match{Status: 412}},
		Compare:    Compare{What: []Compared{CompareParameters}},
		Mismatch:   Mismatch{Do: MismatchRefused, Answer: Match{Status: 400, Header: "Repeatability-Result", Value: "rejected"}},
		InProgress: InProgress{Do: ConcurrentRefused, Answer: Match{Status: 409}},
		Replay:     Replay{Form: ReplayBytes},
		Stored:     Stored{Outcomes: StoresDefinite, ServerErrors: ServerErrorReleased},
		Answers:    Answers{Refused: append(rejections(412), Match{Status: 501})},
		Successor:  Successor{SuccessorAfterRefusal},
	}
}

var azureSources = []Source{
	{"carrier", "OASIS Repeatable Requests 1.0", false},
	{"key", "learn.microsoft.com/rest/api/communication/repeatable-requests", false},
	{"use", "OASIS Repeatable Requests 1.0; Azure REST guidelines", false},
	{"scope", "general knowledge", true},
	{"retention", "OASIS Repeatable Requests 1.0; Azure REST guidelines", false},
	{"compare", "learn.microsoft.com/rest/api/communication/repeatable-requests", false},
	{"mismatch", "learn.microsoft.com/rest/api/communication/repeatable-requests", false},
	{"in_progress", "learn.microsoft.com/rest/api/communication/repeatable-requests, for one service", true},
	{"replay", "Azure REST guidelines", false},
	{"stored", "learn.microsoft.com/rest/api/communication/repeatable-requests", false},
	{"answers", "RFC 9110, section 15.5; OASIS Repeatable Requests 1.0 for 501", false},
	{"successor", "OASIS Repeatable Requests 1.0", false},
}

func increase() Contract {
	return Contract{
		Name:      Increase,
		Title:     "Increase",
		Carrier:   Carrier{Place: Place{InHeader, "Idempotency-Key"}},
		Key:       KeyGrammar{Form: KeyText, MaxLength: 200, Unit: Characters, Quoting: Bare},
		Use:       Use{Methods: []string{"POST"}, Required: Optional, Elsewhere: ElsewhereIgnored, Repeatable: []string{"PATCH", "DELETE"}},
		Retention: Retention{After: AfterKeptForEver},
		Compare:   Compare{What: []Compared{CompareParameters}},
		Mismatch: Mismatch{
			Do:              MismatchRefused,
			Answer:          Match{Status: 409, Code: "idempotency_key_already_used_error"},
			NamesResourceAt: "/resource_id",
		},
		Replay:    Replay{Form: ReplayObject, Marker: Mark{"Idempotent-Replayed", "true"}},
		Stored:    Stored{Outcomes: StoresState, ServerErrors: ServerErrorResumed},
		Answers:   Answers{CodeAt: []string{"/type"}, Refused: rejections()},
		LookUp:    LookUp{By: ByListFilter, Request: "GET /{objects}?idempotency_key={key}"},
		Successor: Successor{SuccessorAfterRefusal},
	}
}

var increaseSources = []Source{
	{"carrier", "increase.com/documentation/idempotency-keys", false},
	{"key", "increase.com/documentation/idempotency-keys", false},
	{"use", "increase.com/documentation/idempotency-keys", false},
	{"retention", "no end is documented", true},
	{"compare", "increase.com/documentation/idempotency-keys", false},
	{"mismatch", "increase.com/documentation/idempotency-keys", false},
	{"replay", "increase.com/documentation/idempotency-keys", false},
	{"stored", "increase.com/documentation/idempotency-keys: at most one object is created for each key", false},
	{"answers", "RFC 9110, section 15.5", true},
	{"look_up", "increase.com/documentation/idempotency-keys; how soon a list shows an object is not stated", true},
	{"successor", "increase.com/documentation/idempotency-keys: a key belongs to one object", false},
}
