// Command semel is the one binary: server, worker, demonstration and tools.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// A command is one word after "semel".
type command struct {
	name, short string
	run         func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"demo", "show it: a page, a server, a worker and an image generator", runDemo},
		{"serve", "serve the HTTP interface, and execute", runServe},
		{"op", "look at operations on a server, and resolve them", runOp},
		{"proxy", "break connections to a service on purpose, and count", runProxy},
		{"lab", "cause the interruptions with real processes, and count", runLab},
		{"migrate", "bring the database's tables up to date, and end", runMigrate},
		{"token", "make a token, and the hash for the configuration", runToken},
		{"version", "print the version", runVersion},
	}
}

// errUsage says that the call was wrong; the text has been printed.
var errUsage = errors.New("usage")

// interrupted is the exit code of what Ctrl-C has ended before its time, as of
// every program that a signal ends.
const interrupted = 128 + int(syscall.SIGINT)

func main() {
	asked, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(context.Background())
	context.AfterFunc(asked, func() {
		stop() // a second Ctrl-C ends it at once
		cancel()
	})
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	if len(args) > 1 && args[0] == "help" {
		args = append(args[1:], "-h")
	}
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		usage(os.Stdout)
		return 0
	}
	if args[0] == "--version" {
		args[0] = "version"
	}
	for _, c := range append(commands(), hidden...) {
		if c.name == args[0] {
			return ended(c.name, c.run(ctx, args[1:]))
		}
	}
	fmt.Fprintf(os.Stderr, "semel: there is no command %q\n\n", args[0])
	usage(os.Stderr)
	return 2
}

// ended says how a command ended, and returns its exit code.
func ended(name string, err error) int {
	said := ""
	if err != nil {
		said = strings.TrimPrefix(strings.TrimPrefix(err.Error(), "semel: "), "fault: ")
	}
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	case err == context.Canceled:
		fmt.Fprintf(os.Stderr, "semel %s: interrupted before the end\n", name)
		return interrupted
	case errors.Is(err, context.Canceled): // what it says may be a doubt that stays
		fmt.Fprintf(os.Stderr, "semel %s: interrupted before the end: %s\n", name, said)
		return interrupted
	}
	fmt.Fprintf(os.Stderr, "semel %s: %s\n", name, said)
	return 1
}

func usage(w io.Writer) {
	fmt.Fprint(w, "Semel: ask as often as you like. It happens once, and nobody guesses.\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  semel %-8s %s\n", c.name, c.short)
	}
	fmt.Fprint(w, "\n`semel COMMAND -h` shows the flags of one.\n")
}
