package memstore_test

import (
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/memstore"
	"github.com/semel-dev/semel/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		clock := storetest.NewClock()
		data := memstore.NewData(clock.Now)
		return storetest.Harness{Clock: clock, Open: func() (semel.Store, error) { return memstore.Open(data), nil }}
	})
}
