package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// A Route is something that can be asked for through this package.
type Route struct {
	// Pattern is the method and the pattern as the router knows it, such as
	// "POST /orders/{id}/refund"; or, for [Do], a plain name such as
	// "nightly-report".
	Pattern string
	// Retention is how long a settled operation is remembered with its answer; not
	// less than the contract's retention.minimum promises. Defaults to [semel.DefaultRetention].
	Retention time.Duration
	// LookUp finds out what became of an execution that ended without a word: its
	// process died, it lost its lease, it panicked or answered with a server error.
	// Any node may call it, and more than once. Defaults to none: then such an
	// operation needs reconciliation, and a person finds out.
	LookUp func(ctx context.Context, d Doubt) (Finding, error)
}

// AllRoutes is the pattern under which operations are kept when the contract's
// scope names no endpoint and no method: one key is then one intent on all routes.
const AllRoutes = "http"

// Kinds makes the kinds of these routes, for the ledger's options. An operation
// of such a kind can be created by this package only; [semel.Ledger.Accept] with
// bare parameters refuses it, since nobody would run it.
func Kinds(routes ...Route) []semel.Kind {
	kinds := make([]semel.Kind, len(routes))
	for i, r := range routes {
		kinds[i] = semel.Kind{Name: KindName(r.Pattern), Canon: &route{r}, Retention: r.Retention, Description: r.Pattern,
			Contract: "One run for each Idempotency-Key; a repeat gets the recorded answer."}
	}
	return kinds
}

// KindName is the kind under which operations of a pattern are kept. It is the
// same in every process and release, it can be read, and two routes never share
// one:
//
//	POST /orders                     post.orders
//	POST /orders/{id}/refund         post.orders._.refund
//	PATCH /files/{path...}           patch.files._rest
//	POST /Orders                     r.post-orders.qlkbs2yplmwqn5kyy6ibtl6dxt
//	nightly-report                   nightly-report
//
// A segment of a-z 0-9 - stands as it is. A wildcard is "_", whatever its name, as
// a variable may be renamed; {name...} is "_rest", {$} is "_exact", and a slash at
// the end "_any". A pattern that has anything else, or would be too long, gets an
// "r.", what can be read of it, and 130 bits of its SHA-256. A pattern without a
// method is one of "any". What is already the name of a kind stays as it is, and
// two patterns with one name are refused by [semel.New].
func KindName(pattern string) string {
	if semel.ValidName(pattern) {
		return pattern
	}
	method, path, found := strings.Cut(strings.TrimSpace(pattern), " ")
	if !found {
		method, path = "", method
	}
	path = strings.TrimSpace(path)
	if name, ok := plainName(method, path); ok {
		return name
	}
	canonical := method + " " + unnamed(path)
	return "r." + slug(canonical) + "." + hash32(canonical)[:26]
}

func plainName(method, path string) (string, bool) {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
	case "":
		method = "any"
	default:
		return "", false
	}
	name := strings.ToLower(method)
	if !strings.HasPrefix(path, "/") {
		return "", false
	}
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch {
		case s == "" && last:
			s = "_any"
		case s == "{$}" && last:
			s = "_exact"
		case isWildcard(s) && strings.HasSuffix(s, "...}") && last:
			s = "_rest"
		case isWildcard(s) && !strings.HasSuffix(s, "...}"):
			s = "_"
		case s == "" || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			return "", false
		}
		name += "." + s
	}
	return name, semel.ValidName(name)
}

// isWildcard reports whether a segment is {name} or {name...}; one with anything
// else in it, such as a regular expression, is another pattern.
func isWildcard(segment string) bool {
	if len(segment) < 3 || segment[0] != '{' || segment[len(segment)-1] != '}' {
		return false
	}
	name := strings.TrimSuffix(segment[1:len(segment)-1], "...")
	for _, c := range name {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return name != ""
}

// unnamed takes the names out of wildcards.
func unnamed(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		switch {
		case isWildcard(s) && strings.HasSuffix(s, "...}"):
			segments[i] = "{...}"
		case isWildcard(s):
			segments[i] = "{}"
		}
	}
	return strings.Join(segments, "/")
}

// slug is what can be read of a pattern: at most 30 characters.
func slug(s string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(s) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if n := b.Len(); n > 0 && b.String()[n-1] != '-' {
			b.WriteByte('-')
		}
		if b.Len() == 30 {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func hash32(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base32Lower.EncodeToString(sum[:])
}

// mapped is what a name or key that is not in the grammar begins with. What
// begins with it already is mapped too, so that nobody can choose the image of
// another one.
const mapped = "h."

// accountName maps what the caller's authentication calls an account to the
// grammar: "h." and the SHA-256 in base32 if it is not in it.
func accountName(account string) string {
	if semel.ValidName(account) && !strings.HasPrefix(account, mapped) {
		return account
	}
	return mapped + hash32(account)
}

// operationID maps a key to the grammar: "h." and the SHA-256 in base64url if it
// is not in it. A key that is a UUIDv7 keeps its date this way.
func operationID(key string) string {
	if semel.ValidID(key) && !strings.HasPrefix(key, mapped) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return mapped + base64.RawURLEncoding.EncodeToString(sum[:])
}

// route marks a kind as one of ours. It is no Canon that could compare anything:
// the fingerprint of a whole HTTP request is made elsewhere.
type route struct{ Route }

func (*route) Version() string    { return "request-v1" }
func (*route) Definition() []byte { return []byte(`{"made_by":"idempotency"}`) }

var errOnlyHere = errors.New("operations of this kind are created by a request to their own route only")

func (*route) AsSent([]byte) (string, error) { return "", errOnlyHere }

func (*route) Normalize([]byte) ([]byte, string, error) { return nil, "", errOnlyHere }

func (*route) Differ([]byte, []byte) []string { return nil }

// routeOf returns the route of a kind, or nil if the kind is not one of ours.
func routeOf(ledger *semel.Ledger, kind string) *route {
	k, err := ledger.Kind(kind)
	if err != nil {
		return nil
	}
	r, _ := k.Canon.(*route)
	return r
}

// A Doubt is an operation whose effect may have happened: an execution had begun,
// and ended without a word that counts. No execution of it is running, unless a
// process was stopped for longer than its lease.
type Doubt struct {
	Operation semel.Operation
	// Executions are those in doubt, oldest first.
	Executions []semel.Execution
	// Since is how long ago the lease of the last of them ended, or it reported an
	// unknown outcome, by the store's clock. A search at the other side that finds
	// nothing proves nothing until what was sent can no longer arrive.
	Since time.Duration
}

// Request returns what was asked for. The body is there as far as it was kept
// (see [Options.KeepBody]); ok is false for an operation of [Do], whose request
// are the operation's parameters.
func (d Doubt) Request() (asked Asked, ok bool) {
	err := json.Unmarshal(d.Operation.Params, &asked)
	return asked, err == nil && asked.Method != ""
}

// A Finding is what a look-up found out.
type Finding struct {
	// Outcome is [semel.Applied], [semel.NotApplied] or [semel.Unknown]. NotApplied
	// needs a proof that it did not happen and cannot happen any more: the key is
	// free again, and the next repeat runs the handler.
	Outcome semel.Outcome
	// Answer is what a repeat gets, with Applied. Defaults to a short answer which
	// says that it is done.
	Answer *Answer
	// Result is what a repeat of [Do] gets, with Applied; JSON.
	Result json.RawMessage
	// Again, with Unknown, looks again after this time, up to 20 times in all. Zero
	// means that no further look-up could tell.
	Again time.Duration
	// Evidence says what was seen, without secrets.
	Evidence string
}
