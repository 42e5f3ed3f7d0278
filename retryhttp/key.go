package retryhttp

import (
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/semel-dev/semel/contract"
)

// placedKey is the key of a call and where it stands in its request.
type placedKey struct {
	bare    string // without quotes: the identity
	keyed   bool   // the request carries it
	header  string // the header to set, "" for none
	wire    string // its value
	query   string // the query parameter to set, "" for none
	dropped string // the header to take off, "" for none
}

// findKey says how the request carries its key: one that stands in it already, or
// the call's. An error means that it can't be sent like this.
func findKey(c *contract.Contract, req *http.Request, call *Call) (placedKey, error) {
	var none placedKey
	if !c.Honours(req.Method) || readsOnly(req.Method) {
		return none, nil
	}
	if call.Key == "" {
		return standingKey(c, req), nil
	}
	for _, place := range places(c) {
		switch place.In {
		case contract.InHeader:
			return headerKey(c, req, place.Name, call.Key)
		case contract.InQuery:
			k := placedKey{bare: call.Key, keyed: true, query: place.Name}
			if standing := req.URL.Query()[place.Name]; len(standing) > 0 {
				if len(standing) > 1 || standing[0] != call.Key {
					return none, errTwoKeys
				}
				k.query = ""
			}
			return k, bareGrammar(c).CheckKey(call.Key)
		case contract.InPath, contract.InBody, contract.InDirective:
			return placedKey{bare: call.Key, keyed: true}, bareGrammar(c).CheckKey(call.Key)
		}
	}
	return none, nil
}

var errTwoKeys = errors.New("the request carries a key already, and it is another one")

// places lists where the contract lets a key travel, the preferred one first.
func places(c *contract.Contract) []contract.Place {
	if len(c.Carrier.Or) == 0 {
		return []contract.Place{c.Carrier.Place}
	}
	return append([]contract.Place{c.Carrier.Place}, c.Carrier.Or...)
}

// headerKey puts the call's key into a header.
func headerKey(c *contract.Contract, req *http.Request, name, key string) (placedKey, error) {
	wire := quoted(c.Key.Quoting, key)
	bare, err := c.Key.ParseKey(wire)
	if err != nil {
		return placedKey{}, err
	}
	k := placedKey{bare: bare, keyed: true, header: textproto.CanonicalMIMEHeaderKey(name), wire: wire}
	if standing, ok := req.Header[k.header]; ok {
		other, err := c.Key.ParseKey(strings.Join(standing, ", "))
		if err != nil || other != bare {
			return placedKey{}, errTwoKeys
		}
		k.header = ""
	}
	return k, nil
}

// quoted writes a key as the grammar wants it on the wire. One that stands in
// quotes already is left as it is.
func quoted(q contract.Quoting, key string) string {
	if q != contract.Quoted && q != contract.Either || len(key) > 1 && key[0] == '"' && key[len(key)-1] == '"' {
		return key
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// bareGrammar is the grammar outside of headers, where there are no quotes.
func bareGrammar(c *contract.Contract) contract.KeyGrammar {
	g := c.Key
	g.Quoting = contract.Bare
	return g
}

// standingKey finds the key in the request. One that is not of the contract's
// grammar, or stands there twice, is none. What travels in the path or the body
// can't be seen from here.
func standingKey(c *contract.Contract, req *http.Request) placedKey {
	for _, place := range places(c) {
		switch place.In {
		case contract.InHeader:
			values := req.Header[textproto.CanonicalMIMEHeaderKey(place.Name)]
			if len(values) != 1 {
				continue
			}
			if bare, err := c.Key.ParseKey(values[0]); err == nil {
				return placedKey{bare: bare, keyed: true}
			}
		case contract.InQuery:
			if req.URL.RawQuery == "" {
				continue
			}
			values := req.URL.Query()[place.Name]
			if len(values) == 1 && bareGrammar(c).CheckKey(values[0]) == nil {
				return placedKey{bare: values[0], keyed: true}
			}
		}
	}
	return placedKey{}
}

// redirectedKey returns the header that has to go from a request which
// [http.Client] made by following a redirect with another method: the key belongs
// to the first one.
func redirectedKey(c *contract.Contract, req *http.Request) string {
	first := req
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	if first.Method == req.Method {
		return ""
	}
	for _, place := range places(c) {
		if name := textproto.CanonicalMIMEHeaderKey(place.Name); place.In == contract.InHeader && len(req.Header[name]) > 0 {
			return name
		}
	}
	if len(req.Header["Idempotency-Key"]) > 0 { // whatever the contract says
		return "Idempotency-Key"
	}
	return ""
}

// apply puts the key into a transmission's own header and URL.
func (k *placedKey) apply(out *http.Request) {
	if k.header != "" {
		out.Header[k.header] = []string{k.wire}
	}
	if k.dropped != "" {
		delete(out.Header, k.dropped)
	}
	if k.query != "" {
		u := *out.URL
		pair := url.QueryEscape(k.query) + "=" + url.QueryEscape(k.bare)
		if u.RawQuery != "" {
			pair = u.RawQuery + "&" + pair
		}
		u.RawQuery = pair
		out.URL = &u
	}
}

// readsOnly reports whether a method changes nothing.
func readsOnly(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
