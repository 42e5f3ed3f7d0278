package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/semel-dev/semel/httpapi"
	"github.com/semel-dev/semel/internal/config"
	"github.com/semel-dev/semel/internal/node"
)

func runServe(ctx context.Context, args []string) error {
	set := flags("serve")
	file := set.String("config", "", "the configuration `FILE` (YAML; its JSON Schema is docs/config.schema.json)")
	if err := parse(set, args); err != nil {
		return err
	}
	if *file == "" {
		return wrongCall("serve", "--config FILE is missing; docs/configuration.md has one to begin with")
	}
	cfg, err := config.Load(*file)
	if err != nil {
		return notStarted(err)
	}
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	n, err := node.Open(ctx, cfg, &node.Options{Logger: logger})
	if err != nil {
		return notStarted(err)
	}
	defer n.Close()
	for _, doubt := range cfg.Doubts() {
		logger.Warn("the configuration is accepted, and this in it is hardly meant", "at", doubt.At, "doubt", doubt.Msg)
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%s is in use, perhaps by another node: write another address, or end what uses this one", cfg.Listen)
	}
	if err != nil {
		return notStarted(cfg.At(err, "listen"))
	}
	stopping := context.AfterFunc(ctx, func() {
		logger.Info("stopping", "hint", "running executions may end; a second Ctrl-C does not wait for them, and then they are taken up when their leases end")
	})
	defer stopping()
	fmt.Printf("api: http://%s\nconsole: http://%s/console/\n", listener.Addr(), listener.Addr())
	return n.Run(ctx, listener, node.WithConsole(n.Server))
}

// notStarted says of an error before anything runs that nothing does.
func notStarted(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w\nnothing was started", err)
}

func runToken(_ context.Context, args []string) error {
	set := flags("token")
	name := set.String("name", "", "who will hold it")
	if err := parse(set, args); err != nil {
		return err
	}
	token := httpapi.NewToken()
	if _, err := fmt.Printf("token: %s\n", token); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "\nThis is shown once. Put the hash into the configuration, under the account's tokens or under operators:")
	_, err := fmt.Printf("- name: %q\n  hash: %s\n", *name, httpapi.HashToken(token))
	return err
}

func runVersion(_ context.Context, args []string) error {
	if err := parse(flags("version"), args); err != nil {
		return err
	}
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	_, err := fmt.Println("semel", version)
	return err
}
