package semel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// rawCanon compares bytes: the Canon of a kind that has none.
type rawCanon struct{}

func (rawCanon) Version() string    { return "bytes" }
func (rawCanon) Definition() []byte { return []byte("{}") }

func (rawCanon) AsSent(params []byte) (string, error) {
	sum := sha256.Sum256(params)
	return "v1:sha256:" + hex.EncodeToString(sum[:]), nil
}

func (c rawCanon) Normalize(params []byte) ([]byte, string, error) {
	digest, err := c.AsSent(params)
	return params, digest, err
}

func (rawCanon) Differ(stored, params []byte) []string {
	if bytes.Equal(stored, params) {
		return nil
	}
	return []string{""} // the JSON Pointer of the whole document
}
