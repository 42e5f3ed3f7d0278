package client

import (
	"context"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// What the other side has recorded was sent at some time.
func TestSinceOfWhatIsRecorded(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	out, err := w.client(nil, nil).Do(ctx, intent("idle"))
	u := is[Unconfirmed](t, out, err)
	if u.Operation == nil || u.Operation.State != semel.Accepted || u.Since.IsZero() {
		t.Errorf("since %v, %+v", u.Since, u.Operation)
	}
}
