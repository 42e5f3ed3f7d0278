package client

import (
	"context"
	"testing"

	"github.com/semel-dev/semel"
)

// What the other side has recorded was sent at some time.
func TestSinceOfWhatIsRecorded(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // nobody works on it: the client is told of it, and then it listens
		w.faults.WaitStarted(t.Context(), 2)
		cancel()
	}()
	out, err := w.client(nil, nil).Do(ctx, intent("idle"))
	u := is[Unconfirmed](t, out, err)
	if u.Operation == nil || u.Operation.State != semel.Accepted || u.Since.IsZero() {
		t.Errorf("since %v, %+v", u.Since, u.Operation)
	}
}
