package labtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/lab/internal/expect"
)

// A handlerRow is one interruption of a handler.
type handlerRow struct {
	name, what string
	// rules are what the network does to the first request, and service what it does to
	// the first call of the external service.
	rules, service string
	play           func(*handlerRun)
	want           expect.Want
	// outside rows are for handlers that call an external service; sleeps needs a
	// process that can be stopped.
	outside, sleeps bool
}

var (
	// honest: it happened and is told, or nobody can know and that is told.
	honest = expect.Want{Least: 0, Most: 1, States: []semel.State{semel.Succeeded, semel.NeedsReconciliation}}
	// honestDone is honest where it certainly happened.
	honestDone = expect.Want{Least: 1, Most: 1, States: honest.States}
)

var handlerRows = []handlerRow{
	{name: "undisturbed", what: "nothing goes wrong", play: asked, want: expect.Once},

	{name: "answer-lost", what: "the answer is lost, after the effect", rules: "lose-answer count=1", play: asked, want: expect.Once},
	{name: "done-then-503", what: "it is done, and the client is told 503", rules: "status code=503 count=1", play: asked, want: expect.Once},
	{name: "cut-before", what: "the connection breaks before the server has the request", rules: "cut-before count=1", play: asked, want: expect.Once},
	{name: "cut-during", what: "the connection breaks in the middle of the request", rules: "cut-during count=1", play: asked, want: expect.Once},
	{name: "cut-after", what: "the connection breaks in the middle of the answer", rules: "cut-after count=1", play: asked, want: expect.Once},
	{name: "duplicated", what: "the network delivers the request twice", rules: "duplicate count=1", play: asked, want: expect.Once},
	{name: "duplicated-at-once", what: "the network delivers the request twice at the same moment", rules: "duplicate parallel=true count=1", play: asked, want: expect.Once},
	{name: "delivered-late", what: "the request arrives when its client has given up and asked again", rules: "hold at=before count=1", play: lateRequest, want: expect.Once},

	{name: "two-at-once", what: "two send the same at the same moment", rules: "hold at=before count=2", play: twoRequests, want: expect.Once},
	{name: "changed-request", what: "the same key comes again with another request", play: otherRequest, want: expect.Once},

	{name: "killed-answered", what: "the answer is lost, and the server is killed after it", rules: "lose-answer count=1", play: killedAfterwards, want: expect.Once},
	{name: "killed-anywhere", what: "the server is killed at some moment of a request", play: killedAnywhere, want: honest},
	{name: "killed-in-call", what: "the server is killed while its call to the service is on the way; it arrives", service: "hold at=before count=1" + changing, play: killedCalling, want: honest, outside: true},
	{name: "killed-done", what: "the server is killed between the effect and the write-back", service: "hold at=after count=1" + changing, play: killedCalling, want: honestDone, outside: true},
	{name: "outlived", what: "the server sleeps between the effect and the write-back until another has taken over, and wakes up", service: "hold at=after count=1" + changing, play: outlivedServer, want: honestDone, outside: true, sleeps: true},
	{name: "service-answer-lost", what: "the service's answer is lost, after the effect", service: "lose-answer count=1" + changing, play: asked, want: honestDone, outside: true},
}

func asked(r *handlerRun) { r.ask() }

// background sends once, and tells when there is an answer or there will be none.
func (r *handlerRun) background(ctx context.Context) (wait func() (reply, error)) {
	var a reply
	var err error
	done := make(chan struct{})
	go func() {
		a, err = r.send(ctx, r.h.Request)
		close(done)
	}()
	return func() (reply, error) { <-done; return a, err }
}

func lateRequest(r *handlerRun) {
	ctx, giveUp := context.WithCancel(r.ctx)
	first := r.background(ctx)
	r.held(r.front, "the request did not arrive")
	giveUp()
	first()
	r.ask()
	r.front.Release()
}

func twoRequests(r *handlerRun) {
	first, second := r.background(r.ctx), r.background(r.ctx)
	r.must(r.front.WaitHeld(r.ctx, 2))
	r.front.Release()
	first()
	second()
}

// otherRequest: whatever the answer is, it must not be another effect.
func otherRequest(r *handlerRun) {
	r.ask()
	build := r.h.Changed
	if build == nil {
		build = func(id string) *http.Request {
			req := r.h.Request(id)
			text, err := content(req)
			r.must(err)
			text, err = changed(text)
			r.must(err)
			req.Body, req.ContentLength = io.NopCloser(bytes.NewReader([]byte(text))), int64(len(text))
			return req
		}
	}
	a, err := r.send(r.ctx, build)
	r.must(err)
	if r.h.Contract.Mismatch.Do == contract.MismatchRefused && a.proof.Cause != contract.CauseMismatch {
		r.told.wrong = append(r.told.wrong, "the other request was answered with "+strconv.Itoa(a.status)+", which is no mismatch under the contract")
	}
}

func killedAfterwards(r *handlerRun) {
	if _, err := r.send(r.ctx, r.h.Request); err == nil {
		r.t.Fatal("the answer was not lost")
	}
	r.restart()
}

// killedAnywhere kills the server again and again, a little later each time, and
// each time with another intent.
func killedAnywhere(r *handlerRun) {
	begun := time.Now()
	r.ask()
	took := time.Since(begun)
	name := r.id
	for i := range r.h.Kills {
		r.conclude()
		r.next(name + "-" + strconv.Itoa(i))
		first := r.background(r.ctx)
		pause(r.ctx, took*time.Duration(2*i+1)/time.Duration(2*r.h.Kills)) // any moment is the point
		r.restart()
		first()
	}
}

func killedCalling(r *handlerRun) {
	first := r.background(r.ctx)
	r.held(r.net, "the handler did not call Place.Service")
	r.server.Kill()
	r.net.Release()
	r.quiet(r.net)
	r.restart()
	first()
}

// asleep is how long a server sleeps at the most. One that was stopped with a lock of
// the database in its hand keeps everybody waiting: then that is all it can show.
const asleep = 45 * time.Second

// outlivedServer stops the server's process, lets another one serve, and wakes the
// first one up when that has an answer. The first one's own client has given up by
// then: it could be told what is true and can no longer be recorded.
func outlivedServer(r *handlerRun) {
	waiting, giveUp := context.WithCancel(r.ctx)
	first := r.background(waiting)
	r.held(r.net, "the handler did not call Place.Service")
	sleeper := r.server
	r.must(sleeper.Stop())
	r.server = r.start(setup{}, r.door.File)
	ctx, cancel := context.WithTimeout(r.ctx, asleep)
	defer cancel()
	r.answered(ctx)
	giveUp()
	first()
	r.must(sleeper.GoOn())
	r.net.Release()
}
