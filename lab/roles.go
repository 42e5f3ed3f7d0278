package lab

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/semel-dev/semel/lab/internal/child"
	"github.com/semel-dev/semel/lab/service"
)

// Roles are what a process of the lab can be, by its hidden command. A program
// that runs the lab runs the role that its first argument names, as cmd/semel and
// the tests of this package do.
var Roles = map[string]func(context.Context) error{
	"lab-node":    nodeRole,
	"lab-service": serviceRole,
	"lab-naive":   naiveRole,
}

func roleLogger(name string) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})).With("process", name)
}

// serviceSetup is what an external service is told.
type serviceSetup struct {
	Dir         string        `json:"dir"`
	Keep        time.Duration `json:"keep"`
	Think       time.Duration `json:"think"`
	StoreErrors float64       `json:"store_errors"`
	Seed        uint64        `json:"seed"`
	Secret      string        `json:"secret"`
}

// serviceRole is the external service.
func serviceRole(ctx context.Context) error {
	var s serviceSetup
	if err := child.Setup(&s); err != nil {
		return err
	}
	ctx, stop := child.UntilOrphaned(ctx, os.Stdin)
	defer stop()
	orders, err := service.New(s.Dir, &service.Options{Keep: s.Keep, Think: s.Think, StoreErrors: s.StoreErrors, Seed: s.Seed, Secret: s.Secret})
	if err != nil {
		return err
	}
	defer orders.Close()
	return child.Serve(ctx, orders)
}
