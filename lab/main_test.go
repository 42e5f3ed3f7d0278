package lab

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/semel-dev/semel/internal/pgtest"
)

// TestMain lets the test binary be a process of the lab.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role := Roles[os.Args[1]]; role != nil {
			if err := role(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(pgtest.Main(m))
}
