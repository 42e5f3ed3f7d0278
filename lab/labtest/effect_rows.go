package labtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/lab/internal/expect"
	"github.com/semel-dev/semel/lab/internal/stops"
)

// An effectRow is one interruption of an effect.
type effectRow struct {
	name, what string
	// rules are what the network does to the first call.
	rules string
	play  func(*effectRun)
	want  func(opaque bool) expect.Want
	// protected rows are for services that know a key again; sleeps needs a process
	// that can be stopped.
	protected, sleeps bool
}

var effectRows = []effectRow{
	{name: "undisturbed", what: "nothing goes wrong", play: undisturbed, want: known},

	{name: "answer-lost", what: "the answer is lost, after the effect", rules: "lose-answer count=1" + changing, play: plainly, want: doubt(1, 1)},
	{name: "done-then-503", what: "it is done, and the worker is told 503", rules: "status code=503 count=1" + changing, play: plainly, want: doubt(1, 1)},
	{name: "cut-before", what: "the connection breaks before the service has the call", rules: "cut-before count=1" + changing, play: plainly, want: doubt(0, 0)},
	{name: "cut-during", what: "the connection breaks in the middle of the call", rules: "cut-during count=1" + changing, play: plainly, want: doubt(0, 1)},
	{name: "cut-after", what: "the connection breaks in the middle of the answer", rules: "cut-after count=1" + changing, play: plainly, want: eitherWay},
	{name: "duplicated", what: "the network delivers the call twice", rules: "duplicate count=1" + changing, play: plainly, want: known, protected: true},
	{name: "duplicated-at-once", what: "the network delivers the call twice at the same moment", rules: "duplicate parallel=true count=1" + changing, play: plainly, want: known, protected: true},
	{name: "delivered-late", what: "the call arrives when its caller has long given up", rules: "hold at=before count=1" + changing, play: late, want: doubt(1, 1)},

	{name: "two-at-once", what: "two ask for the same at the same moment, and two workers are there", play: twoAtOnce, want: known},
	{name: "changed-request", what: "the same key comes again with another request", play: changedRequest, want: known},

	{name: "killed-before-begin", what: "the worker is killed before it is on record that it begins", play: killedBeforeBegin, want: dead(expect.BeforeBegin)},
	{name: "killed-after-begin", what: "the worker is killed before it calls", play: killedAt(stops.SendBefore), want: dead(expect.AfterBegin)},
	{name: "killed-sent", what: "the worker is killed while its call is on the way; it arrives", rules: "hold at=before count=1" + changing, play: killedInCall, want: dead(expect.Sent)},
	{name: "killed-done", what: "the worker is killed between the effect and the answer", rules: "hold at=after count=1" + changing, play: killedInCall, want: dead(expect.Done)},
	{name: "killed-answered", what: "the worker is killed between the answer and the write-back", play: killedAt(stops.FinishBefore), want: dead(expect.Answered)},
	{name: "killed-writing", what: "the worker is killed within the write-back", play: killedAt(stops.FinishDuring), want: dead(expect.Writing)},
	{name: "killed-written", what: "the worker is killed when it has written back", play: killedAt(stops.FinishAfter), want: known},

	{name: "outlived-before-call", what: "the worker sleeps before its call until another has taken over, and wakes up", play: outlived(stops.SendBefore), want: doubt(0, 0), sleeps: true},
	{name: "outlived-answered", what: "the worker sleeps with its answer until another has taken over, and wakes up", play: outlived(stops.FinishBefore), want: doubt(1, 1), sleeps: true},
}

func known(bool) expect.Want { return expect.Once }

// doubt: nobody can know what became of the first call, unless the contract can tell.
func doubt(least, most int) func(bool) expect.Want {
	return func(opaque bool) expect.Want {
		if opaque {
			return expect.Want{Least: least, Most: most, States: []semel.State{semel.NeedsReconciliation}}
		}
		return expect.Once
	}
}

// eitherWay: it depends on the effect whether a part of an answer says enough.
func eitherWay(opaque bool) expect.Want {
	if opaque {
		return expect.Want{Least: 1, Most: 1, States: []semel.State{semel.Succeeded, semel.NeedsReconciliation}}
	}
	return expect.Once
}

func dead(at expect.Point) func(bool) expect.Want {
	return func(opaque bool) expect.Want { return expect.AfterDeath(opaque, at) }
}

func plainly(r *effectRun) {
	r.accepted()
	r.worker("worker")
}

// undisturbed holds the rest to what it needs: calls that can be interrupted.
func undisturbed(r *effectRun) {
	plainly(r)
	r.over()
	if len(r.net.Log()) == 0 {
		r.complain("no call went to Place.Service: the effect calls somewhere else, where nothing can be interrupted")
	}
}

// late: the first call is under way until the operation has come to its end without
// it; where a second call is a second effect, until its caller has given up.
func late(r *effectRun) {
	r.accepted()
	r.worker("worker")
	r.held(r.net, noCall)
	if r.shape.Idempotent || r.shape.Opaque() {
		r.over()
	} else {
		r.until(func(h semel.History) bool { return len(h.Executions) > 0 && !h.Executions[0].EndedAt.IsZero() })
	}
	r.net.Release()
}

const noCall = "the effect did not call Place.Service"

func twoAtOnce(r *effectRun) {
	r.worker("worker-1")
	r.worker("worker-2")
	params := r.e.Params(r.id)
	var got [2]semel.Acceptance
	var errs [2]error
	var both sync.WaitGroup
	for i := range got {
		both.Go(func() {
			got[i], errs[i] = r.ask(params)
		})
	}
	both.Wait()
	r.must(errors.Join(errs[:]...))
	if got[0].Replayed == got[1].Replayed {
		r.complain("not exactly one of the two was the first")
	}
}

func changedRequest(r *effectRun) {
	r.accepted()
	r.worker("worker")
	r.over()
	other, err := changed(r.e.Params(r.id))
	r.must(err)
	if _, err := r.ask(other); !errors.Is(err, semel.ErrMismatch) {
		r.complain("the other request was not refused: %v", err)
	}
	if n := sends(r.net); n != 1 {
		r.complain("the service was called %d times", n)
	}
}

// killedBeforeBegin: for a service that can tell, the claim is the begin mark.
func killedBeforeBegin(r *effectRun) {
	if r.shape.Opaque() {
		killedAt(stops.BeginBefore)(r)
		return
	}
	killedAt(stops.ClaimBefore)(r)
}

// killedAt: the worker kills itself at a point of its own.
func killedAt(at stops.Point) func(*effectRun) {
	return func(r *effectRun) {
		r.accepted()
		victim := r.victim(setup{StopAt: at})
		r.must(victim.Release())
		r.must(victim.Killed(r.ctx))
		r.worker("rescuer")
	}
}

// killedInCall: its call is held, before or after the service has it.
func killedInCall(r *effectRun) {
	r.accepted()
	victim := r.victim(setup{})
	r.must(victim.Release())
	r.held(r.net, noCall)
	victim.Kill()
	r.net.Release()
	r.quiet(r.net)
	r.worker("rescuer")
}

// outlived: the worker's process is stopped, its lease ends, another one takes over,
// and then it goes on.
func outlived(at stops.Point) func(*effectRun) {
	return func(r *effectRun) {
		r.accepted()
		sleeper := r.victim(setup{StopAt: at, Pause: true})
		r.must(sleeper.Release())
		r.must(sleeper.AwaitLine(r.ctx, at.Announced()))
		r.worker("rescuer")
		before := r.over()
		r.must(sleeper.GoOn())
		r.until(func(h semel.History) bool {
			return h.Executions[0].LateOutcome != "" || !h.Executions[0].EndedAt.IsZero()
		})
		if after := r.over(); after.State != before.State || string(after.Result) != string(before.Result) {
			r.complain("it was %s, and is %s since the first worker woke up", before.State, after.State)
		}
	}
}

// lateWord is how long a worker that woke up has to say what it saw; it may have
// nothing to say.
const lateWord = 10 * time.Second

// until waits until the record says so.
func (r *effectRun) until(so func(semel.History) bool) {
	ctx, cancel := context.WithTimeout(r.ctx, lateWord)
	defer cancel()
	for {
		h, err := r.ledger.History(r.ctx, r.key)
		r.must(err)
		if so(h) || pause(ctx, 20*time.Millisecond) != nil { // another process writes it: there is no signal
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
