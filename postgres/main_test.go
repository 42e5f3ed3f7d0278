package postgres_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/pgtest"
	"github.com/semel-dev/semel/postgres"
	"github.com/semel-dev/semel/storetest"
)

func TestMain(m *testing.M) {
	storetest.Rival(openStore)
	pgtest.SkipExamples()
	code := pgtest.Main(m)
	stopDurable()
	os.Exit(code)
}

func openStore(url string) (semel.Store, error) {
	return postgres.Open(context.Background(), url, &postgres.Options{LockTimeout: time.Minute}) // on a busy machine
}

// Each operation is created by 200 callers in two processes, which also bring the
// tables up at the same moment.
func TestProcesses(t *testing.T) {
	goroutines := 100
	if testing.Short() {
		goroutines = 10
	}
	storetest.RunProcesses(t, pgtest.Database(t), goroutines, openStore)
}
