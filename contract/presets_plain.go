package contract

import "time"

// Semel's own interface, and the three plain shapes for services of which little more is known.
const (
	// Semel is Semel's own HTTP interface: PUT with the operation's URL, or POST with the IETF header. What counts as a
	// success here is that the operation is recorded; what became of it stands in the operation that every answer
	// carries.
	//
	// Source of every fact: this project's openapi.yaml and docs/guarantees.md. The minimum of the retention is the
	// default of 30 days, which a kind may change; an operation that is not settled is kept whatever its age. A 404 on a
	// look-up proves nothing, ever: DELETE (abandon) is the way to a proof of absence.
	Semel = "semel"

	// Idempotent is a service of yours that runs a request once for each Idempotency-Key.
	//
	// Nothing here has a source but the word itself: put your own facts over it. Assumed: keys are kept for 24 hours
	// and mean nothing afterwards, statuses as in the IETF draft, and that a repeat has no second effect even after a
	// server error.
	//
	// Unverified: carrier, use, retention, mismatch, in_progress, replay, stored, answers.
	Idempotent = "idempotent"

	// Queryable is a service of yours that does not protect a repeat, but can be asked by the key it was sent.
	//
	// Nothing here has a source but the word itself: put your own facts over it. Assumed: it shows what it did within a
	// second, and what it does not show a minute after the last possible arrival will never happen. If a request can
	// lie in a queue of that service for longer, raise look_up.absent_after.
	//
	// Unverified: carrier, look_up, answers.
	Queryable = "queryable"

	// Opaque is a service that can neither be asked nor safely be called again. Once a request may have arrived and no
	// answer came, only a person can find out.
	//
	// Unverified: answers (assumed to mean what RFC 9110 says).
	Opaque = "opaque"
)

func semel() Contract {
	return Contract{
		Name:    Semel,
		Title:   "Semel's own HTTP interface",
		Carrier: Carrier{Place: Place{InPath, "operation_id"}, Or: []Place{{InHeader, "Idempotency-Key"}}},
		Key:     KeyGrammar{Form: KeyText, Charset: URLSafe, MinLength: 1, MaxLength: 128, Unit: Bytes, Quoting: Either},
		Use: Use{
			Methods: []string{"PUT", "POST"}, Required: Required, Missing: Match{Status: 400, Code: "invalid-operation"},
			Repeatable: []string{"PUT", "DELETE"},
		},
		Scope: Scope{[]ScopePart{ByAccount, ByKind}},
		Retention: Retention{
			Minimum: Duration(30 * day), From: FromCompletion, After: AfterRefused,
			Refusal: Match{Status: 410, Code: "operation-expired"},
		},
		Compare: Compare{What: []Compared{CompareCanonicalBody}},
		Mismatch: Mismatch{
			Do: MismatchRefused, Answer: Match{Status: 409, Code: "fingerprint-mismatch"},
			Also: []Match{{Status: 422, Code: "fingerprint-mismatch"}},
		},
		InProgress: InProgress{
			Do: ConcurrentAnswered, Also: []Match{{Status: 409, Code: "in-progress"}}, RetryAfter: true,
			AfterCrash: CrashInDoubt, InDoubt: Match{Status: 409, Code: "outcome-unknown"},
		},
		Replay: Replay{Form: ReplayCurrent, Marker: Mark{"Idempotency-Replayed", "true"}, Headers: []string{"Location", "ETag"}},
		Stored: Stored{Outcomes: StoresState, ServerErrors: ServerErrorResumed},
		Answers: Answers{
			CodeAt: []string{"/code"},
			NothingHappened: []Match{
				{Status: 429, Code: "too-many-requests"},
				{Status: 503, Code: "no", At: "/recorded"},
			},
			RefusedAfterLookUp: []Match{
				{Status: 409, Code: "operation-abandoned"},
				{Status: 412, Code: "accept-deadline-passed"},
			},
			Refused: rejections(),
		},
		LookUp:    LookUp{By: ByKey, Request: "GET /v1/operations/{kind}/{operation_id}", FindsFailures: true},
		Cancel:    Cancel{Request: "DELETE /v1/operations/{kind}/{operation_id}", Leaves: CancelBlocks},
		Successor: Successor{SuccessorAfterRefusal},
	}
}

var semelSources = []Source{
	{"carrier", "openapi.yaml", false}, {"key", "openapi.yaml", false}, {"use", "openapi.yaml", false},
	{"scope", "docs/guarantees.md", false}, {"retention", "docs/guarantees.md", false}, {"compare", "package fingerprint", false},
	{"mismatch", "openapi.yaml", false}, {"in_progress", "openapi.yaml", false}, {"replay", "openapi.yaml", false},
	{"stored", "docs/guarantees.md", false}, {"answers", "openapi.yaml", false}, {"look_up", "docs/guarantees.md", false}, {"cancel", "docs/guarantees.md", false},
	{"successor", "docs/guarantees.md", false},
}

// word is the source of a plain shape's facts.
const word = "assumed: put your own facts over it"

func idempotent() Contract {
	return Contract{
		Name:       Idempotent,
		Title:      "Idempotent service",
		Carrier:    Carrier{Place: Place{InHeader, "Idempotency-Key"}},
		Use:        Use{Repeatable: []string{"PUT", "DELETE"}},
		Retention:  Retention{Minimum: Duration(24 * time.Hour), From: FromFirstSend, After: AfterRunsAgain},
		Mismatch:   Mismatch{Do: MismatchRefused, Answer: Match{Status: 422}},
		InProgress: InProgress{Do: ConcurrentRefused, Answer: Match{Status: 409}},
		Replay:     Replay{Form: ReplayBytes, Marker: Mark{"Idempotency-Replayed", "true"}},
		Stored:     Stored{Outcomes: StoresSuccess, ServerErrors: ServerErrorResumed},
		Answers:    Answers{Refused: rejections(422)},
	}
}

var idempotentSources = []Source{
	{"carrier", word, true}, {"use", word, true}, {"retention", word, true}, {"mismatch", word, true},
	{"in_progress", word, true}, {"replay", word, true}, {"stored", word, true}, {"answers", word, true},
}

func queryable() Contract {
	return Contract{
		Name:    Queryable,
		Title:   "Queryable service",
		Carrier: Carrier{Place: Place{InHeader, "Idempotency-Key"}},
		Answers: Answers{Refused: rejections()},
		LookUp: LookUp{
			By: ByKey, Request: "GET …/{key}",
			ConsistentAfter: Duration(time.Second), AbsentAfter: Duration(time.Minute),
		},
	}
}

var queryableSources = []Source{{"carrier", word, true}, {"answers", word, true}, {"look_up", word, true}}

func opaque() Contract {
	return Contract{
		Name:    Opaque,
		Title:   "Opaque service",
		Answers: Answers{Refused: rejections()},
	}
}

var opaqueSources = []Source{{"answers", "RFC 9110, section 15.5, assumed to be kept", true}}
