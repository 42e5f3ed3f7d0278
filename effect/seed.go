package effect

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// seedVersion is part of every seed. It never changes: a new way of deriving keys
// would need a new word here, and operations that are under way would lose theirs.
const seedVersion = "semel-seed-v1"

// Seed returns what the key of an operation at the external service is made
// from: the SHA-256, in hexadecimal, of the word "semel-seed-v1", the account, the
// kind and the operation ID, each preceded by its length in bytes as 8 bytes, most
// significant first. The wire form is [contract.KeyGrammar.FormatKey] of it.
//
// The derivation is published so that an operator can find an operation at the
// external service. It is one-way: the key reveals neither account nor ID.
func Seed(key semel.Key) string {
	h := sha256.New()
	for _, part := range []string{seedVersion, key.Account, key.Kind, key.ID} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// downstreamKey returns the key as it goes on the wire, and without its quotes.
func downstreamKey(c contract.Contract, key semel.Key) (wire, bare string, err error) {
	if wire, err = c.Key.FormatKey(Seed(key)); err != nil {
		return "", "", err
	}
	bare, err = c.Key.ParseKey(wire)
	return wire, bare, err
}
