package idempotency

import (
	"net/http"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
)

// key reads the key of a request from the header that the contract names, or from
// one of the other headers that it allows.
func (h *Handler) key(r *http.Request) (key string, there bool, err error) {
	lines, name := 0, ""
	var wire string
	for _, place := range h.places {
		for _, line := range r.Header.Values(place) {
			lines, name, wire = lines+1, place, line
		}
	}
	switch {
	case lines == 0:
		return "", false, nil
	case lines > 1:
		return "", true, badKey("the header "+name+" is there more than once", "one request has one key")
	}
	key, err = parseKey(h.offer.Key, wire)
	return key, true, err
}

func parseKey(g contract.KeyGrammar, wire string) (string, error) {
	wire = strings.Trim(wire, " \t")
	if g.Quoting == contract.Either && !strings.HasPrefix(wire, `"`) {
		// Unquoted, these would be two readings of one header: a list that something
		// on the way has joined, parameters, a quote that was forgotten.
		if strings.ContainsAny(wire, " \t\",;\\") {
			return "", badKey("the key has a character that needs quotes around the key", `write it as in "8e03978e-40d5-43dd"`)
		}
	}
	key, err := g.ParseKey(wire)
	if err != nil {
		return "", badKey(err.Error(), "make a key before the first send, for example a UUIDv7, and keep it for every repeat")
	}
	return key, nil
}

func badKey(msg, hint string) *semel.Error {
	return &semel.Error{Code: semel.CodeInvalid, Msg: "the idempotency key is not valid: " + msg, Hint: hint}
}

func missingKey(name string) *semel.Error {
	return &semel.Error{Code: codeMissing, Msg: "this request needs a key in the header " + name,
		Hint: "make one before the first send, for example a UUIDv7, and keep it for every repeat"}
}
