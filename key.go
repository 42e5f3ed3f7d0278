package semel

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"strings"
	"time"
)

// A Key is the identity of an operation. Two requests with the same key are the
// same intent; a key never changes its meaning.
type Key struct {
	// Account owns the operation: 1 to 64 of a-z 0-9 . _ -, starting with a
	// letter or digit. It comes from the credential, never from the request.
	Account string `json:"account"`
	// Kind says what is to be done; grammar as for Account.
	Kind string `json:"kind"`
	// ID is the operation ID: 1 to 128 of A-Z a-z 0-9 . _ ~ -, not "." or "..".
	// The client makes it before the first send; see [NewID].
	ID string `json:"id"`
}

// Limits of the grammar, in bytes (which are characters: all is ASCII).
const (
	MaxIDLength   = 128
	MaxNameLength = 64
)

// String returns "account/kind/id".
func (k Key) String() string { return k.Account + "/" + k.Kind + "/" + k.ID }

// Compare orders keys by account, kind and ID.
func (k Key) Compare(other Key) int {
	if c := strings.Compare(k.Account, other.Account); c != 0 {
		return c
	}
	if c := strings.Compare(k.Kind, other.Kind); c != 0 {
		return c
	}
	return strings.Compare(k.ID, other.ID)
}

// Validate reports, as [CodeInvalid], the first part that breaks the grammar.
func (k Key) Validate() error {
	switch {
	case !ValidName(k.Account):
		return &Error{Op: "key", Code: CodeInvalid, Msg: "the account is not 1 to 64 of a-z 0-9 . _ - starting with a letter or digit"}
	case !ValidName(k.Kind):
		return &Error{Op: "key", Code: CodeInvalid, Msg: "the kind is not 1 to 64 of a-z 0-9 . _ - starting with a letter or digit"}
	case !ValidID(k.ID):
		return &Error{Op: "key", Code: CodeInvalid, Msg: "the operation ID is not 1 to 128 of A-Z a-z 0-9 . _ ~ -",
			Hint: "a UUIDv7 is a good operation ID"}
	}
	return nil
}

// ValidName reports whether s can be an account or a kind.
func ValidName(s string) bool {
	if len(s) == 0 || len(s) > MaxNameLength {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// ValidID reports whether s can be an operation ID.
func ValidID(s string) bool {
	if len(s) == 0 || len(s) > MaxIDLength || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.' || c == '_' || c == '~' || c == '-':
		default:
			return false
		}
	}
	return true
}

// NewID makes an operation ID: a UUIDv7 (RFC 9562), random and dated by this
// machine's clock. The date is used for one thing only: an ID older than what
// the ledger remembers is refused instead of being run again.
func NewID() string {
	var u [16]byte
	rand.Read(u[:]) // never fails: crypto/rand ends the program instead
	binary.BigEndian.PutUint64(u[:8], uint64(time.Now().UnixMilli())<<16|uint64(binary.BigEndian.Uint16(u[6:8])))
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[0:8], u[0:4])
	hex.Encode(s[9:13], u[4:6])
	hex.Encode(s[14:18], u[6:8])
	hex.Encode(s[19:23], u[8:10])
	hex.Encode(s[24:36], u[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// IDTime returns the time in a UUIDv7 in its canonical text form (lower or upper
// case); ok is false for every other ID.
func IDTime(id string) (t time.Time, ok bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' || id[14] != '7' {
		return time.Time{}, false
	}
	var u [16]byte
	for i, part := range []string{id[0:8], id[9:13], id[14:18], id[19:23], id[24:36]} {
		at := [...]int{0, 4, 6, 8, 10}[i]
		if _, err := hex.Decode(u[at:], []byte(part)); err != nil {
			return time.Time{}, false
		}
	}
	if u[8]&0xc0 != 0x80 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(u[:8]) >> 16)).UTC(), true
}

// Shards is the number of buckets that every table is cut into. All rows of one
// operation carry the same bucket.
const Shards = 16

// A Sharding says what the bucket of an operation is hashed from. A database
// keeps the one it was created with.
type Sharding string

const (
	// ShardByAccount keeps the operations of one account together.
	ShardByAccount Sharding = "account"
	// ShardByKey spreads them: for an installation whose whole load is one account.
	ShardByKey Sharding = "key"
)

// Shard returns the bucket of k, 0 to [Shards]-1. Its value never changes
// between releases.
func (s Sharding) Shard(k Key) int {
	h := fnv.New64a()
	h.Write([]byte(k.Account))
	if s == ShardByKey {
		h.Write([]byte{0})
		h.Write([]byte(k.Kind))
		h.Write([]byte{0})
		h.Write([]byte(k.ID))
	}
	sum := h.Sum64()
	return int((sum ^ sum>>32) % Shards)
}
