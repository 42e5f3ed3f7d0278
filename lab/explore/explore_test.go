package explore_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/semel-dev/semel/lab/explore"
	"github.com/semel-dev/semel/lab/history"
)

// Every single fault at every boundary, and a sample of the pairs; all of them
// with SEMEL_EXPLORE=all, as `make soak` does.
func TestNoFaultBreaksAPromise(t *testing.T) {
	o := explore.Options{Depth: 2, Sample: 2000, Seed: 1}
	switch os.Getenv("SEMEL_EXPLORE") {
	case "all":
		o.Sample = 0
	case "first":
		o.MaxFailures = 1
		if in := os.Getenv("SEMEL_EXPLORE_IN"); in != "" {
			o.Scripts = strings.Split(in, ",")
		}
	}
	report, err := explore.Run(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	if len(report.Failures) > 0 {
		t.Fail()
	}
	if o.MaxFailures == 0 && (report.Singles < 2000 || report.Pairs == 0) {
		t.Error("that is too little to say anything")
	}
}

func TestScheduleText(t *testing.T) {
	for _, text := range []string{"opaque/submit:", "idempotent/two:3=error-after,9=crash-before", "queryable/give-up:0=set-back"} {
		s, err := explore.ParseSchedule(text)
		if err != nil || s.String() != text {
			t.Errorf("%q was read as %q, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "opaque", "opaque/dance:", "odd/submit:", "opaque/submit:x=late", "opaque/submit:1=bad", "opaque/give-up:-1=stray"} {
		if _, err := explore.ParseSchedule(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// A failure can be seen again by its text alone: the same things happen at the same
// times, whatever ran before.
func TestARunFollowsFromItsSchedule(t *testing.T) {
	for _, text := range []string{"opaque/submit:3=error-after", "queryable/journal:1=crash-after,9=late", "idempotent/rival:5=asleep,14=overtaken",
		"opaque/give-up:3=stray,4=error-before", "idempotent/outlive:2=lost,20=set-back", "queryable/direct:3=late"} {
		s, err := explore.ParseSchedule(text)
		if err != nil {
			t.Fatal(err)
		}
		var told [2]string
		for i := range told {
			_, recording, err := explore.Replay(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range recording.Events {
				if e.What == history.Effect { // by its key, which is another one each time
					e.By = ""
				}
				told[i] += fmt.Sprintln(e.At, e.What, e.By, e.Verb, e.Attempt, e.Code, e.Outcome, e.Operation != nil)
			}
		}
		if told[0] != told[1] || strings.Count(told[0], "\n") < 5 {
			t.Errorf("%s: first\n%s\nthen\n%s", text, told[0], told[1])
		}
	}
}
