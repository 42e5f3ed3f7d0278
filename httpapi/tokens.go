package httpapi

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
)

// An Identity is who asks.
type Identity struct {
	// Account is whose operations these are. Empty for an operator who has none of
	// its own.
	Account string
	// Operator says that this identity may use the operator calls.
	Operator bool
	// Accounts are the accounts that an operator sees; "*" alone is all of them.
	// Empty is none.
	Accounts []string
	// Name is who this is, for verdicts and logs. Defaults to the account.
	Name string
	// Ambient says that a browser attaches this credential by itself, as it does
	// with cookies. Such a request must come from this server's own pages unless
	// it is GET or HEAD.
	Ambient bool
}

// Sees reports whether the identity may act as operator on that account.
func (i Identity) Sees(account string) bool {
	return i.Operator && (slices.Contains(i.Accounts, account) || slices.Contains(i.Accounts, "*"))
}

// name returns who this is.
func (i Identity) name() string {
	if i.Name != "" {
		return i.Name
	}
	return i.Account
}

// A Token is one bearer token, without the token.
type Token struct {
	// Hash is what [HashToken] makes of the token.
	Hash string
	// Account, Operator, Accounts and Name are as in [Identity]. Several tokens may
	// have one account: add the new one, hand it out, then remove the old one.
	Account  string
	Operator bool
	Accounts []string
	Name     string
	// ExpiresAt ends the token, by this machine's clock. Defaults to never.
	ExpiresAt time.Time
}

// TokenPrefix begins every token, so that scanners for leaked secrets find them.
const TokenPrefix = "semel_"

// NewToken makes a token with at least 128 random bits.
func NewToken() string { return TokenPrefix + rand.Text() }

const hashPrefix = "sha256:"

// HashToken returns what is stored of a token: "sha256:" and 64 hexadecimal digits.
// A plain hash is enough, because a token is random and long; do not use it for
// secrets that people choose.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// Tokens is a set of bearer tokens. It is safe for concurrent use.
type Tokens struct{ set atomic.Pointer[tokenSet] }

// tokenSet finds tokens by the first bytes of their hash. How long that takes says
// nothing about a token: nobody can choose a token's hash. The rest is compared
// in constant time.
type tokenSet map[uint64][]storedToken

type storedToken struct {
	hash [sha256.Size]byte
	Token
}

// NewTokens makes a set. It reports, as [semel.CodeInvalid], a hash that is not one
// of [HashToken], a hash that is there twice, a name that is not an account's,
// a token that is good for nothing, or an operator's without a name.
func NewTokens(list []Token) (*Tokens, error) {
	t := &Tokens{}
	if err := t.Replace(list); err != nil {
		return nil, err
	}
	return t, nil
}

// Replace puts another list in the place of the present one, at once; errors as
// [NewTokens], and then nothing has changed. Sign-ins by a token that is no
// longer there end.
func (t *Tokens) Replace(list []Token) error {
	set := tokenSet{}
	for i, token := range list {
		invalid := func(msg string) error {
			return &semel.Error{Op: "tokens", Code: semel.CodeInvalid, Msg: fmt.Sprintf("token %d (%s): %s", i+1, token.Name, msg)}
		}
		s := storedToken{Token: token}
		text, ok := strings.CutPrefix(token.Hash, hashPrefix)
		if n, err := hex.Decode(s.hash[:], []byte(text[:min(len(text), 64)])); !ok || err != nil || n != sha256.Size || len(text) != 64 {
			return invalid(`the hash is not "sha256:" and 64 hexadecimal digits`)
		}
		if _, twice := set.find(s.hash); twice {
			return invalid("the same token is there twice")
		}
		if token.Account != "" && !semel.ValidName(token.Account) {
			return invalid("the account is not 1 to 64 of a-z 0-9 . _ - starting with a letter or digit")
		}
		for _, a := range token.Accounts {
			if a != "*" && !semel.ValidName(a) {
				return invalid(fmt.Sprintf("%q is not an account", a))
			}
		}
		if token.Account == "" && !token.Operator {
			return invalid("it has no account and is no operator's")
		}
		if token.Operator && token.Name == "" && token.Account == "" {
			return invalid("an operator needs a name: it stands under verdicts")
		}
		if len(token.Accounts) > 0 && !token.Operator {
			return invalid("it lists accounts to see and is no operator's")
		}
		at := s.index()
		set[at] = append(set[at], s)
	}
	t.set.Store(&set)
	return nil
}

func (s storedToken) index() uint64 { return binary.BigEndian.Uint64(s.hash[:]) }

func (set tokenSet) find(hash [sha256.Size]byte) (storedToken, bool) {
	var found storedToken
	ok := false
	for _, s := range set[binary.BigEndian.Uint64(hash[:])] {
		if subtle.ConstantTimeCompare(s.hash[:], hash[:]) == 1 {
			found, ok = s, true
		}
	}
	return found, ok
}

// Authenticate reads "Authorization: Bearer …". It is made for
// [Options.Authenticate].
//
// Errors by code: [semel.CodeUnauthenticated].
func (t *Tokens) Authenticate(r *http.Request) (Identity, error) {
	token, err := bearer(r)
	if err != nil {
		return Identity{}, err
	}
	s, err := t.valid(sha256.Sum256([]byte(token)))
	return s.identity(), err
}

// valid returns the token with that hash unless it has expired.
func (t *Tokens) valid(hash [sha256.Size]byte) (storedToken, error) {
	s, ok := t.set.Load().find(hash)
	if !ok || !s.ExpiresAt.IsZero() && !time.Now().Before(s.ExpiresAt) {
		return storedToken{}, &semel.Error{Op: "authenticate", Code: semel.CodeUnauthenticated, Msg: "this token is not known, or has expired",
			Hint: "ask whoever runs this server for a new one; your operations stay, they belong to the account"}
	}
	return s, nil
}

func (s storedToken) identity() Identity {
	return Identity{Account: s.Account, Operator: s.Operator, Accounts: s.Accounts, Name: s.Name}
}

// bearer returns the token in the Authorization header (RFC 6750).
func bearer(r *http.Request) (string, error) {
	refuse := func(msg string) (string, error) {
		return "", &semel.Error{Op: "authenticate", Code: semel.CodeUnauthenticated, Msg: msg, Hint: "send the header Authorization: Bearer and your token"}
	}
	lines := r.Header.Values("Authorization")
	switch {
	case len(lines) == 0:
		return refuse("there is no Authorization header")
	case len(lines) > 1:
		return refuse("there is more than one Authorization header")
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	token = strings.Trim(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > 1024 {
		return refuse("the Authorization header is not a bearer token")
	}
	return token, nil
}
