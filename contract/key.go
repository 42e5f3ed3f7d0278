package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"
)

// KeyGrammar says what a key looks like.
type KeyGrammar struct {
	// Form is the form of a key.
	Form KeyForm `json:"form,omitempty"`
	// UUIDVersion is the version that a UUID must have, when Form is [KeyUUID]. Zero means any.
	UUIDVersion int `json:"uuid_version,omitempty"`
	// Charset is what a key may be made of, when Form is [KeyText].
	Charset Charset `json:"charset,omitempty"`
	// MinLength is how long a key must be at the least, without its quotes. Zero means that the contract does not say.
	MinLength int `json:"min_length,omitempty"`
	// MaxLength is how long a key may be at the most, without its quotes. Zero means that the contract does not say.
	MaxLength int `json:"max_length,omitempty"`
	// Unit is what the lengths are counted in. Defaults to [Characters].
	Unit Unit `json:"unit,omitempty"`
	// Quoting says whether the key stands in quotes on the wire, as a string of RFC 9651.
	Quoting Quoting `json:"quoting,omitempty"`
	// CaseInsensitive says that keys which differ in case only are the same key.
	CaseInsensitive bool `json:"case_insensitive,omitempty"`
}

// KeyForm is the form of a key.
type KeyForm string

// The forms of a key.
const (
	KeyText KeyForm = "text"
	KeyUUID KeyForm = "uuid"
)

// Charset is what a key may be made of.
type Charset string

// The character sets of keys. The empty one means that the contract does not say.
const (
	Digits       Charset = "digits"        // 0-9
	Hex          Charset = "hex"           // 0-9 a-f
	Alphanumeric Charset = "alphanumeric"  // A-Z a-z 0-9
	URLSafe      Charset = "url_safe"      // A-Z a-z 0-9 . _ ~ -
	VisibleASCII Charset = "visible_ascii" // 0x21 to 0x7e
	ASCII        Charset = "ascii"         // 0x20 to 0x7e
)

// Unit is what the length of a key is counted in.
type Unit string

// The units of length.
const (
	Characters Unit = "characters"
	Bytes      Unit = "bytes"
)

// Quoting says whether a key stands in quotes on the wire.
type Quoting string

// Whether a key stands in quotes on the wire. The empty value counts as [Bare].
const (
	Bare   Quoting = "bare"
	Quoted Quoting = "quoted"
	Either Quoting = "either" // both are read, and name the same key; Semel sends the quoted form
)

// keyBits is how much of the seed's digest a key carries. 128 bits fit into the shortest limits that are known (36
// characters) and leave collisions out of the question; a UUID carries 122.
const keyBits = 128

// FormatKey makes the key for a stable seed, as it goes on the wire: quoted where the grammar says so. The same seed
// and grammar give the same key in every process and every release. The key is made from a SHA-256 of the seed, so it
// does not reveal it; yet a seed that can be guessed can be tested, so give it a digest that holds a secret where
// that matters.
//
// Where the grammar says nothing, the key is 32 hexadecimal digits. FormatKey fails when the seed is empty, and when
// the grammar has no room for a key that is safe from collisions or asks for a UUID which holds a time.
func (g KeyGrammar) FormatKey(seed string) (string, error) {
	if seed == "" {
		return "", errors.New("a key cannot be made from an empty seed")
	}
	digest := sha256.Sum256([]byte("semel downstream key\x00" + seed))
	var key string
	var err error
	if g.Form == KeyUUID {
		key, err = g.formatUUID(digest)
	} else {
		key, err = g.formatText(digest)
	}
	if err != nil {
		return "", err
	}
	if g.Quoting == Quoted || g.Quoting == Either {
		key = `"` + key + `"`
	}
	return key, g.CheckKey(key)
}

// FormatKey makes the key for a stable seed as it stands in the contract's carrier. It is [KeyGrammar.FormatKey], but
// only a header carries quotes.
func (c Contract) FormatKey(seed string) (string, error) {
	g := c.Key
	if c.Carrier.In != InHeader {
		g.Quoting = Bare
	}
	return g.FormatKey(seed)
}

func (g KeyGrammar) formatUUID(digest [32]byte) (string, error) {
	version := g.UUIDVersion
	switch version {
	case 0:
		version = 8 // the version for UUIDs made by a rule of one's own
	case 4, 5, 8:
	default:
		return "", fmt.Errorf("a UUID of version %d cannot be made from a digest: it holds a time or an address", version)
	}
	u := digest[:16]
	u[6] = u[6]&0x0f | byte(version)<<4
	u[8] = u[8]&0x3f | 0x80
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], nil
}

// formatText writes the digest in the plainest alphabet that fits, and repeats the derivation where the key must be
// longer than one digest.
func (g KeyGrammar) formatText(digest [32]byte) (string, error) {
	alphabet, need := "0123456789abcdef", 32
	if g.Charset == Digits {
		alphabet, need = "0123456789", 39
	}
	if g.MaxLength > 0 && g.MaxLength < need {
		if g.Charset == Digits || g.Charset == Hex || g.CaseInsensitive || g.MaxLength < 22 {
			return "", fmt.Errorf("a key of at most %d characters of %q is too short to be safe from collisions", g.MaxLength, g.Charset)
		}
		alphabet, need = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 22
	}
	key := inAlphabet(digest[:keyBits/8], alphabet, need)
	for block := digest; len(key) < g.MinLength; {
		block = sha256.Sum256(block[:])
		key += inAlphabet(block[:keyBits/8], alphabet, need)
		if len(key) > g.MinLength {
			key = key[:g.MinLength]
		}
	}
	return key, nil
}

// inAlphabet writes b as a number in the alphabet's base, padded to n digits.
func inAlphabet(b []byte, alphabet string, n int) string {
	base, rest, digit := big.NewInt(int64(len(alphabet))), new(big.Int).SetBytes(b), new(big.Int)
	out := make([]byte, n)
	for i := n - 1; i >= 0; i-- {
		rest.DivMod(rest, base, digit)
		out[i] = alphabet[digit.Int64()]
	}
	return string(out)
}

// ParseKey returns the key that the text on the wire names, without quotes, or an error which says what is wrong with
// it. Under [Either] the quoted and the bare form of a key name the same key.
func (g KeyGrammar) ParseKey(wire string) (string, error) {
	key := wire
	quoted := strings.HasPrefix(wire, `"`)
	switch {
	case quoted && (g.Quoting == Quoted || g.Quoting == Either):
		k, err := unquote(wire)
		if err != nil {
			return "", err
		}
		key = k
	case g.Quoting == Quoted:
		return "", errors.New(`the key must stand in quotes, as in "8e03978e"`)
	}
	if g.CaseInsensitive {
		key = strings.ToLower(key)
	}
	return key, g.checkBare(key)
}

// CheckKey reports what is wrong with a key as it stands on the wire, or nil.
func (g KeyGrammar) CheckKey(wire string) error {
	_, err := g.ParseKey(wire)
	return err
}

func (g KeyGrammar) checkBare(key string) error {
	if key == "" {
		return errors.New("the key is empty")
	}
	n, unit := utf8.RuneCountInString(key), "characters"
	if g.Unit == Bytes {
		n, unit = len(key), "bytes"
	}
	if g.MinLength > 0 && n < g.MinLength {
		return fmt.Errorf("the key has %d %s; it needs at least %d", n, unit, g.MinLength)
	}
	if g.MaxLength > 0 && n > g.MaxLength {
		return fmt.Errorf("the key has %d %s; it may have at most %d", n, unit, g.MaxLength)
	}
	if g.Form == KeyUUID {
		return checkUUID(key, g.UUIDVersion)
	}
	return g.Charset.check(key)
}

func (c Charset) check(key string) error {
	for i, r := range key {
		if !c.has(r) {
			return fmt.Errorf("the character at byte %d of the key is not of the set %q", i, string(c))
		}
	}
	return nil
}

func (c Charset) has(r rune) bool {
	digit := r >= '0' && r <= '9'
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	switch c {
	case Digits:
		return digit
	case Hex:
		return digit || r >= 'a' && r <= 'f'
	case Alphanumeric:
		return digit || letter
	case URLSafe:
		return digit || letter || strings.ContainsRune("._~-", r)
	case VisibleASCII:
		return r > 0x20 && r < 0x7f
	case ASCII:
		return r >= 0x20 && r < 0x7f
	}
	return r >= 0x20 && r != 0x7f && r != utf8.RuneError // not said: anything but control characters
}

// checkUUID checks the 36 characters of a UUID. The nil UUID is nobody's identity and is always refused.
func checkUUID(s string, version int) error {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return errors.New("the key is not a UUID of 36 characters")
	}
	nonzero := false
	for i := 0; i < len(s); i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			continue
		}
		c := s[i] | 0x20
		if !(s[i] >= '0' && s[i] <= '9' || c >= 'a' && c <= 'f') {
			return errors.New("the key is not a UUID: it has a character that is not hexadecimal")
		}
		nonzero = nonzero || s[i] != '0'
	}
	if !nonzero {
		return errors.New("the nil UUID is no key")
	}
	if version != 0 && s[14] != "0123456789abcdef"[version&0xf] {
		return fmt.Errorf("the key is not a UUID of version %d", version)
	}
	return nil
}

// unquote reads a bare string of RFC 9651: printable ASCII in quotes, with \" and \\ as the only escapes.
func unquote(s string) (string, error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			if i != len(s)-1 {
				return "", errors.New("something follows the closing quote of the key")
			}
			return b.String(), nil
		case c == '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", errors.New(`the key has a backslash that escapes neither a quote nor a backslash`)
			}
			b.WriteByte(s[i])
		case c < 0x20 || c > 0x7e:
			return "", errors.New("the quoted key has a character that is not printable ASCII")
		default:
			b.WriteByte(c)
		}
	}
	return "", errors.New("the key has no closing quote")
}
