package explore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semel-dev/semel/lab/explore"
)

// An exploration that is interrupted reports what has run, and blames nobody for
// what it cut off.
func TestInterrupted(t *testing.T) {
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		report, err := explore.Run(ctx, &explore.Options{Parallel: 8, Shapes: []string{"opaque"}, Progress: func(int, int) { cancel() }})
		cancel()
		if !errors.Is(err, context.Canceled) || report.Schedules < 100 || report.Schedules > 200 || len(report.Failures) > 0 {
			t.Errorf("%v, %s", err, report)
		}
	}
}
