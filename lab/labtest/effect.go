package labtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/contract"
	"github.com/semel-dev/semel/effect"
	"github.com/semel-dev/semel/fault"
	"github.com/semel-dev/semel/internal/node"
	"github.com/semel-dev/semel/lab/history"
	"github.com/semel-dev/semel/lab/internal/child"
	"github.com/semel-dev/semel/lab/internal/expect"
	"github.com/semel-dev/semel/schema"
	"github.com/semel-dev/semel/worker"
)

// An Effect is an effect of yours, and how it can be counted.
type Effect struct {
	// New builds the effect, in each worker process anew. Its calls must go to
	// Place.Service, since that is where they are interrupted.
	New func(Place) (effect.Effect, error)
	// Contract is what the external service promises about repeats. The zero Contract
	// is opaque: it promises nothing.
	Contract contract.Contract
	// Service is the external service: a fake of yours, or a reverse proxy to a
	// sandbox. It runs in the test's own process and outlives all workers.
	Service http.Handler
	// Params are an operation's parameters, a JSON object. The id is another one for
	// each operation; Count must find it again.
	Params func(id string) string
	// Count is how often the effect of that id happened, as the other side has it.
	Count func(id string) (int, error)

	// Timeout is how long one call may take. Recovery after a kill takes a little
	// longer than that. Defaults to 2 s.
	Timeout time.Duration
	// Store is "sqlite", or the postgres:// URL of a database for tests, in which the
	// operations are left behind. Defaults to the environment's SEMEL_LAB_STORE, or
	// else to sqlite.
	Store string
}

func (e *Effect) check() error {
	var errs []error
	for _, field := range []struct {
		name    string
		missing bool
	}{{"New", e.New == nil}, {"Service", e.Service == nil}, {"Params", e.Params == nil}, {"Count", e.Count == nil}} {
		if field.missing {
			errs = append(errs, fmt.Errorf("labtest: Effect.%s is missing", field.name))
		}
	}
	if e.Timeout <= 0 {
		e.Timeout = 2 * time.Second
	}
	return errors.Join(append(errs, e.Contract.Validate())...)
}

// kind is how a worker is told to execute the effect. Waits are short, so that a
// recovery can be watched, and long enough for a busy machine.
func (e *Effect) kind(name string, call effect.Effect) worker.Kind {
	return worker.Kind{Name: name, Contract: e.Contract, Effect: call, Host: name, Timeout: e.Timeout, Lease: e.Timeout*5/4 + 500*time.Millisecond,
		Retry: worker.Retry{Base: 20 * time.Millisecond, Cap: 500 * time.Millisecond, MaxExecutions: 50}}
}

// patience is how long a row may take, however busy the machine is.
func (e *Effect) patience() time.Duration {
	return time.Minute + 20*e.Timeout + 2*e.Contract.LookUp.AbsentAfter.D() + 2*e.Contract.LookUp.ConsistentAfter.D()
}

// TestEffect plays every interruption with an effect of yours: what the network can
// do to a call, and what becomes of it when its worker is killed or sleeps. Each is
// a subtest below "effect". The package comment says which there are.
func TestEffect(t *testing.T, e Effect) {
	t.Helper()
	if err := e.check(); err != nil {
		t.Fatal(err)
	}
	inChild(t, e.work)
	enter(t)
	test := t.Name()
	shape := e.Contract.Shape()
	t.Run("effect", func(t *testing.T) { // ends when all rows have
		for _, row := range effectRows {
			if row.protected && !shape.Idempotent {
				continue // a service that knows no key does what it is told twice
			}
			if row.sleeps && !child.CanStop {
				continue
			}
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				r := newEffectRun(t, test, e)
				rules(t, r.net, row.rules)
				row.play(r)
				r.finish(row.what, row.want(shape.Opaque()))
			})
		}
	})
}

// An effectRun is one row with one operation.
type effectRun struct {
	*row
	e      Effect
	shape  contract.Shape
	ledger *semel.Ledger
	key    semel.Key
	wrong  []string
}

func newEffectRun(t *testing.T, test string, e Effect) *effectRun {
	r := &effectRun{row: newRow(t, test, e.Store, e.Service, e.patience()), e: e, shape: e.Contract.Shape()}
	r.key = semel.Key{Account: "labtest", Kind: r.id, ID: semel.NewID()} // a kind of its own, so that workers leave other rows alone
	store, err := node.OpenStore(r.ctx, r.place.Database, "")
	r.must(err)
	t.Cleanup(func() { store.Close() })
	r.ledger, err = semel.New(r.ctx, store, &semel.Options{Kinds: []semel.Kind{{Name: r.key.Kind, Canon: schema.JSON(r.key.Kind)}},
		PollInterval: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	r.must(err)
	t.Cleanup(func() { r.ledger.Close() })
	return r
}

func (r *effectRun) complain(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// ask asks for the operation once.
func (r *effectRun) ask(params string) (semel.Acceptance, error) {
	e := history.Event{What: history.Sent, At: time.Now(), Verb: "PUT", Key: r.key, Content: params, Attempt: fmt.Sprint(r.sent.Add(1))}
	r.rec.Add(e)
	got, err := r.ledger.Accept(r.ctx, semel.Request{Key: r.key, Params: []byte(params)})
	e.What, e.At = history.Answered, time.Now()
	if err != nil {
		e.Code = semel.AsError("accept", err).Code
	} else {
		e.Operation = &got.Operation
	}
	r.rec.Add(e)
	return got, err
}

// accepted asks, and is not refused.
func (r *effectRun) accepted() {
	r.t.Helper()
	_, err := r.ask(r.e.Params(r.id))
	r.must(err)
}

// worker starts a worker; a victim waits for the word, and ends (or sleeps) where it
// is told to.
func (r *effectRun) worker(name string) *child.Process {
	return r.start(setup{Name: name, Kind: r.key.Kind})
}

func (r *effectRun) victim(s setup) *child.Process {
	s.Name, s.Kind, s.Wait = "victim", r.key.Kind, true
	return r.start(s)
}

// over waits until the operation is settled, or needs a person.
func (r *effectRun) over() semel.Operation {
	r.t.Helper()
	op, err := r.ledger.Wait(r.ctx, r.key)
	r.must(err)
	return op
}

// finish lets everything come to its end, counts and judges.
func (r *effectRun) finish(what string, want expect.Want) {
	r.t.Helper()
	op := r.over()
	r.quiet(r.net)
	op, err := r.ledger.Get(r.ctx, r.key)
	r.must(err)
	past, err := r.ledger.History(r.ctx, r.key)
	r.must(err)
	page, err := r.ledger.List(r.ctx, semel.Query{Kind: r.key.Kind, Size: 10})
	r.must(err)
	n, err := r.e.Count(r.id)
	r.must(err)
	for range n {
		r.rec.Add(history.Event{What: history.Effect, Key: r.key})
	}
	r.rec.Add(history.Event{What: history.Final, Key: r.key, Operation: &op, History: &past})
	if len(page.Operations) != 1 {
		r.complain("%s on record", expect.Plural(len(page.Operations), "operation"))
	}
	r.judge(what, account{want: want, operations: len(page.Operations), effects: n, visible: string(op.State),
		wrong:   append(r.wrong, want.Wrong(n, op.State)...),
		history: r.rec.History(map[string]history.Promise{r.key.Kind: {Unknown: r.shape.Opaque()}})}, r.net)
}

// changed is a JSON object with one more member.
func changed(object string) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		return "", fmt.Errorf("labtest: not a JSON object: %w", err)
	}
	end := strings.LastIndex(object, "}")
	comma := ","
	if len(members) == 0 {
		comma = ""
	}
	return object[:end] + comma + `"labtest_changed":true` + object[end:], nil
}

// sends counts the requests that may have changed something.
func sends(p *fault.Proxy) int {
	n := 0
	for _, e := range p.Log() {
		if e.Method != http.MethodGet && e.Method != http.MethodHead {
			n += e.Sends
		}
	}
	return n
}
