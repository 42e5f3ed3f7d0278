package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/semel-dev/semel/fault"
)

// A manual is what `semel NAME -h` says of a command, or of a part of one.
type manual struct {
	// args are behind the name in the usage line; a further line is a further form.
	args string
	// short is one sentence.
	short string
	// more is what follows it; may be empty.
	more string
	// exits says what the exit codes mean, where they say more than usual.
	exits string
}

const (
	usualExits  = "0 it is done, 1 it failed, 2 the call is wrong"
	serverExits = "0 it was asked to stop (Ctrl-C, SIGTERM) and has ended its work, 1 it failed, 2 the call is wrong"
	labExits    = "0 every promise was kept, 1 one was not, or it could not be tried, 2 the call is wrong, 130 interrupted"
	opExits     = "0 it is done, 1 the server refused or gave no answer, 2 the call is wrong, 130 interrupted"
)

var manuals = map[string]manual{
	"demo":    {"[--data DIR] [--addr ADDR] [--contract idempotent|queryable|opaque]", "shows all of it on this machine: a page, a server, a worker and an image generator.", "", serverExits},
	"serve":   {"--config FILE", "serves the HTTP interface, and executes.", "docs/configuration.md has a file to begin with.", serverExits},
	"proxy":   {"--to URL [--fault RULE …]", "breaks connections to a service on purpose, and counts.", fault.Language(), serverExits},
	"migrate": {"--config FILE", "brings the database's tables up to date, and ends.", "Nodes do the same when they start; this is for those that may not.", usualExits},
	"token":   {"[--name NAME]", "makes a token, and the hash of it for the configuration.", "The token goes to whoever will hold it, and is shown once; the server keeps only its hash.", usualExits},
	"version": {"", "prints the version.", "", usualExits},

	"op": {"list|get|history|abandon|resolve …", "looks at the operations on a server, and resolves them.", `  semel op list     lists operations
  semel op get      shows one
  semel op history  shows all that is known of one: attempts, executions, verdicts
  semel op abandon  makes sure that one will never run
  semel op resolve  says what became of one that nobody knows of

ACCOUNT/KIND/ID is an operator's call, KIND/ID one of the token's own account.
The token is read from --token-file, or else from SEMEL_TOKEN.`, opExits},
	"op list": {"[--account A] [--kind K] [--state S] [--size N]", "lists operations, newest first.",
		"With --account it is an operator's call, else the token's own account is listed.", opExits},
	"op get":     {"[ACCOUNT/]KIND/ID", "shows one operation.", "With an account it is an operator's call.", opExits},
	"op history": {"[ACCOUNT/]KIND/ID", "shows all that is known of one operation: attempts, executions, verdicts.", "With an account it is an operator's call.", opExits},
	"op abandon": {"KIND/ID", "makes sure that an operation of the token's own account will never run.",
		"One that has begun can't be abandoned.", opExits},
	"op resolve": {"ACCOUNT/KIND/ID --verdict applied|not_applied|acknowledged --evidence TEXT\n[--then retry|fail] [--result JSON] [--revision N]",
		"records what became of an operation that nobody knows of.",
		"It is an operator's call. When in doubt, do not say not_applied: with --then retry\nthat is what makes a second effect possible.", opExits},

	"lab": {"[--store sqlite|postgres://…] [--unsafe NAME] [NAME …]\nlist | crash | soak | explore", "causes the interruptions with real processes, and counts.", `Without a NAME every scenario runs.

  semel lab list     lists the scenarios
  semel lab crash    kills the worker at every point of an execution
  semel lab soak     kills everything at random, for a while
  semel lab explore  tries every fault, and every pair, at every boundary`, labExits},
	"lab list":  {"", "lists the scenarios, and what each does without its protection (--unsafe).", "", usualExits},
	"lab crash": {"[--store sqlite|postgres://…] [--rounds N] [--parallel N] [--json]", "kills the worker at every point of an execution, under every contract, and counts.", "", labExits},
	"lab soak": {"[--for TIME] [--seed N] [--store sqlite|postgres://…] [--record FILE] [--json] …",
		"kills servers and workers at random while clients ask, and then checks every promise.", "", labExits},
	"lab explore": {"[--depth 1|2] [--sample N --seed N] [--shapes …] [--scripts …]\n--replay SCHEDULE",
		"tries every fault, and every pair of faults, at every boundary, and checks every promise.",
		"All pairs take minutes; Ctrl-C ends it, with a report of what has run so far.", labExits},
}

// writeHelp writes the page of a command, and those of its flags that belong to it.
func writeHelp(w io.Writer, name string, set *flag.FlagSet) {
	p := manuals[name]
	for i, form := range strings.Split(p.args, "\n") {
		before := "usage: "
		if i > 0 {
			before = "       "
			if strings.HasPrefix(form, "[") { // it goes on with the line above
				fmt.Fprintf(w, "%s%*s %s\n", before, len("semel "+name), "", form)
				continue
			}
		}
		fmt.Fprintln(w, strings.TrimSpace(before+"semel "+name+" "+form))
	}
	if p.short != "" {
		fmt.Fprintf(w, "\nIt %s\n", p.short)
	}
	if p.more != "" {
		fmt.Fprintf(w, "\n%s\n", p.more)
	}
	var list bytes.Buffer
	set.VisitAll(func(f *flag.Flag) { writeFlag(&list, name, f) })
	if list.Len() > 0 {
		fmt.Fprintf(w, "\nflags:\n%s", list.String())
	}
	if p.exits != "" {
		fmt.Fprintf(w, "\nexit codes: %s\n", p.exits)
	}
}

// writeFlag writes one flag. A text that begins with the last word of another
// command ("list: …") is of a flag for that one alone.
func writeFlag(w io.Writer, name string, f *flag.Flag) {
	value, text := unquote(f)
	if whose, rest, ok := strings.Cut(text, ": "); ok {
		family, part, whole := strings.Cut(name, " ")
		if _, ok := manuals[family+" "+whose]; ok && whole {
			if part != whose {
				return
			}
			text = rest
		}
	}
	switch f.DefValue {
	case "", "0", "false", "0s":
	default:
		text += " (default " + f.DefValue + ")"
	}
	fmt.Fprintf(w, "  %s\n        %s\n", strings.TrimSpace("--"+f.Name+" "+value), text)
}

// sorts say what a value is, by its name in the usage.
var sorts = map[string]string{"N": "a whole number", "TIME": "a time such as 90s or 10m", "": "true or false"}

// unquote returns the name of a flag's value and what the flag is for.
func unquote(f *flag.Flag) (value, text string) {
	value, text = flag.UnquoteUsage(f)
	switch value {
	case "int", "uint":
		value = "N"
	case "duration":
		value = "TIME"
	case "string":
		value = "TEXT"
	}
	return value, text
}

// flags makes the flag set of a command, or of a part of one such as "lab crash".
func flags(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard) // what there is to say is said by parseWords
	return set
}

// parse reads args, and refuses what is left over.
func parse(set *flag.FlagSet, args []string) error {
	words, err := parseWords(set, args)
	if errors.Is(err, flag.ErrHelp) {
		writeHelp(os.Stdout, set.Name(), set)
		return err
	}
	if err == nil && len(words) > 0 {
		err = wrongCall(set.Name(), "%q is one word too many", words[0])
	}
	return err
}

// parseWords takes flags before, between and behind words. With [flag.ErrHelp] it
// returns the words before, and has said nothing.
func parseWords(set *flag.FlagSet, args []string) (words []string, err error) {
	for {
		if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
			return words, err
		} else if err != nil {
			return nil, wrongCall(set.Name(), "%s", wrongFlag(set, err))
		}
		if set.NArg() == 0 {
			return words, nil
		}
		words, args = append(words, set.Arg(0)), set.Args()[1:]
	}
}

// wrongFlag tells an error of package flag, with what the flag is for.
func wrongFlag(set *flag.FlagSet, err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		return fmt.Sprintf("there is no flag %s", name)
	}
	before, name, ok := strings.Cut(text, "flag -")
	if !ok {
		before, name, ok = strings.Cut(text, "flag needs an argument: -")
	}
	name, reason, _ := strings.Cut(name, ": ")
	f := set.Lookup(name)
	if !ok || f == nil {
		return text
	}
	value, use := unquote(f)
	flagged := strings.TrimSpace("--" + name + " " + value)
	switch {
	case !strings.HasPrefix(before, "invalid"):
		return fmt.Sprintf("%s has no value: %s", flagged, use)
	case reason == "parse error", reason == "value out of range":
		given := strings.TrimSuffix(strings.TrimPrefix(before, "invalid value "), " for ")
		return fmt.Sprintf("%s is not %s: %s: %s", given, sorts[value], flagged, use)
	}
	return fmt.Sprintf("%s: %s", flagged, reason)
}

// wrongCall says what is wrong with a call, and how to call.
func wrongCall(name, format string, args ...any) error {
	forms := strings.ReplaceAll(manuals[name].args, "\n", " ")
	if name == "lab" || name == "lab explore" { // the second line is a form of its own
		forms = strings.ReplaceAll(manuals[name].args, "\n", ", or semel "+name+" ")
	}
	fmt.Fprintf(os.Stderr, "semel %s: %s\nnothing was done\nusage: %s\n`semel %s -h` says more\n", name, fmt.Sprintf(format, args...), strings.TrimSpace("semel "+name+" "+forms), name)
	return errUsage
}
