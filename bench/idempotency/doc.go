// Package bench compares package idempotency with what else there is, on one
// PostgreSQL and in one run, and shows it behind routers of other projects. It is a
// module of its own, so that nobody who uses Semel gets their dependencies.
//
//	go test -v -run Ratios       what it costs, as ratios to the bare handler
//	go test -v -run OneEffect    what happens twice, and where
//	go test -run Routers         behind chi, gin and echo
package bench
