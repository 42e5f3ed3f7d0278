package main

import (
	"context"
	"os"

	"github.com/semel-dev/semel/internal/demo"
)

// hidden are the commands that another command starts.
var hidden = func() []command {
	var list []command
	for name, role := range demo.Roles {
		list = append(list, command{name: name, run: func(ctx context.Context, _ []string) error { return role(ctx) }})
	}
	return list
}()

func runDemo(ctx context.Context, args []string) error {
	set := flags("demo")
	o := demo.Options{Out: os.Stdout, Log: os.Stderr, Token: os.Getenv("SEMEL_DEMO_TOKEN"), Guest: os.Getenv("SEMEL_DEMO_GUEST_TOKEN")}
	set.StringVar(&o.Data, "data", "", "`DIR` that keeps everything (default: semel-demo in the user's cache folder)")
	set.StringVar(&o.Addr, "addr", "127.0.0.1:8787", "`ADDR` of page and API")
	set.StringVar(&o.Contract, "contract", "idempotent", "what the generator promises: idempotent, queryable or opaque")
	if err := parse(set, args); err != nil {
		return err
	}
	return demo.Run(ctx, o)
}
