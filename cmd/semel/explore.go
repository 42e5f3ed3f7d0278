package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/semel-dev/semel/lab/explore"
	"github.com/semel-dev/semel/lab/history"
)

// runExplore is `semel lab explore`.
func runExplore(ctx context.Context, args []string) error {
	set := flags("lab explore")
	var o explore.Options
	set.IntVar(&o.Depth, "depth", 2, "how many faults a schedule has at most: 1 or 2")
	set.IntVar(&o.Sample, "sample", 0, "run only so many of the pairs, chosen by --seed (default: all)")
	set.Uint64Var(&o.Seed, "seed", 0, "chooses the sample")
	shapes := set.String("shapes", strings.Join(explore.Shapes, ","), "contract shapes")
	scripts := set.String("scripts", strings.Join(explore.Scripts, ","), "what the callers do")
	replay := set.String("replay", "", "run this one `SCHEDULE` (a failure names its own), and print all that happened in it")
	if err := parse(set, args); err != nil {
		return err
	}
	if *replay != "" {
		return replaySchedule(ctx, *replay)
	}
	if o.Depth != 1 && o.Depth != 2 || o.Sample < 0 {
		return wrongCall("lab explore", "--depth is 1 or 2, and --sample is not negative")
	}
	o.Shapes, o.Scripts = strings.Split(*shapes, ","), strings.Split(*scripts, ",")
	for _, shape := range o.Shapes {
		for _, script := range o.Scripts {
			if _, err := explore.ParseSchedule(shape + "/" + script + ":"); err != nil {
				return wrongCall("lab explore", "%s", err)
			}
		}
	}
	line := progressLine()
	o.Progress = func(done, planned int) {
		if planned == 0 { // not known yet
			line(fmt.Sprintf("%d schedules", done))
			return
		}
		line(fmt.Sprintf("%d of %d schedules", done, planned))
	}
	report, err := explore.Run(ctx, &o)
	line("")
	if ctx.Err() != nil && err != nil {
		if _, err := fmt.Printf("%s%s\n", report, partial(o, report)); err != nil {
			return err
		}
		return context.Canceled
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Print(report); err != nil {
		return err
	}
	if len(report.Failures) > 0 {
		return errNotKept
	}
	return nil
}

const wasInterrupted = "\nThis is partial: it was interrupted, and what has not run says nothing."

// partial says how much an interrupted exploration has left out.
func partial(o explore.Options, r explore.Report) string {
	if o.Depth == 2 && r.Pairs == 0 {
		return wasInterrupted + " The single faults had not all run, and they say how many pairs there are."
	}
	return wasInterrupted
}

func replaySchedule(ctx context.Context, text string) error {
	s, err := explore.ParseSchedule(text)
	if err != nil {
		return wrongCall("lab explore", "--replay: %s", err)
	}
	violations, recording, err := explore.Replay(ctx, s)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, e := range recording.Events {
		out.Encode(e)
	}
	if len(violations) > 0 {
		fmt.Print(history.Report(violations, 100))
		return errNotKept
	}
	fmt.Println("every promise was kept")
	return nil
}
