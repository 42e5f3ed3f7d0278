package semel

import (
	"context"
	"encoding/json"
	"time"
)

// A Tx is the part of a [Store] that also works inside a transaction of the
// caller's: package sqlite and package postgres make one from a *sql.Tx or a
// pgx.Tx. The methods take batches; a result stands at the index of its request.
//
// A Tx owns no rule. It does what it is told, atomically, and says what it found.
type Tx interface {
	// Insert creates the operations whose keys are free. For each member,
	// atomically with respect to every other writer:
	//
	//   - the key has a row: [Exists], with that row, and nothing is written. A
	//     stored row beats everything below;
	//   - IDTime is set and at or below the horizon of the key's shard and kind:
	//     [PastHorizon];
	//   - AcceptUntil is set and the store's now is after it: [PastDeadline];
	//   - otherwise the operation row and, unless State is settled, the work row
	//     are written in one commit: [Created], with the row as stored.
	//
	// A unique constraint decides; no unique violation surfaces. Members may share
	// a key: at most one is Created, the others see it. An insertion waits for an
	// uncommitted rival of the same key: bounded, then [CodeInProgress] for that
	// member, or, where the database locks more than rows, [CodeUnavailable] for all
	// with Recorded "no". If a commit's answer is lost, Insert reads back by Owner
	// before it answers.
	//
	// An error that concerns one member stands in its Err: [CodeInvalid] if the key
	// breaks the grammar, or if it asks for another state. A returned error concerns
	// all, and says by Recorded whether they may be recorded.
	Insert(ctx context.Context, batch []Insertion) ([]Inserted, error)

	// Get reads operations; see [Found].
	Get(ctx context.Context, keys []Key) ([]Found, error)

	// Apply makes each change whose condition holds, the changes of one member
	// being all or nothing. Applied is false where Revision or Token was not the
	// current one; then nothing of that member was written. If a commit's answer
	// is lost, Apply reads back before it answers. Members have distinct keys.
	Apply(ctx context.Context, batch []Change) ([]Applying, error)
}

// A Deferrer is a [Tx] that can keep a change back until its transaction commits,
// so that it goes out together with the commit; see [Ledger.FinishLast].
type Deferrer interface {
	// Defer is Apply for one change to an operation that was created in this same
	// transaction. It makes no call: it reports false where this change can't be kept
	// back, and has then done nothing. The answer is the row after the change; ask
	// for it after the commit. If the condition does not hold then, the commit fails,
	// and nothing of the transaction is written. Calls of this Tx that come after it
	// see the change.
	Defer(c Change) (answer func() Operation, ok bool)
}

// A Store is the memory of a ledger. Package storetest is its judge: a store
// that passes it needs no other test of meaning.
//
// All methods are safe for concurrent use. A cancelled context may leave a write
// done or not done, never half done. Errors are *[Error]: [CodeUnavailable] when
// the database can't be reached, with Recorded "no" if certainly nothing was
// written. Time is the store's own clock, taken once per statement.
type Store interface {
	Tx

	// Claim leases up to Max due operations. For each one, in one commit and
	// provided that its work row is still due: Token and Revision rise by one,
	// State becomes Processing, the work row is due again when the lease ends, and
	// an execution row is written with the kind's contract. If the operation was
	// Accepted and the kind says BeginNow, the execution is also marked as begun
	// and Executions rises by one. An operation is never leased twice at a time.
	// The oldest due come first, but no account may starve another.
	Claim(ctx context.Context, req ClaimRequest) ([]Claimed, error)

	// Renew moves the end of leases to the store's now plus Lease, and stores
	// progress. It reports false where the token is not the current one or the
	// operation is no longer Processing; revision does not change.
	Renew(ctx context.Context, batch []Renewal) ([]bool, error)

	// KeepLate stores, beside the execution of that token, a result that came too
	// late. The first one stays. Nothing else changes.
	KeepLate(ctx context.Context, late Late) error

	// RecordAttempts stores transmissions: each raises Attempts by one, and the
	// newest [MaxAttempts] rows of an operation may be kept. Attempts of unknown
	// keys are ignored.
	RecordAttempts(ctx context.Context, batch []Attempt) error

	// List returns operations, newest first, without Params, Result and Request.
	// Stripped rows (Expired) are left out.
	List(ctx context.Context, q Query) (Page, error)

	// History returns what happened to one operation; empty if there is none.
	History(ctx context.Context, key Key) (History, error)

	// Pending counts the work rows of each account, but no further than limit.
	Pending(ctx context.Context, accounts []string, limit int) ([]int, error)

	// Stats counts, for metrics and the console; stripped rows are left out.
	Stats(ctx context.Context) (Stats, error)

	// Purge does one bounded step of forgetting for each kind: it raises the
	// horizon of the kind to now minus Retention (never lowering it); strips up to
	// Max settled rows whose ExpiresAt has passed (Expired becomes true; Params,
	// Result, Request, history and digests go; a tombstone stays Abandoned); and
	// deletes up to Max stripped rows whose ID is a UUIDv7 at or below the horizon
	// and not dated after its CreatedAt. It never touches an unsettled operation,
	// and repeats its condition on the row that it removes.
	Purge(ctx context.Context, reqs []PurgeRequest) (Purged, error)

	// SaveDefinition keeps a kind's definition under its version; the first one
	// stays. Definition returns it, or nil.
	SaveDefinition(ctx context.Context, kind, version string, definition []byte) error
	Definition(ctx context.Context, kind, version string) ([]byte, error)

	// Ping reports whether the store can be read.
	Ping(ctx context.Context) error

	// Close releases what Open took.
	Close() error
}

// A Wide is a [Store] at the other end of a network, that makes progress with
// several batches of Insert, of Apply and of Get at the same time: a [Ledger] under
// load then sends up to Width of each. To other stores it sends one batch of
// insertions and one of changes at a time, and each look-up by itself.
type Wide interface {
	Width() int
}

// MaxAttempts is how many attempt rows of one operation are kept at least; more
// are counted, and may be forgotten.
const MaxAttempts = 50

// An Insertion asks for a new operation.
type Insertion struct {
	Key Key
	// State is Accepted, Processing (begun at once, under Begun) or Abandoned (a
	// tombstone).
	State                              State
	AsSent, Fingerprint, SchemaVersion string
	Params, Request                    []byte
	// IDTime is the time in a UUIDv7, zero for other IDs.
	IDTime time.Time
	// AcceptUntil is the accept deadline, zero for none.
	AcceptUntil time.Time
	// Due is how long from now the work is due; not used for a tombstone.
	Due time.Duration
	// Retain is how long from now a tombstone expires.
	Retain time.Duration
	// Owner is a random mark, different for every insertion.
	Owner string
	// AttemptID is the first attempt; Attempts starts at one if it is set.
	AttemptID string
	// Begun is set when State is Processing: the first execution, with token 1,
	// begun in the same commit.
	Begun *Begun
}

// A Begun is an execution that starts together with its operation.
type Begun struct {
	Worker, Contract string
	Lease            time.Duration
}

// An InsertVerdict is what an insertion met.
type InsertVerdict int

// The verdicts.
const (
	Created InsertVerdict = iota + 1
	Exists
	PastHorizon
	PastDeadline
)

// An Inserted answers an [Insertion]. Operation is set for Created and Exists.
type Inserted struct {
	Verdict   InsertVerdict
	Operation *Operation
	Err       error
}

// A Found answers a look-up. Operation is nil where the key has no row; then
// PastHorizon says that it may have had one, which is forgotten.
type Found struct {
	Operation   *Operation
	PastHorizon bool
}

// A Change is one conditional write to one operation.
type Change struct {
	Key Key
	// Revision and Token must both be the current ones.
	Revision, Token int64

	// Owner is a random mark, different for every change; it becomes the row's
	// Owner, and tells one's own write from another's when a commit's answer is lost.
	Owner string
	// State is the new state. The revision rises by one.
	State State
	// NextToken is the new token, zero to leave it.
	NextToken int64
	// ClearedToken is the new cleared token, zero to leave it.
	ClearedToken int64
	// Result and Failure replace the stored ones if not nil. The stored failure
	// also goes when State is Succeeded or Abandoned: it was the reason of an
	// earlier try.
	Result  []byte
	Failure *Failure
	// Acknowledged and Contradicted set the flag; they never clear it.
	Acknowledged, Contradicted bool
	// Begun raises Executions by one.
	Begun bool
	// Retain sets ExpiresAt to now plus Retain when the operation becomes settled;
	// one that is settled already keeps its ExpiresAt.
	Retain time.Duration
	// Work says what becomes of the pending record.
	Work WorkChange
	// Due is used with [WorkDue].
	Due time.Duration
	// Execution changes the execution row of a token, if not nil.
	Execution *ExecutionChange
	// Verdict is added to the history, if not nil; At is the store's now.
	Verdict *Verdict
}

// A WorkChange is what a [Change] does to the pending record.
type WorkChange int

// The work changes.
const (
	WorkKeep WorkChange = iota
	// WorkDue puts the record, due after Change.Due.
	WorkDue
	// WorkDone removes it.
	WorkDone
)

// An ExecutionChange writes to the execution of Token.
type ExecutionChange struct {
	Token int64
	// Begin sets BegunAt to now, unless it is set already.
	Begin bool
	// End sets EndedAt to now, with Outcome and Evidence.
	End      bool
	Outcome  Outcome
	Evidence json.RawMessage
}

// An Applying answers a [Change]. Operation is the row after the change, set
// when Applied.
type Applying struct {
	Applied   bool
	Operation *Operation
	Err       error
}

// A ClaimRequest asks for due work.
type ClaimRequest struct {
	// Worker is who asks.
	Worker string
	// Max is how many at most.
	Max int
	// Kinds are the kinds wanted; others are left alone.
	Kinds []ClaimKind
}

// A ClaimKind says how operations of one kind are claimed.
type ClaimKind struct {
	Kind string
	// Max is how many of this kind at most; zero for no limit beside the request's.
	Max int
	// Lease is how long the lease lasts.
	Lease time.Duration
	// Contract is stored with the execution.
	Contract string
	// BeginNow makes the claim itself the begin mark.
	BeginNow bool
}

// A Claimed is one leased operation, as it is after the claim. Begun says that
// the claim marked the effect as begun. Prior are the executions before this
// one, oldest first.
type Claimed struct {
	Operation Operation
	Begun     bool
	Prior     []Execution
	// Now is the store's time of the claim; durations are counted from it.
	Now time.Time
}

// A Renewal keeps a lease alive.
type Renewal struct {
	Key      Key
	Token    int64
	Lease    time.Duration
	Progress *Progress
}

// A Late is a result that came after its lease was lost.
type Late struct {
	Key      Key
	Token    int64
	Outcome  Outcome
	Evidence json.RawMessage
}

// A Query selects operations for a list.
type Query struct {
	// Accounts limits the list to these; nil means all of them.
	Accounts []string
	// Kind and State limit it further; empty means any.
	Kind  string
	State State
	// Unacknowledged leaves out acknowledged operations.
	Unacknowledged bool
	// Size is the page size, 1 to 1000.
	Size int
	// After continues behind an earlier [Page]; empty begins.
	After string
}

// A Page is a part of a list. Next is empty at the end. A page token that is not
// one of ours is [CodeInvalid].
type Page struct {
	Operations []Operation
	Next       string
}

// Stats are counts over all accounts.
type Stats struct {
	At    time.Time   `json:"at"`
	Kinds []KindStats `json:"kinds"`
}

// KindStats are the counts of one kind. The ages are zero where nothing waits.
type KindStats struct {
	Kind   string          `json:"kind"`
	States map[State]int64 `json:"states"`
	// OldestDue is how long the oldest due work has been waiting.
	OldestDue time.Duration `json:"oldest_due_ns"`
	// Unreconciled counts operations that need reconciliation and are not
	// acknowledged, and OldestUnreconciled is the age of the oldest.
	Unreconciled       int64         `json:"unreconciled"`
	OldestUnreconciled time.Duration `json:"oldest_unreconciled_ns"`
	Contradicted       int64         `json:"contradicted"`
}

// A PurgeRequest is one step of forgetting.
type PurgeRequest struct {
	Kind      string
	Retention time.Duration
	Max       int
}

// Purged says what a step did.
type Purged struct{ Stripped, Deleted int }
