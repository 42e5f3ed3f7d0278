package main

import (
	"context"
	"fmt"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/config"
	"github.com/semel-dev/semel/internal/node"
)

// runMigrate is for installations whose nodes may not change tables. Nodes do the
// same when they start; it may be run at any time, by any number of them.
func runMigrate(ctx context.Context, args []string) error {
	set := flags("migrate")
	file := set.String("config", "", "the configuration `FILE`, as for semel serve")
	if err := parse(set, args); err != nil {
		return err
	}
	if *file == "" {
		return wrongCall("migrate", "--config FILE is missing; docs/configuration.md has one to begin with")
	}
	cfg, err := config.Load(*file)
	if err != nil {
		return fmt.Errorf("%w\nnothing was started, and no table was changed", err)
	}
	store, err := node.OpenStore(ctx, cfg.Database, semel.Sharding(cfg.Sharding))
	if err != nil {
		return cfg.At(err, "database")
	}
	if err := store.Close(); err != nil {
		return err
	}
	_, err = fmt.Println("the tables are up to date")
	return err
}
