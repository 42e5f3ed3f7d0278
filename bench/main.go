// Command bench measures Semel against bare loops and against River, on one
// PostgreSQL server with fsync on and on SQLite, and prints one table.
//
// Load generator, program and database share one machine, so the ratios count,
// not the rates. Ours and the baseline take turns, several rounds of each, and the
// ratio is the median of the rounds' ratios. The CPU columns are microseconds of
// this process (with pgbench, where that runs) + those of PostgreSQL for each
// operation: on a machine that is busy with other things, they tell more than the
// rates.
//
//	go run . [-rounds 5] [-time 4s] [-only NAME]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

var (
	rounds  = flag.Int("rounds", 5, "how often ours and the baseline take turns")
	length  = flag.Duration("time", 4*time.Second, "how long one turn lasts")
	profile = flag.String("profile", "", "write a CPU profile of this process to a file")
	only    = flag.String("only", "", "run only lines whose name holds this text")
	jobs    = flag.Int("jobs", 200_000, "how many operations wait in the burn-down")
	many    = flag.Int("many", 1_000_000, "how many rows wait in the claims")
)

// A turn runs one side for a while and returns how much it did.
type turn func(ctx context.Context) (sample, error)

// A sample is one turn's result: a rate in operations per second, or a time.
type sample struct {
	rate float64
	each time.Duration // where the time of one operation is what counts
	cpu  cpuTime       // per operation
	heap float64       // bytes that this process allocated per operation
	n    int
}

// A line is one line of the table.
type line struct {
	name     string
	aim      string // such as "≥ 1.0"
	ours     turn
	baseline turn
	against  string
	rounds   int  // zero: the flag
	heap     bool // tell the memory too
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer file.Close()
		pprof.StartCPUProfile(file)
		defer pprof.StopCPUProfile()
	}
	place, err := newPlace(ctx)
	if err != nil {
		return err
	}
	defer place.close()
	fmt.Printf("%-80s %14s %14s %7s  %-7s %17s   %s\n", "", "ours", "baseline", "ratio", "aim", "CPU µs", "baseline is")
	for _, makeLine := range lines {
		l, err := makeLine(ctx, place)
		if err != nil {
			return err
		}
		if !wanted(l.name) {
			place.clear()
			continue
		}
		if err := l.print(ctx); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		place.clear()
	}
	return nil
}

func wanted(name string) bool { return strings.Contains(name, *only) }

// print takes turns and prints the line.
func (l line) print(ctx context.Context) error {
	n := l.rounds
	if n == 0 {
		n = *rounds
	}
	var ours, base []sample
	var ratios []float64
	for range n {
		a, err := l.ours(ctx)
		if err != nil {
			return err
		}
		b, err := l.baseline(ctx)
		if err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
		ours, base = append(ours, a), append(base, b)
		if a.each > 0 {
			ratios = append(ratios, float64(a.each)/float64(b.each))
		} else {
			ratios = append(ratios, a.rate/b.rate)
		}
	}
	slices.Sort(ratios)
	a, b := middle(ours), middle(base)
	fmt.Printf("%-80s %14s %14s %7.2f  %-7s %8s/%-8s   %s\n", l.name, a, b, ratios[len(ratios)/2], l.aim, a.cpu, b.cpu, l.against)
	if l.heap {
		fmt.Printf("%-80s %11.0f kB %11.0f kB %7.2f\n", "  memory that each allocates", a.heap/1e3, b.heap/1e3, a.heap/b.heap)
	}
	return nil
}

func middle(all []sample) sample {
	slices.SortFunc(all, func(a, b sample) int {
		if a.each != b.each {
			return int(a.each - b.each)
		}
		return int(a.rate - b.rate)
	})
	return all[len(all)/2]
}

func (s sample) String() string {
	if s.each > 0 {
		return s.each.Round(time.Microsecond).String()
	}
	return fmt.Sprintf("%.0f/s", s.rate)
}
