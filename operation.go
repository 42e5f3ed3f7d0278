package semel

import (
	"encoding/json"
	"time"
)

// An Operation is one user intent and everything known of it. Its JSON form is
// that of the HTTP interface; the fields marked with "-" stay inside.
type Operation struct {
	Key   Key   `json:"key"`
	State State `json:"state"`
	// Fingerprint is the digest of the normalised request ("v1:sha256:…").
	Fingerprint string `json:"fingerprint,omitempty"`
	// Params are the parameters with defaults applied: what is executed.
	Params json.RawMessage `json:"params,omitempty"`
	// Result is set when State is [Succeeded]; and when it is [Failed], if the refusal
	// was kept as it was.
	Result json.RawMessage `json:"result,omitempty"`
	// Failure says why, when State is [Failed] or [NeedsReconciliation]; while
	// Accepted or Processing it is the reason of the last try.
	Failure *Failure `json:"error,omitempty"`
	// Attempts is how many transmissions of the request are known: a lower bound.
	Attempts int `json:"attempts"`
	// Executions is how many times the effect was begun.
	Executions int       `json:"executions"`
	Progress   *Progress `json:"progress,omitempty"`
	// Acknowledged: nobody can ever know; it has left the reconciliation queue.
	Acknowledged bool `json:"acknowledged,omitempty"`
	// Contradicted: a late result says otherwise than the recorded outcome.
	Contradicted bool `json:"contradicted,omitempty"`
	// Revision rises by one with every change; attempts and progress are no change.
	Revision  int64     `json:"revision"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	// ExpiresAt is zero while unsettled, then the settling time plus the kind's retention.
	ExpiresAt time.Time `json:"expires_at,omitzero"`

	// AsSent is the digest of the canonical request as it came.
	AsSent string `json:"-"`
	// SchemaVersion names the definition that Params and Fingerprint were made under.
	SchemaVersion string `json:"-"`
	// Request is what goes to the external service, built once and stored before
	// the first send; nil means Params.
	Request []byte `json:"-"`
	// Token is the fencing token: 0 until the first claim, strictly increasing.
	Token int64 `json:"-"`
	// ClearedToken: executions with a token at or below it are no longer in doubt.
	ClearedToken int64 `json:"-"`
	// Expired: this is the stripped row of an operation past its retention.
	Expired bool `json:"-"`
	// Owner is the random mark of the write that made this revision; it tells one's
	// own write from another's after a commit with a lost answer.
	Owner string `json:"-"`
}

// A Failure is a reason in a code and a sentence. It holds no secrets.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
}

// Progress is how far an execution has come: a fraction from 0 to 1 and a word.
type Progress struct {
	Fraction float64 `json:"fraction"`
	Note     string  `json:"note,omitempty"`
}

// An Outcome is how an execution ended.
type Outcome string

// The outcomes.
const (
	// Applied: the effect happened.
	Applied Outcome = "applied"
	// Refused: the other side refused for good; nothing happened.
	Refused Outcome = "refused"
	// NotApplied: provably nothing happened; trying again is safe.
	NotApplied Outcome = "not_applied"
	// Unknown: it may have happened.
	Unknown Outcome = "unknown"
)

// An Execution is one try by a worker to bring the effect about, or to find out
// whether an earlier one did.
type Execution struct {
	// Token is the fencing token that it ran under; it names the execution.
	Token int64 `json:"token"`
	// Worker is who claimed it.
	Worker string `json:"worker"`
	// Contract is the contract that it began under, as JSON text.
	Contract string `json:"contract,omitempty"`
	// Step names the external call; empty while there is one per operation.
	Step string `json:"step,omitempty"`
	// ClaimedAt is when the lease was given, and LeaseEndsAt when it ends or ended.
	ClaimedAt   time.Time `json:"claimed_at"`
	LeaseEndsAt time.Time `json:"lease_ends_at"`
	// BegunAt is when the begin mark was written: zero means that the effect was
	// certainly not begun by this execution.
	BegunAt time.Time `json:"begun_at,omitzero"`
	// EndedAt is zero while it runs, and for ever if its worker died.
	EndedAt time.Time `json:"ended_at,omitzero"`
	Outcome Outcome   `json:"outcome,omitempty"`
	// Evidence is what was seen, as JSON; no parameters, results or secrets.
	Evidence json.RawMessage `json:"evidence,omitempty"`
	// LateOutcome and LateEvidence came after the lease was lost: kept, not obeyed.
	LateOutcome  Outcome         `json:"late_outcome,omitempty"`
	LateEvidence json.RawMessage `json:"late_evidence,omitempty"`
	LateAt       time.Time       `json:"late_at,omitzero"`
}

// InDoubt reports whether this execution may have had an effect that is not
// accounted for.
func (x Execution) InDoubt() bool {
	return !x.BegunAt.IsZero() && (x.Outcome == "" || x.Outcome == Unknown)
}

// An Attempt is one transmission of the request. It is never used to deduplicate.
type Attempt struct {
	Key Key       `json:"-"`
	ID  string    `json:"attempt_id"`
	At  time.Time `json:"at"`
}

// A Verdict is what a person found out about an operation in [NeedsReconciliation].
type Verdict struct {
	// Verdict is "applied", "not_applied" or "acknowledged".
	Verdict string `json:"verdict"`
	// Then is "retry" or "fail" after "not_applied", else empty.
	Then string `json:"then,omitempty"`
	// Evidence says how they know.
	Evidence string `json:"evidence"`
	// By is who said so.
	By string `json:"by"`
	// Result is the result recorded with "applied".
	Result json.RawMessage `json:"result,omitempty"`
	// Token is the fencing token that the verdict raised the operation to.
	Token int64     `json:"token"`
	At    time.Time `json:"at"`
}

// A History is what happened to one operation, oldest first.
type History struct {
	Attempts   []Attempt   `json:"attempts"`
	Executions []Execution `json:"executions"`
	Verdicts   []Verdict   `json:"verdicts"`
}
