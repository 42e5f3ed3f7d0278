package idempotency

import (
	"net/http"

	"github.com/semel-dev/semel/contract"
)

// ParseKeyLines reads the lines of a header as a handler does.
func ParseKeyLines(g contract.KeyGrammar, lines []string) (string, error) {
	h := &Handler{places: []string{"Idempotency-Key"}}
	h.offer.Key = g
	key, _, err := h.key(&http.Request{Header: http.Header{"Idempotency-Key": lines}})
	return key, err
}

// AccountName and OperationID are the mappings to the grammar of keys.
var (
	AccountName = accountName
	OperationID = operationID
)
