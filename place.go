package semel

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
)

// A Place is a position in a list: the newest operation first, then by key. The
// place of the last operation on a page is what the next page begins behind.
type Place struct {
	CreatedAt         int64 // in milliseconds
	Account, Kind, ID string
}

// PlaceOf is where the operation stands.
func PlaceOf(op Operation) Place {
	return Place{op.CreatedAt.UnixMilli(), op.Key.Account, op.Key.Kind, op.Key.ID}
}

// Key is the key of the operation at that place.
func (p Place) Key() Key { return Key{Account: p.Account, Kind: p.Kind, ID: p.ID} }

// Compare orders places as a list shows them.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(o.CreatedAt, p.CreatedAt), o.Key().Compare(p.Key()))
}

// Token is the page token for what stands behind the place.
func (p Place) Token() string {
	text, _ := json.Marshal([]any{p.CreatedAt, p.Account, p.Kind, p.ID})
	return base64.RawURLEncoding.EncodeToString(text)
}

// Start returns the place that the page begins behind. It refuses, with
// [CodeInvalid], a size or a page token that can't be.
func (q Query) Start() (Place, error) {
	invalid := &Error{Op: "list", Code: CodeInvalid, Recorded: RecordedNo}
	if q.Size < 1 || q.Size > 1000 {
		invalid.Msg = "the page size is not 1 to 1000"
		return Place{}, invalid
	}
	if q.After == "" {
		return Place{CreatedAt: 1<<62 - 1}, nil // before every operation
	}
	var p Place
	text, err := base64.RawURLEncoding.DecodeString(q.After)
	if err == nil {
		err = json.Unmarshal(text, &[]any{&p.CreatedAt, &p.Account, &p.Kind, &p.ID})
	}
	if err != nil || p.Token() != q.After || p.Key().Validate() != nil {
		invalid.Msg, invalid.Hint = "the page token is not one of ours", "begin again without one"
		return Place{}, invalid
	}
	return p, nil
}
