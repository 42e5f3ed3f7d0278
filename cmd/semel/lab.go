package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-dev/semel/lab"
)

func init() {
	for name, role := range lab.Roles {
		hidden = append(hidden, command{name: name, run: func(ctx context.Context, _ []string) error { return role(ctx) }})
	}
}

// errNotKept says that something is not as it should be; the report has been printed.
var errNotKept = errors.New("something is not as it should be")

// runLab is `semel lab`: the scenarios, or one of its own commands.
func runLab(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "explore":
			return runExplore(ctx, args[1:])
		case "list":
			return listScenarios(args[1:])
		case "crash":
			return runCrash(ctx, args[1:])
		case "soak":
			return runSoak(ctx, args[1:])
		}
	}
	set := flags("lab")
	o := lab.RunOptions{Progress: scenarioProgress()}
	store := labStore(set)
	set.BoolVar(&o.Full, "full", false, "at full size, which takes minutes: 10,000 operations, 100,000 waiting")
	set.IntVar(&o.Parallel, "parallel", 4, "how many scenarios run at a time")
	unsafe := set.String("unsafe", "", "run the scenario `NAME`, or those of a group, without what protects it")
	asJSON := set.Bool("json", false, "print one JSON object for each scenario")
	markdown := set.Bool("markdown", false, "print the table for a document")
	names, err := parseWords(set, args)
	if errors.Is(err, flag.ErrHelp) {
		writeHelp(os.Stdout, "lab", set)
	}
	if err != nil {
		return err
	}
	if err := atLeastOne("lab", map[string]int{"parallel": o.Parallel}); err != nil {
		return err
	}
	if *unsafe != "" {
		o.Unsafe, names = true, append(names, *unsafe)
	}
	scenarios, err := lab.Scenarios(names...)
	if err != nil {
		return err
	}
	if without := func(s lab.Scenario) bool { return s.Unsafe == "" }; o.Unsafe && len(scenarios) > 1 {
		scenarios = slices.DeleteFunc(scenarios, without) // of a group, those that have one
	}
	o.Store = *store
	results, err := lab.Run(ctx, scenarios, &o)
	if err != nil {
		return err
	}
	switch {
	case *asJSON:
		err = printJSON(results)
	case *markdown:
		err = lab.WriteMarkdown(os.Stdout, results)
	default:
		for _, s := range scenarios {
			if o.Unsafe {
				fmt.Printf("%s, unsafe: %s.\n\n", s.Name, s.Unsafe)
			}
		}
		err = lab.WriteTable(os.Stdout, results)
	}
	for _, r := range results {
		if err == nil && !r.Pass {
			err = errNotKept
		}
	}
	return err
}

func labStore(set *flag.FlagSet) *string {
	return set.String("store", "sqlite", "sqlite, or `URL` of a PostgreSQL database (postgres://…)")
}

func printJSON[T any](all []T) error {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, one := range all {
		if err := out.Encode(one); err != nil {
			return err
		}
	}
	return nil
}

// scenarioProgress is a line that is written over, where somebody watches.
func scenarioProgress() func(done, all int, latest lab.Result) {
	line := progressLine()
	return func(done, all int, latest lab.Result) {
		if line(fmt.Sprintf("%d of %d: %s", done, all, latest.Scenario)); done == all {
			line("")
		}
	}
}

// progressLine writes one line over and over on a terminal that can, and nothing
// elsewhere.
func progressLine() func(text string) {
	stat, err := os.Stderr.Stat()
	if err != nil || stat.Mode()&os.ModeCharDevice == 0 || os.Getenv("TERM") == "dumb" {
		return func(string) {}
	}
	// Without wrapping, so that a narrow terminal cuts the line off and one "\r" is
	// enough to write it over.
	return func(text string) { fmt.Fprint(os.Stderr, "\r\033[K\033[?7l"+text+"\033[?7h") }
}

func listScenarios(args []string) error {
	if err := parse(flags("lab list"), args); err != nil {
		return err
	}
	scenarios, err := lab.Scenarios()
	if err != nil {
		return err
	}
	var list strings.Builder
	group := ""
	for _, s := range scenarios {
		if s.Group != group && s.Group != "" {
			fmt.Fprintf(&list, "%-34s those that begin so, together\n", s.Group)
		}
		group = s.Group
		fmt.Fprintf(&list, "%-34s %s\n", s.Name, s.Title)
		if s.Unsafe != "" {
			fmt.Fprintf(&list, "%-34s unsafe: %s\n", "", s.Unsafe)
		}
	}
	_, err = fmt.Print(list.String())
	return err
}

// atLeastOne refuses a number below one, by the name of its flag.
func atLeastOne(command string, numbers map[string]int) error {
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if numbers[name] < 1 {
			return wrongCall(command, "--%s is at least 1", name)
		}
	}
	return nil
}

// runCrash is `semel lab crash`.
func runCrash(ctx context.Context, args []string) error {
	set := flags("lab crash")
	line := progressLine()
	o := lab.CrashOptions{Progress: func(done, all int) {
		if line(fmt.Sprintf("%d of %d workers killed", done, all)); done == all {
			line("")
		}
	}}
	store := labStore(set)
	set.IntVar(&o.Rounds, "rounds", 3, "how often a worker is killed in each cell")
	set.IntVar(&o.Parallel, "parallel", 9, "how many cells run at a time")
	asJSON := set.Bool("json", false, "print one JSON object for each cell")
	if err := parse(set, args); err != nil {
		return err
	}
	if err := atLeastOne("lab crash", map[string]int{"rounds": o.Rounds, "parallel": o.Parallel}); err != nil {
		return err
	}
	o.Store = *store
	cells, err := lab.Crash(ctx, &o)
	if stopped := ctx.Err(); err != nil && stopped != nil {
		line("")
		if err := printCells(cells, *asJSON, wasInterrupted+"\n"); err != nil {
			return err
		}
		return stopped
	}
	if err != nil {
		return err
	}
	err = printCells(cells, *asJSON, "")
	for _, c := range cells {
		if err == nil && !c.Pass {
			err = errNotKept
		}
	}
	return err
}

// printCells prints the matrix, and a note for people below it.
func printCells(cells []lab.Cell, asJSON bool, note string) error {
	if asJSON {
		return printJSON(cells)
	}
	err := lab.WriteCells(os.Stdout, cells)
	if err == nil {
		_, err = fmt.Print(note)
	}
	return err
}

// runSoak is `semel lab soak`.
func runSoak(ctx context.Context, args []string) (err error) {
	set := flags("lab soak")
	line := progressLine()
	o := lab.SoakOptions{Seed: rand.Uint64N(1_000_000), Progress: func(r lab.SoakReport) {
		line(fmt.Sprintf("%d s, %d kills, %d operations asked for", r.Seconds, r.Kills, r.Asked))
	}}
	store := labStore(set)
	set.DurationVar(&o.For, "for", time.Minute, "how long")
	set.Func("seed", "a number `N` that chooses what everybody does (default: a random one, which is printed)", func(text string) (err error) {
		if o.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			err = errors.New("parse error") // as package flag has it
		}
		return err
	})
	set.IntVar(&o.Nodes, "nodes", 3, "how many processes serve and work")
	set.IntVar(&o.Workers, "workers", 2, "how many processes only work")
	set.IntVar(&o.Clients, "clients", 16, "how many clients ask")
	set.DurationVar(&o.KillEvery, "kill-every", time.Second, "how often one of the processes is killed")
	record := set.String("record", "", "write the whole history to `FILE` if a promise is broken")
	asJSON := set.Bool("json", false, "print the report as JSON")
	if err := parse(set, args); err != nil {
		return err
	}
	if err := atLeastOne("lab soak", map[string]int{"nodes": o.Nodes, "workers": o.Workers, "clients": o.Clients}); err != nil {
		return err
	}
	if o.For <= 0 || o.KillEvery <= 0 {
		return wrongCall("lab soak", "--for and --kill-every are more than nothing")
	}
	o.Store = *store
	if *record != "" {
		file, err := os.Create(*record)
		if err != nil {
			return fmt.Errorf("--record: %w; nothing was started", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		o.Record = file
	}
	r, err := lab.Soak(ctx, &o)
	line("")
	if stopped := ctx.Err(); err != nil && stopped != nil {
		if !*asJSON {
			fmt.Printf("After %d s, %d kills and %d operations asked for it was interrupted: nothing has been judged. --seed %d makes the same choices.\n",
				r.Seconds, r.Kills, r.Asked, o.Seed)
		}
		return stopped
	}
	if err != nil {
		return err
	}
	if *asJSON {
		err = printJSON([]lab.SoakReport{r})
	} else {
		_, err = fmt.Print(r)
	}
	if err == nil && !r.Pass {
		err = errNotKept
	}
	return err
}
