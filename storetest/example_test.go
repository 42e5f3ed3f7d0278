package storetest_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlite"
	"github.com/semel-dev/semel/storetest"
)

// This is the body of a store's TestStore.
func ExampleRun() {
	testStore := func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Harness {
			path, clock := filepath.Join(t.TempDir(), "semel.db"), storetest.NewClock()
			return storetest.Harness{
				Clock: clock,
				Open: func() (semel.Store, error) {
					return sqlite.Open(context.Background(), path, &sqlite.Options{Clock: clock.Now})
				},
			}
		})
	}
	_ = testStore
}

// A clock stands still until a test moves it.
func ExampleClock() {
	clock := storetest.NewClock()
	before := clock.Now()
	clock.Add(90 * time.Minute)
	fmt.Println(clock.Now().Sub(before))
	// Output: 1h30m0s
}
