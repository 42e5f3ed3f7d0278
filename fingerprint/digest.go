package fingerprint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Version names the way in which fingerprints are made. It is their first part.
// Two fingerprints of different versions say nothing about each other.
const Version = "v1"

// Of is the fingerprint of a request as it was sent: the canonical form of doc,
// with the kind of operation that it asks for. It fails as [Parse] does.
func Of(kind string, doc []byte) (string, error) {
	v, err := Parse(doc)
	if err != nil {
		return "", err
	}
	return AsSent(kind, v), nil
}

// AsSent is [Of] for a document that has been parsed.
func AsSent(kind string, v Value) string {
	b := NewBuilder("as-sent")
	b.Add("kind", kind)
	b.JSON("params", v)
	return b.Sum()
}

// Normalised is the fingerprint of a request after the defaults and the
// projection of its kind. definition names what applied them: under another
// definition the same v has another fingerprint. It never equals a fingerprint
// of [AsSent].
func Normalised(kind, definition string, v Value) string {
	b := NewBuilder("normalised")
	b.Add("kind", kind)
	b.Add("definition", definition)
	b.JSON("params", v)
	return b.Sum()
}

// A Builder makes one fingerprint out of named fields, in the order in which
// they are added.
//
// Fields cannot run into each other, text, JSON and raw bytes are told apart,
// and what was made for one purpose never equals what was made for another. The
// hash is taken over these bytes, where <x> is the length of x as 8 bytes, big
// endian, and then x:
//
//	<semel-fingerprint-v1> <purpose> field…
//
// and a field is one of
//
//	t <name> the number of values as 8 bytes, <value>…
//	j <name> <canonical form>
//	r <name> <bytes>
//
// A Builder belongs to one goroutine. The zero Builder is not usable.
type Builder struct {
	hash hash.Hash
	buf  []byte // added, not hashed yet
}

// NewBuilder begins a fingerprint for a purpose, which should name what is
// hashed: "http-request".
func NewBuilder(purpose string) *Builder {
	b := &Builder{sha256.New(), make([]byte, 0, 512)}
	b.text("semel-fingerprint-" + Version)
	b.text(purpose)
	return b
}

// Add adds a field of text. A field that has no values differs from one that
// has an empty value.
func (b *Builder) Add(name string, values ...string) {
	b.field('t', name)
	b.length(len(values))
	for _, v := range values {
		b.text(v)
	}
}

// JSON adds a field that is a JSON value, by its canonical form.
func (b *Builder) JSON(name string, v Value) {
	b.field('j', name)
	b.length(0)
	start := len(b.buf)
	b.buf = AppendCanonical(b.buf, v)
	binary.BigEndian.PutUint64(b.buf[start-8:], uint64(len(b.buf)-start))
	b.flush()
}

// Raw adds a field of bytes that are compared as they are.
func (b *Builder) Raw(name string, data []byte) {
	b.field('r', name)
	b.length(len(data))
	b.flush()
	b.hash.Write(data)
}

// Sum is the fingerprint of all that was added: the version, the name of the
// hash and its value in lower-case hexadecimal. More can be added afterwards.
func (b *Builder) Sum() string {
	const prefix = Version + ":sha256:"
	b.flush()
	return prefix + hex.EncodeToString(b.hash.Sum(nil))
}

func (b *Builder) field(tag byte, name string) {
	b.buf = append(b.buf, tag)
	b.text(name)
}

func (b *Builder) text(s string) {
	b.length(len(s))
	b.buf = append(b.buf, s...)
}

func (b *Builder) length(n int) {
	b.buf = binary.BigEndian.AppendUint64(b.buf, uint64(n))
}

func (b *Builder) flush() {
	b.hash.Write(b.buf)
	b.buf = b.buf[:0]
}
