package labtest_test

import (
	"flag"
	"os"
	"testing"

	"github.com/semel-dev/semel/internal/pgtest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "6") // most of the time is spent waiting for leases to end
	os.Exit(pgtest.Main(m))
}
