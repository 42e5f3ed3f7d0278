package labtest

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/node"
	"github.com/semel-dev/semel/lab/internal/child"
	"github.com/semel-dev/semel/lab/internal/stops"
	"github.com/semel-dev/semel/worker"
)

// work is a worker process.
func (e *Effect) work(ctx context.Context, s setup) error {
	store, err := node.OpenStore(ctx, s.Place.Database, "")
	if err != nil {
		return err
	}
	defer store.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	stopper := &stops.Stopper{At: s.StopAt, Pause: s.Pause, Ended: true}
	ledger, err := semel.New(ctx, stops.Store{Store: store, Stopper: stopper}, &semel.Options{Logger: log})
	if err != nil {
		return err
	}
	defer ledger.Close()
	call, err := e.New(s.Place)
	if err != nil {
		return err
	}
	job, err := worker.NewKind(e.kind(s.Kind, stopper.Effect(call)))
	if err != nil {
		return err
	}
	w, err := worker.New(ledger, []worker.Kind{job}, &worker.Options{Name: s.Name, PollInterval: 20 * time.Millisecond,
		IdleInterval: 50 * time.Millisecond, DrainTimeout: time.Second, Logger: log})
	if err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	child.Ready("")
	if s.Wait {
		if _, err := in.ReadString('\n'); err != nil {
			return nil // nobody needs it any more
		}
	}
	ctx, stop := child.UntilOrphaned(ctx, in)
	defer stop()
	return w.Run(ctx)
}
