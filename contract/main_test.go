package contract_test

import (
	"io"
	"log"
)

// quiet swallows what a server logs about clients that are rude on purpose.
var quiet = log.New(io.Discard, "", 0)
