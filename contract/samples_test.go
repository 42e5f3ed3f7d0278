package contract_test

import (
	"net/http"
	"time"

	"github.com/semel-dev/semel/contract"
)

// sample is one answer under a contract, and what it proves.
type sample struct {
	says   string // how the documentation names the answer
	status int
	header http.Header
	body   string
	proves contract.Proves
	reach  contract.Reach
	cause  contract.Cause
}

func header(name, value string) http.Header { return http.Header{name: {value}} }

func (s sample) answer() *contract.Answer {
	return &contract.Answer{Status: s.status, Header: s.header, Body: []byte(s.body)}
}

const (
	this    = contract.ReachThis
	earlier = contract.ReachEarlier
	key     = contract.ReachKey
)

// presetSamples is what the answers of each preset prove, for a keyed POST whose answer arrived in full.
var presetSamples = map[string][]sample{
	contract.IETF: {
		{"201", 201, nil, "", contract.Applied, key, contract.CauseSuccess},
		{"409", 409, nil, "", contract.InProgressNow, this, contract.CauseInProgress},
		{"422", 422, nil, "", contract.Refused, this, contract.CauseMismatch},
		{"400", 400, nil, "", contract.Refused, this, contract.CauseRejected},
		{"401", 401, nil, "", contract.Refused, this, contract.CauseRejected},
		{"404", 404, nil, "", contract.Refused, this, contract.CauseRejected},
		{"429", 429, nil, "", contract.Unknown, this, contract.CauseUnlisted},
		{"408", 408, nil, "", contract.Unknown, this, contract.CauseUnlisted},
		{"303", 303, nil, "", contract.Unknown, this, contract.CauseUnlisted},
		{"500", 500, nil, "", contract.Unknown, this, contract.CauseServerError},
		{"503", 503, nil, "", contract.Unknown, this, contract.CauseIntermediary},
	},
	contract.StripeV1: {
		{"200", 200, nil, `{"id":"ch_1"}`, contract.Applied, key, contract.CauseSuccess},
		{"200, replayed", 200, header("Idempotent-Replayed", "true"), `{"id":"ch_1"}`, contract.Applied, key, contract.CauseSuccess},
		{"409 idempotency_key_in_use", 409, nil, `{"error":{"code":"idempotency_key_in_use","type":"idempotency_error"}}`, contract.InProgressNow, this, contract.CauseInProgress},
		{"409 with another code", 409, nil, `{"error":{"code":"other"}}`, contract.Unknown, this, contract.CauseUnlisted},
		{"400 idempotency_error", 400, nil, `{"error":{"type":"idempotency_error"}}`, contract.Refused, this, contract.CauseMismatch},
		{"400 with another type", 400, nil, `{"error":{"type":"invalid_request_error"}}`, contract.Refused, this, contract.CauseRejected},
		{"402", 402, nil, `{"error":{"type":"card_error","code":"card_declined"}}`, contract.Refused, this, contract.CauseRejected},
		{"402, replayed", 402, header("Idempotent-Replayed", "true"), `{"error":{"type":"card_error"}}`, contract.Refused, key, contract.CauseRejected},
		{"401", 401, nil, "", contract.Refused, this, contract.CauseRejected},
		{"429", 429, nil, "", contract.NotApplied, this, contract.CauseTurnedAway},
		{"500", 500, nil, "", contract.Unknown, this, contract.CauseServerError},
		{"500, replayed", 500, header("Idempotent-Replayed", "true"), "", contract.Unknown, this, contract.CauseServerError},
		{"502", 502, nil, "", contract.Unknown, this, contract.CauseIntermediary},
	},
	contract.AIP155: {
		{"200", 200, nil, `{"name":"operations/1"}`, contract.Applied, key, contract.CauseSuccess},
		{"400", 400, nil, `{"error":{"status":"INVALID_ARGUMENT"}}`, contract.Refused, this, contract.CauseRejected},
		{"403", 403, nil, "", contract.Refused, this, contract.CauseRejected},
		{"409", 409, nil, `{"error":{"status":"ALREADY_EXISTS"}}`, contract.Unknown, this, contract.CauseUnlisted},
		{"429", 429, nil, "", contract.Unknown, this, contract.CauseUnlisted},
		{"500", 500, nil, "", contract.Unknown, this, contract.CauseServerError},
		{"503", 503, nil, `{"error":{"status":"UNAVAILABLE"}}`, contract.Unknown, this, contract.CauseIntermediary},
	},
	contract.Azure: {
		{"202", 202, header("Repeatability-Result", "accepted"), "", contract.Applied, key, contract.CauseSuccess},
		{"400, Repeatability-Result: rejected", 400, header("Repeatability-Result", "rejected"), "", contract.Refused, this, contract.CauseMismatch},
		{"400", 400, nil, "", contract.Refused, this, contract.CauseRejected},
		{"409", 409, nil, "", contract.InProgressNow, this, contract.CauseInProgress},
		{"412", 412, header("Repeatability-Result", "rejected"), "", contract.Refused, this, contract.CauseExpired},
		{"501", 501, nil, "", contract.Refused, this, contract.CauseRejected},
		{"500", 500, nil, "", contract.Unknown, this, contract.CauseServerError},
		{"504", 504, nil, "", contract.Unknown, this, contract.CauseIntermediary},
	},
	contract.Increase: {
		{"200", 200, nil, `{"id":"transfer_1","type":"ach_transfer"}`, contract.Applied, key, contract.CauseSuccess},
		{"200, replayed", 200, header("Idempotent-Replayed", "true"), "", contract.Applied, key, contract.CauseSuccess},
		{"409 idempotency_key_already_used_error", 409, nil, `{"type":"idempotency_key_already_used_error","resource_id":"x"}`, contract.Refused, this, contract.CauseMismatch},
		{"409 of another type", 409, nil, `{"type":"invalid_operation_error"}`, contract.Unknown, this, contract.CauseUnlisted},
		{"422", 422, nil, "", contract.Refused, this, contract.CauseRejected},
		{"500", 500, nil, `{"type":"internal_server_error"}`, contract.Unknown, this, contract.CauseServerError},
	},
	contract.Semel: {
		{"201", 201, nil, `{"state":"accepted"}`, contract.Applied, key, contract.CauseSuccess},
		{"200, replayed", 200, header("Idempotency-Replayed", "true"), `{"state":"succeeded"}`, contract.Applied, key, contract.CauseSuccess},
		{"409 fingerprint-mismatch", 409, nil, `{"code":"fingerprint-mismatch","recorded":"no"}`, contract.Refused, this, contract.CauseMismatch},
		{"422 fingerprint-mismatch", 422, nil, `{"code":"fingerprint-mismatch"}`, contract.Refused, this, contract.CauseMismatch},
		{"409 in-progress", 409, nil, `{"code":"in-progress"}`, contract.InProgressNow, this, contract.CauseInProgress},
		{"409 outcome-unknown", 409, nil, `{"code":"outcome-unknown"}`, contract.Unknown, this, contract.CauseInDoubt},
		{"409 operation-abandoned", 409, nil, `{"code":"operation-abandoned"}`, contract.Refused, earlier, contract.CauseRejected},
		{"412 accept-deadline-passed", 412, nil, `{"code":"accept-deadline-passed"}`, contract.Refused, earlier, contract.CauseRejected},
		{"410 operation-expired", 410, nil, `{"code":"operation-expired"}`, contract.Refused, this, contract.CauseExpired},
		{"400 invalid-operation", 400, nil, `{"code":"invalid-operation"}`, contract.Refused, this, contract.CauseRejected},
		{"401 unauthenticated", 401, nil, `{"code":"unauthenticated"}`, contract.Refused, this, contract.CauseRejected},
		{"429 too-many-requests", 429, nil, `{"code":"too-many-requests"}`, contract.NotApplied, this, contract.CauseTurnedAway},
		{"429 from somebody else", 429, nil, ``, contract.Unknown, this, contract.CauseUnlisted},
		{"503 with recorded: no", 503, nil, `{"code":"retry-transaction","recorded":"no"}`, contract.NotApplied, this, contract.CauseTurnedAway},
		{"503 with recorded: unknown", 503, nil, `{"code":"store-unavailable","recorded":"unknown"}`, contract.Unknown, this, contract.CauseIntermediary},
		{"500 internal", 500, nil, `{"code":"internal","recorded":"unknown"}`, contract.Unknown, this, contract.CauseServerError},
	},
	contract.Idempotent: {
		{"201", 201, nil, "", contract.Applied, key, contract.CauseSuccess},
		{"409", 409, nil, "", contract.InProgressNow, this, contract.CauseInProgress},
		{"422", 422, nil, "", contract.Refused, this, contract.CauseMismatch},
		{"400", 400, nil, "", contract.Refused, this, contract.CauseRejected},
		{"429", 429, nil, "", contract.Unknown, this, contract.CauseUnlisted},
		{"500", 500, nil, "", contract.Unknown, this, contract.CauseServerError},
		{"502", 502, nil, "", contract.Unknown, this, contract.CauseIntermediary},
	},
	contract.Queryable: {
		{"201", 201, nil, "", contract.Applied, key, contract.CauseSuccess},
		{"409", 409, nil, "", contract.Unknown, this, contract.CauseUnlisted},
		{"422", 422, nil, "", contract.Refused, this, contract.CauseRejected},
		{"500", 500, nil, "", contract.Unknown, this, contract.CauseServerError},
		{"503", 503, nil, "", contract.Unknown, this, contract.CauseIntermediary},
	},
	contract.Opaque: {
		{"200", 200, nil, "", contract.Applied, key, contract.CauseSuccess},
		{"400", 400, nil, "", contract.Refused, this, contract.CauseRejected},
		{"409", 409, nil, "", contract.Unknown, this, contract.CauseUnlisted},
		{"429", 429, nil, "", contract.Unknown, this, contract.CauseUnlisted},
		{"500", 500, nil, "", contract.Unknown, this, contract.CauseServerError},
	},
}

// The contracts of five more APIs show that the axes can say what these do. They are tests, not presets: their facts
// are not confirmed well enough to be anybody's default.

// adyen: transient errors do not use the key up.
func adyen() contract.Contract {
	return contract.Contract{
		Name: "adyen", Title: "Adyen",
		Carrier:   contract.Carrier{Place: contract.Place{In: contract.InHeader, Name: "Idempotency-Key"}},
		Key:       contract.KeyGrammar{MaxLength: 64},
		Use:       contract.Use{Methods: []string{"POST"}, Repeatable: []string{"PUT", "DELETE"}},
		Scope:     contract.Scope{Within: []contract.ScopePart{contract.ByAccount, contract.ByRegion}},
		Retention: contract.Retention{Minimum: contract.Duration(7 * 24 * time.Hour), From: contract.FromFirstSend, After: contract.AfterRunsAgain},
		InProgress: contract.InProgress{Do: contract.ConcurrentRefused,
			Answer: contract.Match{Status: 422, Code: "704"}},
		Replay: contract.Replay{Form: contract.ReplayBytes, Marker: contract.Mark{Header: "Idempotency-Key"}},
		Stored: contract.Stored{Outcomes: contract.StoresPermanent, ServerErrors: contract.ServerErrorReplayed,
			Transient: contract.Mark{Header: "Transient-Error", Value: "true"}},
		Answers: contract.Answers{CodeAt: []string{"/errorCode"}, Refused: []contract.Match{{Status: 400}, {Status: 401}, {Status: 403}, {Status: 422}}},
	}
}

// payPal: a repeat gets the latest status, and the documentation advises a new key.
func payPal() contract.Contract {
	return contract.Contract{
		Name: "paypal", Title: "PayPal Orders v2",
		Carrier:    contract.Carrier{Place: contract.Place{In: contract.InHeader, Name: "PayPal-Request-Id"}},
		Key:        contract.KeyGrammar{MinLength: 1, MaxLength: 108},
		Use:        contract.Use{Methods: []string{"POST"}, Required: contract.Sometimes, Elsewhere: contract.ElsewhereIgnored},
		Retention:  contract.Retention{Minimum: contract.Duration(6 * time.Hour), HardEnd: contract.Duration(72 * time.Hour), After: contract.AfterRunsAgain},
		Mismatch:   contract.Mismatch{Do: contract.MismatchRefused, Answer: contract.Match{Status: 422, Code: "PAYPAL_REQUEST_ID_PREVIOUSLY_USED"}, Also: []contract.Match{{Code: "DUPLICATE_REQUEST_ID"}}},
		InProgress: contract.InProgress{Do: contract.ConcurrentUnspecified},
		Replay:     contract.Replay{Form: contract.ReplayCurrent},
		Stored:     contract.Stored{ServerErrors: contract.ServerErrorResumed},
		Answers: contract.Answers{CodeAt: []string{"/details/0/issue", "/name"},
			Refused: []contract.Match{{Status: 400}, {Status: 401}, {Status: 403}, {Status: 404}, {Status: 422}}},
		Successor: contract.Successor{Rule: contract.SuccessorAdvised},
	}
}

// square: the key is a member of the body, no retention is published, and a payment can be cancelled by its key.
func square() contract.Contract {
	return contract.Contract{
		Name: "square", Title: "Square payments",
		Carrier:  contract.Carrier{Place: contract.Place{In: contract.InBody, Name: "/idempotency_key"}},
		Key:      contract.KeyGrammar{MinLength: 1, MaxLength: 45},
		Use:      contract.Use{Methods: []string{"POST"}, Required: contract.Required},
		Mismatch: contract.Mismatch{Do: contract.MismatchRefused, Answer: contract.Match{Status: 400, Code: "IDEMPOTENCY_KEY_REUSED"}},
		Replay:   contract.Replay{Form: contract.ReplayBytes},
		Stored:   contract.Stored{Outcomes: contract.StoresSuccess},
		Answers: contract.Answers{CodeAt: []string{"/errors/0/code"},
			Refused: []contract.Match{{Status: 400}, {Status: 401}, {Status: 403}, {Status: 404}}},
		Cancel: contract.Cancel{Request: "POST /v2/payments/cancel", Leaves: contract.CancelUndoes},
	}
}

// checkout: only a 2xx is stored.
func checkout() contract.Contract {
	return contract.Contract{
		Name: "checkout.com", Title: "Checkout.com",
		Carrier:   contract.Carrier{Place: contract.Place{In: contract.InHeader, Name: "Cko-Idempotency-Key"}},
		Key:       contract.KeyGrammar{Form: contract.KeyUUID, UUIDVersion: 4},
		Use:       contract.Use{Methods: []string{"POST"}, Required: contract.Optional},
		Retention: contract.Retention{Minimum: contract.Duration(24 * time.Hour), HardEnd: contract.Duration(24 * time.Hour), After: contract.AfterRunsAgain},
		Replay:    contract.Replay{Form: contract.ReplayBytes},
		Stored:    contract.Stored{Outcomes: contract.StoresSuccess, ServerErrors: contract.ServerErrorReleased},
		Answers:   contract.Answers{Refused: []contract.Match{{Status: 401}, {Status: 403}, {Status: 404}, {Status: 422}}},
	}
}

// ec2: a client token among the parameters, errors in XML, no retention published, and a list that can be filtered by
// the token.
func ec2() contract.Contract {
	return contract.Contract{
		Name: "ec2", Title: "Amazon EC2 RunInstances",
		Carrier:  contract.Carrier{Place: contract.Place{In: contract.InQuery, Name: "ClientToken"}},
		Key:      contract.KeyGrammar{Charset: contract.ASCII, MaxLength: 64},
		Scope:    contract.Scope{Within: []contract.ScopePart{contract.ByAccount, contract.ByRegion, contract.ByZone}},
		Mismatch: contract.Mismatch{Do: contract.MismatchRefused, Answer: contract.Match{Status: 400, Code: "IdempotentParameterMismatch"}},
		Replay:   contract.Replay{Form: contract.ReplayCurrent},
		Answers: contract.Answers{CodeAt: []string{"<Code>"},
			NothingHappened: []contract.Match{{Status: 503, Code: "RequestLimitExceeded"}},
			Refused:         []contract.Match{{Status: 400}, {Status: 401}, {Status: 403}}},
		LookUp: contract.LookUp{By: contract.ByListFilter, Request: "DescribeInstances, filter client-token",
			ConsistentAfter: contract.Duration(5 * time.Minute)},
	}
}

// otherAPIs are these contracts with their samples.
var otherAPIs = []struct {
	make    func() contract.Contract
	shape   string
	samples []sample
}{
	{adyen, "idempotent", []sample{
		{"200", 200, nil, `{"resultCode":"Authorised"}`, contract.Applied, key, contract.CauseSuccess},
		{"422 704", 422, header("Transient-Error", "true"), `{"errorCode":"704"}`, contract.InProgressNow, this, contract.CauseInProgress},
		{"422, transient", 422, header("Transient-Error", "true"), `{"errorCode":"901"}`, contract.NotApplied, this, contract.CauseTransient},
		{"500, transient", 500, header("Transient-Error", "true"), ``, contract.Unknown, this, contract.CauseTransient},
		{"422, permanent", 422, header("Transient-Error", "false"), `{"errorCode":"101"}`, contract.Refused, this, contract.CauseRejected},
		{"422, permanent, replayed", 422, header("Idempotency-Key", "k"), `{"errorCode":"101"}`, contract.Refused, key, contract.CauseRejected},
	}},
	{payPal, "idempotent", []sample{
		{"201", 201, nil, `{"status":"CREATED"}`, contract.Applied, key, contract.CauseSuccess},
		{"200, latest status", 200, nil, `{"status":"COMPLETED"}`, contract.Applied, key, contract.CauseSuccess},
		{"422 PAYPAL_REQUEST_ID_PREVIOUSLY_USED", 422, nil, `{"name":"UNPROCESSABLE_ENTITY","details":[{"issue":"PAYPAL_REQUEST_ID_PREVIOUSLY_USED"}]}`, contract.Refused, this, contract.CauseMismatch},
		{"400 DUPLICATE_REQUEST_ID", 400, nil, `{"name":"DUPLICATE_REQUEST_ID"}`, contract.Refused, this, contract.CauseMismatch},
		{"422 otherwise", 422, nil, `{"details":[{"issue":"INSTRUMENT_DECLINED"}]}`, contract.Refused, this, contract.CauseRejected},
		{"500", 500, nil, ``, contract.Unknown, this, contract.CauseServerError},
	}},
	{square, "opaque", []sample{
		{"200", 200, nil, `{"payment":{}}`, contract.Applied, key, contract.CauseSuccess},
		{"400 IDEMPOTENCY_KEY_REUSED", 400, nil, `{"errors":[{"code":"IDEMPOTENCY_KEY_REUSED"}]}`, contract.Refused, this, contract.CauseMismatch},
		{"400 otherwise", 400, nil, `{"errors":[{"code":"BAD_REQUEST"}]}`, contract.Refused, this, contract.CauseRejected},
	}},
	{checkout, "idempotent", []sample{
		{"201", 201, nil, ``, contract.Applied, key, contract.CauseSuccess},
		{"422", 422, nil, ``, contract.Refused, this, contract.CauseRejected},
		{"500", 500, nil, ``, contract.Unknown, this, contract.CauseServerError},
	}},
	{ec2, "queryable", []sample{
		{"200", 200, nil, `<RunInstancesResponse><instancesSet/></RunInstancesResponse>`, contract.Applied, key, contract.CauseSuccess},
		{"400 IdempotentParameterMismatch", 400, nil, `<Response><Errors><Error><Code>IdempotentParameterMismatch</Code></Error></Errors></Response>`, contract.Refused, this, contract.CauseMismatch},
		{"400 otherwise", 400, nil, `<Response><Errors><Error><Code>InvalidAMIID</Code></Error></Errors></Response>`, contract.Refused, this, contract.CauseRejected},
		{"503 RequestLimitExceeded", 503, nil, `<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors></Response>`, contract.NotApplied, this, contract.CauseTurnedAway},
		{"503 otherwise", 503, nil, `<html>bad gateway</html>`, contract.Unknown, this, contract.CauseIntermediary},
	}},
}
