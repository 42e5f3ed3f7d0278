# Two commands: `go run ./cmd/semel demo` shows it, `make test` proves it.

export SEMEL_REQUIRE = 1        # a missing database or browser is a failure, not a skip

.PHONY: test need lint go js demo bench soak

test: need lint js go

need:
	scripts/need

lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || (gofmt -l $$(git ls-files '*.go'); echo 'run gofmt'; exit 1)
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

js:
	cd sdk/js && npm ci --no-audit --no-fund && npm test && npm run test:browser

# Libraries run under the race detector, a few rounds of everything; then all
# tests run whole, one package at a time, so that nothing waits for a busy core.
go:
	go test -race -short -p 1 -timeout 30m $$(go list ./... | grep -vE '/(cmd|lab|examples|internal)(/|$$)')
	go test -p 1 -timeout 30m ./...

demo:
	go run ./cmd/semel demo

# What takes an hour or two: a hundred kills in every cell of the crash matrix, 10,000
# operations through a service that fails, ten minutes of kills, 200 callers of each of
# 1,000 keys at two servers, a list of a million, 200 early answers under the race
# detector, every pair of faults.
soak: need
	SEMEL_SOAK=1 go test -count=1 -v -timeout 4h ./lab
	SEMEL_SOAK=1 go test -count=1 -v -timeout 1h ./cmd/semel -run 'TestTwoNodes|TestListStaysFast|TestFirstPaint'
	go test -race -count=1 -v -timeout 1h ./retryhttp -run TestEarlyAnswerDuringUpload
	go run ./cmd/semel lab explore --depth 2

# One table of ratios against baselines in the same run, and the limits of retryhttp and
# idempotency; half an hour, on a quiet machine.
bench: need
	cd bench && go run .
	cd bench/retryhttp && go test -count=1 -v -run Ratios .
	cd bench/idempotency && go test -count=1 -v -run Ratios .
