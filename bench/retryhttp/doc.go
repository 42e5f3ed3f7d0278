// Package bench measures what retryhttp costs while nothing goes wrong, as
// ratios to a bare http.Client in the same run, beside other retry layers for Go.
//
//	go test -v -run TestRatios
//	go test -bench . -benchmem
//
// The server is a process of its own, so that only the client is counted. It is
// a module of its own, so that nobody who uses Semel gets these dependencies.
package bench
