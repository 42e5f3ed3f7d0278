package contract

// A Contract is what an API promises about repeated requests. It is plain data: it can be compared field by field,
// marshalled to JSON and back without loss, and stored beside every execution that began under it.
//
// The zero Contract says nothing: it is opaque, and under it only facts of the wire and successful answers prove
// anything.
type Contract struct {
	// Name identifies the contract in messages, for example "stripe-v1".
	Name string `json:"name,omitempty"`
	// Title says in a few words whose contract it is.
	Title string `json:"title,omitempty"`

	Carrier    Carrier    `json:"carrier,omitzero"`     // where the key travels
	Key        KeyGrammar `json:"key,omitzero"`         // what a key looks like
	Use        Use        `json:"use,omitzero"`         // when a key counts
	Scope      Scope      `json:"scope,omitzero"`       // within what a key is unique
	Retention  Retention  `json:"retention,omitzero"`   // how long a key is kept, and what happens then
	Compare    Compare    `json:"compare,omitzero"`     // what is compared with the first request
	Mismatch   Mismatch   `json:"mismatch,omitzero"`    // the key comes with another request
	InProgress InProgress `json:"in_progress,omitzero"` // the key comes while its first request is still running
	Replay     Replay     `json:"replay,omitzero"`      // what a repeat is given
	Stored     Stored     `json:"stored,omitzero"`      // which outcomes are stored
	Answers    Answers    `json:"answers,omitzero"`     // what all other answers prove
	LookUp     LookUp     `json:"look_up,omitzero"`     // how an operation is found without repeating it
	Cancel     Cancel     `json:"cancel,omitzero"`      // how whatever a key did is cancelled
	Successor  Successor  `json:"successor,omitzero"`   // whether a new key may take over
}

// A Match describes an answer that an API gives: by its status, and where the API has one, by a machine code or a
// header. All the fields that are set must hold. The zero Match matches nothing, and stands for "not said".
//
// In JSON a Match that only names a status may be written as the bare number: 409 is the same as {"status":409}.
type Match struct {
	// Status is the status code. Zero means any status.
	Status int `json:"status,omitempty"`
	// Code is the machine code in the body, compared exactly. Empty means that no code is needed.
	Code string `json:"code,omitempty"`
	// At is the place where Code stands: a JSON Pointer ("/error/code"), or an XML element in angle brackets
	// ("<Code>", the first of that name). Defaults to the places in [Answers.CodeAt].
	At string `json:"at,omitempty"`
	// Header names a header that the answer must have. Empty means that none is needed.
	Header string `json:"header,omitempty"`
	// Value is the value which that header must have, compared without regard to case. Empty means any.
	Value string `json:"value,omitempty"`
}

// A Mark is a header that tells something about the answer which bears it.
type Mark struct {
	// Header is its name. Empty means that there is no such mark.
	Header string `json:"header,omitempty"`
	// Value is the value it must have, compared without regard to case. Empty means any.
	Value string `json:"value,omitempty"`
}

// A Place is where something stands in a request.
type Place struct {
	// In is the part of the request.
	In Part `json:"in,omitempty"`
	// Name is the header's name, the query parameter's name, a JSON Pointer into the body ("/idempotency_key"), the
	// directive with its argument ("@idempotent(key)"), or the variable in the path's template ("operation_id").
	Name string `json:"name,omitempty"`
}

// Part is a part of a request that can carry a key.
type Part string

// The parts of a request that can carry a key.
const (
	InHeader    Part = "header"
	InBody      Part = "body"      // a member of the JSON body
	InQuery     Part = "query"     // a query parameter
	InDirective Part = "directive" // a GraphQL directive
	InPath      Part = "path"      // the URL itself: one URL per operation
)

// Carrier says where the key travels.
type Carrier struct {
	Place
	// Or lists other places in which the API accepts the same key (a body member on POST, a query parameter on
	// DELETE). A sender uses the first that its method allows.
	Or []Place `json:"or,omitempty"`
	// FirstSent is a header that must carry the time of the first transmission (an IMF-fixdate), unchanged on
	// every repeat. With it the carrier is a dated pair of headers.
	FirstSent string `json:"first_sent,omitempty"`
	// Client is a header that carries the identity of the client, where the key is unique only within it.
	Client string `json:"client,omitempty"`
}

// Use says when a key counts.
type Use struct {
	// Methods are the methods on which the API honours a key. Empty means that the contract does not say, and a key
	// is then taken to be honoured on every method.
	Methods []string `json:"methods,omitempty"`
	// Required says whether a key must be there.
	Required Requirement `json:"required,omitempty"`
	// Missing is the answer to a request without a key where one is required.
	Missing Match `json:"missing,omitzero"`
	// Elsewhere says what the API does with a key on any other method.
	Elsewhere Elsewhere `json:"elsewhere,omitempty"`
	// Unsupported is the answer where a key is not supported, when Elsewhere is [ElsewhereRefused].
	Unsupported Match `json:"unsupported,omitzero"`
	// Repeatable are the methods that may be repeated without any key, because the API says so (and not because of
	// their name). GET, HEAD, OPTIONS and TRACE need not be listed.
	Repeatable []string `json:"repeatable,omitempty"`
}

// Requirement says whether a key must be there.
type Requirement string

// Whether a key must be there.
const (
	Optional  Requirement = "optional"
	Required  Requirement = "required"
	Sometimes Requirement = "sometimes" // required on some operations
)

// Elsewhere says what an API does with a key where it does not count.
type Elsewhere string

// What an API does with a key where it does not count.
const (
	ElsewhereIgnored Elsewhere = "ignored"
	ElsewhereRefused Elsewhere = "refused"
)

// Scope says within what a key is unique.
type Scope struct {
	// Within lists the things that together make up the scope. The same key in another scope is another operation.
	Within []ScopePart `json:"within,omitempty"`
}

// ScopePart is one thing within which a key is unique.
type ScopePart string

// The things within which a key is unique.
const (
	ByAccount    ScopePart = "account"
	ByMode       ScopePart = "mode" // live or test
	ByClient     ScopePart = "client"
	ByEndpoint   ScopePart = "endpoint"
	ByMethod     ScopePart = "method"
	ByObjectType ScopePart = "object_type"
	ByKind       ScopePart = "kind"
	ByLocation   ScopePart = "location"
	ByRegion     ScopePart = "region"
	ByZone       ScopePart = "zone"
	ByAPIVersion ScopePart = "api_version"
)

// Retention says how long a key is kept, and what happens afterwards.
type Retention struct {
	// Minimum is how long the API keeps a key at the least. Zero means that it does not say.
	Minimum Duration `json:"minimum,omitzero"`
	// HardEnd is when a key is certainly gone. Zero means that it does not say.
	HardEnd Duration `json:"hard_end,omitzero"`
	// From is what the two are counted from. Recovery always counts from the first transmission, which is never
	// later than any of these.
	From Anchor `json:"from,omitempty"`
	// After is what happens to a request whose key is no longer kept.
	After Afterwards `json:"after,omitempty"`
	// Refusal is the answer to such a request when After is [AfterRefused].
	Refusal Match `json:"refusal,omitzero"`
}

// Anchor is what a retention is counted from.
type Anchor string

// What a retention is counted from.
const (
	FromFirstSend  Anchor = "first_send"
	FromCompletion Anchor = "completion"
)

// Afterwards is what happens to a request whose key is no longer kept.
type Afterwards string

// What happens to a request whose key is no longer kept.
const (
	AfterRunsAgain   Afterwards = "runs_again"    // it is a new request, and has a second effect
	AfterRefused     Afterwards = "refused"       // it is refused and never run
	AfterKeptForEver Afterwards = "kept_for_ever" // there is no such time
)

// Compare says what a repeat is compared in with the first request.
type Compare struct {
	// What lists the things that are compared. [CompareNothing] stands alone.
	What []Compared `json:"what,omitempty"`
	// Paths are JSON Pointers into the body, when What has [ComparePaths].
	Paths []string `json:"paths,omitempty"`
	// Headers are the names of compared headers, when What has [CompareHeaders].
	Headers []string `json:"headers,omitempty"`
}

// Compared is something in which two requests are compared.
type Compared string

// The things in which two requests are compared.
const (
	CompareRawBody       Compared = "raw_body"
	CompareCanonicalBody Compared = "canonical_body"
	ComparePaths         Compared = "paths"
	CompareMethod        Compared = "method"
	ComparePath          Compared = "path"
	CompareQuery         Compared = "query"
	CompareHeaders       Compared = "headers"
	CompareParameters    Compared = "parameters" // "the parameters", without saying how
	CompareNothing       Compared = "nothing"
)

// Mismatch says what happens when a key comes with another request than the first time.
type Mismatch struct {
	// Do is what the API does.
	Do OnMismatch `json:"do,omitempty"`
	// Answer is what it answers, when Do is [MismatchRefused].
	Answer Match `json:"answer,omitzero"`
	// Also are other answers that mean the same.
	Also []Match `json:"also,omitempty"`
	// NamesResourceAt is the JSON Pointer in that answer under which the first request's resource is named.
	NamesResourceAt string `json:"names_resource_at,omitempty"`
}

// OnMismatch is what an API does when a key comes with another request than the first time.
type OnMismatch string

// What an API does when a key comes with another request.
const (
	MismatchRefused  OnMismatch = "refused"
	MismatchReplayed OnMismatch = "replayed" // silently: the first answer comes back
	MismatchExecuted OnMismatch = "executed" // silently: the key is ignored and the request runs
)

// InProgress says what happens when a key comes while its first request is still running.
type InProgress struct {
	// Do is what the API does with the second request.
	Do OnConcurrent `json:"do,omitempty"`
	// Answer is what it answers, when Do is [ConcurrentRefused].
	Answer Match `json:"answer,omitzero"`
	// Also are other answers that mean the same.
	Also []Match `json:"also,omitempty"`
	// RetryAfter says that the answer carries a Retry-After header.
	RetryAfter bool `json:"retry_after,omitempty"`
	// AskAgainAfter is how long to wait before asking again. Defaults to 1s.
	AskAgainAfter Duration `json:"ask_again_after,omitzero"`
	// AfterCrash is what a repeat meets when the API itself crashed while it ran the first request.
	AfterCrash AfterCrash `json:"after_crash,omitempty"`
	// InDoubt is the answer of an API that says so honestly when it does not know the outcome itself.
	InDoubt Match `json:"in_doubt,omitzero"`
}

// OnConcurrent is what an API does with a second request while the first is running.
type OnConcurrent string

// What an API does with a second request while the first is running.
const (
	ConcurrentRefused     OnConcurrent = "refused"
	ConcurrentWaits       OnConcurrent = "waits"       // the second waits and gets the first one's answer
	ConcurrentAnswered    OnConcurrent = "answered"    // the second is told how things stand
	ConcurrentUnspecified OnConcurrent = "unspecified" // it may fail in any way, but has no effect of its own
	ConcurrentRuns        OnConcurrent = "runs"        // it runs too: the key gives no protection here
)

// AfterCrash is what a repeat meets when the API crashed while it ran the first request.
type AfterCrash string

// What a repeat meets after a crash of the API.
const (
	CrashBlocksUntilExpiry AfterCrash = "in_progress_until_expiry"
	CrashRunsAgain         AfterCrash = "runs_again"
	CrashResumes           AfterCrash = "resumes"
	CrashInDoubt           AfterCrash = "in_doubt" // the API says that the outcome is unknown
)

// Replay says what a repeat is given.
type Replay struct {
	// Form is what comes back.
	Form ReplayForm `json:"form,omitempty"`
	// Marker is a header by which a replay can be told from a first answer.
	Marker Mark `json:"marker,omitzero"`
	// Headers are the headers that come back as they were the first time.
	Headers []string `json:"headers,omitempty"`
}

// ReplayForm is the form in which a stored outcome comes back.
type ReplayForm string

// The forms in which a stored outcome comes back.
const (
	ReplayBytes   ReplayForm = "stored_bytes"  // the first answer, byte for byte
	ReplayObject  ReplayForm = "stored_object" // the object as it was created
	ReplayCurrent ReplayForm = "current_state" // the object as it is now
	ReplayResumed ReplayForm = "resumed"       // failed work is taken up again; the answer is an updated one
)

// Stored says which outcomes are stored under the key, and therefore replayed.
type Stored struct {
	// Outcomes is the class of answers that are stored.
	Outcomes Outcomes `json:"outcomes,omitempty"`
	// Except lists statuses which are not stored although their class is.
	Except []int `json:"except,omitempty"`
	// OnlyOnceBegun says that an answer is stored only when the execution had begun: what fails in validation, or
	// because another request is in progress, leaves the key free.
	OnlyOnceBegun bool `json:"only_once_begun,omitempty"`
	// ServerErrors is what a repeat meets after a server error (a 5xx of the API itself).
	ServerErrors AfterServerError `json:"server_errors,omitempty"`
	// Transient is a header that marks an answer which does not use the key up.
	Transient Mark `json:"transient,omitzero"`
}

// Outcomes is a class of answers.
type Outcomes string

// The classes of answers that an API stores.
const (
	StoresEvery     Outcomes = "every"                 // whatever the answer was, server errors too
	StoresDefinite  Outcomes = "success_and_refusal"   // 2xx and 4xx
	StoresSuccess   Outcomes = "success"               // 2xx only
	StoresPermanent Outcomes = "all_but_transient"     // all answers without the mark in [Stored.Transient]
	StoresState     Outcomes = "state_of_the_resource" // no answer at all: the resource itself is the record
)

// AfterServerError is what a repeat meets after a server error.
type AfterServerError string

// What a repeat meets after a server error.
const (
	// ServerErrorReplayed: the error is stored and comes back. Calling again is harmless, and useless.
	ServerErrorReplayed AfterServerError = "replayed"
	// ServerErrorResumed: the API promises that a repeat has no second effect even if the error came after the
	// first one. Calling again is safe, and useful.
	ServerErrorResumed AfterServerError = "resumed"
	// ServerErrorReleased: the key is free again and the request runs anew, with no promise about an effect before
	// the error. Calling again after such an error is not safe. After a lost answer it is called again all the same,
	// although that answer might have been such an error: an API that offers keys promises that much, and is taken at
	// its word.
	ServerErrorReleased AfterServerError = "released"
)

// Answers says what a complete answer proves, beyond a mismatch and "in progress". A 2xx answer is a success, unless
// one of these lists says otherwise. An answer in no list is unknown.
type Answers struct {
	// CodeAt lists the places where a machine code may stand in a body (see [Match.At]); the first that is there counts.
	CodeAt []string `json:"code_at,omitempty"`
	// CodeIn2xx says that the API reports errors inside successful answers: a 2xx with a code is a success only if
	// Applied lists it.
	CodeIn2xx bool `json:"code_in_2xx,omitempty"`
	// Applied are further answers that mean success ("already exists", 303).
	Applied []Match `json:"applied,omitempty"`
	// Refused are definite rejections that may be given before the key is looked at: nothing happened through this
	// transmission, and sending it again is pointless.
	Refused []Match `json:"refused,omitempty"`
	// RefusedAfterLookUp are definite rejections given only after the key has been looked up: had an earlier
	// transmission been applied, its outcome would have come back instead.
	RefusedAfterLookUp []Match `json:"refused_after_look_up,omitempty"`
	// NothingHappened are rejections after which the same request may be sent again later: nothing happened through
	// this transmission, and the key is not used up (a rate limit, a maintenance window). A 502, 503 or 504 counts
	// only with a code or a header that shows that the API itself gave it.
	NothingHappened []Match `json:"nothing_happened,omitempty"`
	// Again is a header by which the API says itself whether the same request should be sent once more.
	Again AgainSign `json:"again,omitzero"`
}

// AgainSign is a header by which an API says whether the same request should be sent once more. It proves nothing
// about the effect.
type AgainSign struct {
	// Header is its name.
	Header string `json:"header,omitempty"`
	// Yes and No are the values that mean so.
	Yes string `json:"yes,omitempty"`
	No  string `json:"no,omitempty"`
}

// LookUp says how an operation is found without repeating it.
type LookUp struct {
	// By is what it is found by. Empty means that there is no look-up.
	By LookUpBy `json:"by,omitempty"`
	// Request describes the request, for example "GET /transfers?idempotency_key={key}". It is for people.
	Request string `json:"request,omitempty"`
	// ConsistentAfter is how long a finished operation may stay invisible.
	ConsistentAfter Duration `json:"consistent_after,omitzero"`
	// AbsentAfter is how long after the last possible end of a doubtful transmission "not found" means that it never
	// happened and never will. Zero means that "not found" proves nothing, ever.
	AbsentAfter Duration `json:"absent_after,omitzero"`
	// FindsFailures says that operations which failed are found too.
	FindsFailures bool `json:"finds_failures,omitempty"`
}

// LookUpBy is what an operation is found by.
type LookUpBy string

// What an operation is found by.
const (
	ByKey        LookUpBy = "key"         // one resource per key
	ByListFilter LookUpBy = "list_filter" // a list that can be filtered by the key
	ByNaturalKey LookUpBy = "natural_key" // something in the request that is unique by itself
)

// Cancel says how whatever a key did is cancelled, without knowing what it did.
type Cancel struct {
	// Request describes the request, for example "POST /payments/cancel". It is for people.
	Request string `json:"request,omitempty"`
	// Leaves is what is true once it has been cancelled.
	Leaves AfterCancel `json:"leaves,omitempty"`
}

// AfterCancel is what is true once a key has been cancelled.
type AfterCancel string

// What is true once a key has been cancelled.
const (
	// CancelBlocks: whatever the key did is undone, or it had done nothing, and a late request with it is refused. That
	// is a proof of absence.
	CancelBlocks AfterCancel = "blocks"
	// CancelUndoes: whatever the key did is undone, but a late request with it may still run. That is a proof only
	// once the last possible arrival is past.
	CancelUndoes AfterCancel = "undoes"
)

// Successor says whether a new key may take over from an old one.
type Successor struct {
	// Rule is when.
	Rule SuccessorRule `json:"rule,omitempty"`
}

// SuccessorRule is when a new key may take over from an old one.
type SuccessorRule string

// When a new key may take over.
const (
	SuccessorNever        SuccessorRule = "never"
	SuccessorAfterRefusal SuccessorRule = "after_refusal" // once the old one was definitely refused
	// SuccessorAdvised: the API's own documentation tells its users to take a new key after an error. That is
	// dangerous, because after an unknown outcome it makes a second effect. Semel never does it.
	SuccessorAdvised SuccessorRule = "advised"
)
